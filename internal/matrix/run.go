package matrix

import (
	"cmp"
	"context"
	"slices"
	"time"

	"hightide/internal/event"
	"hightide/internal/mem"
)

// Host is what measuring needs of the engine that it works for.
type Host struct {
	Now func() time.Time
	// Trial runs one trial to its end. An error means that there is none: the context ended, or nothing can be recorded.
	Trial func(ctx context.Context, cell *Cell, repeat int, seed uint64, watch func(held mem.Bytes)) (Trial, Machine,
		error)
	// Free is how much memory programs can still take, where that is known.
	Free func() mem.Optional
	// Elsewhere says that trials do not run on this machine: whoever runs them sees to it that there is room.
	Elsewhere bool
	Events    event.Sink // Progress
}

// Progress is how far a matrix is. It is told at the start and end of each trial, and when a trial says what it holds.
type Progress struct {
	Cells   int            `json:"cells"`
	States  map[State]int  `json:"states"` // cells by what became of them, so far
	Done    int            `json:"done"`   // trials
	All     int            `json:"all"`    // an estimate where repeats depend on what is measured
	Left    time.Duration  `json:"left_ns"`
	Sure    bool           `json:"left_known"` // of every cell it is known what it takes
	Running []RunningTrial `json:"running"`
	Last    *Trial         `json:"last,omitempty"` // the trial that ended just now
	// of cells that changed: at first of all, then of the one whose trial ended
	Rows []CellRow `json:"rows,omitempty"`
}

// RunningTrial is one that runs.
type RunningTrial struct {
	Cell   string    `json:"cell"`
	Repeat int       `json:"repeat"`
	Since  time.Time `json:"since"`

	Held     mem.Bytes    `json:"held_bytes,omitempty"` // when last heard of
	Expected mem.Optional `json:"expected_bytes,omitzero"`
}

// EventName implements event.Event.
func (Progress) EventName() string { return "matrix" }

// Run measures what the journal has not yet, at most jobs trials at once. Where ctx ends it returns its error, and
// what was measured until then is in the journal.
func Run(ctx context.Context, spec *Spec, j *Journal, jobs int, host Host) error {
	r := &runner{spec: spec, journal: j, host: host, plan: newPlan(spec, j.Seed), jobs: max(jobs, 1),
		ended: make(chan ending), holds: make(chan holding)}
	for _, t := range j.Trials {
		r.plan.add(t)
	}
	return r.run(ctx)
}

// runner is the one goroutine that decides; each trial has another.
type runner struct {
	spec    *Spec
	journal *Journal
	host    Host
	plan    *plan
	jobs    int
	running []*started
	ended   chan ending
	holds   chan holding
	failed  error
	told    Progress  // the last
	rows    []CellRow // to be told next
}

// started is a trial that runs.
type started struct {
	cell     *Cell
	repeat   int
	since    time.Time
	expected mem.Optional
	held     mem.Bytes // when last heard of
}

type ending struct {
	of      *started
	trial   Trial
	machine Machine
	err     error
}

type holding struct {
	of    *started
	bytes mem.Bytes
}

func (r *runner) run(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	r.rows = r.plan.rows()
	for {
		for r.failed == nil && ctx.Err() == nil && len(r.running) < r.jobs {
			cell, repeat := r.plan.next(r.may)
			if cell == nil {
				break
			}
			r.start(ctx, cell, repeat)
		}
		if len(r.running) == 0 {
			if parent.Err() != nil {
				return parent.Err()
			}
			return r.failed
		}
		select {
		case h := <-r.holds:
			h.of.held = h.bytes
			r.told.Last, r.told.Rows, r.told.Running = nil, nil, r.runningNow()
			r.host.Events.Tell(r.told)
		case e := <-r.ended:
			if r.end(e); r.failed != nil {
				cancel()
			}
		}
	}
}

// start begins a trial.
func (r *runner) start(ctx context.Context, cell *Cell, repeat int) {
	one := &started{cell: cell, repeat: repeat, since: r.host.Now(), expected: r.plan.expects(cell).Memory}
	r.running = append(r.running, one)
	r.tellProgress(nil)
	go func() {
		watch := func(bytes mem.Bytes) {
			select {
			case r.holds <- holding{one, bytes}:
			case <-ctx.Done():
			}
		}
		trial, machine, err := r.host.Trial(ctx, cell, repeat, r.journal.Seed, watch)
		r.ended <- ending{one, trial, machine, err}
	}()
}

