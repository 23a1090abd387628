package replay

import (
	"strings"
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// TestVerdictOnAnOutOfMemory: the first sentence says whether memory still runs out, in every front door the same.
func TestVerdictOnAnOutOfMemory(t *testing.T) {
	s := testkit.Snapshot(t, "imagined/oom-a10-pieces.pickle")
	w, err := NewWhatIf(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		settings, memory, outcome, begins string
		spare                             mem.Bytes // 0: none is told
	}{
		{"", "", OutOfMemory, "Out of memory at event 100 of 179: a request for 1.00 GiB finds none in 21.7 GiB, though " +
			"in one piece what is free would be enough: fragmentation.", 0},
		{"large_segment_size_mb:32", "", OutOfMemory, "Still out of memory at event 100 of 179", 0},
		{expandable, "", Avoided, "Out of memory at event 100 is avoided, 796 MiB to spare.", 796 * mem.MiB},
		{expandable, "20GiB", OutOfMemory,
			"Still out of memory at event 100 of 179: a request for 1.00 GiB finds none in 20.0 GiB.", 0},
		{expandable, "21070MiB", Avoided, "Out of memory at event 100 is avoided, but with only 10.0 MiB to spare of 20.6 " +
			"GiB: too little to go on.", 10 * mem.MiB},
		{"", "16GiB", OutOfMemory, "Out of memory sooner, at event 89 of 179", 0},
	} {
		trial, o := Trial{Memory: test.memory}, Options{Device: -1, Memory: test.memory}
		if test.settings != "" {
			trial.Settings, o.AllocConf, o.Changed = &test.settings, test.settings, true
		}
		tried := try(t, w, trial)
		r, err := Run(t.Context(), []Source{{"pieces.pickle", s}}, o)
		if err != nil {
			t.Fatal(err)
		}
		v := tried.Verdict
		if v == nil || r.Verdict == nil || v.Text != r.Verdict.Text || !strings.Contains(r.VerdictText(), v.Text) {
			t.Errorf("%+v: %+v on the page, %+v in the terminal", test, v, r.Verdict)
			continue
		}
		if spare := mem.Bytes(v.Spare.Or(0)); v.Outcome != test.outcome || !strings.HasPrefix(v.Text, test.begins) ||
			max(spare-test.spare, test.spare-spare) > mem.MiB {
			t.Errorf("%+v: %s, %q, %v to spare", test, v.Outcome, v.Text, spare)
		}
	}
}

// TestVerdictKnowsWhatItCannotKnow: that a memory limit is a guess, that addresses decide, that a program may lack
// memory twice, and that nothing is to be said where memory is not short.
func TestVerdictKnowsWhatItCannotKnow(t *testing.T) {
	roomy := record(0, everything, func(ask func(mem.Bytes) allocator.Handle, _ *allocator.Native) { ask(30 * mem.MiB) })
	if v := verdictOf(t, roomy, Options{}); v != nil {
		t.Errorf("nothing lacks memory: %+v", v)
	}
	if v := verdictOf(t, roomy, Options{Memory: "1GiB"}); v == nil || v.Outcome != Fits || v.Text != "It fits, 994 MiB to spare." {
		t.Errorf("in 1 GiB: %+v", v)
	}
	twice := record(mem.GiB, everything, func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
		leavePieces(ask, n)
		ask(300 * mem.MiB)
		ask(310 * mem.MiB)
	})
	best := searched(t, twice, Options{}).Best
	if v := verdictOf(t, twice, Options{AllocConf: best.AllocConf, Changed: true}); v == nil || !strings.HasPrefix(v.Text, "Out of memory is avoided at all 2 events that it was recorded at, ") {
		t.Errorf("lacks memory twice: %+v", v)
	}
	limited := record(mem.GiB, everything, func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
		leavePieces(ask, n)
		ask(300 * mem.MiB)
	})
	trace := &limited.Traces[0]
	for i, action := range trace.Action {
		if action == mem.ActionOOM {
			trace.Address[i] = uint64(20 * mem.GiB) // what the device had free
		}
	}
	if v := verdictOf(t, limited, Options{}); v == nil || v.Outcome != OutOfMemory ||
		!strings.Contains(v.Text, "this holds if a limit of ") {
		t.Errorf("below a limit: %+v", v)
	}
}

// TestVerdictOfSeveralOrders: where only some orders of addresses lack memory, it says so.
func TestVerdictOfSeveralOrders(t *testing.T) {
	w, err := NewWhatIf(testkit.Snapshot(t, "imagined/oom-a10-pieces.pickle"), 0)
	if err != nil {
		t.Fatal(err)
	}
	setup, served, lacks := w.recordedSetup(), &allocator.Outcome{},
		&allocator.Outcome{Again: &allocator.OOM{Event: 100, Size: mem.GiB}}
	if v := w.trace.judge(&setup, []*allocator.Outcome{served, lacks, served}, false); v.Outcome != Depends || !strings.HasPrefix(v.Text, "Out of memory at event 100 in 1 of 3 orders of addresses") {
		t.Errorf("%+v", v)
	}
	if v := w.trace.judge(&setup, []*allocator.Outcome{served, lacks}, true); v.Outcome != OutOfMemory { // it did run out
		t.Errorf("as recorded: %+v", v)
	}
}

func verdictOf(t *testing.T, s *mem.AllocatorSnapshot, o Options) *Verdict {
	t.Helper()
	o.Device = -1
	r, err := Run(t.Context(), []Source{{"made.pickle", s}}, o)
	if err != nil {
		t.Fatal(err)
	}
	return r.Verdict
}

// TestSearchOfAnOutOfMemory: the line that people know is among those tried and shown, the best one says what it
// leads to, and of those that are as good the simplest is it.
func TestSearchOfAnOutOfMemory(t *testing.T) {
	r := searched(t, testkit.Snapshot(t, "imagined/oom-a10-pieces.pickle"), Options{})
	if r.Best == nil || r.Best.AllocConf != expandable || r.Best.Verdict == nil || r.Best.Verdict.Outcome != Avoided {
		t.Fatalf("%+v", r.Best)
	}
	if said := strings.Join(r.SearchText(false), "\n"); !strings.Contains(said, "Out of memory at event 100 is avoided, 796 MiB to spare.") {
		t.Error(said)
	}
	outcomes := map[Figures]string{}
	for _, f := range r.Search {
		conf := f.AllocConf
		f.AllocConf = ""
		if f.OOM == nil && outcomes[f] != "" {
			t.Errorf("%s leads to what %s does", conf, outcomes[f])
		}
		outcomes[f] = conf
	}
	if plain := r.shown(); plain[0].AllocConf != expandable {
		t.Errorf("shown first: %+v", plain[0])
	}
}
