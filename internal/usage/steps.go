package usage

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// Steps are the steps and phases of a device's history.
type Steps struct {
	Source string    `json:"source" doc:"What they were told from: recorded, annotations, or inferred from what repeats."`
	Steps  []Stretch `json:"steps" doc:"The steps, in their order."`
	Phases []Phase   `json:"phases" doc:"The phases, always inferred from the stacks that allocate."`
}

// Phase is a stretch of forward, backward or optimizer.
type Phase struct {
	Phase mem.Phase `json:"phase" doc:"forward, backward or optimizer."`
	Stretch
}

const (
	leastSteps     = 3
	leastAnchors   = 3   // things that must happen once in each step
	leastGap       = 8   // events between two of them
	microBatches   = 1.5 // times as often as the optimizer or the model is called: then what repeats is not a step
	mostOptimizers = 2   // that a step calls, one after the other: what repeats more seldom is an epoch or an evaluation
	evenGaps       = 1.8 // longest gap between two, over their median, of what happens once in each step
	phasesShown    = 1000
	leastPhase     = 3 // allocations; shorter ones belong to what is around them
)

// Steps tells steps by their recorded ends, the program's own annotations, else by what repeats; nil: no steps
// and no phases are seen.
func (d *Device) Steps(ends []int64) *Steps {
	s := &Steps{Source: "recorded", Steps: d.recordedSteps(ends), Phases: d.phases()}
	if len(s.Steps) < leastSteps {
		s.Source, s.Steps = "annotations", d.annotatedSteps()
	}
	if len(s.Steps) < leastSteps {
		s.Source, s.Steps = "inferred", append([]Stretch{}, d.inferredSteps()...)
	}
	if len(s.Steps)+len(s.Phases) == 0 {
		return nil
	}
	return s
}

func (d *Device) recordedSteps(ends []int64) []Stretch {
	steps := []Stretch{}
	from := 0
	for _, end := range ends {
		if to := d.MomentAt(end); to >= from {
			steps = append(steps, Stretch{From: from, To: to})
			from = to + 1
		}
	}
	return steps
}

var stepName = words.Lazy(`(?i)^(ProfilerStep#|step[ #_:]*)\d+`)

func (d *Device) annotatedSteps() []Stretch {
	steps := []Stretch{}
	for _, note := range d.Snapshot.Annotations {
		if note.End || !stepName.MatchString(note.Name) {
			continue
		}
		if at := d.MomentAt(note.Time) + 1; at < d.Moments && (len(steps) == 0 || at > steps[len(steps)-1].From) {
			steps = append(steps, Stretch{From: at})
		}
	}
	return d.close(steps)
}

// close ends each step where the next begins.
func (d *Device) close(steps []Stretch) []Stretch {
	for i := range steps {
		if steps[i].To = d.Moments - 1; i+1 < len(steps) {
			steps[i].To = steps[i+1].From - 1
		}
	}
	return steps
}

// anchor is an allocation of one size by one stack, as often as it happens.
type anchor struct {
	events []int32
}

// inferredSteps looks for what happens at even distances all along the trace. Things that happen
// equally often, once in each step, tell the steps; layers and micro-batches come in bunches. A step
// begins at the one of them at which least is allocated.
func (d *Device) inferredSteps() []Stretch {
	byCount, optimizing := map[int][]anchor{}, d.stackPhases()
	for _, a := range d.anchors() {
		byCount[len(a.events)] = append(byCount[len(a.events)], a)
	}
	best, score, frames := 0, 0, d.anyFramed()
	_, trains := d.backwardPasses()
	for n, of := range byCount {
		weight := len(of) + len(byCount[n-1]) // the first step does without some, and the ring may cut one
		for _, a := range of {
			if optimizing[d.Trace.Stack[a.events[0]]] == phaseOptimizer {
				weight += 4 // micro-batches repeat too, but a step ends with the optimizer
			}
		}
		if frames && !slices.ContainsFunc(of, func(a anchor) bool { return d.framed(a.events[0]) }) {
			continue // autograd's, which repeats itself from layer to layer
		}
		if len(of) >= leastAnchors && (weight > score || weight == score && n < best) {
			best, score = n, weight
		}
	}
	called := d.calledSteps(trains)
	if n := len(called); n >= leastSteps && (best < leastSteps || float64(best) > microBatches*float64(n) ||
		n > mostOptimizers*best) {
		return d.close(called)
	}
	if best < leastSteps {
		return nil
	}
	first, least := byCount[best][0], 0.0
	for i, a := range byCount[best] {
		if level := d.levelAround(a.events); i == 0 || level < least || level == least && a.events[0] < first.events[0] {
			first, least = a, level
		}
	}
	if d.insideOneCall(first.events[0], first.events[len(first.events)-1]) {
		return nil
	}
	var steps []Stretch
	for _, at := range first.events {
		steps = append(steps, Stretch{From: int(at)})
	}
	return d.close(steps)
}

