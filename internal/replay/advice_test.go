package replay

import (
	"strings"
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// TestAdvice: free memory in pieces is what expandable segments are for, and a replay shows it.
func TestAdvice(t *testing.T) {
	a, err := Advise(testkit.Snapshot(t, "imagined/oom-a10-pieces.pickle"), 0, 2)
	if err != nil || a == nil {
		t.Fatal(a, err)
	}
	t.Logf("%+v\n%s", a, a.Text())
	if !a.Exact || !a.Reproduced || a.Hopeless || a.Best() == nil || a.Needed <= a.Capacity {
		t.Errorf("%+v", a)
	}
	if !strings.Contains(a.Text(), "expandable_segments:True` avoids it (verified by replay)") {
		t.Error(a.Text())
	}
}

// TestNarrowAdvice: settings that serve the request and leave half a percent are not said to avoid it.
func TestNarrowAdvice(t *testing.T) {
	capacity := mem.GiB
	s := record(capacity, everything, func(ask func(mem.Bytes) allocator.Handle, n *allocator.Native) {
		leavePieces(ask, n)
		ask(380 * mem.MiB)
	})
	a, err := Advise(s, 0, 2)
	if err != nil || a == nil || a.Best() == nil || a.Capacity-a.Best().Reserved > 10*mem.MiB {
		t.Fatalf("%+v, %v", a, err)
	}
	if text := a.Text(); strings.Contains(text, "avoids it") || !strings.Contains(text, "too little to go on") {
		t.Error(text)
	}
}

// TestNoOOMNoAdvice: a trace without a failed request.
func TestNoOOMNoAdvice(t *testing.T) {
	if a, err := Advise(testkit.Snapshot(t, "real/h100-lm-ctx256-forward-bf16.pickle"), 0, 2); a != nil || err != nil {
		t.Error(a, err)
	}
}

// TestFit: the least memory fits, 2 MiB less does not, and what allocates more than there is never
// does.
func TestFit(t *testing.T) {
	fit, exact, err := NewFit(testkit.Snapshot(t, "real/h100-lm-ctx256-forward-bf16.pickle"), -1)
	if err != nil || !exact {
		t.Fatal(exact, err)
	}
	least := fit.Least()
	for _, test := range []struct {
		capacity mem.Bytes
		fits     bool
	}{{0, true}, {least, true}, {least - 2*mem.MiB, false}, {least / 2, false}} {
		v, err := fit.Verdict(80*mem.GiB, test.capacity, "")
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v", v)
		if v.Fits != test.fits && !v.Depends || v.Fits != (v.OOM == nil) || test.capacity > 0 && v.Reserved > test.capacity {
			t.Errorf("in %v: %+v", test.capacity, v)
		}
	}
	if _, err := fit.Verdict(0, 0, "nothing:1"); err == nil {
		t.Error("a setting that there is not")
	}
}
