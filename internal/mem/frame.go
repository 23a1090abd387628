package mem

import (
	"cmp"
	"fmt"
)

// Frame is one fact of a recording. The concrete types are all in this file; wire gives each a
// number that is never reused. Frames may repeat: a later RunInfo, Process or PhaseStats replaces
// the earlier one with the same key, so a recording cut off anywhere is still true.
type Frame interface{ frame() }

// RunInfo identifies the run. Written at the start and again when more is known.
type RunInfo struct {
	ID        string            `json:"id" doc:"The id of the run."`
	Name      string            `json:"name,omitempty" doc:"The name that it was given."`
	Tags      map[string]string `json:"tags,omitempty" doc:"Its tags, by name."`
	Verb      string            `json:"verb" doc:"How it was recorded: run, imagine, attach or replay."`
	Label     Label             `json:"label" doc:"Where its figures come from."`
	Command   []string          `json:"command" doc:"The command's arguments, with secrets masked."`
	Cwd       string            `json:"cwd,omitempty" doc:"The folder in which it was started."`
	Env       map[string]string `json:"env,omitempty" doc:"Some variables of its environment, with secrets masked."`
	Version   string            `json:"version" doc:"The version of hightide that recorded it."`
	Host      Host              `json:"host" doc:"The machine."`
	Git       *Git              `json:"git,omitempty" doc:"The commit of the program's folder; absent: none is known."`
	StartMono int64             `json:"start_mono_ns" doc:"When it began, in ns on the machine's monotonic clock: the same instant as start_wall_ns."`
	StartWall int64             `json:"start_wall_ns" doc:"When it began, in ns since 1970."`
	Options   map[string]string `json:"options,omitempty" doc:"The settings of the recording, by name."`
}

// Host is the machine as the run found it.
type Host struct {
	Name     string   `json:"name,omitempty" doc:"The name of the machine."`
	OS       string   `json:"os" doc:"The operating system."`
	Kernel   string   `json:"kernel,omitempty" doc:"The version of the kernel."`
	CPU      string   `json:"cpu,omitempty" doc:"The model of its processor."`
	CPUs     int      `json:"cpus" doc:"How many processors it has."`
	Memory   Optional `json:"memory_bytes,omitzero" doc:"Its memory in bytes."`
	Limit    Optional `json:"memory_limit_bytes,omitzero" doc:"The limit of the control group in bytes, where there is one."`
	PageSize int      `json:"page_bytes" doc:"The size of a page in bytes."`
	GPUs     []GPU    `json:"gpus,omitempty" doc:"Its GPUs."`
}

// GPU is a device as its vendor's interface names it.
type GPU struct {
	Index  int      `json:"index" doc:"Its number on the machine."`
	UUID   string   `json:"uuid,omitempty" doc:"Its id, as the driver tells it."`
	Vendor string   `json:"vendor" doc:"Who makes it."`
	Name   string   `json:"name" doc:"Its name, as the driver tells it."`
	Memory Optional `json:"memory_bytes,omitzero" doc:"Its memory in bytes."`
	Driver string   `json:"driver,omitempty" doc:"The version of the driver."`
}

// Git is the state of the working copy the command ran in.
type Git struct {
	Commit string `json:"commit" doc:"The commit that was checked out."`
	Branch string `json:"branch,omitempty" doc:"The branch."`
	Dirty  bool   `json:"dirty" doc:"Whether files differed from the commit."`
}