// end keeps what a trial came to. One that was interrupted is as if it had never been.
func (r *runner) end(e ending) {
	r.running = slices.DeleteFunc(r.running, func(s *started) bool { return s == e.of })
	if e.err != nil {
		delete(r.plan.running, job{e.of.cell.Key, e.of.repeat})
		r.failed = cmp.Or(r.failed, e.err)
		return
	}
	e.trial.Reason = oneLine(e.trial.Reason)
	if err := r.journal.Add(e.trial, e.machine); err != nil {
		r.failed = cmp.Or(r.failed, err)
		return
	}
	r.plan.add(e.trial)
	r.rows = []CellRow{r.plan.row(e.of.cell.Key)}
	r.tellProgress(&e.trial)
}

// spare is what cells that run beside each other may be off by: of what each is expected to take, a part more.
const spare = 1.15

// may says whether a cell can be started beside those that run. Alone, any can: where it does not fit, that is what it
// came to. A real GPU has room for one at a time.
func (r *runner) may(cell *Cell) bool {
	if len(r.running) == 0 || r.host.Elsewhere {
		return true
	}
	cuda := func(c *Cell) bool { return r.spec.Value(c, AxisDevice) == DeviceCUDA }
	if cuda(cell) && slices.ContainsFunc(r.running, func(s *started) bool { return cuda(s.cell) }) {
		return false
	}
	expected, ok := r.plan.expects(cell).Memory.Get()
	free, known := r.host.Free().Get()
	if limit := int64(r.spec.Memory); limit > 0 {
		free, known = limit, true
		for _, s := range r.running {
			free -= int64(s.held)
		}
	}
	if !ok || !known {
		return !known && ok // where nothing of it was measured yet, the first runs alone
	}
	wanted := int64(float64(expected) * spare)
	for _, s := range r.running { // what they will still take
		more, ok := s.expected.Get()
		if !ok {
			return false
		}
		wanted += max(0, int64(float64(more)*spare)-int64(s.held))
	}
	return wanted <= free
}

func (r *runner) tellProgress(last *Trial) {
	trials, left, sure := r.plan.left()
	p := Progress{Cells: len(r.spec.Cells), States: r.plan.counts(), Last: last, Sure: sure, Running: r.runningNow(),
		Rows: r.rows}
	r.rows = nil
	for _, c := range r.plan.cells {
		p.Done += len(c.trials)
	}
	p.All = p.Done + trials
	for _, s := range r.running {
		if one := r.plan.expects(s.cell).Time; one > 0 {
			left -= min(one, r.host.Now().Sub(s.since))
		}
	}
	p.Left = max(0, left/time.Duration(max(1, min(r.jobs, trials))))
	r.told = p
	r.host.Events.Tell(p)
}

func (r *runner) runningNow() (list []RunningTrial) {
	for _, s := range r.running {
		list = append(list, RunningTrial{s.cell.Key, s.repeat, s.since, s.held, s.expected})
	}
	return list
}

// Result is the matrix as far as it was measured: all of its cells, those that --only leaves out among them, and the
// trials of each.
func (j *Journal) Result(s *Spec, all []Cell) *Result {
	r := &Result{Version: ResultVersion, Name: s.Name, StartWall: j.StartWall, Axes: s.Axes, Cells: all, Trials: []Trial{},
		Machines: append([]Machine{}, j.Machines...), Goal: s.Goal, Spec: s.Text}
	place := map[string]int{}
	for i, cell := range all {
		place[cell.Key] = i
	}
	for _, t := range j.Trials {
		if _, known := place[t.Cell]; known {
			r.Trials = append(r.Trials, t)
		}
	}
	slices.SortFunc(r.Trials, func(a, b Trial) int {
		return cmp.Or(cmp.Compare(place[a.Cell], place[b.Cell]), cmp.Compare(a.Repeat, b.Repeat))
	})
	return r
}

// StateOf is what became of a cell, and why where it is not done: done where any of its trials is, else what the last
// came to. "" where it was not tried.
func (r *Result) StateOf(key string) (state State, reason string) {
	for _, t := range r.Trials {
		switch {
		case t.Cell != key:
		case t.State == Done:
			return Done, ""
		default:
			state, reason = t.State, t.Reason
		}
	}
	return state, reason
}

// States counts the cells by what became of them.
func (r *Result) States() map[State]int {
	counts := map[State]int{}
	for _, cell := range r.Cells {
		state, _ := r.StateOf(cell.Key)
		counts[state]++
	}
	return counts
}
