package growth

import (
	"strings"
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// oneProcess is a run of one, without anything in it.
func oneProcess() *mem.Run {
	run := mem.NewRun()
	if err := run.Add(mem.Process{ID: 1}); err != nil {
		panic(err)
	}
	return run
}

// trained is a run of steps of a tenth of a second whose RSS, read twice a step, is low between them and high in them.
func trained(steps int64, low, high func(step int64) int64) *mem.Run {
	run := oneProcess()
	rss := &mem.Series{SeriesDef: mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS}}
	for n := range steps {
		at := (n + 1) * 1e8
		rss.Times = append(rss.Times, at-5e7, at)
		rss.Values = append(rss.Values, high(n), low(n))
		run.Steps = append(run.Steps, mem.Step{Process: 1, Number: uint64(n + 1), Time: at, RSS: mem.Some(low(n))})
	}
	run.Series = append(run.Series, rss)
	run.End = &mem.End{Time: steps * 1e8}
	return run
}

// TestLargerSteps: what malloc keeps for ever larger steps is no growth that is told, what is kept beside equal ones is.
func TestLargerSteps(t *testing.T) {
	rising := func(n int64) int64 { return 400<<20 + n<<18 }
	for _, c := range []struct {
		name string
		high func(int64) int64
		told int
	}{
		{"equal steps", func(n int64) int64 { return rising(n) + 30<<20 }, 1},
		{"larger steps", func(n int64) int64 { return rising(n) + n<<18 }, 0},
	} {
		in := Find(facts.Of(trained(300, rising, c.high), nil))
		if len(in.Said.Findings) != c.told || len(in.totals) != c.told {
			t.Errorf("%s: %d findings, %d of whole processes; want %d", c.name, len(in.Said.Findings), len(in.totals), c.told)
		}
		if said := strings.Contains(in.NotLooked, "what its steps take and give back rose too"); said != (c.told == 0) {
			t.Errorf("%s: %q", c.name, in.NotLooked)
		}
	}
}

// TestLargerStepsOfMalloc: where malloc keeps what ever larger steps free, the resident set does not fall, and the
// sampled heap does. Beside equal steps it is told.
func TestLargerStepsOfMalloc(t *testing.T) {
	rising := func(n int64) int64 { return 400<<20 + n<<18 }
	for _, c := range []struct {
		name string
		heap func(n int64) int64 // at the middle of a step
		told int
	}{
		{"equal steps", func(int64) int64 { return 60 << 20 }, 1},
		{"larger steps", func(n int64) int64 { return 20<<20 + n<<18 }, 0},
	} {
		run := trained(300, rising, rising)
		heap := &mem.Series{SeriesDef: mem.SeriesDef{ID: 2, Process: 1, Name: mem.SeriesHeapLive}}
		for n := range int64(300) {
			heap.Times = append(heap.Times, n*1e8+5e7, (n+1)*1e8)
			heap.Values = append(heap.Values, c.heap(n), 10<<20)
		}
		run.Series = append(run.Series, heap)
		if in := Find(facts.Of(run, nil)); len(in.totals) != c.told {
			t.Errorf("%s: %d growths of whole processes, want %d: %s", c.name, len(in.totals), c.told, in.NotLooked)
		}
	}
}

// TestLargerStepsOfADevice: a batch that is larger at each step's end is no growth that is told where the steps take more
// too, as where sequences get longer.
func TestLargerStepsOfADevice(t *testing.T) {
	flat := func(int64) int64 { return 400 << 20 }
	rising := func(n int64) int64 { return 1<<30 + n<<18 }
	for _, c := range []struct {
		name string
		high func(int64) int64
		told int
	}{
		{"equal steps", func(n int64) int64 { return rising(n) + 300<<20 }, 1},
		{"larger steps", func(n int64) int64 { return rising(n) + n<<22 }, 0},
	} {
		run := trained(300, flat, flat)
		device := &mem.Series{SeriesDef: mem.SeriesDef{ID: 2, Process: 1, Name: mem.SeriesAllocated, Device: "cuda:0"}}
		for n := range int64(300) {
			device.Times = append(device.Times, n*1e8+5e7, (n+1)*1e8)
			device.Values = append(device.Values, c.high(n), rising(n))
			run.Steps[n].Device = mem.Some(rising(n))
		}
		run.Series = append(run.Series, device)
		in := Find(facts.Of(run, nil))
		if len(in.totals) != c.told {
			t.Errorf("%s: %d growths, want %d: %s", c.name, len(in.totals), c.told, in.NotLooked)
		}
		if said := strings.Contains(in.NotLooked, "its device memory rose by"); said != (c.told == 0) {
			t.Errorf("%s: %q", c.name, in.NotLooked)
		}
	}
}

// TestHistoryIsNoGrowth: the ring in which the agent has the allocator's history recorded fills with the first steps.
func TestHistoryIsNoGrowth(t *testing.T) {
	for _, c := range []struct {
		step, ring int64
		told       int
	}{
		{1 << 20, 0, 1},
		{1 << 20, 32 << 20, 0},
		{3 << 20, 32 << 20, 1}, // more than the ring takes
	} {
		rising := func(n int64) int64 { return 400<<20 + n*c.step }
		run := trained(28, rising, rising)
		run.Processes[0].SetNumber(mem.NumberHistory, c.ring)
		in := Find(facts.Of(run, nil))
		if len(in.totals) != c.told {
			t.Errorf("%v a step, a ring of %v: %d growths, want %d", mem.Bytes(c.step), mem.Bytes(c.ring), len(in.totals), c.told)
		}
		if c.told == 0 && !strings.Contains(in.Looked, "of host memory 32.0 MiB more") {
			t.Error(in.Looked)
		}
	}
}

