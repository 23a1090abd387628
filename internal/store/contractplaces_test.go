package store_test

import (
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"
)

// places of a small run: a leak whose holder and site are apart, a finding without a line, and lines of different files.
var places = []mem.Place{
	{Kind: "leak", Severity: "critical", File: "/home/anna/job/train.py", Line: 12, Bytes: mem.Some(900)},
	{Kind: "leak", Severity: "critical", File: "/home/anna/job/models/net.py", Line: 7, Function: "forward", Bytes: mem.Some(900)},
	{Kind: "oom", Severity: "critical"},
	{File: "/home/anna/job/models/net.py", Line: 8, Function: "Größe", Bytes: mem.Some(5), Error: 3},
	{File: "/home/anna/job/models/net.py", Line: 9, Function: "Net.Größe", Bytes: mem.Some(7), Error: 4},
	{File: "own.py", Line: 1},
	{File: `C:\job\win.py`, Line: 3},
}

// growth is a figure beside the peak.
var growth = mem.Figure{Bytes: 9, Error: 2, What: "growth of host memory a step", Source: mem.SeriesRSS, Label: mem.Estimated}

// unlisted is what lines of a function may have held that are not among the places.
var unlisted = mem.Figure{Bytes: 100, What: "unlisted", Source: mem.SeriesHeapLive, Label: mem.Sampled}

// whatSpotsHold: a list says what a line, a function or a file held in each run, and how far off that may be for lines
// that are not listed.
func whatSpotsHold(t *testing.T, s store.Store) {
	record(t, s, info(1, "found"), false)
	w, err := s.Create(info(2, "bare"))
	must(t, err)
	must(t, w.Close())
	for asked, want := range map[string]mem.Figure{
		"net.py:8": {Bytes: 5, Error: 3}, "models/net.py:Größe": {Bytes: 12, Error: 105}, "net.py:Net.Größe": {Bytes: 7, Error: 104},
		"net.py": {Bytes: 12, Error: 105}, "net.py:7": {Error: 100}, "other.py:1": {Error: 100}, "net.py:öße": {Error: 100},
	} {
		at, ok := store.ParseSpot(asked)
		if !ok {
			t.Fatal(asked)
		}
		want.What, want.Source, want.Label = "what "+asked+" held", mem.SeriesHeapLive, mem.Sampled
		for _, brief := range []bool{true, false} {
			runs, err := s.List(store.Filter{Held: at, Brief: brief})
			must(t, err)
			if len(runs) != 2 || runs[0].Held.Known() || runs[1].Held != want || runs[1].Figures["growth"] != growth {
				t.Errorf("%s: %+v, want %+v", asked, runs, want)
			}
		}
	}
}

// byPlace: runs are found by their findings and lines, of the newest report, and as long as they are there.
func byPlace(t *testing.T, s store.Store) {
	long := strings.Repeat("ü", 5000)
	id := record(t, s, info(1, "found"), false)
	newest := record(t, s, info(2, "cut"), true)
	for asked, want := range map[string]int{
		"": 2, "train.py": 2, "train.py:12": 2, "train.py:13": 0, "job/train.py:12": 2, "ob/train.py": 0, "/home/anna/job/train.py:12": 2,
		"x/home/anna/job/train.py": 0, "rain.py": 0, "TRAIN.py": 0, "net.py": 2, "models/net.py:8": 2,
		"net.py:Größe": 2, "net.py:Net.Größe": 2, "net.py:t.Größe": 0, "net.py:größe": 0, "own.py:Größe": 0, "net.py:forward": 2,
		"own.py:1": 2, "./own.py": 2, "x/own.py": 0, "win.py:3": 2, "job/win.py": 2, `job\win.py:3`: 2, "%.py": 0,
	} {
		filter := store.Filter{}
		if asked != "" {
			at, ok := store.ParseSpot(asked)
			if !ok {
				t.Fatalf("%q cannot be read", asked)
			}
			filter.Line = at
		}
		if runs, err := s.List(filter); err != nil || len(runs) != want {
			t.Errorf("at %q: %d runs, want %d, %v", asked, len(runs), want, err)
		}
	}
	for _, wrong := range []string{"", ":", ":12", "train.py:", "train.py:0", "train.py:-1", "train.py:-x", "train.py:a b", "train.py:a/b", long} {
		if _, ok := store.ParseSpot(wrong); ok {
			t.Errorf("%q can be read", wrong)
		}
	}
	ask := func(filter store.Filter, want ...string) {
		t.Helper()
		runs, err := s.List(filter)
		must(t, err)
		names := []string{}
		for _, r := range runs {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, append([]string{}, want...)) {
			t.Errorf("%+v: %v, want %v", filter, names, want)
		}
	}
	net, _ := store.ParseSpot("net.py")
	eight, _ := store.ParseSpot("net.py:8")
	ask(store.Filter{Finding: "leak"}, "cut", "found")
	ask(store.Filter{Finding: "leak", Limit: 1}, "cut")
	ask(store.Filter{Finding: "leak", Name: "found"}, "found")
	ask(store.Filter{Finding: "leak", Line: net, Text: "train"}, "cut", "found")
	ask(store.Filter{Finding: "leak", Text: "FOUND"}, "found")
	ask(store.Filter{Finding: "leak", Line: eight, Text: "train"})
	ask(store.Filter{Finding: "leak", Limit: 1, Before: id})
	ask(store.Filter{Line: net, Limit: 1, Before: newest}, "found")
	ask(store.Filter{Finding: "leak", Line: eight})
	ask(store.Filter{Finding: "oom", Line: net})
	ask(store.Filter{Finding: "lea"})
	ask(store.Filter{Unasked: true})

	must(t, store.Tag(s, id, map[string]string{"a": "b"}, nil, nil)) // which writes the row anew
	ask(store.Filter{Finding: "leak", Tags: map[string]string{"a": ""}}, "found")
	w, err := s.Reopen(id)
	must(t, err)
	must(t, w.Write(mem.Found{Findings: 1, Places: []mem.Place{{Kind: long, File: long + ".py", Function: long}, {Kind: "\xff\x00"}}}))
	must(t, w.Close())
	ask(store.Filter{Finding: "leak"}, "cut")
	ask(store.Filter{Name: "found", Unasked: true})
	must(t, s.Reindex(nil))
	ask(store.Filter{Finding: "leak"}, "cut")
	w, err = s.Reopen(id)
	must(t, err)
	must(t, w.Write(mem.Found{Findings: 1})) // as an older hightide does
	must(t, w.Close())
	ask(store.Filter{Unasked: true}, "found")
	ask(store.Filter{Unasked: true, Finding: "leak"})
	must(t, s.Remove(id))
	ask(store.Filter{Unasked: true})
}
