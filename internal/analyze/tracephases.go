package analyze

import (
	"sort"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// Phases that a trace's stacks tell: what the program was doing when it allocated.
const (
	phaseOther uint8 = iota
	phaseForward
	phaseBackward
	phaseOptimizer
)

var tracePhaseNames = [...]string{"other", "forward", "backward", "optimizer"}

var (
	optimizerFrame = words.Lazy(`torch/optim/.*:|(optim|optimizers?)\w*\.py:(step|_init_group)$`)
	backwardFrame  = words.Lazy(`autograd::[Ee]ngine::|_engine_run_backward|Backward\d*::apply|AccumulateGrad|utils/checkpoint\.py:(unpack_hook|recompute_fn|backward)$`)
	forwardFrame   = words.Lazy(`module\.py:(_call_impl|_wrapped_call_impl)$|:forward$`)
)

// phaseRun is a stretch of events in one phase; it ends where the next begins.
type phaseRun struct {
	from  int32
	phase uint8
}

// phaseRuns tells each allocation's phase by its stack. Memory for which a trace of Python's stacks has
// none is autograd's, whose threads run no Python.
func (b *traceBooks) phaseRuns() []phaseRun {
	if b.runs != nil {
		return b.runs
	}
	of := b.stackPhases()
	b.runs = []phaseRun{{-1, phaseOther}}
	for i, action := range b.trace.Action {
		if action != mem.ActionAlloc {
			continue
		}
		if p := of[b.trace.Stack[i]]; p != b.runs[len(b.runs)-1].phase {
			b.runs = append(b.runs, phaseRun{int32(i), p})
		}
	}
	return b.runs
}

func (b *traceBooks) stackPhases() []uint8 {
	if b.byStack != nil {
		return b.byStack
	}
	stacks := &b.snapshot.Stacks
	places := make([]uint8, len(stacks.Locations))
	for i, l := range stacks.Locations {
		name := l.File + ":" + l.Function
		switch {
		case optimizerFrame.MatchString(name):
			places[i] = phaseOptimizer
		case backwardFrame.MatchString(name):
			places[i] = phaseBackward
		case forwardFrame.MatchString(name):
			places[i] = phaseForward
		}
	}
	of, trains := make([]uint8, stacks.Len()), false
	for n := range of {
		for _, l := range stacks.Numbers(uint32(n)) {
			of[n] = max(of[n], places[l])
		}
		trains = trains || of[n] == phaseForward
	}
	for n := range of {
		if trains && bareStack(stacks, uint32(n)) {
			of[n] = phaseBackward
		}
	}
	b.byStack = of
	return of
}

// ownFrame matches what stands in for a kernel that no GPU runs.
var ownFrame = words.Lazy(`/hightide_agent/imagine/|/torch/_ops\.py$`)

// bareStack says whether a stack has no frames of the program or the framework.
func bareStack(stacks *mem.StackTable, n uint32) bool {
	for _, l := range stacks.Numbers(n) {
		if !ownFrame.MatchString(stacks.Locations[l].File) {
			return false
		}
	}
	return true
}

// phaseAt is the phase of the last allocation up to an event, and the event that begins the next one.
func (b *traceBooks) phaseAt(event int32) (phase uint8, end int32) {
	runs := b.phaseRuns()
	n := sort.Search(len(runs), func(i int) bool { return runs[i].from > event }) - 1
	if n < 0 {
		return phaseOther, runs[0].from
	}
	if n+1 == len(runs) {
		return runs[n].phase, never - 2
	}
	return runs[n].phase, runs[n+1].from
}

// hints are what a block's life says of what it is for, one bit for each life of the rules.
type hints uint8

const (
	hintKept hints = 1 << iota
	hintStart
	hintShort
	hintOutlasts
	hintSaved
)

var hintNames = map[string]hints{"any": 0, "kept": hintKept, "start": hintStart, "short": hintShort, "outlasts": hintOutlasts, "saved": hintSaved}

// hintsOf looks at one life, by its number.
func (b *traceBooks) hintsOf(n int) hints {
	l := &b.lives[n]
	var h hints
	if int(l.freed) >= b.trace.Len() {
		h |= hintKept
	}
	if l.born < 0 {
		return h | hintStart
	}
	next := int32(never - 2)
	if n+8 < len(b.lives) {
		next = b.lives[n+8].born // lives are in the order of their births
	}
	if l.freed < next {
		h |= hintShort
	}
	phase, end := b.phaseAt(l.born)
	if l.freed >= end {
		h |= hintOutlasts
	}
	if phase != phaseBackward && phase != phaseOptimizer && int(l.freed) < b.trace.Len() {
		if freeing, _ := b.phaseAt(l.freed); freeing == phaseBackward {
			h |= hintSaved
		}
	}
	return h
}
