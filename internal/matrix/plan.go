package matrix

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"hightide/internal/mem"
)

// plan says what is to run next. It is plain values: what was measured goes in, the next trial comes out.
type plan struct {
	spec    *Spec
	seed    uint64
	cells   map[string]*progress // of the cells of the spec, by key
	round   int                  // the repeat that is being made
	order   []*Cell              // of this round's cells
	running map[job]bool
	lost    []job              // trials that are to be run again
	exact   map[string]float64 // how well the goal's figure is known of each cell; nil: to be worked out
}

// job is one trial that is to be.
type job struct {
	cell   string
	repeat int
}

// progress of one cell.
type progress struct {
	cell   *Cell
	trials map[int]Trial // by repeat; of one that was lost, what came of it later
	lost   int

	like Expectation // of the cells nearest to it, while it has no trials
	far  int         // on how many axes those differ; 0: there are none
}

// A cell that cannot run here is not tried again. One that failed otherwise is, once: a machine can be at fault.
const (
	mostFailures = 2
	mostLosses   = 3
)

func newPlan(spec *Spec, seed uint64) *plan {
	p := &plan{spec: spec, seed: seed, cells: map[string]*progress{}, running: map[job]bool{}}
	for i := range spec.Cells {
		cell := &spec.Cells[i]
		p.cells[cell.Key] = &progress{cell: cell, trials: map[int]Trial{}}
	}
	return p
}

// add takes in a trial. One of a cell that the spec has not, or has not now, changes nothing.
func (p *plan) add(t Trial) {
	delete(p.running, job{t.Cell, t.Repeat})
	c := p.cells[t.Cell]
	if c == nil {
		return
	}
	p.exact = nil
	if t.State == Lost {
		if c.lost++; c.lost <= mostLosses {
			p.lost = append(p.lost, job{t.Cell, t.Repeat})
			return
		}
	}
	c.trials[t.Repeat] = t
	p.teach(c)
}

// mostTried is how many cells are asked for whether there is room for them.
const mostTried = 32

// next is a trial to start now that may is content with; nil: there is none, now or, where nothing runs, at all.
func (p *plan) next(may func(*Cell) bool) (*Cell, int) {
	if cell, repeat := p.again(may); cell != nil {
		return cell, repeat
	}
	for p.round == 0 || p.roundOver() {
		p.round++
		p.order = p.shuffled(p.round)
	}
	if p.round > p.spec.Goal.Most {
		return nil, 0
	}
	tried := 0
	for _, cell := range p.order {
		if !p.wants(cell.Key, p.round) {
			continue
		}
		if may(cell) {
			p.running[job{cell.Key, p.round}] = true
			return cell, p.round
		}
		if tried++; tried == mostTried {
			break // none of them has room: the rest would hardly have
		}
	}
	return nil, 0
}

// again is a trial that was lost, whatever round is being made now.
func (p *plan) again(may func(*Cell) bool) (*Cell, int) {
	p.lost = slices.DeleteFunc(p.lost, func(j job) bool { return !p.wants(j.cell, j.repeat) })
	for _, j := range p.lost {
		if cell := p.cells[j.cell].cell; may(cell) {
			p.running[j] = true
			return cell, j.repeat
		}
	}
	return nil, 0
}

// roundOver says whether nothing of this round is left to start. What comes after the first repeats depends on how
// they end.
func (p *plan) roundOver() bool {
	if p.round > p.spec.Goal.Most {
		return false
	}
	if slices.ContainsFunc(p.order, func(c *Cell) bool { return p.wants(c.Key, p.round) }) {
		return false
	}
	return p.round < p.spec.Goal.Least || len(p.running) == 0
}

