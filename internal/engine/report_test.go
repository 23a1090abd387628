package engine

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/wire"
)

// TestSnapshotInARecording: a real H100 snapshot travels in a recording in pieces, and the report
// opens on it with the figures that Python's own pickle gives (testdata/real/*.expected.json).
func TestSnapshotInARecording(t *testing.T) {
	data, err := os.ReadFile("../../testdata/real/h100-lm-ctx128-train-step.pickle")
	if err != nil {
		t.Fatal(err)
	}
	var recording bytes.Buffer
	w, err := wire.NewWriter(&recording)
	if err != nil {
		t.Fatal(err)
	}
	frames := []mem.Frame{mem.RunInfo{ID: "r", Label: mem.Measured}, mem.Process{ID: 1, PID: 7}}
	for at := 0; at < len(data); at += 1 << 20 {
		end := min(at+1<<20, len(data))
		frames = append(frames, mem.Snapshot{Process: 1, Name: "oom.pickle", Format: "torch-pickle", Piece: data[at:end],
			Last: end == len(data)})
	}
	for _, f := range frames {
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	run, err := wire.Load(bytes.NewReader(recording.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	r := Analyze(run)
	for _, table := range r.Tables {
		if table.Name != "device" || table.Number.Or(-1) != 0 {
			continue
		}
		for _, want := range []string{mem.Bytes(54873829888).String(), mem.Bytes(61111009280).String(), "1010 segments"} {
			if !strings.Contains(table.Note, want) {
				t.Errorf("%q is not in %q", want, table.Note)
			}
		}
		if len(table.Rows) < 5 {
			t.Errorf("only %d lines hold the device", len(table.Rows))
		}
		return
	}
	t.Fatalf("the report has no table of the device: notes %q", r.Notes)
}