// Process is one observed process. ID is the run's own number for it (from 1, never reused: pids
// are); 0 means the whole run or the host. Replaced as more becomes known.
type Process struct {
	ID         uint32            `json:"id" doc:"Its id in the run."`
	PID        int               `json:"pid" doc:"Its id on the machine."`
	Parent     uint32            `json:"parent,omitempty" doc:"The id in the run of its parent; absent: the parent is not in the run."`
	StartTicks uint64            `json:"start_ticks,omitempty" doc:"When it began, in clock ticks since the machine was started."`
	Command    []string          `json:"command,omitempty" doc:"Its arguments, with secrets masked."`
	Role       string            `json:"role,omitempty" doc:"What it is in the run: main, rank, dataloader, launcher, child and others."`
	Rank       Optional          `json:"rank,omitzero" doc:"Its rank among all processes of a distributed program."`
	LocalRank  Optional          `json:"local_rank,omitzero" doc:"Its rank among those of its machine."`
	WorldSize  Optional          `json:"world_size,omitzero" doc:"How many ranks the program has."`
	Python     string            `json:"python,omitempty" doc:"The version of its Python."`
	Frameworks map[string]string `json:"frameworks,omitempty" doc:"The versions of its frameworks, by name."`
	Facts      map[string]string `json:"facts,omitempty" doc:"What else was observed of it, by name, in words."`
	Numbers    map[string]int64  `json:"numbers,omitempty" doc:"As facts, of integers: bytes, ns and counts, by what they are of."`
	Start      int64             `json:"start_mono_ns" doc:"When it began, in ns on the machine's monotonic clock."`
	End        Optional          `json:"end_mono_ns,omitzero" doc:"When it ended, in ns on the machine's monotonic clock; absent: its end was not seen."`
	ExitCode   Optional          `json:"exit_code,omitzero" doc:"Its exit code; absent where a signal ended it or its end was not seen."`
	Signal     Optional          `json:"signal,omitzero" doc:"The signal that ended it."`
	MaxRSS     Optional          `json:"maxrss_bytes,omitzero" doc:"The kernel's own mark of its highest resident memory (VmHWM or ru_maxrss), in bytes."`
	PeakBefore Optional          `json:"peak_before_bytes,omitzero" doc:"The kernel's mark of what it had resident before the recording, in bytes; absent: it began in it."`
	HeapMean   Optional          `json:"heap_mean_bytes,omitzero" doc:"How many bytes of its heap were allocated between two samples, on average; absent: it was not sampled."`
	Bye        Optional          `json:"bye_mono_ns,omitzero" doc:"When its interpreter began to end in good order, in ns on the machine's monotonic clock: from then on it frees everything."`
}

// RankName is how a process of several is called that share a model: by the program's own name, else "rank 3"; "" where
// it is no rank.
func (p *Process) RankName() string {
	rank, ok := p.Rank.Get()
	if !ok {
		return ""
	}
	return cmp.Or(p.Facts[FactRankName], fmt.Sprintf("rank %d", rank))
}

// HeapTraced says whether what is known of its heap is what tracemalloc told: what Python holds, exactly and by line, at
// looks; of native memory nothing.
func (p *Process) HeapTraced() bool { return p != nil && p.Facts[FactHeap] == HeapTraced }

// FactHeap is a fact of a process: how its heap was seen.
const (
	FactHeap   = "heap"
	HeapTraced = "traced by tracemalloc"

	FactTracemalloc = "tracemalloc" // what kept it from being asked
	TracedTooMany   = "too many blocks"
	TracedStopped   = "stopped by the program"
)

// Numbers of a process whose heap was traced.
const (
	NumberTracedPeak    = "tracemalloc_peak_bytes" // by tracemalloc's own mark, also between looks
	NumberTracedOwn     = "tracemalloc_own_bytes"  // that it took for itself, at most
	NumberTracedLooks   = "tracemalloc_looks_ns"   // all looks together
	NumberTracedLongest = "tracemalloc_longest_ns" // one of them
)

// FactRankName is a fact of a process: what its program calls the rank that it is, as TP1.
const FactRankName = "rank.name"

// RoleAside is that of a process which hightide's own package started from within the program. It is no part of the
// run.
const RoleAside = "aside"

// Cell says which cell of a notebook the code of a file is, as a person calls it. Kernels give the code of each cell
// a file name that nobody can read, of a file that is not there.
type Cell struct {
	File string `json:"file"` // as code objects name it
	Name string `json:"name"` // as in "cell [3]"
	Text string `json:"text"` // its source, with secrets masked
}

// SeriesDef says what a series of samples measures, and of what.
type SeriesDef struct {
	ID        uint32   `json:"id"` // unique in the recording, from 1
	Process   uint32   `json:"process"`
	Device    string   `json:"device,omitempty"`    // cuda:0, nvidia:0 …
	Framework string   `json:"framework,omitempty"` // torch …: whose allocator it is; absent for what belongs to none
	Name      Quantity `json:"name"`
	Unit      Unit     `json:"unit"`
	Label     Label    `json:"label"`
	Error     int64    `json:"error,omitempty"` // half width of the 95 % interval, in the unit; 0: exact or not known
}

// Samples is a chunk of one series: Values[i] was read at Times[i]. Times never decrease.
type Samples struct {
	Series uint32
	Times  []int64
	Values []int64
}

