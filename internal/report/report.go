// Package report is what hightide has to say, as one value, and how it is written for people: as text for
// terminals, as Markdown, as a page.
//
//	analyze ──▶ Report (report.go, imagined.go, allocator.go, flame.go) ──▶ JSON
//	                │
//	                ├──▶ text.go: order, headline, findings ──▶ chart.go: curves, device.go: segments ──▶ texttable.go
//	                ├──▶ markdown.go
//	                └──▶ page.go: what the HTML page gets
//
// Packages replay and fit answer questions of their own, with a sentence or two around a Table and Panels. They write no Report, as
// there is no run or device to report on.
//
// A Report holds plain values: bytes and nanoseconds are integers, an absent figure is absent. words.go has the
// forms in which figures are written everywhere. Read report.go next.
package report

import (
	"slices"
	"strings"

	"hightide/internal/mem"
)

// Version is that of the report's JSON form; it grows when a field changes meaning.
const Version = 2

// Report is one result that every front door can show. Its JSON form is documented in
// docs/formats/json.md and is what web/ draws.
type Report struct {
	Version   int           `json:"version"`
	Run       mem.RunInfo   `json:"run"`
	Processes []mem.Process `json:"processes"`
	Headline  Headline      `json:"headline"`
	Findings  []Finding     `json:"findings"` // worst first
	Tables    []Table       `json:"tables"`
	Series    []Series      `json:"series"`
	Phases    []PhaseBar    `json:"phases"` // for the timeline: an even selection, never more than a few thousand
	Steps     []StepPoint   `json:"steps"`
	Marks     []Mark        `json:"marks"`              // events worth a line on the timeline
	Stacks    []StackSet    `json:"stacks"`             // memory by whole call stack, for flame graphs
	Notes     []string      `json:"notes"`              // what was not observed and why, how it was sampled, damage
	Dropped   uint64        `json:"dropped"`            // records lost on the way
	Imagined  *Imagined     `json:"imagined,omitempty"` // of a run on imaginary GPUs: whether it fits

	Ranks *Ranks `json:"ranks,omitempty"` // of a distributed program: its processes beside each other

	Allocators []*Allocator `json:"allocators,omitempty"` // what explain says of each device of each snapshot
}

// New is a report of files alone, without anything in it yet.
func New() *Report {
	return &Report{
		Version: Version, Run: mem.RunInfo{Command: []string{}, Verb: "explain", Label: mem.Measured}, Processes: []mem.Process{},
		Findings: []Finding{}, Tables: []Table{}, Series: []Series{}, Phases: []PhaseBar{}, Steps: []StepPoint{}, Marks: []Mark{},
		Stacks: []StackSet{}, Notes: []string{}, Headline: Headline{Complete: true, Clauses: []string{}},
	}
}

// Headline is the answer in one breath.
type Headline struct {
	Verdict     string       `json:"verdict"` // one sentence, for people
	Clauses     []string     `json:"clauses"` // its parts: the peak, then what else there is to say
	Duration    int64        `json:"duration_ns"`
	Steps       uint64       `json:"steps"`
	ExitCode    mem.Optional `json:"exit_code,omitzero"`
	Signal      mem.Optional `json:"signal,omitzero"`
	Exception   *Exception   `json:"exception,omitempty"` // of a program that failed
	Stopped     bool         `json:"stopped,omitempty"`   // it ended as it was asked to, in good order or by the signal that followed
	Left        bool         `json:"left,omitempty"`      // a process that ran before the recording went on after it
	Complete    bool         `json:"complete"`            // the recording has its end
	Peak        Peak         `json:"peak"`
	Growth      mem.Optional `json:"growth_bytes_per_step,omitzero"`
	GrowthLeast mem.Optional `json:"growth_least_bytes,omitzero"` // where Growth is 0: the least over the run, of a process, that is told
	Efficiency  mem.Optional `json:"efficiency_milli,omitzero"`   // 0 to 10,000 for a score of 0 to 10, see the table of that name
	NotLooked   string       `json:"not_looked_for,omitempty"`    // what was not looked for, and why: a sentence
	Looked      string       `json:"looked_for,omitempty"`        // what growth would have been told, where none was: a sentence
	StepTime    mem.Optional `json:"step_time_ns,omitzero"`       // median
	MainSource  mem.Quantity `json:"main_source,omitempty"`       // which series the picture leads with
}

