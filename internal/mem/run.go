package mem

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Run is a whole recording in memory, columns for what is many and maps for what is few. Build it
// with Add; read its fields freely; change none of them.
type Run struct {
	Info      RunInfo
	Processes []*Process // by ID
	Series    []*Series  // by ID
	Spans     SpanLog
	Phases    []PhaseStats // latest of each process, phase and name, in order of first sight
	Steps     []Step
	Totals    map[uint32]StepTotal
	Stacks    StackTable       // by the recording's own numbers
	Heap      map[uint32]*Heap // by process
	Holders   []Holder
	Cells     []Cell // of notebooks; stacks and holders name these in place of the kernel's files
	Modules   []Module
	Models    []ModelUse
	Events    []Event
	Snapshots []*SnapshotFile
	Drops     []Drop
	End       *End
	Found     *Found // nil: no report was made at its end
	Damage    []Damage
	Imagined  ImaginedFacts // of a run on imaginary GPUs

	processes map[uint32]*Process
	series    map[uint32]*Series
	clocks    map[uint32]*Series // by process: the first of its series that has readings
	places    map[frameKey]int   // of frames that a later one of the same key replaces
}

// Series is one SeriesDef with all its samples.
type Series struct {
	SeriesDef
	Times  []int64
	Values []int64

	clock *Series // whose Times these are, so far
}

// Heap is what the heap sampler saw of one process.
type Heap struct {
	History []HeapPoint
	Sites   map[uint32][]SitePoint // by stack, only where they changed
	Peak    *HeapUse               // complete picture at the highest live heap
	Ages    []HeapAges             // by time; one of them at the peak
}

// HeapPoint is the total at a moment.
type HeapPoint struct {
	Time     int64
	Step     uint64
	Live     Bytes
	Variance float64
	Absent   Bytes
}

// SitePoint is one site at a moment.
type SitePoint struct {
	Time int64
	Step uint64
	SiteUse
}

// SnapshotFile is an allocator snapshot put together from its pieces.
type SnapshotFile struct {
	Process  uint32
	Time     int64
	Name     string
	Format   string
	Data     []byte
	Complete bool
}

// Damage is a stretch of a recording that could not be read.
type Damage struct {
	Offset int64  `json:"offset"` // in the file
	Bytes  int64  `json:"bytes"`
	Text   string `json:"text"`
}

// frameKey is what a frame is about, where a later one about the same replaces it.
type frameKey struct {
	kind    string
	process uint32
	name    string
	file    string
	line    int
}

// NewRun is an empty run.
func NewRun() *Run {
	return &Run{
		Totals: map[uint32]StepTotal{}, Heap: map[uint32]*Heap{},
		processes: map[uint32]*Process{}, series: map[uint32]*Series{}, clocks: map[uint32]*Series{},
		places: map[frameKey]int{},
	}
}

// Process returns the process with that ID, or nil.
func (r *Run) Process(id uint32) *Process { return r.processes[id] }

// Find returns the series of that quantity and process, or nil. With several devices or frameworks, the first.
func (r *Run) Find(process uint32, name Quantity) *Series {
	for _, s := range r.Series {
		if s.Process == process && s.Name == name {
			return s
		}
	}
	return nil
}

// Start is the moment the run began, on the monotonic clock.
func (r *Run) Start() int64 { return r.Info.StartMono }

// Add takes in one frame. A frame that cannot be (samples for a series that is not defined, columns
// of different length) is refused with an error and changes nothing.
func (r *Run) Add(f Frame) error {
	switch f := f.(type) {
	case RunInfo:
		r.Info = f
	case Process:
		return r.addProcess(f)
	case SeriesDef:
		return r.define(f)
	case Samples:
		return r.addSamples(f)
	case Spans:
		r.Spans.Append(f...)
	case PhaseStats:
		keep(r, &r.Phases, f, frameKey{kind: "phase", process: f.Process, name: f.Name, file: string(f.Phase)})
	case Steps:
		r.Steps = append(room(r.Steps, len(f)), f...)
	case StepTotal:
		r.Totals[f.Process] = f
	case StackDef:
		return r.Stacks.Define(f.ID, f.Locations)
	case HeapUse:
		r.addHeap(f)
	case HeapAges:
		r.addAges(f)
	case Cell:
		keep(r, &r.Cells, f, frameKey{kind: "cell", file: f.File})
		r.Stacks.Rename(f.File, f.Name)
	case Holder:
		f.Where = r.Stacks.renamed(f.Where)
		for i := range f.Others {
			f.Others[i] = r.Stacks.renamed(f.Others[i])
		}
		r.Holders = append(r.Holders, f)
	case Module:
		keep(r, &r.Modules, f, frameKey{kind: "module", process: f.Process, name: f.Name})
	case ModelUse:
		keep(r, &r.Models, f, frameKey{kind: "model", process: f.Process, name: f.Device})
	case Event:
		r.Events = append(r.Events, f.withNumbers())
	case Snapshot:
		r.addSnapshot(f)
	case Drop:
		keep(r, &r.Drops, f, frameKey{kind: "drop", process: f.Process, name: f.Place})
	case End:
		r.End = &f
	case Found:
		r.Found = &f
	default:
		if !r.addImagined(f) {
			return fmt.Errorf("frame of unknown type %T", f)
		}
	}
	return nil
}

