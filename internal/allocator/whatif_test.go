package allocator

import (
	"slices"
	"testing"

	"hightide/internal/mem"
)

// minor is a release of PyTorch 2.
func minor(n int) mem.Version { return mem.Version{Major: 2, Minor: n} }

// only is the range of one release.
func only(v mem.Version) mem.Versions { return mem.Versions{First: v, Last: v} }

// recordProgram records what do asks of an allocator, as a snapshot of a version.
func recordProgram(settings Settings, version mem.Version, capacity mem.Bytes,
	do func(*Native)) *mem.AllocatorSnapshot {
	t := mem.Trace{}
	device := &Device{Capacity: capacity}
	n := NewNative(settings, RulesOf(version), capacity, device)
	n.Observe = func(e Event) {
		if e.Action == mem.ActionOOM {
			e.Address = uint64(capacity - device.Held)
		}
		t.Action, t.Address, t.Size = append(t.Action, e.Action), append(t.Address, e.Address), append(t.Size, e.Size)
		t.Stream, t.Stack = append(t.Stream, e.Stream), append(t.Stack, 0)
	}
	do(n)
	return &mem.AllocatorSnapshot{Versions: only(version), Segments: n.State(), Traces: []mem.Trace{t},
		Settings: map[string]string{"PYTORCH_CUDA_ALLOC_CONF": settings.String()}}
}

func compile(t *testing.T, s *mem.AllocatorSnapshot) (*Program, Settings) {
	t.Helper()
	settings, err := SettingsOf(s)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(s, &s.Traces[0], settings)
	if err != nil {
		t.Fatal(err)
	}
	return p, settings
}

// pieces leaves free memory in pieces, and then asks for more than the largest.
func pieces(n *Native) {
	ask := func(size mem.Bytes) Handle { return n.Malloc(Request{Size: size}) }
	var all []Handle
	for range 8 {
		all = append(all, ask(30*mem.MiB), ask(600*mem.KiB))
	}
	for i := 0; i < len(all); i += 2 {
		n.Free(all[i])
	}
	for range 4 {
		ask(12 * mem.MiB)
	}
	n.EmptyCache()
	for range 6 {
		ask(26 * mem.MiB)
	}
	ask(70 * mem.MiB)
	n.FreeRequested(all[1])
	n.FreeCompleted(all[1])
}

// TestOutOfMemoryIsReplayed: the request that failed in the record fails again in the same room, and is
// served with more.
func TestOutOfMemoryIsReplayed(t *testing.T) {
	capacity := 270 * mem.MiB
	s := recordProgram(Settings{}, minor(9), capacity, pieces)
	p, settings := compile(t, s)
	event := slices.Index(s.Traces[0].Action, mem.ActionOOM)
	if event < 0 {
		t.Fatal("nothing failed")
	}
	part := p.Through(event)
	room, limited := part.RoomAt(&s.Traces[0], event)
	if limited || room > capacity || room < capacity-40*mem.MiB {
		t.Errorf("room for %v, limited %v", room, limited)
	}
	setup := Setup{Settings: settings, Rules: RulesOf(minor(9)), Capacity: room}
	if o := Run(part, setup); o.OOM == nil || o.OOM.Event != event {
		t.Errorf("in the same room: %+v", o)
	}
	setup.Capacity = capacity + 70*mem.MiB
	if o := Run(part, setup); o.OOM != nil {
		t.Errorf("with more: %+v", o.OOM)
	}
	if o := Run(p, setup); o.Saved != 1 || o.OOM != nil {
		t.Errorf("the whole program with more: %+v", o)
	}
	s.Traces[0].Address[event] = uint64(mem.GiB) // the device had room: a limit was set
	if room, limited := part.RoomAt(&s.Traces[0], event); !limited || room > capacity {
		t.Errorf("room for %v, limited %v", room, limited)
	}
}