// TestHolesAreNoGrowth: where most of what a resident set rises by are holes of malloc, whether it is kept is not known,
// and no rate is said.
func TestHolesAreNoGrowth(t *testing.T) {
	rising := func(n int64) int64 { return 400<<20 + n<<18 }
	for _, c := range []struct {
		name  string
		holes func(n int64) int64
		told  int
	}{
		{"the same holes", func(int64) int64 { return 20 << 20 }, 1},
		{"ever more holes", func(n int64) int64 { return n << 18 }, 0},
	} {
		run := trained(300, rising, rising)
		free := &mem.Series{SeriesDef: mem.SeriesDef{ID: 2, Process: 1, Name: mem.SeriesMallocFree}}
		for n := range int64(300) {
			free.Times, free.Values = append(free.Times, (n+1)*1e8), append(free.Values, c.holes(n))
		}
		run.Series = append(run.Series, free)
		in := Find(facts.Of(run, nil))
		if len(in.totals) != c.told || in.Rate.Known() != (c.told == 1) {
			t.Errorf("%s: %d growths, a rate of %v; want %d: %s", c.name, len(in.totals), in.Rate, c.told, in.NotLooked)
		}
		if said := strings.Contains(in.NotLooked, "inside malloc's arenas"); said != (c.told == 0) {
			t.Errorf("%s: %q", c.name, in.NotLooked)
		}
	}
}

// TestHolesBesideALeak: what a process rises by beside a leak is told, and that most of it are holes of malloc's.
func TestHolesBesideALeak(t *testing.T) {
	for _, c := range []struct{ each, want int64 }{{1 << 18, 299 << 18}, {1 << 16, 0}} {
		run := trained(300, func(int64) int64 { return 1 }, func(int64) int64 { return 2 })
		free := &mem.Series{SeriesDef: mem.SeriesDef{ID: 2, Process: 1, Name: mem.SeriesMallocFree}}
		for n := range int64(300) {
			free.Times, free.Values = append(free.Times, (n+1)*1e8), append(free.Values, n*c.each)
		}
		run.Series = append(run.Series, free)
		in := Find(facts.Of(run, nil))
		rises := []total{{Trend: usage.Trend{Slope: 1 << 18}, process: 1, source: "rss", kept: 300 << 18}}
		leak := growing{process: 1, lines: []growingLine{{process: 1}}}
		leak.lines[0].Slope = 1 << 12
		got := in.unexplained(rises, []growing{leak})
		if len(got) != 1 || int64(got[0].holes) > c.want || (got[0].holes > 0) != (c.want > 0) {
			t.Fatalf("holes that rise by %v a step: %+v", mem.Bytes(c.each), got)
		}
		run.Heap = map[uint32]*mem.Heap{1: {}}
		said, advice := in.growthWords(&got[0], mem.Location{}), in.growthAdvice(&got[0], mem.Location{})
		if strings.Contains(said, "lie free inside malloc's arenas") != (c.want > 0) ||
			strings.Contains(advice, "MALLOC_MMAP_THRESHOLD_") != (c.want > 0) {
			t.Errorf("%s\n%s", said, advice)
		}
	}
}

// TestCutShort: what rested for a moment before its process was killed is not said to have stopped.
func TestCutShort(t *testing.T) {
	in := Find(facts.Of(trained(300, func(int64) int64 { return 1 }, func(int64) int64 { return 2 }), nil))
	p := &mem.Process{ID: 1, Start: 0, End: mem.Some(30e9), Signal: mem.Some(9)}
	if !in.cutShort(p, 29e9) || in.cutShort(p, 10e9) {
		t.Error("the last tenth alone is cut short")
	}
	if p.Signal = (mem.Optional{}); in.cutShort(p, 29e9) {
		t.Error("nothing cuts a program short that ends by itself")
	}
}

// TestStopsInTheLastSteps: the last fifth of the steps takes a tenth of the time, and in it nothing grows any more.
func TestStopsInTheLastSteps(t *testing.T) {
	at := func(n int64) int64 { // of the end of a step: those of the last fifth are shorter
		if n > 240 {
			return 240*1e8 + (n-240)*4e7
		}
		return n * 1e8
	}
	run := oneProcess()
	rss := &mem.Series{SeriesDef: mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS}}
	for n := int64(1); n <= 300; n++ {
		held := 400<<20 + min(n, 240)<<20
		rss.Times, rss.Values = append(rss.Times, at(n)), append(rss.Values, held)
		s := mem.Step{Process: 1, Number: uint64(n), Time: at(n)}
		if n <= 245 && n%10 == 5 {
			s.RSS = mem.Some(held)
		}
		run.Steps = append(run.Steps, s)
	}
	run.Series = append(run.Series, rss)
	run.End = &mem.End{Time: at(300)}
	if in := Find(facts.Of(run, nil)); len(in.totals) != 0 {
		t.Errorf("a growth to the end: %+v", in.totals)
	}
}
