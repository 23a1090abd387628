package observe

import "hightide/internal/mem"

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

// take returns the kept steps since the last call.
func (b *stepSelection) take() mem.Steps {
	steps := b.out
	b.out, b.changed = nil, false
	return steps
}
