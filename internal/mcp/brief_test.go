package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"hightide/internal/engine"
	"hightide/internal/fit"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// long is an assistant of a run that there is much to say of.
func long(t *testing.T) func(tool, arguments string) (map[string]any, string, bool) {
	e := &engine.Engine{DataDir: t.TempDir(), Store: new(store.Memory)}
	w, err := e.Store.Create(mem.RunInfo{Verb: "run", Label: mem.Measured,
		Command: []string{"python", "train.py", strings.Repeat("--option=value ", 80)}, StartMono: 1, StartWall: 1})
	if err != nil {
		t.Fatal(err)
	}
	frames := []mem.Frame{mem.Process{ID: 1, PID: 7, Role: "main", Start: 1},
		mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured},
		mem.SeriesDef{ID: 2, Process: 1, Device: "cuda:0", Name: mem.SeriesReserved, Unit: mem.UnitBytes,
			Label: mem.Measured}}
	for i := range int64(500) {
		frames = append(frames, mem.Samples{Series: 1, Times: []int64{1 + i*1e8}, Values: []int64{i << 20}},
			mem.Samples{Series: 2, Times: []int64{1 + i*1e8}, Values: []int64{(1000 - i) << 20}})
	}
	for i := range 30 {
		frames = append(frames, mem.Event{Time: int64(i+1) * 1e9, Process: 1, Kind: "oom",
			Text: strings.Repeat("CUDA out of memory. ", 40), Bytes: mem.Some(int64(i) << 30),
			Where: &mem.Location{File: fmt.Sprintf("/home/mia/%s/train%d.py", strings.Repeat("deep/", 30), i), Line: 3},
			Facts: map[string]string{"source": "torch.cuda"}})
	}
	for _, f := range append(frames, mem.End{Time: 60e9, ExitCode: mem.Some(1)}) {
		err = errors.Join(err, w.Write(f))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	session := assistantOf(t, e, Options{})
	return func(tool, arguments string) (map[string]any, string, bool) {
		return call(t, session, tool, json.RawMessage(arguments))
	}
}

// TestReportIsBrief: a report takes at most 4 KB, text and fields together, and says what it leaves out; all of it is
// there for who asks.
func TestReportIsBrief(t *testing.T) {
	ask := long(t)
	answer, text, failed := ask("report", `{}`)
	fields, _ := json.Marshal(answer)
	some := len(answer["findings"].([]any))
	if failed || len(fields)+len(text) > 4<<10 || some == 0 || !strings.Contains(text, "findings") ||
		!strings.Contains(text, "left out: full has them") {
		t.Errorf("%d and %d bytes with %d findings: %s", len(fields), len(text), some, text)
	}
	answer, text, failed = ask("report", `{"full": true}`)
	if all := len(answer["findings"].([]any)); failed || all <= some || answer["omitted"] != nil || len(text) < 4<<10 {
		t.Errorf("full: %d findings, %v is left out, %d bytes of text", all, answer["omitted"], len(text))
	}
}

// TestBriefAdviceIsWhole: what to set can be set, however long it is.
func TestBriefAdviceIsWhole(t *testing.T) {
	advice := "Set PYTORCH_CUDA_ALLOC_CONF=" + strings.Repeat("roundup_power2_divisions:[256:1,512:2,1024:4,>:8],", 12) +
		"expandable_segments:True."
	long := strings.Repeat("It was so. ", 200)
	a := reportAnswer{Findings: []finding{{Title: long, Text: long, Advice: advice}}}
	if text := a.brief(); len(a.Findings) != 1 || a.Findings[0].Advice != advice {
		t.Errorf("%+v\n%s", a.Findings, text)
	}
}

// TestFitTextIsWhole: the table of a fit is as wide as what stands in it.
func TestFitTextIsWhole(t *testing.T) {
	why := "CUDA error with PYTORCH_CUDA_ALLOC_CONF=" + strings.Repeat("roundup_power2_divisions:[256:1,512:2],", 12) +
		"expandable_segments:True"
	r := &fit.Result{Label: mem.Imagined, Device: "cuda", Trials: []fit.Trial{{Batch: 4, Problem: why}}}
	if text := r.Text(plain); !strings.Contains(text, strings.TrimPrefix(why, "CUDA ")) {
		t.Errorf("%s", text)
	}
}

