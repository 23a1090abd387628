package server

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/explore"
	"hightide/internal/replay"
)

const stepSnapshot = "../../testdata/real/h100-lm-ctx128-train-step.pickle"

// snapshot opens a file and gives the id under which requests ask for it.
func (d *front) snapshot() string {
	d.Helper()
	var all SnapshotList
	d.get("GET", "/snapshots", "", 200, &all)
	if len(all.Snapshots) != 1 {
		d.Fatalf("%+v", all)
	}
	return all.Snapshots[0].ID
}

func TestWhatIf(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Files: []string{stepSnapshot}})
	path := "/snapshots/" + d.snapshot() + "/whatif"
	var same, other, small replay.Tried
	d.get("POST", path, `{}`, 200, &same)
	if !same.Exact || same.Line != "" || same.Recorded.Reserved != same.Replayed.Reserved ||
		len(same.Recorded.Moment.Segments) == 0 {
		t.Errorf("as recorded: %+v", same.Replayed.Figures)
	}
	d.get("POST", path, `{"settings": "expandable_segments:True", "event": 1000, "spread": true}`, 200, &other)
	if other.Line != "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" ||
		other.Replayed.Reserved == same.Recorded.Reserved || other.Spread == nil || other.Recorded.Moment.Event > 1000 {
		t.Errorf("expandable segments: %+v, %s", other.Replayed.Figures, other.Sentence)
	}
	d.get("POST", path, `{"gpu": "a100-40g"}`, 200, &small)
	if small.Replayed.OOM == nil || small.Capacity == 0 || !small.Verdict.IsOutOfMemory() ||
		!strings.HasPrefix(small.Verdict.Text, "Out of memory at event 18,521 of 19,770: ") {
		t.Errorf("on 40 GiB: %+v", small.Verdict)
	}
	made := 0
	for _, segment := range other.Replayed.Moment.Segments {
		for _, b := range segment.Blocks {
			if b[2] < 0 {
				continue
			}
			made++
			var block struct {
				N, Begin int
				Size     int64
			}
			if d.get("GET", fmt.Sprintf("%s/block?n=%d", strings.TrimSuffix(path, "/whatif"), b[2]), "", 200, &block); made < 20 && (block.Begin == 0 || block.Begin > 1001) {
				t.Errorf("block %d, there after event 1,000, begins at %d", b[2], block.Begin)
			}
		}
	}
	if made == 0 {
		t.Error("no block has its number")
	}
	var filtered WhatIf
	d.get("POST", path, `{"event": 19000, "q": "transformer.py"}`, 200, &filtered)
	marks := map[bool]int{}
	for _, segment := range filtered.Replayed.Moment.Segments {
		for _, b := range segment.Blocks {
			if b[1] != 0 && b[2] > -2 {
				marks[b[3] == explore.LeftOut]++
			}
		}
	}
	if marks[true] == 0 || marks[false] == 0 {
		t.Errorf("a search marks %d blocks, and not %d", marks[true], marks[false])
	}
	var again replay.Tried
	d.get("POST", path, `{"gpu": "a100-40g", "known": true}`, 200, &again)
	if len(again.Recorded.Moment.Segments) > 0 || len(again.Recorded.Curve.Event) > 0 ||
		again.Recorded.Reserved != same.Recorded.Reserved || len(again.Replayed.Moment.Segments) == 0 {
		t.Errorf("what is known is sent again: %d segments", len(again.Recorded.Moment.Segments))
	}
	for body, status := range map[string]int{
		`{"settings": "max_split_size_mb:1"}`: 422, `{"gpu": "nothing"}`: 404, `{"q": "("}`: 422, `{"memory": "much"}`: 422,
		`{"device": 9}`: 404, `{"settings": 3}`: 422, `{"setings": ""}`: 422,
	} {
		d.get("POST", path, body, status, nil)
	}
	d.get("POST", "/snapshots/nothere/whatif", `{}`, 404, nil)
}

