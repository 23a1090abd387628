package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

// TestSourceOfUploads: a recording that was sent names a file of this machine. Its lines are quoted of a run of this
// machine's alone.
func TestSourceOfUploads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "private.py")
	if err := os.WriteFile(file, []byte("print('not theirs to read')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	theirs := store.OpenFiles(t.TempDir())
	info := mem.RunInfo{Name: "sent", Verb: "run", Label: mem.Measured, StartMono: 1,
		StartWall: time.Now().Add(time.Hour).UnixNano()}
	w, err := theirs.Create(info)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []mem.Frame{
		info, mem.Process{ID: 1, PID: 1, Start: 1}, mem.StackDef{ID: 1,
			Locations: []mem.Location{{File: file, Line: 1, Function: "f"}}},
		mem.HeapUse{Process: 1, Time: 2, Live: 9 << 20, Peak: true,
			Sites: []mem.SiteUse{{Stack: 1, Live: 9 << 20, Count: 9}}},
		mem.End{Time: 3, Reason: "exit"},
	} {
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := theirs.List(store.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for from, quoted := range map[string]bool{store.FromFile: true, store.FromUpload: false} {
		s := newSite(t, Options{})
		run, err := s.made.engine.Visit(t.Context(), rows[0].File, from, nil)
		if err != nil {
			t.Fatal(err)
		}
		var r report.Report
		s.get("/api/v1/runs/"+run.ID+"/report", &r)
		if len(r.Stacks) != 1 || len(r.Stacks[0].Frames) != 1 {
			t.Fatalf("%s: %v", from, r.Stacks)
		}
		if got := r.Stacks[0].Frames[0].Source; (got != "") != quoted {
			t.Errorf("of a recording by %s the report quotes %q", from, got)
		}
	}
}

// TestHeapAt: a heap at a time, and what a stretch took and kept; a time before the first reading has nothing, a
// process without a heap a reason.
func TestHeapAt(t *testing.T) {
	s := newSite(t, Options{})
	w := s.begin("heap", 3)
	s.write(w, mem.StackDef{ID: 1, Locations: []mem.Location{{File: "a.py", Line: 1, Function: "keep"}}},
		mem.StackDef{ID: 2, Locations: []mem.Location{{File: "a.py", Line: 2, Function: "work"}}})
	for i, held := range [][2]mem.Bytes{{100, 40}, {300, 0}, {300, 70}} {
		s.write(w, mem.HeapUse{Process: 1, Time: 1000 + int64(i+1)*1e8, Live: held[0] + held[1],
			Sites: []mem.SiteUse{{Stack: 1, Live: held[0], Count: 1}, {Stack: 2, Live: held[1], Count: 1}}})
	}
	s.finish(w)
	id := w.ID()
	for _, test := range []struct {
		asked string
		read  mem.Optional
		held  map[string]mem.Bytes
	}{
		{"at_ns=50000000", mem.Optional{}, map[string]mem.Bytes{}},
		{"at_ns=150000000", mem.Some(int64(1e8)), map[string]mem.Bytes{"keep": 100, "work": 40}},
		{"at_ns=200000000", mem.Some(int64(2e8)), map[string]mem.Bytes{"keep": 300}},
		{"at_ns=900000000", mem.Some(int64(3e8)), map[string]mem.Bytes{"keep": 300, "work": 70}},
		{"from_ns=150000000&at_ns=200000000", mem.Some(int64(2e8)), map[string]mem.Bytes{"keep": 200}},
		{"from_ns=200000000&at_ns=300000000", mem.Some(int64(3e8)), map[string]mem.Bytes{"work": 70}},
		{"from_ns=300000000&at_ns=100000000", mem.Some(int64(1e8)), map[string]mem.Bytes{}},
	} {
		var set report.StackSet
		s.get("/api/v1/runs/"+id+"/heap?process=1&"+test.asked, &set)
		held := map[string]mem.Bytes{}
		for _, use := range set.Stacks {
			held[set.Frames[set.Places[use.Node]].Function] = use.Bytes
		}
		if set.Time != test.read || len(held) != len(test.held) || held["keep"] != test.held["keep"] ||
			held["work"] != test.held["work"] || set.Label != mem.Sampled {
			t.Errorf("%s: %v read at %v, %s", test.asked, held, set.Time, set.Label)
		}
	}
	if status, text := s.ask(http.MethodGet, "/api/v1/runs/"+id+"/heap?process=9&at_ns=0", ""); status != http.StatusNotFound || !strings.Contains(text, "not sampled") {
		t.Errorf("a process without a heap: %d %s", status, text)
	}
}