// Exception is one that nobody caught. Of several processes, it is the main one's, or the first of its children's where
// the main one's only tells of a child.
type Exception struct {
	Sentence string `json:"sentence,omitempty"` // one line, for people; absent where the verdict tells of it
	Class    string `json:"class"`              // without its module
	Text     string `json:"text,omitempty"`     // secrets masked
	From     string `json:"from,omitempty"`     // class and text of the first exception, where this one was raised in its handling
	Time     int64  `json:"time_ns"`            // since the run began
	Process  uint32 `json:"process"`
	File     string `json:"file,omitempty"` // the innermost line of the user's own, else the innermost
	Line     int    `json:"line,omitempty"`
	Function string `json:"function,omitempty"`
}

// Peak holds the high-water marks; absent where not observed.
type Peak struct {
	HostRSS    mem.Optional `json:"host_rss_bytes,omitzero"`       // process tree
	HostPSS    mem.Optional `json:"host_pss_bytes,omitzero"`       // of the tree, shared pages once: estimated between readings
	PSSError   mem.Optional `json:"host_pss_error_bytes,omitzero"` // how far HostPSS may be off, to either side
	Heap       mem.Optional `json:"heap_bytes,omitzero"`
	DeviceUsed mem.Optional `json:"device_used_bytes,omitzero"`
	Allocated  mem.Optional `json:"allocated_bytes,omitzero"`
	Reserved   mem.Optional `json:"reserved_bytes,omitzero"`
	Time       mem.Optional `json:"time_ns,omitzero"` // of the leading one, since the run began
	Phase      mem.Phase    `json:"phase,omitempty"`
	Step       mem.Optional `json:"step,omitzero"`
	Process    uint32       `json:"process,omitempty"`
	Label      mem.Label    `json:"label"`
	AtLeast    bool         `json:"at_least,omitempty"` // processes that lived very shortly may have taken more between two readings
}

// Severities, worst first.
const (
	Critical = "critical" // memory ran out, or will
	Warning  = "warning"  // it costs something worth an hour of work
	Info     = "info"
)

// Finding kinds.
const (
	KindLeak          = "leak"   // grows with the steps, and the line is known
	KindGrowth        = "growth" // grows with the steps, line not known
	KindOOM           = "oom"
	KindFragmentation = "fragmentation"
	KindSwap          = "swap"
	KindFaults        = "faults"
	KindGap           = "gap"
	KindDrop          = "drop"
	KindAlert         = "alert"
	KindRanks         = "ranks"    // one rank of a distributed program differs from the others
	KindLoading       = "loading"  // every rank loads what one could
	KindTracing       = "tracing"  // a framework traces or compiles a function again and again
	KindDonation      = "donation" // a compiled function could write its outputs over its arguments
)

// Finding points at a line, with bytes and a reason to believe it. File and Line name the holder
// where it is known, else the site of allocation; the site has its own fields.
type Finding struct {
	Kind         string         `json:"kind" doc:"What sort it is, as leak, growth or oom."`
	Severity     string         `json:"severity" doc:"critical, warning or info."`
	Title        string         `json:"title" doc:"A few words."`
	Text         string         `json:"text" doc:"What was found, with its figures."`
	Advice       string         `json:"advice,omitempty" doc:"What to change."`
	Process      uint32         `json:"process,omitempty" doc:"Id in the run; absent: of no single one."`
	File         string         `json:"file,omitempty" doc:"Where the line to change is."`
	Line         int            `json:"line,omitempty" doc:"That line."`
	Holder       string         `json:"holder,omitempty" doc:"Name of the container that keeps it."`
	SiteFile     string         `json:"site_file,omitempty" doc:"Where it was allocated."`
	SiteLine     int            `json:"site_line,omitempty"`
	SiteFunction string         `json:"site_function,omitempty"`
	Stack        []mem.Location `json:"stack,omitempty"`
	Bytes        mem.Optional   `json:"bytes,omitzero" doc:"What it is about, at the peak or the end."`
	BytesPerStep mem.Optional   `json:"bytes_per_step,omitzero" doc:"Growth."`
	Error        mem.Optional   `json:"error_bytes,omitzero" doc:"Half width of the 95 % interval of bytes_per_step, else of bytes."`
	Confidence   float64        `json:"confidence,omitempty" doc:"0 to 1."`
	Phase        mem.Phase      `json:"phase,omitempty" doc:"In which it is."`
	Aspect       string         `json:"aspect,omitempty" doc:"Of kind ranks: in what the rank differs."`
	Label        mem.Label      `json:"label" doc:"How the figures were come by."`
}