// calledSteps are what runs of one phase tell. In a training each step ends with the optimizer, so one begins with
// the first allocation after that, if a backward pass follows. Without a training each call of the model is one, if
// something is allocated between them. Where micro-batches or layers repeat more often, these are the steps.
func (d *Device) calledSteps(trains bool) (steps []Stretch) {
	open, passed := false, false // a step has begun; its backward pass was seen
	for _, run := range d.phaseRuns() {
		switch {
		case run.from < 0:
		case !trains:
			if run.phase == phaseForward {
				steps = append(steps, Stretch{From: int(run.from)})
			}
		case run.phase == phaseOptimizer:
			if passed {
				open, passed = false, false
			}
		case run.phase == phaseBackward && open:
			passed = true
		case run.phase == phaseForward && !open:
			steps, open = append(steps, Stretch{From: int(run.from)}), true
		}
	}
	if trains && open && !passed { // an evaluation after the last step, or one that had hardly begun
		steps = steps[:len(steps)-1]
	}
	if trains && !slices.ContainsFunc(d.phaseRuns(), func(r phaseRun) bool {
		return r.phase == phaseOptimizer &&
			!r.few
	}) {
		return nil
	}
	return steps
}

// framed says whether an allocation has frames.
func (d *Device) framed(event int32) bool {
	return !bareStack(&d.Snapshot.Stacks, d.Trace.Stack[event])
}

// Frameless says that no allocation of a trace has frames: they were not recorded.
func (d *Device) Frameless() bool {
	return slices.Contains(d.Trace.Action, mem.ActionAlloc) && !d.anyFramed()
}

// anyFramed says whether any allocation has.
func (d *Device) anyFramed() bool {
	for i, action := range d.Trace.Action {
		if action == mem.ActionAlloc && d.framed(int32(i)) {
			return true
		}
	}
	return false
}

// insideOneCall says whether all that is allocated between two events passes through one function of a
// forward or an optimizer: then it is layers or tensors that repeat, not steps.
func (d *Device) insideOneCall(from, to int32) bool {
	seen := map[uint32]bool{}
	calls := map[uint32]string{} // by location: the function, "" for any that is neither
	var common map[string]bool
	for i := from; i <= to; i++ {
		stack := d.Trace.Stack[i]
		if d.Trace.Action[i] != mem.ActionAlloc || seen[stack] {
			continue
		}
		seen[stack] = true
		has := map[string]bool{}
		for _, n := range d.Snapshot.Stacks.Numbers(stack) {
			name, known := calls[n]
			if !known {
				l := d.Snapshot.Stacks.Locations[n]
				if name = l.File + ":" + l.Function; !forwardFrame.MatchString(name) && !optimizerFrame.MatchString(name) {
					name = ""
				}
				calls[n] = name
			}
			if name != "" && (common == nil || common[name]) {
				has[name] = true
			}
		}
		if common = has; len(common) == 0 {
			return false
		}
	}
	return true
}

// anchors are the allocations that happen at even distances from one end of the trace to the other.
func (d *Device) anchors() []anchor {
	var all []anchor
	passes, trains := d.backwardPasses()
	for _, events := range d.repeated() {
		if d.even(events) && (!trains || apart(events, passes)) {
			all = append(all, anchor{events})
		}
	}
	slices.SortFunc(all, func(p, q anchor) int { return cmp.Compare(p.events[0], q.events[0]) })
	return all
}

// kinds numbers allocations by stack and size.
type kinds struct {
	numbers map[kind]int32
	sizes   []mem.Bytes // by number
	lately  []int32     // by stack: 1 + the number that it had last, which most stacks have always
}

type kind struct {
	stack uint32
	size  mem.Bytes
}

func (k *kinds) of(stack uint32, size mem.Bytes) int32 {
	if n := k.lately[stack] - 1; n >= 0 && k.sizes[n] == size {
		return n
	}
	n, ok := k.numbers[kind{stack, size}]
	if !ok {
		n = int32(len(k.sizes))
		k.numbers[kind{stack, size}], k.sizes = n, append(k.sizes, size)
	}
	k.lately[stack] = n + 1
	return n
}

// gaps are the distances between the allocations of one kind.
type gaps struct{ count, last, least, most int32 }

