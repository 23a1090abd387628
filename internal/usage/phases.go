package usage

import (
	"slices"
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

var tracePhaseNames = [...]mem.Phase{mem.PhaseNone, mem.PhaseForward, mem.PhaseBackward, mem.PhaseOptimizer}

var (
	optimizerFrame = words.Lazy(`torch/optim/.*:|(optim|optimizers?)\w*\.py:(step|_init_group)$`)
	backwardFrame  = words.Lazy(`autograd::[Ee]ngine::|_engine_run_backward|Backward\d*::apply|AccumulateGrad|utils/checkpoint\.py:(unpack_hook|recompute_fn)$|\.py:backward$`)
	forwardFrame   = words.Lazy(`module\.py:(_call_impl|_wrapped_call_impl)$|:forward$`)
)

// phaseRun is a stretch of events in one phase; it ends where the next begins.
type phaseRun struct {
	from  int32
	phase uint8
	few   bool  // fewer than leastPhase allocations
	last  int32 // its last allocation; of a backward pass that goes on in a later run, the last of all
	pass  int32 // where that pass ends: the event that begins what comes after it
}

// phaseRuns tells each allocation's phase by its stack. Memory for which a trace of Python's stacks has
// none is autograd's, whose threads run no Python.
func (d *Device) phaseRuns() []phaseRun {
	if d.runs != nil {
		return d.runs
	}
	of := d.stackPhases()
	d.runs = []phaseRun{{from: -1, last: -1, few: true}}
	last, count := &d.runs[0], 0
	for i, action := range d.Trace.Action {
		if action != mem.ActionAlloc {
			continue
		}
		if p := of[d.Trace.Stack[i]]; p != last.phase {
			d.runs = append(d.runs, phaseRun{from: int32(i), phase: p})
			last, count = &d.runs[len(d.runs)-1], 0
		}
		count++
		last.last, last.few = int32(i), count < leastPhase
	}
	joinPasses(d.runs)
	return d.runs
}

// joinPasses finds where each backward pass ends. In a trace with forward passes, what is neither forward nor
// optimizer amidst a pass belongs to it, as what a hook allocates.
func joinPasses(runs []phaseRun) {
	forwards := slices.ContainsFunc(runs, func(r phaseRun) bool { return r.phase == phaseForward && !r.few })
	last, end := int32(-1), int32(Never)-2
	for i := range slices.Backward(runs) {
		switch run := &runs[i]; {
		case run.phase == phaseBackward:
			last = max(last, run.last)
			run.last, run.pass = last, end
		case run.phase != phaseOther || !forwards:
			last, end = -1, run.from
		}
	}
}

func (d *Device) stackPhases() []uint8 {
	if d.byStack != nil {
		return d.byStack
	}
	stacks := &d.Snapshot.Stacks
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
	trains = trains && !d.Frameless() // the blocks of the end may have frames where the events have none
	for n := range of {
		if trains && bareStack(stacks, uint32(n)) {
			of[n] = phaseBackward
		}
	}
	d.byStack = of
	return of
}

// runAt is the run of the last allocation up to an event, and the event that ends it.
func (d *Device) runAt(event int32) (run *phaseRun, end int32) {
	runs := d.phaseRuns()
	n := max(0, sort.Search(len(runs), func(i int) bool { return runs[i].from > event })-1)
	switch run = &runs[n]; {
	case run.phase == phaseBackward:
		return run, run.pass
	case n+1 == len(runs):
		return run, int32(Never) - 2
	}
	return run, runs[n+1].from
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

var hintNames = map[string]hints{"any": 0, "kept": hintKept, "start": hintStart, "short": hintShort,
	"outlasts": hintOutlasts, "saved": hintSaved}

// savedFor says whether few enough backward passes begin in a block's life for one of them to have needed it. They
// are some with pipelines and micro-batches, and not most of those of a training, through which parameters live.
func (d *Device) savedFor(from, to int32) bool {
	if d.passes == nil {
		begins, _ := d.backwardPasses()
		d.passes = append([]int32{}, begins...)
	}
	begun := sort.Search(len(d.passes), func(i int) bool { return d.passes[i] > to }) -
		sort.Search(len(d.passes), func(i int) bool { return d.passes[i] > from })
	return begun <= max(2, len(d.passes)/2)
}

// hintsOf looks at one block.
func (d *Device) hintsOf(span int) hints {
	from, to := d.From[span], d.To[span]
	var h hints
	if int(to) >= d.Moments {
		h |= hintKept
	}
	if from < 0 {
		return h | hintStart
	}
	next := int32(Never - 2)
	if span+8 < d.Len() {
		next = d.From[span+8]
	}
	if to < next {
		h |= hintShort
	}
	run, end := d.runAt(from)
	// An optimizer that allocates nothing begins no run: what backward left until its end, and not by being the last,
	// outlasts it.
	if to >= end || run.phase == phaseBackward && to > run.last && next <= run.last {
		h |= hintOutlasts
	}
	if run.phase != phaseBackward && run.phase != phaseOptimizer && int(to) < d.Moments {
		if freeing, _ := d.runAt(to); freeing.phase == phaseBackward && d.savedFor(from, to) {
			h |= hintSaved
		}
	}
	return h
}