// TestSearch: the best is at least as good as what was recorded, all are tried once, and it can be stopped.
func TestSearch(t *testing.T) {
	for _, release := range []mem.Version{minor(9), minor(15)} {
		s := recordProgram(Settings{}, release, 0, pieces)
		p, settings := compile(t, s)
		setup := Setup{Settings: settings, Rules: RulesOf(release), Memory: 1 * mem.GiB}
		found := Search(p, setup, 2, nil)
		seen := map[Settings]bool{}
		own := -1
		for i, c := range found {
			if seen[c.Settings] {
				t.Errorf("%v was tried twice", c.Settings)
			}
			seen[c.Settings] = true
			if c.Settings == settings {
				own = i
			}
			if i > 0 && better(&found[i], &found[i-1]) < 0 {
				t.Errorf("%v comes after %v", found[i], found[i-1])
			}
		}
		if len(found) < 50 || own < 0 || found[0].Outcome.Usage.PeakReserved > found[own].Outcome.Usage.PeakReserved {
			t.Errorf("%d found, the recorded settings at %d", len(found), own)
		}
		if few := Search(p, setup, 1, func() bool { return true }); len(few) == 0 || len(few) > 10 {
			t.Errorf("stopped at once, %d were tried", len(few))
		}
		setup.Settings.Fraction, setup.Capacity = 0.25, 150*mem.MiB
		limited := Search(p, setup, 2, nil)
		if limited[0].Outcome.OOM == nil {
			t.Errorf("a quarter of what it needs: %+v", limited[0])
		}
	}
}

// TestSpread: where ties decide, the orders of addresses lie apart and the spread covers them.
func TestSpread(t *testing.T) {
	s := recordProgram(Settings{}, minor(15), 0, pieces)
	p, settings := compile(t, s)
	for _, rules := range []Rules{RulesOf(minor(9)), RulesOf(minor(15))} {
		all, spread := Variants(p, Setup{Settings: settings, Rules: rules})
		if len(all) != 3 || spread.Low > spread.High || spread.Low <= 0 {
			t.Errorf("%d runs, %+v", len(all), spread)
		}
		for _, o := range all {
			if o.Usage.PeakReserved < spread.Low || o.Usage.PeakReserved > spread.High {
				t.Errorf("%v outside of %+v", o.Usage.PeakReserved, spread)
			}
		}
	}
}

// TestOthersRun: the other allocators run a program with out-of-memory and empty_cache.
func TestOthersRun(t *testing.T) {
	s := recordProgram(Settings{}, minor(9), 270*mem.MiB, pieces)
	p, settings := compile(t, s)
	for _, policy := range Policies {
		setup := Setup{Settings: settings, Capacity: 600 * mem.MiB}
		if o := RunOn(p, policy.Name, setup); o.OOM != nil || o.Usage.PeakAllocated == 0 {
			t.Errorf("%s: %+v", policy.Name, o)
		}
	}
	if _, ok := FindPolicy("jemalloc"); ok {
		t.Error("there is no such policy")
	}
}

// TestWhoEmptiedTheCache: by stacks it is known, without them told from what was ever held.
func TestWhoEmptiedTheCache(t *testing.T) {
	capacity := 100 * mem.MiB
	s := recordProgram(Settings{}, minor(9), capacity, func(n *Native) {
		a, b := n.Malloc(Request{Size: 40 * mem.MiB}), n.Malloc(Request{Size: 40 * mem.MiB})
		n.Free(a)
		c := n.Malloc(Request{Size: 60 * mem.MiB}) // the allocator gives the first back
		n.Free(b)
		n.EmptyCache()
		n.Free(c)
	})
	p, _ := compile(t, s)
	if p.Sweeps != 1 || p.EmptyCaches != 1 || p.Guessed != 1 {
		t.Errorf("without stacks: %d own, %d of the program, %d guessed", p.Sweeps, p.EmptyCaches, p.Guessed)
	}
	trace := &s.Traces[0]
	for i := range trace.Stack {
		trace.Stack[i] = uint32(i/3 + 1)
	}
	sweep := slices.Index(trace.Action, mem.ActionSegmentFree)
	trace.Stack[sweep+1] = trace.Stack[sweep]
	if p, _ = compile(t, s); p.Sweeps != 1 || p.EmptyCaches != 1 || p.Guessed != 0 {
		t.Errorf("with stacks: %d own, %d of the program, %d guessed", p.Sweeps, p.EmptyCaches, p.Guessed)
	}
	trace.Stack[sweep+1]++ // another call: the program did it
	if p, _ = compile(t, s); p.Sweeps != 0 || p.EmptyCaches != 2 {
		t.Errorf("with another stack: %d own, %d of the program", p.Sweeps, p.EmptyCaches)
	}
}

