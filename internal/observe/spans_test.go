package observe

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

func enter(at int64, phase mem.Phase, step uint64, rss int64) *shm.Edge {
	return &shm.Edge{Time: shm.Time(at), Phase: phase, Thread: 1, Step: step, RSS: mem.Some(rss)}
}

func leave(at int64, phase mem.Phase, step uint64, rss int64) *shm.Edge {
	e := enter(at, phase, step, rss)
	e.Leave = true
	return e
}

func TestSpansNestAndCarryTheirPeak(t *testing.T) {
	b := newOpenSpans(7)
	b.edge(enter(100, mem.PhaseForward, 0, 10))
	b.sample(150, 30) // inside forward, before the module
	module := enter(200, mem.PhaseModule, 0, 20)
	module.Module = 3
	b.modules[3] = "encoder"
	b.edge(module)
	b.sample(250, 80) // inside both
	b.sample(390, 99) // after both have ended, read before their ends are
	done := leave(300, mem.PhaseModule, 0, 25)
	done.Module = 3
	b.edge(done)
	b.edge(leave(380, mem.PhaseForward, 0, 15))
	b.settle(1000)

	spans, stats := b.takeChanges()
	if len(spans) != 2 || spans[0].Name != "encoder" || spans[1].Phase != mem.PhaseForward {
		t.Fatalf("spans %+v", spans)
	}
	if got := spans[0].RSSPeak.Or(-1); got != 80 {
		t.Errorf("peak in the module %d, want 80", got)
	}
	if got := spans[1].RSSPeak.Or(-1); got != 80 {
		t.Errorf("peak in forward %d, want 80: the sample of 99 came after it", got)
	}
	if len(stats) != 2 || stats[1].Count != 1 || stats[1].Total != 280 || stats[1].RSSNet.Or(0) != 5 ||
		stats[1].RSSMaxRise.Or(0) != 70 {
		t.Errorf("sums %+v", stats)
	}
}

func TestSpansForgiveMissingEdges(t *testing.T) {
	b := newOpenSpans(1)
	b.edge(leave(50, mem.PhaseBackward, 0, 1)) // entered before we looked
	b.edge(enter(100, mem.PhaseForward, 0, 1))
	b.edge(enter(110, mem.PhaseModule, 0, 1)) // its end was dropped
	b.edge(leave(200, mem.PhaseForward, 0, 1))
	spans, stats := b.takeChanges()
	if len(spans) != 1 || len(stats) != 1 || spans[0].Phase != mem.PhaseForward || b.phase() != mem.PhaseNone {
		t.Errorf("spans %+v, sums %+v, phase %q", spans, stats, b.phase())
	}
}

// TestLongRunsStaySmall: a million steps of a millisecond keep an even selection and exact sums.
func TestLongRunsStaySmall(t *testing.T) {
	spans, steps := newOpenSpans(1), newStepSelection(1)
	var keptSteps []uint64
	kept := 0
	const n = 1_000_000
	for i := range uint64(n) {
		at := int64(i) * 1_000_000
		for offset, phase := range []mem.Phase{mem.PhaseForward, mem.PhaseBackward, mem.PhaseOptimizer} {
			spans.edge(enter(at+int64(offset)*300_000, phase, i, 1))
			spans.edge(leave(at+int64(offset)*300_000+200_000, phase, i, 1))
		}
		steps.add(mem.Step{Process: 1, Number: i + 1, Time: at})
		if i%10_000 == 0 || i == n-1 {
			out, _ := spans.takeChanges()
			kept += len(out)
			for _, s := range steps.takeKept() {
				keptSteps = append(keptSteps, s.Number)
			}
		}
	}
	if kept > 80_000 || kept < 20_000 {
		t.Errorf("%d of 3,000,000 spans kept", kept)
	}
	if len(keptSteps) > 25_000 || len(keptSteps) < 5_000 {
		t.Errorf("%d of 1,000,000 steps kept", len(keptSteps))
	}
	if last := keptSteps[len(keptSteps)-1]; last < n-1000 {
		t.Errorf("the last kept step is %d", last)
	}
	if steps.total.Steps != n {
		t.Errorf("%d steps counted", steps.total.Steps)
	}
	if got := spans.stats[statKey{mem.PhaseForward, ""}].Count; got != n {
		t.Errorf("%d forwards counted", got)
	}
	for i := 2; i < len(keptSteps); i++ {
		before, after := keptSteps[i-1]-keptSteps[i-2], keptSteps[i]-keptSteps[i-1]
		if after < before && i > 2 {
			t.Fatalf("steps %v: not an even selection", keptSteps[i-2:i+1])
		}
	}
}