// addProcess takes in a process, or what is newly known of it.
func (r *Run) addProcess(f Process) error {
	if f.ID == 0 {
		return fmt.Errorf("process %d has no id", f.PID)
	}
	f = f.withNumbers()
	old := r.processes[f.ID]
	if old == nil {
		old = &f
		r.processes[f.ID] = old
		r.Processes = append(r.Processes, old)
	} else {
		*old = f
	}
	if f.Role == RoleAside {
		r.Processes = slices.DeleteFunc(r.Processes, func(p *Process) bool { return p == old })
	}
	return nil
}

// define says what a series is; its samples follow.
func (r *Run) define(f SeriesDef) error {
	if f.ID == 0 {
		return fmt.Errorf("series %q has no id", f.Name)
	}
	if old := r.series[f.ID]; old != nil {
		old.SeriesDef = f
		return nil
	}
	s := &Series{SeriesDef: f}
	r.series[f.ID] = s
	r.Series = append(r.Series, s)
	return nil
}

func (r *Run) addSamples(f Samples) error {
	s := r.series[f.Series]
	if s == nil {
		return fmt.Errorf("samples for series %d, which is not defined", f.Series)
	}
	if len(f.Times) != len(f.Values) {
		return fmt.Errorf("series %d: %d times but %d values", f.Series, len(f.Times), len(f.Values))
	}
	r.addTimes(s, f.Times)
	s.Values = append(room(s.Values, len(f.Values)), f.Values...)
	return nil
}

// Raise is Add for who wants no more of a series than its highest reading.
func (r *Run) Raise(f Samples) {
	s := r.series[f.Series]
	if s == nil || len(f.Times) != len(f.Values) {
		return
	}
	for i, v := range f.Values {
		if len(s.Values) == 0 || v > s.Values[0] {
			s.Times, s.Values = []int64{f.Times[i]}, []int64{v}
		}
	}
}

// addTimes adds moments to a series. Most series of a process are read at the same moments: those are kept once.
func (r *Run) addTimes(s *Series, times []int64) {
	n := len(s.Times)
	if n == 0 && s.clock == nil {
		if r.clocks[s.Process] == nil {
			r.clocks[s.Process] = s
		}
		s.clock = r.clocks[s.Process]
	}
	if of := s.clock; of != nil && of != s {
		if len(of.Times) >= n+len(times) && slices.Equal(of.Times[n:n+len(times)], times) {
			s.Times = slices.Clip(of.Times[:n+len(times)])
			return
		}
		s.clock = nil // from here on it has its own
	}
	s.Times = append(room(s.Times, len(times)), times...)
}

// keep puts a frame in the place of the earlier one of the same key, or appends it.
func keep[F Frame](r *Run, list *[]F, f F, key frameKey) {
	if i, ok := r.places[key]; ok {
		(*list)[i] = f
		return
	}
	r.places[key] = len(*list)
	*list = append(*list, f)
}

// room makes place for n more. Short columns double; long ones grow by a quarter, as what is not used yet of a
// hundred columns is memory that somebody has to have.
func room[T any](s []T, n int) []T {
	if cap(s)-len(s) >= n {
		return s
	}
	more := len(s)
	if more > longColumn {
		more /= 4
	}
	grown := make([]T, len(s), len(s)+max(n, more))
	copy(grown, s)
	return grown
}

const longColumn = 4096

// addAges keeps all readings of a heap, but of those at the peak only the newest.
func (r *Run) addAges(f HeapAges) {
	h := r.Heap[f.Process]
	if h == nil {
		return
	}
	if f.Peak {
		h.Ages = slices.DeleteFunc(h.Ages, func(a HeapAges) bool { return a.Peak })
	}
	at := sort.Search(len(h.Ages), func(i int) bool { return h.Ages[i].Time > f.Time })
	h.Ages = slices.Insert(h.Ages, at, f)
}