// Subject is whose memory a table, a curve or a flame graph shows. Zero: the whole run's, or the machine's.
type Subject struct {
	Process   uint32       `json:"process,omitempty" doc:"Id in the run; absent: those of the whole run, or of the machine."`
	Device    string       `json:"device,omitempty" doc:"As the driver or the framework calls it: nvidia:0, cuda:0."`
	Framework string       `json:"framework,omitempty" doc:"Whose allocator it is."`
	File      string       `json:"file,omitempty" doc:"Of a snapshot."`
	Number    mem.Optional `json:"device_number,omitzero" doc:"Which of the devices of the snapshot."`
	Of        string       `json:"of,omitempty" doc:"All that in words."`
}

// Table is rows of plain cells under columns that carry the unit.
type Table struct {
	Name string `json:"name"` // what it tells: "phases", "modules", "sites", "blame", …
	Subject
	Title   string       `json:"title"`
	Note    string       `json:"note,omitempty"`
	Total   mem.Optional `json:"total_bytes,omitzero"` // what the shares in it are of, where rows are missing
	Columns []Column     `json:"columns"`
	Rows    [][]Cell     `json:"rows"`
}

// Column says what the cells below it are.
type Column struct {
	Name  string    `json:"name"`
	Title string    `json:"title"`          // empty: for programs alone
	Unit  mem.Unit  `json:"unit,omitempty"` // empty: text
	Label mem.Label `json:"label,omitempty"`
}

// Cell is a text or an integer in the column's unit; nil where absent.
type Cell any // string | int64 | nil

// Series is a curve for the picture, thinned to what a screen can show without losing its peaks.
type Series struct {
	Name mem.Quantity `json:"name" doc:"The quantity, as host.rss."`
	Subject
	Title string    `json:"title" doc:"The quantity in words."`
	Unit  mem.Unit  `json:"unit" doc:"Of y: bytes, ns, count, ppm and so on."`
	XUnit mem.Unit  `json:"x_unit" doc:"Of x: ns since the run began, or event of a trace."`
	Label mem.Label `json:"label" doc:"How the figures were come by: measured, sampled, imagined, replayed, estimated."`
	Error int64     `json:"error,omitempty" doc:"How far y may be off, to either side, where that is known."`
	X     []int64   `json:"x" doc:"Rising."`
	Y     []int64   `json:"y" doc:"One for each x."`
}

// FullTitle is the title with whose curve it is: "allocated, main on cuda:0 (torch)".
func (s *Series) FullTitle() string {
	switch {
	case s.Of == "":
		return s.Title
	case s.Process == 0:
		return s.Title + " on " + s.Of
	}
	return s.Title + ", " + s.Of
}

// Say makes a verdict of clauses; empty ones are left out.
func (h *Headline) Say(clauses ...string) {
	h.Clauses = slices.DeleteFunc(clauses, func(c string) bool { return c == "" })
	h.Verdict = strings.Join(h.Clauses, "; ") + "."
}

// PhaseBar is a coloured stretch of the timeline.
type PhaseBar struct {
	Process uint32    `json:"process" doc:"Id in the run."`
	Phase   mem.Phase `json:"phase" doc:"forward, backward, optimizer and so on."`
	Name    string    `json:"name,omitempty" doc:"Of a module, or of a span of the program."`
	Step    uint64    `json:"step" doc:"0: before the first."`
	Start   int64     `json:"start_ns" doc:"Since the run began."`
	End     int64     `json:"end_ns" doc:"Since the run began."`

	RSSPeak mem.Optional `json:"rss_peak_bytes,omitzero" doc:"Of spans that the program named: the highest reading."`
}

// StepPoint is memory at the end of a step, the growth picture's dot.
type StepPoint struct {
	Process uint32       `json:"process"`
	Step    uint64       `json:"step"`
	Time    int64        `json:"time_ns"`
	RSS     mem.Optional `json:"rss_bytes,omitzero"`
	Heap    mem.Optional `json:"heap_bytes,omitzero"`
	Device  mem.Optional `json:"device_bytes,omitzero"`
}

// Mark is a moment on the timeline.
type Mark struct {
	Time    int64  `json:"time_ns" doc:"Since the run began."`
	Kind    string `json:"kind" doc:"alert, oom, exit, gap and so on."`
	Text    string `json:"text" doc:"What happened."`
	Process uint32 `json:"process,omitempty" doc:"Id in the run; absent: of no single one."`
}
