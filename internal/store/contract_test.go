package store_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"hightide/internal/mem"
	"hightide/internal/store"
	"hightide/internal/wire"
)

// contract is one promise of a store.
type contract struct {
	name string
	run  func(*testing.T, store.Store)
}

// The contract of a store of runs, which every kind of store passes.

func TestFiles(t *testing.T) {
	keeps(t, func(t *testing.T) store.Store { return store.OpenFiles(t.TempDir()) })
}

func TestMemory(t *testing.T) {
	keeps(t, func(t *testing.T) store.Store { return &store.Memory{} })
}

// keeps checks a kind of store; open gives an empty one.
func keeps(t *testing.T, open func(t *testing.T) store.Store) {
	tests := []contract{
		{"what is written comes back", comesBack},
		{"the row of a run", row},
		{"a run in the making", inTheMaking},
		{"names for a run", resolve},
		{"tags travel with the run", tag},
		{"a run goes on", reopen},
		{"filters", filters},
		{"what a trend is made of", inBrief},
		{"findings and lines", byPlace},
		{"what spots held", whatSpotsHold},
		{"pruning", pruning},
		{"removing", removing},
		{"files beside a recording", attach},
		{"the index can be made again", reindex},
	}
	for _, test := range append(tests, followTests...) {
		t.Run(test.name, func(t *testing.T) {
			s := open(t)
			t.Cleanup(func() { must(t, s.Close()) })
			test.run(t, s)
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// info describes the n-th run of a test; each begins a second after the one before.
func info(n int, name string) mem.RunInfo {
	return mem.RunInfo{Name: name, Verb: "run", Label: mem.Measured, Command: []string{"python", "train.py"}, Version: "1",
		StartMono: 1e9, StartWall: time.Date(2026, 1, 1, 0, 0, n, 0, time.UTC).UnixNano(), Host: mem.Host{Name: "host"}}
}

// record makes a run as an engine would, and ends it with an End unless cut.
func record(t *testing.T, s store.Store, info mem.RunInfo, cut bool) string {
	t.Helper()
	w, err := s.Create(info)
	must(t, err)
	info.ID = w.ID()
	for _, f := range frames(info) {
		if _, end := f.(mem.End); end && cut {
			continue
		}
		must(t, w.Write(f))
		must(t, w.Flush())
	}
	must(t, w.Close())
	return w.ID()
}

// frames of a small run that lasts two seconds and takes three steps.
func frames(info mem.RunInfo) []mem.Frame {
	return []mem.Frame{
		info,
		mem.Process{ID: 1, PID: 10, Start: 1e9, MaxRSS: mem.Some(700)},
		mem.Process{ID: 2, PID: 11, Parent: 1, Start: 1.5e9},
		mem.SeriesDef{ID: 1, Process: 0, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes, Label: mem.Measured},
		mem.SeriesDef{ID: 2, Process: 1, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured},
		mem.SeriesDef{ID: 3, Process: 1, Device: "cuda:0", Name: mem.SeriesAllocated, Unit: mem.UnitBytes,
			Label: mem.Measured},
		mem.Samples{Series: 1, Times: []int64{1e9, 2e9}, Values: []int64{900, 1000}},
		mem.Samples{Series: 2, Times: []int64{1e9, 2e9}, Values: []int64{500, 600}},
		mem.Samples{Series: 3, Times: []int64{1e9, 2e9}, Values: []int64{0, 0}},
		mem.StepTotal{Process: 1, Steps: 3},
		mem.Event{Time: 2.5e9, Process: 1, Kind: "oom", Text: "out of memory"},
		mem.Drop{Process: 1, Place: "ring", Records: 4},
		mem.Drop{Process: 1, Place: "ring", Records: 5},
		mem.End{Time: 3e9, ExitCode: mem.Some(1), Reason: "exit"},
		mem.Found{Findings: 2, Places: places, Figures: map[string]mem.Figure{"growth": growth, "mood": growth,
			"unlisted": unlisted}},
	}
}

func comesBack(t *testing.T, s store.Store) {
	id := record(t, s, info(1, "first"), false)
	_, run, err := store.Load(s, id)
	must(t, err)
	want := mem.NewRun()
	i := info(1, "first")
	i.ID = id
	for _, f := range frames(i) {
		must(t, want.Add(f))
	}
	if !reflect.DeepEqual(run, want) {
		t.Errorf("got %+v\nwant %+v", run, want)
	}
}

func row(t *testing.T, s store.Store) {
	id := record(t, s, info(1, "first"), false)
	runs, err := s.List(store.Filter{})
	must(t, err)
	if len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	got := runs[0]
	if got.Size < 100 {
		t.Errorf("size %d", got.Size)
	}
	want := store.Run{ID: id, Name: "first", Verb: "run", Label: mem.Measured, Command: []string{"python", "train.py"},
		Host:  "host",
		State: store.Finished, Start: info(1, "").StartWall, Duration: 2e9, ExitCode: mem.Some(1), Steps: 3, Processes: 2,
		Ended:  mem.Ending{Kind: mem.EndOOM, Text: "exit 1 after out of memory"},
		Figure: mem.Figure{Bytes: 1000, What: "RSS", Source: mem.SeriesTreeRSS, Label: mem.Measured}, Findings: mem.Some(2),
		Places:  mem.Some(int64(len(places))),
		Figures: map[string]mem.Figure{"growth": growth, "unlisted": unlisted}, // a row keeps those that it knows
		HostRSS: mem.Some(1000), Allocated: mem.Some(0), OOMs: 1, Dropped: 5, Size: got.Size, Dir: got.Dir, File: got.File}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func inTheMaking(t *testing.T, s store.Store) {
	w, err := s.Create(info(1, "first"))
	must(t, err)
	state := func() store.State {
		runs, err := s.List(store.Filter{})
		must(t, err)
		if len(runs) != 1 {
			t.Fatalf("%d runs", len(runs))
		}
		return runs[0].State
	}
	if got := state(); got != store.Running {
		t.Errorf("while it is written: %q", got)
	}
	if _, err := s.Reopen(w.ID()); !errors.Is(err, store.ErrRunning) {
		t.Errorf("reopened while it is written: %v", err)
	}
	must(t, w.Write(mem.Event{Time: 2e9, Kind: "log"}))
	must(t, w.Flush())
	_, run, err := store.Load(s, "last")
	must(t, err)
	if len(run.Events) != 1 {
		t.Errorf("%d events after a flush, want 1", len(run.Events))
	}
	must(t, w.Close())
	if got := state(); got != store.CutOff {
		t.Errorf("without an end: %q", got)
	}
}

func resolve(t *testing.T, s store.Store) {
	if _, err := store.Resolve(s, "last"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("last of none: %v", err)
	}
	i := info(1, "same")
	i.ID = "0aaa1"
	record(t, s, i, false)
	i = info(2, "same")
	i.ID = "0aab2"
	record(t, s, i, false)
	i = info(3, "other")
	i.ID = "0acc3"
	record(t, s, i, false)
	for ref, want := range map[string]string{"last": "0acc3", "0aaa1": "0aaa1", "0aaa": "0aaa1", "same": "0aab2",
		"other": "0acc3", "0ACC": "0acc3"} {
		run, err := store.Resolve(s, ref)
		if err != nil || run.ID != want {
			t.Errorf("%s: %s %v, want %s", ref, run.ID, err, want)
		}
	}
	for ref, want := range map[string]error{"0a": store.ErrAmbiguous, "zz": store.ErrNotFound, "": store.ErrNotFound} {
		if _, err := store.Resolve(s, ref); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", ref, err, want)
		}
	}
}

func tag(t *testing.T, s store.Store) {
	first := info(1, "first")
	first.Tags = map[string]string{"old": "1", "gone": "2"}
	id := record(t, s, first, false)
	name := "renamed"
	must(t, store.Tag(s, id, map[string]string{"model": "bert", "old": "3"}, []string{"gone"}, &name))
	want := map[string]string{"model": "bert", "old": "3"}
	_, run, err := store.Load(s, "renamed")
	must(t, err)
	if !reflect.DeepEqual(run.Info.Tags, want) || len(run.Damage) > 0 {
		t.Errorf("tags in the recording %v, damage %v", run.Info.Tags, run.Damage)
	}
	got, err := store.Resolve(s, id)
	must(t, err)
	if !reflect.DeepEqual(got.Tags, want) || got.Name != name || got.State != store.Finished || got.Duration != 2e9 {
		t.Errorf("row %+v", got)
	}
	if err := store.Tag(s, "nope", want, nil, nil); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("tag of a run that is not: %v", err)
	}
}

func reopen(t *testing.T, s store.Store) {
	id := record(t, s, info(1, "first"), true)
	w, err := s.Reopen(id)
	must(t, err)
	must(t, w.Write(mem.Event{Time: 3e9, Kind: "log", Text: "recovered"}))
	must(t, w.Write(mem.End{Time: 4e9, Reason: "recovered"}))
	must(t, w.Close())
	_, run, err := store.Load(s, id)
	must(t, err)
	if len(run.Events) != 2 || run.End == nil || run.End.Reason != "recovered" || len(run.Damage) > 0 {
		t.Errorf("events %v, end %v, damage %v", run.Events, run.End, run.Damage)
	}
	row, err := store.Resolve(s, id)
	must(t, err)
	if row.State != store.Finished || row.OOMs != 1 || row.HostRSS != mem.Some(1000) {
		t.Errorf("row %+v", row)
	}
}

func filters(t *testing.T, s store.Store) {
	for n := range 4 {
		i := info(n, []string{"one", "Größe", "one", "it's"}[n])
		i.ID = []string{"0aaa", "0aab", "0abb", "0bbb"}[n]
		i.Tags = map[string]string{"n": string(rune('0' + n%2))}
		record(t, s, i, n == 3)
	}
	for _, test := range []struct {
		filter store.Filter
		want   int
	}{
		{store.Filter{}, 4},
		{store.Filter{Limit: 3}, 3},
		{store.Filter{IDs: []string{"0aab", "nobody", "../0aab"}}, 1},
		{store.Filter{IDs: []string{}}, 0},
		{store.Filter{Tags: map[string]string{"n": "1"}}, 2},
		{store.Filter{Tags: map[string]string{"n": ""}}, 4},
		{store.Filter{Tags: map[string]string{"m": ""}}, 0},
		{store.Filter{State: store.CutOff}, 1},
		{store.Filter{Text: "TRAIN"}, 4},
		{store.Filter{Text: "nothing"}, 0},
		{store.Filter{Text: "größE"}, 1},
		{store.Filter{Text: "0AB"}, 1},
		{store.Filter{Text: "%"}, 0},
		{store.Filter{Name: "one"}, 2},
		{store.Filter{Name: "it's"}, 1},
		{store.Filter{Name: "one", Limit: 1, State: store.Finished}, 1},
		{store.Filter{Ref: "0aa"}, 2},
		{store.Filter{Ref: "0AAB"}, 1},
		{store.Filter{Ref: "one"}, 2},
		{store.Filter{Ref: "on"}, 0},
		{store.Filter{Tags: map[string]string{"n": "0"}, Name: "one", Text: "train"}, 2},
		{store.Filter{Tags: map[string]string{"n": "0", "m": ""}}, 0},
		{store.Filter{Verb: info(0, "").Verb}, 4},
		{store.Filter{Verb: "imagine"}, 0},
		{store.Filter{Before: "0abb"}, 2},
		{store.Filter{Before: "0abb", Name: "one"}, 1},
		{store.Filter{Before: "0aaa"}, 0},
		{store.Filter{Before: "nope"}, 0},
	} {
		runs, err := s.List(test.filter)
		must(t, err)
		if len(runs) != test.want {
			t.Errorf("%+v: %d runs, want %d", test.filter, len(runs), test.want)
		}
		for i := 1; i < len(runs); i++ {
			if runs[i].Start > runs[i-1].Start {
				t.Errorf("%+v: not newest first", test.filter)
			}
		}
	}
}

// inBrief: a filter lets the same runs through where only what a trend is made of is asked for, and all of that is there.
func inBrief(t *testing.T, s store.Store) {
	for n := range 4 {
		of := info(n, "named")
		of.Git = &mem.Git{Commit: strings.Repeat("a", 39) + string(rune('0'+n)), Dirty: n == 1}
		of.Tags = map[string]string{"project": "p" + string(rune('0'+n%2))}
		record(t, s, of, n == 3)
	}
	for _, filter := range []store.Filter{{}, {Tags: map[string]string{"project": "p1"}}, {Name: "named", Limit: 3},
		{Projects: []string{"p0"}}, {Projects: []string{}}} {
		whole, err := s.List(filter)
		must(t, err)
		filter.Brief = true
		brief, err := s.List(filter)
		must(t, err)
		if len(brief) != len(whole) {
			t.Fatalf("%+v: %d runs in brief, %d else", filter, len(brief), len(whole))
		}
		for i, w := range whole {
			b := brief[i]
			if b.ID != w.ID || b.Start != w.Start || b.GitCommit != w.GitCommit || b.GitDirty != w.GitDirty ||
				b.State != w.State || b.Ended.Kind != w.Ended.Kind || b.Figure != w.Figure {
				t.Errorf("in brief %+v\nelse     %+v", b, w)
			}
		}
	}
}

func pruning(t *testing.T, s store.Store) {
	var ids []string
	for n := range 4 {
		i := info(n, "")
		if n == 1 {
			i.Tags = map[string]string{store.KeepTag: ""}
		}
		ids = append(ids, record(t, s, i, false))
	}
	open, err := s.Create(info(-100, "running"))
	must(t, err)
	now := time.Date(2026, 1, 1, 0, 0, 4, 0, time.UTC)
	limits := store.Limits{Now: now, Age: 2500 * time.Millisecond, Preview: true}
	for _, preview := range []bool{true, false} {
		limits.Preview = preview
		gone, err := store.Prune(s, limits)
		must(t, err)
		if len(gone) != 1 || gone[0].ID != ids[0] {
			t.Errorf("preview %v: %d pruned, want the first alone", preview, len(gone))
		}
	}
	runs, err := s.List(store.Filter{})
	must(t, err)
	if len(runs) != 4 {
		t.Fatalf("%d runs are left, want 4", len(runs))
	}
	gone, err := store.Prune(s, store.Limits{Now: now, Bytes: mem.Bytes(runs[0].Size + 1)})
	must(t, err)
	if len(gone) != 1 || gone[0].ID != ids[2] {
		t.Errorf("%d pruned for size, want the third alone", len(gone))
	}
	must(t, open.Close())
}

func removing(t *testing.T, s store.Store) {
	id := record(t, s, info(1, ""), false)
	w, err := s.Create(info(2, ""))
	must(t, err)
	if err := s.Remove(w.ID()); !errors.Is(err, store.ErrRunning) {
		t.Errorf("removed while it is written: %v", err)
	}
	must(t, w.Close())
	must(t, s.Remove(id))
	if err := s.Remove(id); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	runs, err := s.List(store.Filter{})
	must(t, err)
	if len(runs) != 1 {
		t.Errorf("%d runs are left, want 1", len(runs))
	}
}

func reindex(t *testing.T, s store.Store) {
	for n := range 3 {
		record(t, s, info(n, ""), false)
	}
	before, err := s.List(store.Filter{})
	must(t, err)
	last := 0
	must(t, s.Reindex(func(done, total int) {
		if done < last || done > total {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
	}))
	after, err := s.List(store.Filter{})
	must(t, err)
	if !reflect.DeepEqual(before, after) {
		t.Errorf("before %+v\nafter %+v", before, after)
	}
}

func attach(t *testing.T, s store.Store) {
	id := record(t, s, info(1, ""), false)
	write := func(text string) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	}
	read := func(name string) string {
		file, err := s.Open(id, name)
		must(t, err)
		defer file.Close()
		data, err := io.ReadAll(file)
		must(t, err)
		return string(data)
	}
	before, err := store.Resolve(s, id)
	must(t, err)
	for _, text := range []string{"first", "second"} {
		path, err := s.Attach(id, "report.html", write(text))
		must(t, err)
		if got := read("report.html"); got != text {
			t.Errorf("got %q, want %q", got, text)
		}
		if path != "" {
			if data, err := os.ReadFile(path); err != nil || string(data) != text {
				t.Errorf("%s holds %q %v", path, data, err)
			}
		}
	}
	if all, err := s.Attached(id); err != nil || len(all) != 1 ||
		all[0] != (store.Attachment{Name: "report.html", Size: int64(len("second"))}) {
		t.Errorf("what is attached: %v %v", all, err)
	}
	if _, err := s.Attached("nope"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("what is attached to a run that is not there: %v", err)
	}
	broken := errors.New("broken")
	if _, err := s.Attach(id, "report.html", func(w io.Writer) error { _ = write("half")(w); return broken }); !errors.Is(err, broken) {
		t.Errorf("a writer that fails: %v", err)
	}
	if got := read("report.html"); got != "second" {
		t.Errorf("after a failure %q, want what was there", got)
	}
	if err := s.Detach(id, "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there is deleted: %v", err)
	}
	_, err = s.Attach(id, "other", write("third"))
	must(t, err)
	must(t, s.Detach(id, "other"))
	if _, err := s.Open(id, "other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was deleted: %v", err)
	}
	if all, err := s.Attached(id); err != nil || len(all) != 1 {
		t.Errorf("after one was deleted: %v %v", all, err)
	}
	after, err := store.Resolve(s, id)
	must(t, err)
	if after.Size != before.Size+int64(len("second")) {
		t.Errorf("size %d after %d", after.Size, before.Size)
	}
	run, err := wire.Load(strings.NewReader(read(store.Recording)))
	must(t, err)
	if run.Info.ID != id || run.End == nil {
		t.Errorf("the recording as a file: %+v", run.Info)
	}
	if _, err := s.Open(id, "nothing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := s.Open("nope", store.Recording); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a run that is not there: %v", err)
	}
	for _, name := range []string{"", "../x", "a/b", ".hidden", store.Recording} {
		if _, err := s.Attach(id, name, write("x")); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("attached as %q: %v", name, err)
		}
	}
	if _, err := s.Attach("nope", "x", write("x")); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("attached to a run that is not there: %v", err)
	}
}
