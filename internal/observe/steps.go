package observe

import (
	"hightide/internal/mem"
)

// stepSelection keeps an even selection of a process's steps and counts all of them.
type stepSelection struct {
	total   mem.StepTotal
	changed bool
	out     mem.Steps
	budget  thinning
	took    int64 // ns of the last one
}

const (
	stepBurst = 2000
	stepRate  = 5 // a second
)

func newStepSelection(process uint32) stepSelection {
	return stepSelection{total: mem.StepTotal{Process: process}, budget: thinning{burst: stepBurst, rate: stepRate}}
}

func (b *stepSelection) add(s mem.Step) {
	b.total.Steps = max(b.total.Steps+1, s.Number)
	if s.Skipped {
		b.total.Skipped++
	}
	b.changed, b.took = true, s.Duration
	b.budget.count(s.Time)
	if b.budget.keeps(s.Number) {
		b.out = append(b.out, s)
	}
}

// takeKept returns the kept steps since the last call.
func (b *stepSelection) takeKept() mem.Steps {
	steps := b.out
	b.out, b.changed = nil, false
	return steps
}

// thinning selects every 2^k-th step, with k growing so that about burst + rate per second of the
// items seen are kept. Every selection is a subset of the earlier ones, so the steps that are kept
// lie at equal distances between any two changes of k.
type thinning struct {
	burst float64
	rate  float64 // per second

	start  int64   // ns, of the first item
	seen   float64 // items, kept or not
	stride uint64  // 0: nothing seen yet; else a power of two
}

// keeps says whether a step belongs to the selection now.
func (t *thinning) keeps(step uint64) bool { return t.stride <= 1 || step%t.stride == 0 }

// count takes in one item, kept or not, and adapts the selection. Times are the observed program's: one
// that lies before the first item counts as the first's.
func (t *thinning) count(time int64) {
	if t.stride == 0 {
		t.start, t.stride = time, 1
	}
	t.seen++
	for t.seen > float64(t.stride)*(t.burst+t.rate*float64(max(time-t.start, 0))/1e9) {
		t.stride *= 2
	}
}