// TestCurves: a tool has the readings of a run over time, thinned, with the highest kept.
func TestCurves(t *testing.T) {
	ask := long(t)
	answer, text, failed := ask("curves", `{"names": ["`+string(mem.SeriesRSS)+`"], "points": 10}`)
	curves := answer["curves"].([]any)
	if failed || len(curves) != 1 || !strings.Contains(text, "highest 499 MiB at 49.9 s") {
		t.Fatalf("%v: %s", answer, text)
	}
	of := curves[0].(map[string]any)
	if x, y := of["x"].([]any), of["y"].([]any); len(x) > 12 || len(x) != len(y) ||
		!slices.Contains(y, any(float64(499<<20))) || of["unit"] != "bytes" {
		t.Errorf("%v", of)
	}
	if answer, _, _ := ask("curves", `{"from_ns": 10000000000, "to_ns": 20000000000}`); answer["curves"].([]any)[0].(map[string]any)["name"] != string(mem.SeriesReserved) {
		t.Errorf("the curve that leads is %v", answer["curves"])
	}
	if answer, _, _ := ask("curves", `{"names": ["all"]}`); len(answer["curves"].([]any)) != 2 || len(answer["others"].([]any)) != 0 {
		t.Errorf("all are %v", answer)
	}
	if _, text, failed := ask("curves", `{"names": ["host.rs"]}`); !failed || !strings.Contains(text, "did you mean host.rss?") || !strings.Contains(text, "allocator.reserved") {
		t.Errorf("%v: %s", failed, text)
	}
}

// TestWrongNames: an argument that a tool does not have is answered with those that it has.
func TestWrongNames(t *testing.T) {
	ask := long(t)
	for arguments, want := range map[string]string{
		`{"rum": "last"}`:              "the argument rum is not known; did you mean run? (one of full, run)",
		`{"run": "last", "id": "abc"}`: "the argument id is not known (one of full, run)",
	} {
		if _, text, failed := ask("report", arguments); !failed || text != want {
			t.Errorf("%s: %v %q, not %q", arguments, failed, text, want)
		}
	}
	if _, text, failed := ask("replay", `{"path": "x"}`); !failed || !strings.Contains(text, "alloc_conf, files, fresh, gpu, memory, search") {
		t.Errorf("%s", text)
	}
}

// TestSettingsAreWhole: an assistant can set what it reads, however long it is.
func TestSettingsAreWhole(t *testing.T) {
	settings := "expandable_segments:False,max_split_size_mb:200,garbage_collection_threshold:0.85,roundup_power2_divisions:[256:1,512:2,1024:4,>:8]"
	_, text, failed := call(t, assistant(t, Options{}), "replay",
		map[string]any{"files": []string{snapshot}, "alloc_conf": settings})
	if failed || !strings.Contains(text, "32768:8], gc 0.85") || strings.Contains(text, "…") {
		t.Errorf("%v: %s", failed, text)
	}
}

// TestSizesInDocs: docs/mcp.md says how long two answers are, and they are so.
func TestSizesInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`snapshot of 19,770 events\s+takes (\d+) KB, the list of tools (\d+) KB`).FindSubmatch(page)
	if said == nil {
		t.Fatal("docs/mcp.md does not say it")
	}
	session := assistant(t, Options{})
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	explained, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: "explain",
		Arguments: json.RawMessage(`{"files": ["../../testdata/real/h100-lm-ctx128-train-step.pickle"]}`)})
	if err != nil || explained.IsError {
		t.Fatalf("%v, %+v", err, explained)
	}
	for i, answer := range []any{explained, tools} {
		text, err := json.Marshal(answer)
		if kb := fmt.Sprint((len(text) + 500) / 1000); err != nil || kb != string(said[i+1]) {
			t.Errorf("it takes %s KB, docs/mcp.md says %s; %v", kb, said[i+1], err)
		}
	}
}
