package matrix

import (
	"slices"
	"time"
)

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
	o := &Outlook{Version: 1, Name: spec.Name, Axes: spec.Axes, Goal: spec.Goal, Command: spec.Command, Seed: seed, Next: []string{},
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
