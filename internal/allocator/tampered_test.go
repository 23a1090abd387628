package allocator

import (
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// tamper changes the first event of a kind.
func tamper(s *mem.AllocatorSnapshot, action mem.Action, do func(t *mem.Trace, i int)) *mem.AllocatorSnapshot {
	t := &s.Traces[0]
	do(t, slices.Index(t.Action, action))
	return s
}

// drop takes an event out of a trace.
func drop(t *mem.Trace, i int) {
	t.Action, t.Address, t.Size = slices.Delete(t.Action, i, i+1), slices.Delete(t.Address, i, i+1),
		slices.Delete(t.Size, i, i+1)
	t.Stream, t.Stack = slices.Delete(t.Stream, i, i+1), slices.Delete(t.Stack, i, i+1)
}

// TestContradictionsAreNamed: what cannot have been is refused, and the reason says what it is.
func TestContradictionsAreNamed(t *testing.T) {
	fresh := func() *mem.AllocatorSnapshot {
		return recordProgram(Settings{}, minor(9), 0, func(n *Native) {
			a, b := n.Malloc(Request{Size: 3 * mem.MiB}), n.Malloc(Request{Size: 5 * mem.MiB})
			n.FreeRequested(a)
			n.FreeCompleted(a)
			n.Malloc(Request{Size: 40 * mem.MiB})
			n.FreeRequested(b)
		})
	}
	for says, s := range map[string]*mem.AllocatorSnapshot{
		"allocated but never freed": tamper(fresh(), mem.ActionFreeCompleted,
			func(t *mem.Trace, i int) { drop(t, i); drop(t, i-1) }),
		"while a later one lives": tamper(fresh(), mem.ActionFreeCompleted,
			func(t *mem.Trace, i int) { t.Address[i] = t.Address[i-2] }),
		"freed, never completely": tamper(fresh(), mem.ActionFreeCompleted, drop),
		"and lives on": tamper(fresh(), mem.ActionFreeRequested,
			func(t *mem.Trace, i int) { t.Action[i+1] = mem.ActionFreeRequested; t.Address[i+1] = t.Address[2] }),
		"overlaps the one before it": func() *mem.AllocatorSnapshot {
			s := fresh()
			s.Segments = append(s.Segments, mem.Segment{Address: s.Segments[0].Address, Size: mem.MiB, Expandable: true})
			s.Traces[0] = mem.Trace{}
			return s
		}(),
		"lies in no segment": func() *mem.AllocatorSnapshot {
			s := fresh()
			s.Segments[1].Blocks[0].Address += uint64(mem.GiB)
			s.Traces[0] = mem.Trace{}
			return s
		}(),
		"does not fit before": func() *mem.AllocatorSnapshot {
			s := fresh()
			s.Segments[0].Blocks[0].Size = 8 * mem.MiB
			s.Segments[0].Blocks[0].State = mem.BlockAllocated
			s.Traces[0] = mem.Trace{}
			return s
		}(),
	} {
		settings := Settings{}
		_, err := Compile(s, &s.Traces[0], settings)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
		if _, err := Verify(s, &s.Traces[0], settings, 0); err == nil {
			t.Errorf("%q is verified", says)
		}
	}
}

// TestDifferencesAreNamed: a trace that could have been, but not of this allocator, is followed to its end and the
// first difference told.
func TestDifferencesAreNamed(t *testing.T) {
	expandable := Settings{Expandable: true}
	for _, test := range []struct {
		says     string
		settings Settings
		s        *mem.AllocatorSnapshot
	}{
		{"which the model could not", Settings{}, func() *mem.AllocatorSnapshot {
			s := recordProgram(Settings{}, minor(9), 0, func(n *Native) { n.Free(n.Malloc(Request{Size: mem.MiB})) })
			s.Segments = nil
			t := &s.Traces[0]
			t.Action, t.Address, t.Size = append(t.Action, mem.ActionSegmentFree), append(t.Address, t.Address[0]),
				append(t.Size, t.Size[0])
			t.Stream, t.Stack = append(t.Stream, 9), append(t.Stack, 0) // of another stream than it was taken for
			return s
		}()},
		{"is divided otherwise", Settings{}, func() *mem.AllocatorSnapshot {
			s := recordProgram(Settings{}, minor(9), 0, func(n *Native) { n.Free(n.Malloc(Request{Size: mem.MiB})) })
			g := &s.Segments[0]
			g.Blocks = []mem.Block{{Address: g.Address, Size: mem.MiB}, {Address: g.Address + uint64(mem.MiB), Size: mem.MiB}}
			return s
		}()},
		{"maps 20971520 bytes", expandable, func() *mem.AllocatorSnapshot {
			s := recordProgram(expandable, minor(9), 0, func(n *Native) {
				small := n.Malloc(Request{Size: mem.MiB})
				n.Free(n.Malloc(Request{Size: 15 * mem.MiB}))
				n.Free(small)
				n.Malloc(Request{Size: 30 * mem.MiB})
			})
			t := &s.Traces[0]
			for range 3 { // the second allocation and its end: its pages were mapped for nothing, on another stream
				drop(t, 3)
			}
			t.Stream[2] = 5
			return s
		}()},
		{"finds no room", Settings{Expandable: true, ReserveBytes: 20 * mem.MiB},
			recordProgram(expandable, minor(9), 0, func(n *Native) {
				n.Malloc(Request{Size: 30 * mem.MiB})
			})},
		{"the record takes 20.0 MiB from the device, the model 32.0 MiB", Settings{LargeSegment: 32 * mem.MiB},
			recordProgram(Settings{}, minor(9), 0, func(n *Native) {
				n.Malloc(Request{Size: 3 * mem.MiB})
			})},
		{"in cached memory", Settings{MaxSplit: 32 * mem.MiB}, recordProgram(Settings{}, minor(9), 0,
			func(n *Native) {
				n.Free(n.Malloc(Request{Size: 64 * mem.MiB}))
				n.Malloc(Request{Size: 30 * mem.MiB})
			})},
	} {
		v, err := Verify(test.s, &test.s.Traces[0], test.settings, 0)
		if err != nil || !strings.Contains(v.First, test.says) {
			t.Errorf("want %q: %+v, %v", test.says, v, err)
		}
	}
}

// TestGrowthForNothing: a request that had to map twice and failed the second time leaves the first pages mapped.
func TestGrowthForNothing(t *testing.T) {
	settings := Settings{Expandable: true}
	s := recordProgram(settings, minor(9), 110*mem.MiB, func(n *Native) {
		ask := func(size mem.Bytes) Handle { return n.Malloc(Request{Size: size}) }
		ask(10 * mem.MiB)
		b, c, d := ask(40*mem.MiB), ask(1536*mem.KiB), ask(20*mem.MiB)
		n.Free(b)
		n.Free(d)
		n.EmptyCache() // free, unmapped, free, in use, free, unmapped
		n.Free(c)
		ask(100 * mem.MiB)
	})
	trace := &s.Traces[0]
	failed := slices.Index(trace.Action, mem.ActionOOM)
	if failed < 0 || !slices.Contains(trace.Action[:failed], mem.ActionSegmentUnmap) {
		t.Fatalf("%v", trace.Action)
	}
	v, err := Verify(s, trace, settings, 0)
	if err != nil || !v.Exact() || v.First != "" {
		t.Errorf("%+v, %v", v, err)
	}
	for i := range trace.Stack { // with the stacks of the calls, the sweep in between is known to be the allocator's own
		trace.Stack[i] = 1
	}
	if p, err := Compile(s, trace, settings); err != nil || p.Sweeps == 0 || p.Guessed != 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestSweepBeforeReuse: unmapping in the middle of a call that then finds room without growing is the allocator's own.
func TestSweepBeforeReuse(t *testing.T) {
	s := recordProgram(Settings{Expandable: true}, minor(9), 0, func(n *Native) {
		a := n.Malloc(Request{Size: 30 * mem.MiB})
		n.Malloc(Request{Size: 5 * mem.MiB, Stream: 3})
		n.Free(a)
		n.EmptyCache()
		n.Malloc(Request{Size: 4 * mem.MiB, Stream: 3})
	})
	t0 := &s.Traces[0]
	sweep := slices.Index(t0.Action, mem.ActionSegmentUnmap)
	for _, test := range []struct {
		unmap, alloc uint32
		own          int
	}{{7, 7, 1}, {7, 8, 0}, {0, 0, 0}} {
		t0.Stack[sweep], t0.Stack[sweep+1] = test.unmap, test.alloc
		if p, err := Compile(s, t0, Settings{Expandable: true}); err != nil || p.Sweeps != test.own || p.Sweeps+p.EmptyCaches != 1 {
			t.Errorf("stacks %d and %d: %+v, %v", test.unmap, test.alloc, p, err)
		}
	}
}

// TestCompletionsAlone: recorders that write when a block can be used again, but not when the program let go of it.
func TestCompletionsAlone(t *testing.T) {
	s := recordProgram(Settings{}, minor(9), 0, func(n *Native) {
		a, b, c := n.Malloc(Request{Size: 3 * mem.MiB}), n.Malloc(Request{Size: 5 * mem.MiB}),
			n.Malloc(Request{Size: 7 * mem.MiB})
		n.FreeRequested(b)
		n.Free(a)
		n.EmptyCache()
		n.FreeCompleted(b)
		n.Free(c)
		n.Malloc(Request{Size: 12 * mem.MiB})
	})
	whole := *s
	trace := &s.Traces[0]
	for i := 0; i < trace.Len(); i++ {
		if trace.Action[i] == mem.ActionFreeRequested {
			drop(trace, i)
		}
	}
	for first := range trace.Len() - 1 { // a ring that lost its beginning
		part := &mem.AllocatorSnapshot{Versions: only(minor(9)), Segments: whole.Segments,
			Traces: []mem.Trace{{Action: trace.Action[first:],
				Address: trace.Address[first:], Size: trace.Size[first:], Stream: trace.Stream[first:], Stack: trace.Stack[first:]}}}
		v, err := Verify(part, &part.Traces[0], Settings{}, 0)
		if err != nil || !v.Exact() {
			t.Errorf("from event %d on: %+v, %v", first, v, err)
		}
		p, err := Compile(part, &part.Traces[0], Settings{})
		if err != nil {
			t.Fatal(err)
		}
		for _, settings := range []Settings{{}, {Expandable: true}} { // the second lays the beginning out anew
			if o := Run(p, Setup{Settings: settings}); o.OOM != nil || o.Usage.Active != 12*mem.MiB {
				t.Errorf("from event %d on, %+v: %+v", first, settings, o.Usage)
			}
		}
	}
}

// TestOtherDevices: what another device holds at the same addresses is not mixed in.
func TestOtherDevices(t *testing.T) {
	s := recordProgram(Settings{}, minor(9), 0, pieces)
	other := recordProgram(Settings{}, minor(9), 0, func(n *Native) { n.Malloc(Request{Size: 50 * mem.MiB}) })
	for _, g := range other.Segments {
		g.Device = 1
		s.Segments = append([]mem.Segment{g}, s.Segments...)
	}
	other.Traces[0].Device = 1
	s.Traces = append(s.Traces, mem.Trace{Device: 2}, other.Traces[0])
	for device, addresses := range map[int]int{0: 27, 1: 1} {
		v, err := Verify(s, TraceOf(s, device), Settings{}, 0)
		if err != nil || !v.Exact() || v.First != "" || v.AddressesTotal != addresses {
			t.Errorf("device %d: %+v, %v", device, v, err)
		}
	}
	if TraceOf(s, 2) != nil {
		t.Error("a device without events has a trace")
	}
}

// TestPoolsByTheirSegments: up to 2.9 an event's pool is that of the segment that lies there at the end.
func TestPoolsByTheirSegments(t *testing.T) {
	mine := mem.PoolID{0, 1}
	s := recordProgram(Settings{}, minor(9), 0, func(n *Native) {
		n.UsePool(mine)
		for i := range mem.Bytes(10) {
			n.Free(n.Malloc(Request{Size: (1 + i) * 300 * mem.KiB, Pool: mem.PoolID{0, uint64(i % 2)}}))
		}
	})
	v, err := Verify(s, &s.Traces[0], Settings{}, 0)
	if err != nil || !v.Exact() || v.AddressesTotal != 10 {
		t.Errorf("%+v, %v", v, err)
	}
	p, err := Compile(s, &s.Traces[0], Settings{})
	if err != nil || !slices.ContainsFunc(p.Ops, func(o Op) bool { return o.Pool == mine }) {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestRoomToBegin: where not even what was held at the beginning has room, the run ends there, recorded or not.
func TestRoomToBegin(t *testing.T) {
	s := recordProgram(Settings{}, minor(9), 0, func(n *Native) {
		n.Malloc(Request{Size: 40 * mem.MiB})
		n.Free(n.Malloc(Request{Size: 3 * mem.MiB}))
	})
	trace := &s.Traces[0]
	for range 2 { // the ring lost the first allocation
		drop(trace, 0)
	}
	s.Settings = nil
	p, err := Compile(s, trace, Settings{})
	if err != nil {
		t.Fatal(err)
	}
	setup := Setup{Capacity: 30 * mem.MiB}
	out, again := Record(p, setup, s, trace)
	if out.OOM == nil || out.OOM.Size != 40*mem.MiB || again.Settings == nil || len(again.Segments) != 0 {
		t.Errorf("%+v, %+v", out, again)
	}
	for _, down := range []bool{false, true} {
		setup = Setup{Capacity: 70 * mem.MiB, Memory: 100 * mem.MiB, Settings: Settings{Fraction: 0.9}, Down: down}
		if out := Run(p, setup); out.OOM != nil || out.Usage.PeakReserved != 60*mem.MiB {
			t.Errorf("%+v: %+v", setup, out)
		}
	}
	if got := p.Through(trace.Len() - 1); len(got.Ops) != len(p.Ops) || got.Ops[len(got.Ops)-1] != p.Ops[len(p.Ops)-1] {
		t.Errorf("nothing failed, and the program is another: %+v", got.Ops)
	}
}

// TestPoolsInTime: what lay at a private segment's addresses before it was another's.
func TestPoolsInTime(t *testing.T) {
	mine, at := mem.PoolID{1, 0}, uint64(mem.TiB)
	trace := &mem.Trace{
		Action: []mem.Action{mem.ActionSegmentAlloc, mem.ActionAlloc, mem.ActionSegmentFree, mem.ActionSegmentAlloc,
			mem.ActionAlloc},
		Address: []uint64{at, at + uint64(4*mem.MiB), at, at + uint64(4*mem.MiB), at + uint64(4*mem.MiB)},
		Size:    []mem.Bytes{20 * mem.MiB, 4 * mem.MiB, 20 * mem.MiB, 2 * mem.MiB, 512},
	}
	s := &mem.AllocatorSnapshot{Segments: []mem.Segment{{Address: at + uint64(4*mem.MiB), Size: 2 * mem.MiB, Pool: mine}}}
	pool := poolsOf(s, trace)
	for i, want := range []mem.PoolID{{}, {}, {}, mine, mine} {
		if got := pool(i); got != want {
			t.Errorf("event %d: %v, want %v", i, got, want)
		}
	}
}
