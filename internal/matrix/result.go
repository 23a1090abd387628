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
	Version   int       `json:"version" doc:"The version of this form."`
	Name      string    `json:"name" doc:"The name of the matrix."`
	StartWall int64     `json:"start_wall_ns" doc:"When its first trial began, in ns since 1970."`
	Axes      []Axis    `json:"axes" doc:"What was varied."`
	Cells     []Cell    `json:"cells" doc:"Its combinations."`
	Trials    []Trial   `json:"trials" doc:"Its trials, in the order in which they were kept."`
	Machines  []Machine `json:"machines" doc:"Where they ran."`
	Goal      Goal      `json:"goal" doc:"How exactly each cell was to be known."`
	Spec      string    `json:"spec" doc:"The text of its file."`
}

// Axis is one thing that is varied.
type Axis struct {
	Name   string   `json:"name" doc:"The name of the axis."`
	Values []string `json:"values" doc:"Its values as given, in that order."`
	Labels []string `json:"labels,omitempty" doc:"How each value is shown; absent: as given."`
}

// Goal is how exactly which figure of each cell is to be known.
type Goal struct {
	Figure Figure  `json:"figure" doc:"The figure of each cell that was to be known."`
	Within float64 `json:"within" doc:"Half the width of its 95 % interval that was asked for, as a part of the mean; 0: none."`
	Least  int     `json:"least" doc:"The least repeats of each cell."`
	Most   int     `json:"most" doc:"The most."`
}

// Cell is one combination: a value of each axis.
type Cell struct {
	Key    string   `json:"key" doc:"framework=pytorch batch=16 and so on, in the order of the axes."`
	Values []string `json:"values" doc:"A value of each axis."`
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
	Cell      string             `json:"cell" doc:"The key of its cell."`
	Repeat    int                `json:"repeat" doc:"Which repeat of the cell it is, from 1."`
	State     State              `json:"state" doc:"What became of it: done, failed, oom, timeout, unavailable or lost."`
	Reason    string             `json:"reason,omitempty" doc:"Why it is not done, in a sentence."`
	Run       string             `json:"run,omitempty" doc:"The id of its recording."`
	Machine   string             `json:"machine" doc:"The name of the machine."`
	StartWall int64              `json:"start_wall_ns" doc:"When it began, in ns since 1970."`
	Duration  int64              `json:"duration_ns" doc:"How long it took, in ns."`
	Figures   map[Figure]Summary `json:"figures,omitempty" doc:"What was measured, by figure: rss, vms, pss, swap, allocated, reserved and device_used in bytes, step_time in ns, cpu in thousandths of a processor, minor_faults, major_faults and parameters as counts."`
}

// Machine is where trials ran.
type Machine struct {
	Name       string `json:"name" doc:"Its name."`
	Kernel     string `json:"kernel,omitempty" doc:"Its kernel."`
	Processors int    `json:"processors" doc:"How many processors may be used."`
	Memory     int64  `json:"memory_bytes" doc:"Its memory in bytes."`
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
	Max    int64     `json:"max" doc:"The largest sample."`
	Min    int64     `json:"min" doc:"The smallest."`
	Mean   float64   `json:"mean" doc:"Their mean."`
	Median float64   `json:"median" doc:"Their median."`
	StdDev float64   `json:"std_dev" doc:"Their standard deviation."`
	Count  int       `json:"count" doc:"How many samples there are."`
	Label  mem.Label `json:"label" doc:"Where they come from."`
	Error  int64     `json:"error,omitempty" doc:"How far the largest may be off, where it is estimated."`
}
