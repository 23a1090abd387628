package usage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"hightide/internal/mem"
)

// randomTrace is blocks that come and go at random, some of them still used by another stream for a while; some are
// there at the beginning, some stay.
func randomTrace(rng *rand.Rand, stacks uint32, events int) *mem.AllocatorSnapshot {
	s := &mem.AllocatorSnapshot{Label: mem.Measured}
	for n := range stacks {
		s.Stacks.Add([]uint32{s.Stacks.Location(mem.Location{File: "/home/me/a.py", Line: int(n) + 1})})
	}
	t := mem.Trace{}
	add := func(action mem.Action, address uint64, size mem.Bytes, stack uint32) {
		t.Action, t.Address, t.Size = append(t.Action, action), append(t.Address, address), append(t.Size, size)
		t.Stream, t.Stack, t.Time = append(t.Stream, 0), append(t.Stack, stack), append(t.Time, int64(len(t.Time))*1000)
	}
	type block struct {
		address uint64
		size    mem.Bytes
		stack   uint32
	}
	var live, waiting []block
	next := uint64(1 << 30)
	for range 10 { // from before: the trace has only their frees
		live = append(live, block{next, mem.Bytes(1+rng.IntN(9)) * 512, 0})
		next += 1 << 20
	}
	for range events {
		switch rng.IntN(3) {
		case 0:
			b := block{next, mem.Bytes(1+rng.IntN(99)) * 512, 1 + rng.Uint32N(stacks)}
			next += 1 << 20
			add(mem.ActionAlloc, b.address, b.size, b.stack)
			live = append(live, b)
		case 1:
			if len(live) > 0 {
				i := rng.IntN(len(live))
				b := live[i]
				live = slices.Delete(live, i, i+1)
				add(mem.ActionFreeRequested, b.address, b.size, b.stack)
				waiting = append(waiting, b)
			}
		default:
			if len(waiting) > 0 {
				b := waiting[0]
				waiting = waiting[1:]
				add(mem.ActionFreeCompleted, b.address, b.size, b.stack)
			}
		}
	}
	s.Traces = []mem.Trace{t}
	return s
}

// randomHeap is readings of a few stacks, of which each lists those that changed.
func randomHeap(t *testing.T, rng *rand.Rand, stacks uint32, readings int) *mem.Run {
	run := mem.NewRun()
	add := func(f mem.Frame) {
		if err := run.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	for id := uint32(1); id <= stacks; id++ {
		add(mem.StackDef{ID: id, Locations: []mem.Location{{File: "/home/me/a.py", Line: int(id)}}})
	}
	for i := range readings {
		use := mem.HeapUse{Process: 1, Time: int64(i) * 1e9, Step: uint64(i)}
		for id := uint32(1); id <= stacks; id++ {
			if rng.IntN(3) == 0 {
				live := mem.Bytes(rng.IntN(4)) * mem.Bytes(rng.IntN(1000))
				use.Sites = append(use.Sites, mem.SiteUse{Stack: id, Live: live, Count: uint64(live/100) + 1,
					Phase: mem.PhaseForward})
			}
		}
		add(use)
	}
	return run
}

// histories are some of both kinds.
func histories(t *testing.T) map[string]*History {
	all := map[string]*History{}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		all[fmt.Sprint("trace ", seed)] = FromTrace(randomTrace(rng, 7, 300), 0, Whole).History
		all[fmt.Sprint("heap ", seed)] = FromHeap(randomHeap(t, rng, 7, 60), 1)
	}
	return all
}

// TestHeldAddsUp: at every moment the stacks together hold what the history holds, by every way there is to ask, and
// never more than at the peak.
func TestHeldAddsUp(t *testing.T) {
	for name, h := range histories(t) {
		at := make([]Moment, h.Moments)
		for i := range at {
			at[i] = i
		}
		bands := h.Bands(at, 4, func(span int) string { return strconv.Itoa(int(h.Stack[span])) }, nil)
		var most mem.Bytes
		for i := range at {
			var held, banded mem.Bytes
			for _, use := range h.Held(i) {
				held += use.Bytes
				if use.Variance != 0 && h.Exact() {
					t.Fatalf("%s: an exact figure has the variance %g", name, use.Variance)
				}
			}
			for _, band := range bands {
				banded += band.Bytes[i]
			}
			if total := h.Total(i); held != total || banded != total {
				t.Fatalf("%s moment %d: stacks hold %d, bands %d, all of it %d", name, i, held, banded, total)
			}
			most = max(most, held)
		}
		if h.Exact() && (most > h.Peak.Bytes || h.Total(h.Peak.Moment) != h.Peak.Bytes) {
			t.Errorf("%s: peak %+v, the highest moment has %d", name, h.Peak, most)
		}
	}
}