// Span is one stay in a phase. RSS and device figures are read at its edges; RSSPeak is the
// highest reading between them, where there was one.
type Span struct {
	Process     uint32   `json:"process"`
	Thread      uint32   `json:"thread,omitempty"`
	Phase       Phase    `json:"phase"`
	Name        string   `json:"name,omitempty"` // module path, user span
	Step        uint64   `json:"step"`           // optimizer steps completed before it
	Start       int64    `json:"start_ns"`
	End         int64    `json:"end_ns"`
	RSSStart    Optional `json:"rss_start_bytes,omitzero"`
	RSSEnd      Optional `json:"rss_end_bytes,omitzero"`
	RSSPeak     Optional `json:"rss_peak_bytes,omitzero"`
	DeviceStart Optional `json:"device_start_bytes,omitzero"` // allocated
	DeviceEnd   Optional `json:"device_end_bytes,omitzero"`
}

// Spans is a batch. Long runs keep an even selection of steps; PhaseStats count all of them.
type Spans []Span

// PhaseStats sums all stays of one process in one phase (or module) so far. A later one with the
// same Process, Phase and Name replaces it.
type PhaseStats struct {
	Process    uint32   `json:"process"`
	Phase      Phase    `json:"phase"`
	Name       string   `json:"name,omitempty"`
	Count      uint64   `json:"count"`
	Total      int64    `json:"total_ns"`
	Max        int64    `json:"max_ns"`
	RSSPeak    Optional `json:"rss_peak_bytes,omitzero"` // highest RSS seen inside it
	RSSNet     Optional `json:"rss_net_bytes,omitzero"`  // sum of (end - start)
	RSSMaxRise Optional `json:"rss_rise_bytes,omitzero"` // largest (peak - start)
	DevicePeak Optional `json:"device_peak_bytes,omitzero"`
	DeviceNet  Optional `json:"device_net_bytes,omitzero"`
}

// Step is the end of one optimizer step.
type Step struct {
	Process  uint32   `json:"process"`
	Number   uint64   `json:"step"` // 1 after the first
	Time     int64    `json:"time_ns"`
	Duration int64    `json:"duration_ns"` // since the step before; 0 for the first
	RSS      Optional `json:"rss_bytes,omitzero"`
	Heap     Optional `json:"heap_bytes,omitzero"` // sampled live heap
	Device   Optional `json:"device_bytes,omitzero"`
	Micro    uint32   `json:"micro_steps,omitempty"`
	Skipped  bool     `json:"skipped,omitempty"`
}

// Steps is a batch; thinned evenly on long runs. StepCount in Run is exact.
type Steps []Step

// StepTotal is how many steps a process has completed; replaces the earlier one.
type StepTotal struct {
	Process uint32 `json:"process"`
	Steps   uint64 `json:"steps"`
	Skipped uint64 `json:"skipped,omitempty"`
}

// Location is a place in the program: a line of Python or a native function.
type Location struct {
	File     string `json:"file" doc:"The file; of native code the library."`
	Line     int    `json:"line,omitempty" doc:"The line, from 1; absent: not known."`
	Function string `json:"function,omitempty" doc:"The function."`
	Native   bool   `json:"native,omitempty" doc:"Whether it is native code, not Python."`
}

// TensorFlowArena stands as the innermost place, native, in stacks of what TensorFlow's own arena on the host got
// when it grew. The line beneath asked for more than the arena had, and may hold none of it.
const TensorFlowArena = "TensorFlow's own arena"

// PythonObjects stands as the innermost place, native, in stacks of what Python asked for to lay small objects in, as
// many as there is room for. The line beneath needed one more. What comes to lie there may be of any line.
const PythonObjects = "Python's small objects"

// PythonRest stands, native, for the lines that tracemalloc knows of and that hold too little to be told by themselves.
const PythonRest = "lines that hold little each"

// StackDef gives a stack its number. Innermost location first.
type StackDef struct {
	ID        uint32     `json:"id"` // unique in the recording, from 1; 0 means no stack is known
	Locations []Location `json:"locations"`
}