// TestSearchJob: without leave to start programs, as it starts none.
func TestSearchJob(t *testing.T) {
	t.Parallel()
	d := open(t, Options{Files: []string{stepSnapshot}})
	var j Job
	d.get("POST", "/jobs", fmt.Sprintf(`{"kind": "search", "options": {"snapshot": %q, "device": -1}}`, d.snapshot()),
		http.StatusCreated, &j)
	_, told := d.until(j.ID, JobDone)
	if len(told) == 0 || told[len(told)-1] != "progress" {
		t.Errorf("told %v", told)
	}
	var whole struct {
		Result replay.Result `json:"result"`
	}
	if d.get("GET", "/jobs/"+j.ID, "", 200, &whole); whole.Result.Best == nil || len(whole.Result.Search) == 0 {
		t.Errorf("found %+v", whole.Result)
	}
	d.get("POST", "/jobs", `{"kind": "search", "options": {"snapshot": "nothere"}}`, http.StatusNotFound, nil)
}

// secondDevice is a snapshot of a process that used device 1 alone, as a rank of a job does: one segment, three blocks.
const secondDevice = "gASVpgIAAAAAAAB9KIwIc2VnbWVudHNdfSiMBmRldmljZUsBjAdhZGRyZXNzlIoGAAAAAAABjAp0b3RhbF9zaXplSgAAIACMDmFsbG9jYXRlZF9zaXplSwCMC2FjdGl2ZV9zaXplSwCMDnJlcXVlc3" +
	"RlZF9zaXpllEsAjAZzdHJlYW2USwCMDHNlZ21lbnRfdHlwZYwFc21hbGyMD3NlZ21lbnRfcG9vbF9pZEsASwCGjA1pc19leHBhbmRhYmxliYwGZnJhbWVzlF2MBmJsb2Nrc119KGgAigYAAAAAAAGM" +
	"BHNpemWUSgAAIABoAUsAjAVzdGF0ZYwIaW5hY3RpdmVoA111YXVhjA1kZXZpY2VfdHJhY2VzXShdXSh9KIwGYWN0aW9ulIwNc2VnbWVudF9hbGxvY4wEYWRkcpSKBgAAAAAAAWgESgAAIABoAksAaA" +
	"NdjAd0aW1lX3VzlEsBdX0oaAWMBWFsbG9jlGgGigYAAAAAAAFoBE0AEGgCSwBoA11oB0sCdX0oaAVoCGgGigYAEAAAAAFoBE0AEGgCSwBoA11oB0sDdX0oaAVoCGgGigYAIAAAAAFoBE0AEGgCSwBo" +
	"A11oB0sEdX0oaAWMDmZyZWVfcmVxdWVzdGVklGgGigYAAAAAAAFoBE0AEGgCSwBoA11oB0sJdX0oaAWMDmZyZWVfY29tcGxldGVklGgGigYAAAAAAAFoBE0AEGgCSwBoA11oB0sJdX0oaAVoCWgGig" +
	"YAEAAAAAFoBE0AEGgCSwBoA11oB0sKdX0oaAVoCmgGigYAEAAAAAFoBE0AEGgCSwBoA11oB0sKdX0oaAVoCWgGigYAIAAAAAFoBE0AEGgCSwBoA11oB0sLdX0oaAVoCmgGigYAIAAAAAFoBE0AEGgC" +
	"SwBoA11oB0sLdWVldS4="

// TestMainDevice: where no device is named, a replay and a search take the one that all other pages show.
func TestMainDevice(t *testing.T) {
	t.Parallel()
	text, err := base64.StdEncoding.DecodeString(secondDevice)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rank1.pickle")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, Options{Files: []string{file}})
	for _, body := range []string{`{}`, `{"device": -1}`, `{"device": 1}`} {
		var tried replay.Tried
		if d.get("POST", "/snapshots/"+d.snapshot()+"/whatif", body, 200, &tried); tried.Device != 1 || tried.Recorded.Reserved != 2<<20 {
			t.Errorf("%s: device %d, %d bytes", body, tried.Device, tried.Recorded.Reserved)
		}
	}
	var j Job
	d.get("POST", "/jobs", fmt.Sprintf(`{"kind": "search", "options": {"snapshot": %q}}`, d.snapshot()),
		http.StatusCreated, &j)
	d.until(j.ID, JobDone)
}