func (g *gaps) add(event int32) {
	switch gap := event - g.last; g.count {
	case 0:
	case 1:
		g.least, g.most = gap, gap
	default:
		g.least, g.most = min(g.least, gap), max(g.most, gap)
	}
	g.last = event
	g.count++
}

// mayBeEven is false of what Device.even refuses for sure: the longest gap is below two medians there, and a median
// below two of the shortest.
func (g *gaps) mayBeEven(moments int) bool {
	return g.count >= leastSteps && g.least >= leastGap && g.most <= 4*g.least && int(g.last)+8*int(g.least) >= moments
}

// repeated are the allocations of each stack and size that may happen at even distances, in the order of the trace.
// Most of millions do not, and are not kept.
func (d *Device) repeated() [][]int32 {
	t, k := d.Trace, kinds{numbers: map[kind]int32{}, lately: make([]int32, d.Snapshot.Stacks.Len())}
	var all []gaps
	for i, action := range t.Action {
		if action != mem.ActionAlloc {
			continue
		}
		n := k.of(t.Stack[i], t.Size[i])
		if int(n) == len(all) {
			all = append(all, gaps{})
		}
		all[n].add(int32(i))
	}
	events := make([][]int32, len(all))
	for i, action := range t.Action {
		if action != mem.ActionAlloc {
			continue
		}
		if n := k.of(t.Stack[i], t.Size[i]); all[n].mayBeEven(d.Moments) {
			events[n] = append(events[n], int32(i))
		}
	}
	return slices.DeleteFunc(events, func(of []int32) bool { return of == nil })
}

// backwardPasses are the events at which a backward pass begins. What it allocates comes after a forward pass, or in
// a program without modules after anything else. Result trains says whether there is any such memory: the trace may
// begin amidst a pass.
func (d *Device) backwardPasses() (begins []int32, trains bool) {
	runs := slices.DeleteFunc(slices.Clone(d.phaseRuns()), func(r phaseRun) bool { return r.few })
	modules := slices.ContainsFunc(runs, func(r phaseRun) bool { return r.phase == phaseForward })
	before := false // a forward pass came since the last backward one
	for _, run := range runs {
		switch {
		case run.phase == phaseBackward && before:
			begins, trains, before = append(begins, run.from), true, false
		case run.phase == phaseBackward:
			trains = true
		case run.phase == phaseForward || !modules:
			before = true
		}
	}
	return begins, trains
}

// apart says whether a backward pass begins between nearly all neighbours of some events: what repeats within one
// pass, or within one forward call of a training, is layers.
func apart(events, passes []int32) bool {
	together, next := 0, 0
	for i := 1; i < len(events); i++ {
		for next < len(passes) && passes[next] <= events[i-1] {
			next++
		}
		if next == len(passes) || passes[next] > events[i] {
			together++
		}
	}
	return together*10 <= len(events)-1
}

func (d *Device) even(events []int32) bool {
	gaps := make([]int32, len(events)-1)
	for i := range gaps {
		gaps[i] = events[i+1] - events[i]
	}
	slices.Sort(gaps)
	most := int32(evenGaps * float64(gaps[len(gaps)/2]))
	return gaps[len(gaps)-1] <= most && gaps[0] >= gaps[len(gaps)/2]/2 && gaps[0] >= leastGap &&
		events[len(events)-1]+2*most >= int32(d.Moments)
}

// levelAround is what is allocated at some events, on average, by the thinned curve.
func (d *Device) levelAround(events []int32) float64 {
	var sum float64
	for _, at := range events {
		i, _ := slices.BinarySearchFunc(d.Curve, int(at), func(p LevelPoint, at int) int { return cmp.Compare(p.Moment, at) })
		sum += float64(d.Curve[min(i, len(d.Curve)-1)].Allocated)
	}
	return sum / float64(len(events))
}

// phases are the runs of allocations by forward, backward and optimizer; short ones inside another are
// its own.
func (d *Device) phases() []Phase {
	phases := []Phase{}
	for i, run := range d.phaseRuns() {
		end := d.Moments - 1
		if i+1 < len(d.runs) {
			end = int(d.runs[i+1].from) - 1
		}
		last := len(phases) - 1
		switch name := tracePhaseNames[run.phase]; {
		case last >= 0 && (run.few || phases[last].Phase == name):
			phases[last].To = end
		case !run.few || run.phase != phaseOther:
			phases = append(phases, Phase{name, Stretch{max(int(run.from), 0), end}})
		}
	}
	phases = slices.DeleteFunc(phases, func(p Phase) bool { return p.Phase == mem.PhaseNone })
	if len(phases) > phasesShown {
		phases = phases[:0]
	}
	return phases
}