// SiteUse is what one allocation site (process, stack) held at a moment, from the heap sampler. What is allocated but
// not resident (never touched, given back, swapped out) takes no memory and is counted apart.
// Bytes are unbiased estimates from Poisson sampling; Count counts sampled blocks, from which the
// relative error follows (about 1/sqrt(Count) for blocks below the always-recorded size).
type SiteUse struct {
	Stack     uint32 `json:"stack"`
	Phase     Phase  `json:"phase,omitempty"` // of the first allocation seen at the site
	Live      Bytes  `json:"live_bytes"`      // allocated and resident
	Count     uint64 `json:"live_samples"`
	Allocated Bytes  `json:"allocated_bytes"`        // ever, cumulative
	Absent    Bytes  `json:"absent_bytes,omitempty"` // allocated and not resident
	Excess    Bytes  `json:"excess_bytes,omitempty"` // variance of Live by Live; 0: as the mean of the sample has it
}

// HeapUse is the heap of one process at a moment. Sites holds only those that changed since the
// frame before, unless Peak is set. Then it is the complete picture at the highest live heap so
// far, and replaces the earlier peak.
type HeapUse struct {
	Process  uint32    `json:"process"`
	Time     int64     `json:"time_ns"`
	Step     uint64    `json:"step"`
	Live     Bytes     `json:"live_bytes"`
	Variance float64   `json:"variance"` // of Live, bytes²: its standard error is the root
	Peak     bool      `json:"peak,omitempty"`
	Absent   Bytes     `json:"absent_bytes,omitempty"` // allocated beside Live, and not resident
	Sites    []SiteUse `json:"sites"`
}

// HeapAges says when what a process's heap held was allocated, of the sites that held most: at a moment, or at the
// highest live heap so far.
type HeapAges struct {
	Process uint32     `json:"process"`
	Time    int64      `json:"time_ns"`
	From    int64      `json:"from_ns"`  // where the first bin begins
	Width   int64      `json:"width_ns"` // of a bin
	Peak    bool       `json:"peak,omitempty"`
	Sites   []SiteAges `json:"sites"`
}

// SiteAges is what one site held, in bins of when it was allocated. What was freed when it was old, that is older
// than an eighth of the process's life up to then, was not kept for good.
type SiteAges struct {
	Stack    uint32  `json:"stack"`
	Born     []Bytes `json:"born_bytes"`
	Outlived Bytes   `json:"freed_old_bytes,omitempty"` // so far
}

// MoreAged orders sites by what they hold, most first.
func MoreAged(a, b SiteAges) int {
	return cmp.Or(cmp.Compare(b.Held(), a.Held()), cmp.Compare(a.Stack, b.Stack))
}

// Held is the sum of the bins.
func (s *SiteAges) Held() (sum Bytes) {
	for _, bytes := range s.Born {
		sum += bytes
	}
	return sum
}

// Holder is a container that was seen to grow: what keeps a leak's bytes alive.
type Holder struct {
	Process  uint32   `json:"process"`
	Time     int64    `json:"time_ns"`
	Step     uint64   `json:"step"`
	Kind     string   `json:"kind"` // list, dict, set, deque, autograd graph…
	Name     string   `json:"name"` // as the program would say it: "history", "Trainer.log"
	Where    Location `json:"where"`
	Items    int64    `json:"items"`
	PerStep  float64  `json:"items_per_step"`
	PerMin   float64  `json:"items_per_minute,omitempty"` // in place of PerStep where the process takes no steps
	Contains string   `json:"contains,omitempty"`         // type of the newest item
	Tensors  Optional `json:"tensor_bytes,omitzero"`      // held by its items, where that is known
	Graph    bool     `json:"graph,omitempty"`            // items hold an autograd graph
	// items are exceptions with their tracebacks, which keep the variables of the functions they went through
	Traceback bool `json:"traceback,omitempty"`
	// its name leads to another object each time, which is made of the one before
	Renewed bool `json:"renewed,omitempty"`

	Bound   Optional `json:"bound_items,omitzero"` // that it never has more of, where that is known
	BoundBy string   `json:"bound_by,omitempty"`   // what bounds it: "maxlen=10000"

	// the line that empties it, as the source has it: "train.py:18"; empty: none is known
	EmptiedBy string `json:"emptied_by,omitempty"`
	// the most items that it was seen with before it fell, and how often it was seen to fall to half or less
	Highest Optional `json:"highest_items,omitzero"`
	Falls   int64    `json:"falls,omitempty"`

	// the arrays of one item, those that keep most first; empty: none, or not known
	Parts []HeldPart `json:"parts,omitempty"`
	// living tensors that an item's graph saved for backward; absent: not known
	Saved Optional `json:"saved_bytes,omitzero"`
	// further statements that may add what grows, where Where is not the only one
	Others []Location `json:"others,omitempty"`
	// Where and Others were seen to run; otherwise they are all there are in the source
	Ran bool `json:"ran,omitempty"`
}

