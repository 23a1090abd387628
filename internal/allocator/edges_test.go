package allocator

import (
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestNothingIsAsked: requests of no bytes, or of more than any device has, get nothing and leave no trace.
func TestNothingIsAsked(t *testing.T) {
	for _, policy := range Policies {
		p := newPolicy(policy.Name, Setup{Capacity: mem.GiB})
		if h := p.Malloc(Request{}); h != 0 || p.Usage().Reserved != 0 {
			t.Errorf("%s: %d, %+v", policy.Name, h, p.Usage())
		}
	}
	n := NewNative(Settings{}, Rules{}, 0, &Device{})
	if h := n.Malloc(Request{Size: hugeRequest}); h != 0 || n.Stats.OOMs != 0 {
		t.Errorf("an exbibyte: %d, %+v", h, n.Stats)
	}
}

// TestBFCWastesNoMuch: a chunk is divided where more than 128 MiB of it would be left unused.
func TestBFCWastesNoMuch(t *testing.T) {
	p := newPolicy("bfc", Setup{})
	p.Malloc(Request{Size: 300 * mem.MiB}) // of 512
	p.Malloc(Request{Size: 200 * mem.MiB})
	if u := p.Usage(); u.Reserved != 512*mem.MiB || u.Requested != 500*mem.MiB {
		t.Errorf("%+v", u)
	}
}

// TestBetter: what a search likes best.
func TestBetter(t *testing.T) {
	candidate := func(peak mem.Bytes, calls int64, oom int, settings Settings) *Candidate {
		c := &Candidate{settings, &Outcome{Usage: Usage{PeakReserved: peak, DeviceAllocs: calls}}}
		if oom > 0 {
			c.Outcome.OOM = &OOM{Event: oom}
		}
		return c
	}
	order := []*Candidate{
		candidate(10, 1, 0, Settings{}),
		candidate(10, 1, 0, Settings{Expandable: true}), // a longer line
		candidate(10, 2, 0, Settings{}),
		candidate(20, 1, 0, Settings{}),
		candidate(5, 1, 90, Settings{}), // out of memory, late
		candidate(9, 1, 90, Settings{}),
		candidate(1, 1, 30, Settings{}),
	}
	for i, a := range order {
		for j, b := range order {
			if got := better(a, b); i < j && got >= 0 || i > j && got <= 0 || i == j && got != 0 {
				t.Errorf("%d against %d: %d", i, j, got)
			}
		}
	}
}

// TestReservationTooSmall: a request that no reservation can hold runs out of memory.
func TestReservationTooSmall(t *testing.T) {
	small := NewNative(Settings{Expandable: true, ReserveBytes: 20 * mem.MiB}, RulesOf(minor(15)), mem.GiB,
		&Device{Capacity: mem.GiB})
	if small.Malloc(Request{Size: 30 * mem.MiB}) != 0 || small.Malloc(Request{Size: 20 * mem.MiB}) == 0 ||
		small.Stats.OOMs != 1 {
		t.Errorf("%+v", small.Usage())
	}
}

// TestRejectedAfterARetry: a limit above the part of the memory that throw_on_cudamalloc_oom goes by stops a request
// first; once the cache was emptied, it is rejected.
func TestRejectedAfterARetry(t *testing.T) {
	for _, maxSplit := range []mem.Bytes{0, 32 * mem.MiB} {
		settings := Settings{ThrowOnCudaMalloc: true, Fraction: 0.1, MaxSplit: maxSplit}
		n := NewNative(settings, RulesOf(minor(15)), 1000*mem.MiB, &Device{Capacity: 1000 * mem.MiB})
		n.LimitFraction(0.15)
		n.Free(n.Malloc(Request{Size: 60 * mem.MiB}))
		if h := n.Malloc(Request{Size: 140 * mem.MiB}); h != 0 || n.Stats.OOMs != 0 || n.Stats.OOMRejected != 1 || n.total != 0 {
			t.Errorf("max_split_size %v: %d, %+v", maxSplit, h, n.Usage())
		}
	}
}

// TestExpandablePool: what a private pool maps is given back once it has no user, and not before.
func TestExpandablePool(t *testing.T) {
	mine, other := mem.PoolID{0, 1}, mem.PoolID{0, 2}
	n := NewNative(Settings{Expandable: true}, RulesOf(minor(15)), mem.GiB, &Device{})
	n.UsePool(mine)
	n.UsePool(other)
	a, b := n.Malloc(Request{Size: 30 * mem.MiB, Pool: mine}), n.Malloc(Request{Size: 30 * mem.MiB, Pool: other})
	n.Free(a)
	n.FreeRequested(b)
	n.EmptyPool(mine)
	if got := n.Usage().Reserved; got != 80*mem.MiB {
		t.Errorf("while it is used: %v reserved", got)
	}
	n.ReleasePool(mine)
	n.ReleasePool(mine) // has no user any more
	n.EmptyPool(mine)
	if got := n.Usage().Reserved; got != 40*mem.MiB || len(n.private) != 1 || len(n.pending) != 1 {
		t.Errorf("after its last user: %v reserved, %d pools, %d frees wait", got, len(n.private), len(n.pending))
	}
	n.ReleasePool(other)
	n.EmptyPool(other) // waits for the other streams
	n.FreeCompleted(b)
	if got := n.Usage(); got.Reserved != 0 || got.Active != 0 || len(n.private) != 0 {
		t.Errorf("at the end: %+v, %d pools", got, len(n.private))
	}
}

// TestCollectionLeavesExpandable: garbage collection counts whole expandable segments, and gives none back.
func TestCollectionLeavesExpandable(t *testing.T) {
	settings := Settings{Expandable: true, GCThreshold: 0.1, ReserveBytes: 20 * mem.MiB, Fraction: 0.9}
	n := NewNative(settings, RulesOf(minor(15)), 100*mem.MiB, &Device{})
	n.Free(n.Malloc(Request{Size: 20 * mem.MiB}))
	settings.Expandable = false
	n.Configure(settings)
	n.Malloc(Request{Size: 30 * mem.MiB})
	if u := n.Usage(); u.Reserved != 50*mem.MiB || u.DeviceFrees != 0 {
		t.Errorf("%+v", u)
	}
}

// TestLeavesLoseAMiddleOne: a leaf whose neighbours have no room for its last entries is dropped with them.
func TestLeavesLoseAMiddleOne(t *testing.T) {
	var f leaves
	insert := func(size uint64) { f.insert(key{size: size}, int32(size)) }
	for i := uint64(1); i <= 160; i++ {
		insert(1000 * i)
	}
	for f.all[0].n < leafSize-1 {
		insert(f.lows[1].size - uint64(f.all[0].n)) // between the first leaf's and the second's
	}
	for f.all[2].n < leafSize-1 {
		insert(f.lows[2].size + uint64(f.all[2].n))
	}
	count, low := len(f.all), f.lows[2]
	for len(f.all) == count {
		f.removeAt(1, 0)
	}
	if f.lows[1] != low {
		t.Errorf("the third leaf begins at %v, now second at %v", low, f.lows[1])
	}
	last := key{}
	for leaf := range f.all {
		for i := range f.all[leaf].n {
			if k := f.all[leaf].entries[i].key; !last.before(k) || k.before(f.lows[leaf]) {
				t.Fatalf("%v after %v in the leaf from %v", k, last, f.lows[leaf])
			} else {
				last = k
			}
		}
	}
}

// TestSettingsOfAFile: the settings a snapshot states one by one win over the line they came from; nonsense is
// refused or left.
func TestSettingsOfAFile(t *testing.T) {
	many := strings.Repeat("1:4,", 20) + "1:x"
	s := &mem.AllocatorSnapshot{Settings: map[string]string{"max_split_size": "-1", "garbage_collection_threshold": "0.5",
		"expandable_segments": "True", "roundup_power2_divisions": many}}
	got, err := SettingsOf(s)
	if want := (Settings{GCThreshold: 0.5, Expandable: true, Divisions: sameDivisions(4)}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	s.Settings["PYTORCH_CUDA_ALLOC_CONF"] = "nothing:1"
	if _, err := SettingsOf(s); err == nil {
		t.Error("a line that PyTorch refuses is taken")
	}
	if _, err := (Rules{RestFromLast: true}).Parse("roundup_power2_divisions:4[,>:2]"); err == nil {
		t.Error("a list that does not begin as one is taken")
	}
}

// TestRulesOfAFile: files of some versions look alike.
func TestRulesOfAFile(t *testing.T) {
	for version, want := range map[mem.Versions][]Rules{
		{}:                                  {RulesOf(minor(15)), RulesOf(minor(9))},
		{First: minor(10), Last: minor(12)}: {RulesOf(minor(12)), RulesOf(minor(11)), RulesOf(minor(10))},
		{First: minor(6), Last: minor(8)}:   {RulesOf(minor(6))},
		{First: minor(9), Last: minor(9)}:   {RulesOf(minor(9))},
		{First: minor(13)}:                  {RulesOf(minor(13))},
		{Last: minor(2)}:                    {RulesOf(minor(2))},
	} {
		if got := RulesFor(&mem.AllocatorSnapshot{Versions: version}); !slices.Equal(got, want) {
			t.Errorf("%v: %+v", version, got)
		}
	}
}

// TestLimits: the memory, a fraction of it, and what the device has left are all limits; the least counts.
func TestLimits(t *testing.T) {
	for _, test := range []struct {
		setup Setup
		want  mem.Bytes
	}{
		{Setup{}, 0},
		{Setup{Memory: 100, Capacity: 80}, 80},
		{Setup{Settings: Settings{Fraction: 0.5}, Capacity: 80}, 80}, // of a memory that is not known
		{Setup{Settings: Settings{Fraction: 0.5}, Memory: 100, Capacity: 80}, 50},
		{Setup{Settings: Settings{Fraction: 0.9}, Memory: 100, Capacity: 80}, 80},
		{Setup{Settings: Settings{Fraction: 1}, Memory: 100}, 0},
	} {
		if got := test.setup.Limit(); got != test.want {
			t.Errorf("%+v: %d", test.setup, got)
		}
		if got, want := test.setup.limited(), test.setup.Settings.Fraction > 0 && test.setup.Settings.Fraction < 1 &&
			test.setup.Memory > 0; got != want {
			t.Errorf("%+v: limited %v", test.setup, got)
		}
	}
}

// TestEmptyRequestsOfAFile: a file may tell of allocations of no bytes, which get no block and are freed all the same.
func TestEmptyRequestsOfAFile(t *testing.T) {
	s := recordProgram(Settings{}, minor(9), 0, func(n *Native) {
		n.Free(n.Malloc(Request{Size: mem.MiB}))
		h := n.Malloc(Request{Size: mem.MiB})
		n.FreeRequested(h)
		n.EmptyCache()
		n.FreeCompleted(h)
	})
	trace := &s.Traces[0]
	for i := range trace.Action {
		if trace.Action[i] < mem.ActionSegmentAlloc {
			trace.Size[i] = 0
		}
	}
	p, err := Compile(s, trace, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range Policies {
		if o := RunOn(p, policy.Name, Setup{}); o.OOM != nil || o.Usage.PeakActive != 0 {
			t.Errorf("%s: %+v", policy.Name, o)
		}
	}
}

// TestOversizeReleaseBesideExpandable: expandable blocks, left from before the setting was taken back, do not keep an
// oversize block from making room.
func TestOversizeReleaseBesideExpandable(t *testing.T) {
	settings := Settings{Expandable: true, MaxSplit: 64 * mem.MiB}
	n := NewNative(settings, RulesOf(minor(15)), 0, &Device{Capacity: 104 * mem.MiB})
	n.Free(n.Malloc(Request{Size: 40 * mem.MiB}))
	settings.Expandable = false
	n.Configure(settings)
	n.Free(n.Malloc(Request{Size: 64 * mem.MiB}))
	if h := n.Malloc(Request{Size: 25 * mem.MiB}); h == 0 || n.Stats.AllocRetries != 0 || n.Stats.DeviceFrees != 1 {
		t.Errorf("%d, %+v", h, n.Usage())
	}
}