// TestContradictions: traces that no allocator makes are refused with their first contradiction.
func TestContradictions(t *testing.T) {
	fresh := func() *mem.AllocatorSnapshot {
		return recordProgram(Settings{Expandable: true}, minor(9), 0, pieces)
	}
	plain := func() *mem.AllocatorSnapshot {
		return recordProgram(Settings{}, minor(9), 0, pieces)
	}
	at := func(s *mem.AllocatorSnapshot, a mem.Action) int { return slices.Index(s.Traces[0].Action, a) }
	for name, s := range map[string]*mem.AllocatorSnapshot{
		"segment": func() *mem.AllocatorSnapshot {
			s := plain()
			s.Traces[0].Size[at(s, mem.ActionSegmentAlloc)]++
			return s
		}(),
		"freed twice": func() *mem.AllocatorSnapshot {
			s := plain()
			s.Segments = append(s.Segments, mem.Segment{Address: s.Traces[0].Address[at(s, mem.ActionSegmentFree)],
				Size: 2 * mem.MiB})
			return s
		}(),
		"mapped": func() *mem.AllocatorSnapshot {
			s := fresh()
			s.Traces[0].Size[at(s, mem.ActionSegmentMap)] *= 64
			return s
		}(),
		"outside": func() *mem.AllocatorSnapshot {
			s := plain()
			s.Traces[0].Address[at(s, mem.ActionAlloc)] = 4096
			return s
		}(),
		"overlap": func() *mem.AllocatorSnapshot {
			s := plain()
			s.Traces[0].Address[at(s, mem.ActionFreeCompleted)] += 512
			return s
		}(),
	} {
		if v, err := Verify(s, &s.Traces[0], Settings{}, 0); err == nil {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// TestPoolsOfATrace: events that say whose pool they are of come out like any others.
func TestPoolsOfATrace(t *testing.T) {
	mine := mem.PoolID{0, 1}
	var pools []mem.PoolID
	s := recordProgram(Settings{}, minor(15), 0, func(n *Native) {
		n.UsePool(mine)
		observe := n.Observe
		n.Observe = func(e Event) {
			observe(e)
			pools = append(pools, n.poolAt(e.Address, mem.PoolID{}))
		}
		var all []Handle
		for i := range 20 {
			r := Request{Size: mem.Bytes(i+1) * 700 * mem.KiB}
			if i%2 == 0 {
				r.Pool = mine
			}
			all = append(all, n.Malloc(r))
		}
		for i := range 12 {
			n.Free(all[i])
		}
		n.EmptyCache()
		n.ReleasePool(mine)
		n.EmptyCache()
		n.Malloc(Request{Size: 3 * mem.MiB})
	})
	s.Traces[0].Pool = pools
	p, settings := compile(t, s)
	v, err := Verify(s, &s.Traces[0], settings, 0)
	if err != nil || !v.Exact() || v.AddressesTotal != 21 {
		t.Fatalf("%+v, %v", v, err)
	}
	out, again := Record(p, Setup{Settings: settings, Rules: RulesOf(minor(15))}, s, &s.Traces[0])
	if out.Usage.PeakReserved != v.Usage.PeakReserved || out.Usage.Reserved != v.Usage.Reserved {
		t.Errorf("a pool keeps its memory while it is used: replayed %+v, recorded %+v", out.Usage, v.Usage)
	}
	if len(again.Traces[0].Pool) != again.Traces[0].Len() || !slices.Contains(again.Traces[0].Pool, mine) {
		t.Errorf("of %d events, %d pools", again.Traces[0].Len(), len(again.Traces[0].Pool))
	}
}

// TestFailedGrowth: pages mapped for a request that then failed stay where they are.
func TestFailedGrowth(t *testing.T) {
	s := recordProgram(Settings{Expandable: true}, minor(9), 100*mem.MiB, func(n *Native) {
		a, b := n.Malloc(Request{Size: 19 * mem.MiB}), n.Malloc(Request{Size: 19 * mem.MiB})
		c := n.Malloc(Request{Size: 38 * mem.MiB})
		n.Free(a)
		n.EmptyCache()
		n.Malloc(Request{Size: 15 * mem.MiB, Stream: 7})
		n.Malloc(Request{Size: 60 * mem.MiB})
		n.Free(c)
		n.Malloc(Request{Size: 60 * mem.MiB})
		n.FreeRequested(b)
		n.EmptyCache()
		n.FreeCompleted(b)
		n.EmptyCache()
	})
	p, settings := compile(t, s)
	v, err := Verify(s, &s.Traces[0], settings, 0)
	if err != nil || !v.Exact() {
		t.Errorf("%+v, %v", v, err)
	}
	for _, capacity := range []mem.Bytes{0, 100 * mem.MiB, 50 * mem.MiB} {
		Variants(p, Setup{Settings: settings, Rules: RulesOf(minor(9)), Capacity: capacity})
	}
}

// TestVerifyLearnsWhatIsReserved: a part of a memory that no file tells is reserved, and full sooner than assumed.
func TestVerifyLearnsWhatIsReserved(t *testing.T) {
	// 45 MiB of 22 GiB: three pages
	settings := Settings{Expandable: true, LargeSegment: 20 * mem.MiB, ReserveFraction: 0.002}
	s := recordProgram(settings, minor(15), 22*mem.GiB, func(n *Native) {
		var all []Handle
		for i := range mem.Bytes(40) {
			all = append(all, n.Malloc(Request{Size: (1 + i%5) * 3 * mem.MiB}),
				n.Malloc(Request{Size: (1 + i%7) * 100 * mem.KiB}))
			if i%3 == 2 {
				n.Free(all[i])
			}
		}
	})
	settings, err := SettingsOf(s)
	if err != nil || settings.ReserveFraction != 0.002 {
		t.Fatalf("the settings are %v, %v", settings, err)
	}
	v, err := Verify(s, &s.Traces[0], settings, 0)
	if err != nil || !v.Exact() || v.First != "" || v.SegmentsTotal < 10 {
		t.Errorf("%+v, %v: want all exact", v, err)
	}
	// Nothing excuses a new segment where the memory for the reservation is told.
	settings.ReserveFraction, settings.ReserveBytes = 0, mem.GiB
	if v, err := Verify(s, &s.Traces[0], settings, 0); err != nil || v.Exact() {
		t.Errorf("%+v, %v: a gigabyte each is not what the record has", v, err)
	}
}

// TestSearchKnowsTheVersion: what is tried is a setting that the version reads.
func TestSearchKnowsTheVersion(t *testing.T) {
	for release, want := range map[mem.Version][2]bool{minor(0): {false, false}, minor(1): {true, false}, minor(6): {true, true}} {
		setup := Setup{Rules: RulesOf(release)}
		var got [2]bool
		for _, s := range append(grid(setup, false), neighbours(Settings{MaxSplit: 64 * mem.MiB}, setup, false)...) {
			got[0], got[1] = got[0] || s.Expandable, got[1] || s.MaxNonSplitRound > 0
		}
		if got != want {
			t.Errorf("%v: expandable_segments and max_non_split_rounding_mb %v, want %v", release, got, want)
		}
	}
}