// HeldPart is one array in an item of a container.
type HeldPart struct {
	At       string `json:"at,omitempty"` // leads from the item to it: ".logits", "['loss']"; empty: it is the item
	Type     string `json:"type"`         // Tensor, Parameter, ndarray, DataFrame
	Elements int64  `json:"elements"`
	Bytes    int64  `json:"bytes"`             // of its elements
	Storage  int64  `json:"storage_bytes"`     // of the memory that it keeps alive: of a view that of the whole
	GradFn   string `json:"grad_fn,omitempty"` // the operation that made it, where it keeps its graph: MulBackward0
}

// Module is a direct child of the root module, or the root itself.
type Module struct {
	Process    uint32 `json:"process"`
	Name       string `json:"name"`
	Class      string `json:"class"`
	Parameters Bytes  `json:"parameter_bytes"`
	Buffers    Bytes  `json:"buffer_bytes"`
}

// ModelUse is what the model itself holds, storages counted once. Replaces the earlier one.
type ModelUse struct {
	Process    uint32   `json:"process"`
	Step       uint64   `json:"step"`
	Device     string   `json:"device"` // cpu, cuda:0
	Parameters Optional `json:"parameter_bytes,omitzero"`
	Gradients  Optional `json:"gradient_bytes,omitzero"`
	Optimizer  Optional `json:"optimizer_bytes,omitzero"`
}

// Snapshot is a piece of an allocator snapshot, as the framework wrote it. Pieces of one Name
// follow each other; Last marks the end.
type Snapshot struct {
	Process uint32
	Time    int64
	Name    string // file name, as in "oom-rank0.pickle"
	Format  string // "torch-pickle"
	Piece   []byte
	Last    bool
}

// Drop counts what was lost on the way, by where: "ring", "engine", "disk". Replaces the earlier
// one of the same process and place.
type Drop struct {
	Process uint32 `json:"process"`
	Place   string `json:"place"`
	Records uint64 `json:"records"`
	Bytes   uint64 `json:"bytes,omitempty"`
}

// Found is what the report found that was made of the run at its end. A later one replaces it.
type Found struct {
	Findings int `json:"findings"`
	// what the run can be searched for by; nil: recorded before these were kept
	Places []Place `json:"places"`
	// what else a trend is made of, by name, as FigureGrowth; nil: recorded before these were kept
	Figures map[string]Figure `json:"figures"`
}

// Place is a finding, or a line that held memory, as runs are searched for by them.
type Place struct {
	Kind     string   `json:"kind,omitempty"` // of the finding; "": a line that held the heap, or an imagined device, at its highest
	Severity string   `json:"severity,omitempty"`
	File     string   `json:"file,omitempty"`
	Line     int      `json:"line,omitempty"`
	Function string   `json:"function,omitempty"`
	Bytes    Optional `json:"bytes,omitzero"`        // what it is about, or what the line held
	Error    int64    `json:"error_bytes,omitempty"` // half width of the 95 % interval of that; 0: exact, or not known
}

// End closes a run. A recording without one was cut off.
type End struct {
	Time     int64    `json:"time_ns"`
	ExitCode Optional `json:"exit_code,omitzero"`
	Signal   Optional `json:"signal,omitzero"`
	// exit, signal, recovered; stopped: as asked, in good order or by the signal that followed; of a process that ran
	// before: left (it went on), gone (how is not known)
	Reason string `json:"reason,omitempty"`
}

func (RunInfo) frame()    {}
func (Process) frame()    {}
func (SeriesDef) frame()  {}
func (Samples) frame()    {}
func (Spans) frame()      {}
func (PhaseStats) frame() {}
func (Steps) frame()      {}
func (StepTotal) frame()  {}
func (StackDef) frame()   {}
func (HeapUse) frame()    {}
func (HeapAges) frame()   {}
func (Holder) frame()     {}
func (Cell) frame()       {}
func (Module) frame()     {}
func (ModelUse) frame()   {}
func (Snapshot) frame()   {}
func (Drop) frame()       {}
func (End) frame()        {}
func (Found) frame()      {}
