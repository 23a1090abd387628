// Package matrix measures every combination of a specification, each as a recorded run of its own, and compares them
// with confidence.
//
//	YAML ──▶ ReadSpec ──▶ plan: what is next ──▶ Host.Trial (package bench) ──▶ Measure ──▶ Journal ──▶ Result
//	                          ▲                                                               │           │
//	                          └───────────────────── what was measured ◀─────────────────────┘           ▼
//	                                    terminal, page, exports ◀── Against a baseline ◀── Compare (pure)
//
// A [Spec] (one YAML file) names axes; their combinations are cells. Each cell is run several times, and each such run
// is a [Trial]. A [Result] holds all of them, whatever became of them: a cell that failed is there with its reason.
// [Compare] is pure: from a result it makes what people read. Start reading at Run.
package matrix

import "hightide/internal/mem"

// ResultVersion is the version of the JSON that a Result is written as.
const ResultVersion = 1

// Result is a matrix as far as it was measured. It is what is saved, compared with a baseline, and drawn.
type Result struct {
	Version   int       `json:"version"`
	Name      string    `json:"name"`
	StartWall int64     `json:"start_wall_ns"` // of its first trial
	Axes      []Axis    `json:"axes"`
	Cells     []Cell    `json:"cells"`
	Trials    []Trial   `json:"trials"`
	Machines  []Machine `json:"machines"`
	Goal      Goal      `json:"goal"`
	Spec      string    `json:"spec"` // the file's text
}

// Axis is one thing that is varied.
type Axis struct {
	Name   string   `json:"name" doc:"The name of the axis."`
	Values []string `json:"values" doc:"Its values as given, in that order."`
	Labels []string `json:"labels,omitempty" doc:"How each value is shown; absent: as given."`
}

// Goal is how exactly which figure of each cell is to be known.
type Goal struct {
	Figure Figure  `json:"figure"`
	Within float64 `json:"within"` // half of the 95 % interval's width, as a part of the mean; 0: none is asked
	Least  int     `json:"least"`  // repeats of each cell
	Most   int     `json:"most"`
}

// Cell is one combination: a value of each axis.
type Cell struct {
	Key    string   `json:"key"`    // "framework=pytorch batch=16", in the order of the axes
	Values []string `json:"values"` // one for each axis of the result
}

// State is what became of a trial.
type State string

// The states of a trial.
const (
	Done        State = "done"
	Failed      State = "failed"      // the program ended with an error
	OutOfMemory State = "oom"         // the device's or the kernel's
	TimedOut    State = "timeout"     // it was stopped
	Unavailable State = "unavailable" // it cannot run here: no such framework, device or dtype
	Lost        State = "lost"        // the machine that ran it is gone
)

// Trial is one run of a cell.
type Trial struct {
	Cell      string             `json:"cell"` // its key
	Repeat    int                `json:"repeat"`
	State     State              `json:"state"`
	Reason    string             `json:"reason,omitempty"` // one sentence, where it is not done
	Run       string             `json:"run,omitempty"`    // id of the recording
	Machine   string             `json:"machine"`          // name in Result.Machines
	StartWall int64              `json:"start_wall_ns"`
	Duration  int64              `json:"duration_ns"`
	Figures   map[Figure]Summary `json:"figures,omitempty"` // what was not measured is absent
}

// Machine is where trials ran.
type Machine struct {
	Name       string `json:"name"`
	Kernel     string `json:"kernel,omitempty"`
	Processors int    `json:"processors"`
	Memory     int64  `json:"memory_bytes"`
}

// Figure names what was measured of a trial.
type Figure string

// The figures. Bytes unless said; of the whole process tree where a process has it.
const (
	RSS         Figure = "rss"
	VMS         Figure = "vms"
	PSS         Figure = "pss"
	Swap        Figure = "swap"
	MinorFaults Figure = "minor_faults" // a count over the trial
	MajorFaults Figure = "major_faults"
	CPU         Figure = "cpu" // thousandths of one processor
	Allocated   Figure = "allocated"
	Reserved    Figure = "reserved"
	DeviceUsed  Figure = "device_used"
	StepTime    Figure = "step_time"  // ns, without the warm-up steps
	Parameters  Figure = "parameters" // a count
)

// Summary is one figure over the samples of one trial.
type Summary struct {
	Max    int64     `json:"max"`
	Min    int64     `json:"min"`
	Mean   float64   `json:"mean"`
	Median float64   `json:"median"`
	StdDev float64   `json:"std_dev"`
	Count  int       `json:"count"` // samples
	Label  mem.Label `json:"label"`
	Error  int64     `json:"error,omitempty"` // of the max, where it is estimated
}