// shuffled is the order of a repeat: the same for the same seed, so that a run that goes on later goes on in it.
func (p *plan) shuffled(round int) []*Cell {
	order := make([]*Cell, 0, len(p.spec.Cells))
	for i := range p.spec.Cells {
		order = append(order, &p.spec.Cells[i])
	}
	random := rand.New(rand.NewPCG(p.seed, uint64(round)))
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// wants says whether a repeat of a cell is still to be started.
func (p *plan) wants(key string, repeat int) bool {
	c := p.cells[key]
	if _, made := c.trials[repeat]; made || p.running[job{key, repeat}] || p.givenUp(c) {
		return false
	}
	return repeat <= p.spec.Goal.Least || !p.known(c)
}

// givenUp says whether another trial would tell nothing: the cell cannot run here, was lost too often, or failed
// twice. An imaginary device refuses the same request each time.
func (p *plan) givenUp(c *progress) bool {
	failures, imagined := 0, strings.HasPrefix(p.spec.Value(c.cell, AxisDevice), DeviceImagined)
	for _, t := range c.trials {
		switch t.State {
		case Done:
		case Unavailable, Lost:
			return true
		case OutOfMemory:
			if imagined {
				return true
			}
			failures++
		default:
			failures++
		}
	}
	return failures >= mostFailures
}

// known says whether the goal's figure is known as well as was asked for. One that the cell has not is known at once:
// repeating would not bring it.
func (p *plan) known(c *progress) bool {
	if p.spec.Goal.Within == 0 || !c.has(p.spec.Goal.Figure) {
		return true
	}
	part, ok := p.exactness(c)
	return ok && part <= p.spec.Goal.Within
}

// exactness is half the interval of a cell's figure as a part of its mean. What one cell's repeats say depends on all
// cells', so it is worked out for all of them at once, after each trial at which it matters.
func (p *plan) exactness(c *progress) (float64, bool) {
	if p.exact == nil {
		r := &Result{Axes: p.spec.Axes, Cells: p.spec.Cells, Goal: p.spec.Goal}
		for i := range p.spec.Cells {
			for _, t := range p.cells[p.spec.Cells[i].Key].trials {
				r.Trials = append(r.Trials, t)
			}
		}
		p.exact = Exactness(r, p.spec.Goal.Figure)
	}
	part, ok := p.exact[c.cell.Key]
	return part, ok
}

// has says whether a figure was measured.
func (c *progress) has(figure Figure) bool {
	for _, t := range c.trials {
		if _, ok := t.Figures[figure]; ok && t.State == Done {
			return true
		}
	}
	return false
}

// Expectation is what a trial of a cell is expected to take.
type Expectation struct {
	Memory mem.Optional  `json:"memory_bytes,omitzero"`
	Time   time.Duration `json:"time_ns,omitempty"` // 0: nothing is known
}

// expects learns from the cell's own trials, else from those of the cells that differ on the fewest axes, the larger
// of several.
func (p *plan) expects(cell *Cell) Expectation {
	c := p.cells[cell.Key]
	if own, ok := c.took(); ok {
		return own
	}
	return c.like
}

// teach has the cells that have no trials of their own learn from one that has. Each is taught once a trial: to look
// through all cells for each of them would take more than measuring does where there are thousands.
func (p *plan) teach(from *progress) {
	one, ok := from.took()
	if !ok {
		return
	}
	for _, c := range p.cells {
		if len(c.trials) > 0 {
			continue
		}
		switch far := differing(c.cell, from.cell); {
		case c.far == 0 || far < c.far:
			c.far, c.like = far, one
		case far == c.far:
			c.like.Memory.Raise(one.Memory)
			c.like.Time = max(c.like.Time, one.Time)
		}
	}
}

func differing(a, b *Cell) (n int) {
	for i := range a.Values {
		if a.Values[i] != b.Values[i] {
			n++
		}
	}
	return n
}

// took is the most that a trial of the cell took, and how long they took in the mean.
func (c *progress) took() (Expectation, bool) {
	var e Expectation
	n := 0
	for _, t := range c.trials {
		if t.State == Unavailable || t.State == Lost {
			continue
		}
		n++
		e.Time += time.Duration(t.Duration)
		for _, figure := range []Figure{PSS, RSS} {
			if s, ok := t.Figures[figure]; ok {
				e.Memory.Raise(mem.Some(s.Max))
				break
			}
		}
	}
	if n > 0 {
		e.Time /= time.Duration(n)
	}
	return e, n > 0
}

// left estimates the trials that are still to be made, those that run among them, and the time they take one after
// another.
func (p *plan) left() (trials int, takes time.Duration, sure bool) {
	sure = true
	for key, c := range p.cells {
		n := p.leftOf(key, c)
		trials += n
		if n > 0 {
			one := p.expects(c.cell).Time
			sure = sure && one > 0
			takes += one * time.Duration(n)
		}
	}
	return trials, takes, sure
}

func (p *plan) leftOf(key string, c *progress) int {
	running := 0
	for j := range p.running {
		if j.cell == key {
			running++
		}
	}
	if p.givenUp(c) {
		return running
	}
	goal := p.spec.Goal
	made := len(c.trials)
	wanted := goal.Least
	if made >= goal.Least && !p.known(c) {
		wanted = made + 1
		if part, ok := p.exactness(c); ok {
			times := part / goal.Within // an interval narrows with the root of the repeats
			wanted = max(wanted, int(math.Ceil(float64(made)*min(times*times, 1e3))))
		}
		wanted = min(goal.Most, wanted)
	}
	return max(wanted-made, running)
}

// counts says how many cells came to what.
func (p *plan) counts() map[State]int {
	counts := map[State]int{}
	for _, c := range p.cells {
		if len(c.trials) > 0 {
			counts[c.state()]++
		}
	}
	return counts
}

// state of a cell: done where any of its trials is, else what became of the last.
func (c *progress) state() State {
	last := 0
	for repeat, t := range c.trials {
		if t.State == Done {
			return Done
		}
		last = max(last, repeat)
	}
	return c.trials[last].State
}

// oneLine is a text without line breaks, not longer than a reason is.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 200 {
		text = string(runes[:199]) + "…"
	}
	return text
}