func (r *Run) addHeap(f HeapUse) {
	h := r.Heap[f.Process]
	if h == nil {
		h = &Heap{Sites: map[uint32][]SitePoint{}}
		r.Heap[f.Process] = h
	}
	if f.Peak {
		h.Peak = &f
		return
	}
	h.History = append(h.History, HeapPoint{f.Time, f.Step, f.Live, f.Variance, f.Absent})
	for _, site := range f.Sites {
		h.Sites[site.Stack] = append(h.Sites[site.Stack], SitePoint{f.Time, f.Step, site})
	}
}

func (r *Run) addSnapshot(f Snapshot) {
	var file *SnapshotFile
	for _, s := range r.Snapshots {
		if s.Process == f.Process && s.Name == f.Name {
			file = s
		}
	}
	if file == nil {
		file = &SnapshotFile{Process: f.Process, Time: f.Time, Name: f.Name, Format: f.Format}
		r.Snapshots = append(r.Snapshots, file)
	}
	file.Data = append(file.Data, f.Piece...)
	file.Complete = file.Complete || f.Last
}

// Steps of the process that took the most of them: the run's step count.
func (r *Run) StepCount() uint64 {
	var most uint64
	for _, total := range r.Totals {
		most = max(most, total.Steps)
	}
	return most
}

// Serves says whether the program is an LLM server: one of its processes said so, and none trained.
func (r *Run) Serves() bool { return len(r.Imagined.Serving) > 0 && r.StepCount() == 0 }

// ServesIn says whether a process is part of the engine of an LLM server.
func (r *Run) ServesIn(process uint32) bool {
	return slices.ContainsFunc(r.Imagined.Serving, func(s Serving) bool { return s.Process == process })
}

// At returns the last value at or before a time, absent where the series begins later.
func (s *Series) At(time int64) Optional {
	i := sort.Search(len(s.Times), func(i int) bool { return s.Times[i] > time })
	if i == 0 {
		return Optional{}
	}
	return Some(s.Values[i-1])
}

// Peak returns the index of the largest value, or -1 for an empty series.
func (s *Series) Peak() int {
	best := -1
	for i, v := range s.Values {
		if best < 0 || v > s.Values[best] {
			best = i
		}
	}
	return best
}

// ofChild are exceptions that say no more than that a child failed, as launchers raise them.
var ofChild = []string{"ChildFailedError", "ProcessRaisedException", "ProcessExitedException", "CalledProcessError"}

// rootCause is how servers say that the reason is one of their processes'.
var rootCause = []string{"root cause above", "for root cause", "for the root cause"}

// TellsOfChild says whether an exception says no more than that a child failed.
func TellsOfChild(e Event) bool {
	return slices.Contains(ofChild, e.Facts["class"]) ||
		slices.ContainsFunc(rootCause, func(said string) bool { return strings.Contains(e.Text, said) })
}

// Shortage says whether an exception tells that memory ran out, or was raised in the handling of one that does.
func (e *Event) Shortage() bool {
	text := strings.ToLower(e.Text + " " + e.Facts["class"] + " " + e.Facts["from"])
	return strings.Contains(text, "out of memory") || strings.Contains(text, "outofmemory") ||
		strings.Contains(text, "alloc_failed") ||
		strings.Contains(text, "resourceexhausted") && !strings.Contains(text, "/device:cpu:") // TensorFlow's; on the host it is none
}

// RanOut says whether memory ran out and an error told the program so. After a malloc that fails most programs go on.
func (e *Event) RanOut() bool { return e.Kind == "oom" && e.Facts["source"] != "malloc" }

// Uncaught is the exception that nobody caught and that ended a process, the main one's where it has one. Where that
// only tells of a child, it is the first of those: the others may have failed for its sake.
func (r *Run) Uncaught() (last Event, ok bool) {
	main := func(process uint32) bool {
		p := r.Process(process)
		return p != nil && p.Role == "main"
	}
	var first Event
	for _, e := range r.Events {
		if e.Kind != "exception" || e.Facts["class"] == "" {
			continue
		}
		if first.Kind == "" && !main(e.Process) {
			first = e
		}
		if !ok || main(e.Process) || !main(last.Process) {
			last, ok = e, true
		}
	}
	if first.Kind != "" && main(last.Process) && TellsOfChild(last) {
		last = first
	}
	return last, ok
}