// TestKept: what is kept through a stretch is there at each of its moments. Of a heap the least reading of each
// stack, of a trace the blocks that neither came nor went.
func TestKept(t *testing.T) {
	for name, h := range histories(t) {
		rng := rand.New(rand.NewPCG(1, 1))
		stretches := []Stretch{}
		for at := 0; at < h.Moments; {
			to := min(at+rng.IntN(9), h.Moments-1)
			stretches = append(stretches, Stretch{at, to})
			at = to + 1
		}
		kept := h.Kept(stretches, 8, func(span int) int { return int(h.Stack[span]) })
		for k, s := range stretches {
			want := map[uint32]mem.Bytes{}
			if h.Exact() {
				for i := range h.Len() {
					if h.HeldAt(i, s.From) && h.HeldAt(i, s.To) {
						want[h.Stack[i]] += h.Bytes[i]
					}
				}
			} else {
				for stack := uint32(1); stack < 8; stack++ {
					want[stack] = h.errs.at(stack, s.From).Live
					for at := s.From; at <= s.To; at++ {
						want[stack] = min(want[stack], h.errs.at(stack, at).Live)
					}
				}
			}
			for stack, bytes := range want {
				got := mem.Bytes(0)
				if kept[stack] != nil {
					got = kept[stack][k]
				}
				if got != bytes {
					t.Fatalf("%s: stack %d kept %d through %v, want %d", name, stack, got, s, bytes)
				}
			}
		}
	}
}

// TestPeakOfAHeap is the picture that the recorder made, where it made one, with its error.
func TestPeakOfAHeap(t *testing.T) {
	run := randomHeap(t, rand.New(rand.NewPCG(3, 3)), 2, 5)
	run.Heap[1].History[2].Live = 700
	if h := FromHeap(run, 1); h.Peak.Bytes != 700 || h.Peak.Moment != 2 || len(h.AtPeak()) != len(h.Held(2)) {
		t.Errorf("without a picture the peak is %+v", h.Peak)
	}
	if err := run.Add(mem.HeapUse{Process: 1, Time: 35e8, Step: 3, Live: 1 << 20, Variance: 9, Peak: true,
		Sites: []mem.SiteUse{{Stack: 1, Live: 1 << 20, Count: 2}}}); err != nil {
		t.Fatal(err)
	}
	h := FromHeap(run, 1)
	if h.Peak.Bytes != 1<<20 || h.Peak.Moment != 3 || h.Peak.Variance != 9 {
		t.Errorf("the peak is %+v", h.Peak)
	}
	if uses := h.AtPeak(); len(uses) != 1 || uses[0].Bytes != 1<<20 || uses[0].Blocks != 2 || uses[0].Variance <= 0 {
		t.Errorf("it was held by %+v", uses)
	}
	if FromHeap(run, 2) != nil {
		t.Error("a process that was not sampled has a history")
	}
}

// TestLeakEverySecondStep: a line that keeps a block in every other step grows, one that replaces its own does not.
// Of the same growth, a heap's carries an error and a trace's none.
func TestLeakEverySecondStep(t *testing.T) {
	s := &mem.AllocatorSnapshot{}
	leak, other := s.Stacks.Add([]uint32{s.Stacks.Location(mem.Location{File: "/home/me/a.py", Line: 1})}),
		s.Stacks.Add([]uint32{s.Stacks.Location(mem.Location{File: "/home/me/a.py", Line: 2})})
	tr := mem.Trace{}
	add := func(action mem.Action, address uint64, stack uint32) {
		tr.Action, tr.Address, tr.Size = append(tr.Action, action), append(tr.Address, address), append(tr.Size, mem.MiB)
		tr.Stream, tr.Stack = append(tr.Stream, 0), append(tr.Stack, stack)
	}
	var steps Steps
	for n := range uint64(24) {
		from := tr.Len()
		if n > 0 {
			add(mem.ActionFreeRequested, 1<<40+n-1, other)
			add(mem.ActionFreeCompleted, 1<<40+n-1, other)
		}
		add(mem.ActionAlloc, 1<<40+n, other)
		if n%2 == 0 {
			add(mem.ActionAlloc, 1<<41+n, leak)
		}
		steps.Steps = append(steps.Steps, Stretch{from, tr.Len() - 1})
	}
	s.Traces = []mem.Trace{tr}
	d := FromTrace(s, 0, Whole)
	bins, _ := d.GrowthBins(&steps)
	found := d.Growing(NewNames(d.Stacks), bins, float64(mem.MiB), Trend{}, nil)
	if len(found) != 1 || found[0].Site.Line != 1 || found[0].Slope < 0.45*float64(mem.MiB) ||
		found[0].Slope > 0.55*float64(mem.MiB) {
		t.Errorf("%+v", found)
	}
}

// BenchmarkHeld asks a history of ten million events what was held at a moment.
func BenchmarkHeld(b *testing.B) {
	d := FromTrace(randomTrace(rand.New(rand.NewPCG(1, 2)), 50_000, 10_000_000), 0, Whole)
	b.ReportMetric(float64(d.Len()), "spans")
	b.ResetTimer()
	for i := range b.N {
		d.Held(d.Moments * (i%10 + 1) / 11)
	}
	b.ReportMetric(float64(d.Moments), "events")
}