// Outlook is what measuring would do.
type Outlook struct {
	Version int           `json:"version"`
	Name    string        `json:"name"`
	Axes    []Axis        `json:"axes"`
	Goal    Goal          `json:"goal"`
	Command []string      `json:"command,omitempty"` // absent: the built-in models
	Seed    uint64        `json:"seed"`
	Cells   []CellOutlook `json:"cells"`
	Next    []string      `json:"next"` // keys of the cells in the order of the repeat that would be made next
	Made    int           `json:"trials_made"`
	Left    int           `json:"trials_left"`
	Time    time.Duration `json:"time_left_ns,omitempty"` // where anything is known of it
	Sure    bool          `json:"time_known"`             // of every cell it is known what it takes
	Timeout time.Duration `json:"timeout_ns"`
}

// CellOutlook is what is known of a cell before it is measured further.
type CellOutlook struct {
	Cell
	Trials   int         `json:"trials"` // made already
	Expected Expectation `json:"expected"`
}

// Look says what would be done after some trials. Nothing is started.
func Look(spec *Spec, trials []Trial, seed uint64, jobs int) *Outlook {
	p := newPlan(spec, seed)
	for _, t := range trials {
		p.add(t)
	}
	left, takes, sure := p.left()
	o := &Outlook{Version: 1, Name: spec.Name, Axes: spec.Axes, Goal: spec.Goal, Command: spec.Command, Seed: seed,
		Next: []string{},
		Left: left, Time: takes / time.Duration(max(1, min(jobs, left))), Sure: sure, Timeout: spec.Timeout}
	for i := range spec.Cells {
		cell := &spec.Cells[i]
		made := len(p.cells[cell.Key].trials)
		o.Cells = append(o.Cells, CellOutlook{*cell, made, p.expects(cell)})
		o.Made += made
	}
	for round := 1; round <= spec.Goal.Most && len(o.Next) == 0; round++ {
		for _, cell := range p.shuffled(round) {
			if p.wants(cell.Key, round) {
				o.Next = append(o.Next, cell.Key)
			}
		}
	}
	o.Next = slices.Clip(o.Next)
	return o
}
