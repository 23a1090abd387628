package tui

import (
	"cmp"
	"time"

	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/sampler"
	"hightide/internal/store"
)

// State is all that a frame is made of. update changes it, views read it; neither touches anything else.
type State struct {
	Width, Height int
	Now           time.Time // of the last tick
	Started       string    // what runs --live: the run that is shown, "" where there is none yet
	Launching     bool      // this is the view of a program that hightide runs
	DataDir       string

	Tab     int
	Dialog  dialog // over the tab; 0: none
	Message string // at the foot, until the next key
	Filter  string
	Typing  bool // into the filter
	Paused  bool // figures stand still

	Machine sampler.Picture
	Memory  live.Curve // of the machine in use
	History map[procKey]*live.Curve
	Users   map[uint32]string

	Runs     []store.Run
	RunsErr  string
	Listed   bool // runs were looked for
	Live     map[string]*live.Run
	Follows  map[string]bool // asked for, and not ended
	Run      string          // id of the run that the other tabs show; "" the newest that runs
	Gone     map[string]bool // removed while they were shown
	Cursor   string          // key of the chosen row of the overview
	Sort     order
	Reversed bool
	Tree     bool

	Busy  live.Curve          // of all processors, in thousandths
	Cards map[int]*live.Curve // memory in use, by GPU

	Process detail
	Env     environment
	Signal  signalling
	Curves  curves
	Reports map[string]*analysis
	Finding int
	Heap    explorer
	Output  terminalText
}

// procKey is a process for good: numbers are reused.
type procKey struct {
	pid   int
	start uint64
}

// dialog lies over a tab.
type dialog int

const (
	noDialog dialog = iota
	helpDialog
	envDialog
	signalDialog
	processDialog
)

// analysis is a report of a run, as of when it was made.
type analysis struct {
	report *report.Report
	err    string
	asked  time.Time // and not answered: report is older, or nil
	made   time.Time
	took   time.Duration
}

// environment of a process.
type environment struct {
	pid    int
	title  string
	err    string
	values []mem.Variable
	top    int
	ready  bool
}

// NewState is what is known before anything was looked at.
func NewState() *State {
	return &State{
		History: map[procKey]*live.Curve{}, Users: map[uint32]string{}, Cards: map[int]*live.Curve{},
		Live: map[string]*live.Run{}, Follows: map[string]bool{},
		Gone: map[string]bool{}, Reports: map[string]*analysis{},
		Heap: explorer{open: map[uint64]bool{}, files: map[string][]string{}},
	}
}

// shownRun is the row and the live view of the run that the tabs are about; nil where there is none.
func (s *State) shownRun() (*store.Run, *live.Run) {
	id := cmp.Or(s.Run, s.Started)
	for i := range s.Runs {
		if r := &s.Runs[i]; r.ID == id || id == "" && r.State == store.Running {
			return r, s.Live[r.ID]
		}
	}
	if id == "" && len(s.Runs) > 0 {
		return &s.Runs[0], s.Live[s.Runs[0].ID]
	}
	return nil, s.Live[id]
}

// runOf is the run that records a process; "" where none does.
func (s *State) runOf(p *sampler.Seen) (string, *mem.Process) {
	for id, run := range s.Live {
		if run.End != nil {
			continue
		}
		for _, known := range run.Alive() {
			if known.PID == p.PID && (known.StartTicks == 0 || known.StartTicks == p.StartTicks) {
				return id, known
			}
		}
	}
	return "", nil
}

func (s *State) user(uid uint32) string {
	if name := s.Users[uid]; name != "" {
		return name
	}
	return "?"
}
