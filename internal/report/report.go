// Package report is what hightide has to say, as one value, and how it is written for people: as text for
// terminals, as Markdown, as a page.
//
//	analyze ──▶ Report (report.go, imagined.go, allocator.go, flame.go) ──▶ JSON
//	                │
//	                ├──▶ text.go: order, headline, findings ──▶ chart.go: curves, device.go: segments ──▶ texttable.go
//	                ├──▶ markdown.go
//	                └──▶ page.go: what the HTML page gets
//
// Packages replay and fit answer questions of their own, with a sentence or two around a Table and Panels. They write
// no Report, as there is no run or device to report on.
//
// A Report holds plain values: bytes and nanoseconds are integers, an absent figure is absent. words.go has the
// forms in which figures are written everywhere. Read report.go next.
package report

import (
	"cmp"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// Version is that of the report's JSON form; it grows when a field changes meaning.
const Version = 2

// Report is one result that every front door can show. Its JSON form is documented in
// docs/formats/json.md and is what web/ draws.
type Report struct {
	Version   int           `json:"version" doc:"The version of this form."`
	Run       mem.RunInfo   `json:"run" doc:"What was recorded, where and how."`
	Processes []mem.Process `json:"processes" doc:"The processes of the run."`
	Headline  Headline      `json:"headline" doc:"What it came to."`
	Part
	Allocators []*Allocator `json:"allocators,omitempty" doc:"What there is to say of each device of each snapshot."`
}

// Part is what one analysis has to say; a report is made of all of them.
type Part struct {
	Findings []Finding   `json:"findings" doc:"What was found, worst first."`
	Tables   []Table     `json:"tables" doc:"Figures in rows."`
	Series   []Series    `json:"series" doc:"Curves."`
	Phases   []PhaseBar  `json:"phases" doc:"Stays in phases for the timeline: an even selection, never more than a few thousand."`
	Steps    []StepPoint `json:"steps" doc:"Memory at the end of steps: an even selection."`
	Marks    []Mark      `json:"marks" doc:"Events worth a line on the timeline."`
	Stacks   []StackSet  `json:"stacks" doc:"Memory by whole call stack, for flame graphs."`
	Notes    []string    `json:"notes" doc:"What was not observed and why, how it was sampled, and damage."`
	Dropped  uint64      `json:"dropped" doc:"Records that were lost on the way."`
	Imagined *Imagined   `json:"imagined,omitempty" doc:"Of a run on imaginary GPUs: whether it fits."`
	// MemoryLimit is nil of a program that was allowed any.
	MemoryLimit *MemoryLimit `json:"memory_limit,omitempty" doc:"Of a program that was allowed so much host memory: whether it ran in that."`

	Ranks *Ranks `json:"ranks,omitempty" doc:"Of a distributed program: its processes beside each other."`

	Parts []Holding     `json:"peak_parts,omitempty" doc:"What the processes held at the peak, as the table composition shows it."`
	Lines *HoldingLines `json:"heap_lines,omitempty" doc:"Which lines held the heap at its highest, as the table sites shows it."`
}

// Holding is what one part of a run held.
type Holding struct {
	Kind     string    `json:"kind,omitempty" doc:"Of a part: allocations, free, files, shared, rest, process, or what of the model."`
	Name     string    `json:"name" doc:"As it is called beside another run's: without numbers of processes."`
	File     string    `json:"file,omitempty" doc:"Of a line: its file."`
	Line     int       `json:"line,omitempty" doc:"Of a line: its number in the file, from 1."`
	Function string    `json:"function,omitempty" doc:"Of a line: its function."`
	Bytes    int64     `json:"bytes" doc:"What it held, in bytes."`
	Half     int64     `json:"error_bytes,omitempty" doc:"Half width of the 95 % interval; absent: exact, or not known."`
	Label    mem.Label `json:"label" doc:"Where the figure comes from."`
}

// HoldingLines are the lines that held most of a heap, and all that it held.
type HoldingLines struct {
	Lines    []Holding `json:"lines" doc:"The largest first."`
	Total    int64     `json:"total_bytes" doc:"All that the heap held, in bytes."`
	Unlisted int64     `json:"unlisted_bytes" doc:"The most that the lines of one function held that are not listed, in bytes; with the error of the sample."`
}

// Add puts another part below what there is.
func (p *Part) Add(o Part) {
	p.Findings = append(p.Findings, o.Findings...)
	p.Tables = append(p.Tables, o.Tables...)
	p.Series = append(p.Series, o.Series...)
	p.Phases = append(p.Phases, o.Phases...)
	p.Steps = append(p.Steps, o.Steps...)
	p.Marks = append(p.Marks, o.Marks...)
	p.Stacks = append(p.Stacks, o.Stacks...)
	p.Notes = append(p.Notes, o.Notes...)
	p.Dropped += o.Dropped
	p.Parts, p.Lines = append(p.Parts, o.Parts...), cmp.Or(o.Lines, p.Lines)
	p.Imagined, p.Ranks = cmp.Or(o.Imagined, p.Imagined), cmp.Or(o.Ranks, p.Ranks)
	p.MemoryLimit = cmp.Or(o.MemoryLimit, p.MemoryLimit)
}

// emptyPart has no list that is absent: the JSON form has none that is null.
func emptyPart() Part {
	return Part{Findings: []Finding{}, Tables: []Table{}, Series: []Series{}, Phases: []PhaseBar{}, Steps: []StepPoint{},
		Marks: []Mark{}, Stacks: []StackSet{}, Notes: []string{}}
}

// New is a report of files alone, without anything in it yet.
func New() *Report {
	return &Report{
		Version: Version, Run: mem.RunInfo{Command: []string{}, Verb: "explain", Label: mem.Measured},
		Processes: []mem.Process{}, Part: emptyPart(), Headline: Headline{Complete: true, Clauses: []string{}},
	}
}

// Headline is the answer in one breath.
type Headline struct {
	Verdict       string       `json:"verdict" doc:"One sentence for people."`
	Clauses       []string     `json:"clauses" doc:"Its parts: the peak, then what else there is to say."`
	Figure        mem.Figure   `json:"figure,omitzero" doc:"The one figure by which the run is known, in lists too. Absent: none was observed, or it is no run."`
	Ended         mem.Ending   `json:"ended,omitzero" doc:"How it ended, in lists too. Absent: it is no run."`
	Duration      int64        `json:"duration_ns" doc:"How long the command ran, in ns."`
	Steps         uint64       `json:"steps" doc:"How many optimizer steps were completed; 0: there was no training."`
	ExitCode      mem.Optional `json:"exit_code,omitzero" doc:"The command's exit code; absent where a signal ended it or its end was not seen."`
	Signal        mem.Optional `json:"signal,omitzero" doc:"The signal that ended it."`
	Exception     *Exception   `json:"exception,omitempty" doc:"What Python said of a program that failed."`
	Stopped       bool         `json:"stopped,omitempty" doc:"Whether it ended as it was asked to."`
	Left          bool         `json:"left,omitempty" doc:"Whether a process that ran before the recording went on after it."`
	Complete      bool         `json:"complete" doc:"Whether the recording has its end."`
	Peak          Peak         `json:"peak" doc:"The highest of each figure."`
	Growth        mem.Optional `json:"growth_bytes_per_step,omitzero" doc:"Steady growth after the warm-up, in bytes a step; 0: looked for and not seen; absent: too few steps to tell."`
	GrowthLabel   mem.Label    `json:"growth_label,omitempty" doc:"How the growth is known."`
	GrowthLeast   mem.Optional `json:"growth_least_bytes,omitzero" doc:"Where growth is 0: the least over the run, of a process, that is told, in bytes."`
	GrowthError   mem.Optional `json:"growth_error_bytes_per_step,omitzero" doc:"How far the growth may be off, in bytes a step; of 0, the slowest that all processes could have and that is not told."`
	Fragmentation mem.Figure   `json:"fragmentation,omitzero" doc:"What the allocator that leads had and nobody used when its curve was highest: of a framework reserved, not allocated; of the host free in malloc, in the process that took most; of an imagined run the peak reserved without the peak allocated. Absent: not known."`
	Efficiency    mem.Optional `json:"efficiency_milli,omitzero" doc:"A score of 0 to 10 in thousandths; the table of that name says what it is made of."`
	NotLooked     string       `json:"not_looked_for,omitempty" doc:"What was not looked for, and why; absent: all was."`
	Larger        string       `json:"gets_larger,omitempty" doc:"The line whose blocks are replaced by ever larger ones, as a note says."`
	Looked        string       `json:"looked_for,omitempty" doc:"From how much on growth would have been told, where none was."`
	Nothing       string       `json:"nothing,omitempty" doc:"What there is to say of a run in which nothing was found; absent: something was, or it is no run."`
	Well          bool         `json:"well,omitempty" doc:"Whether that is good news: all was looked for, and the program ended well."`
	StepTime      mem.Optional `json:"step_time_ns,omitzero" doc:"The median of a step's time in ns."`
	MainSource    mem.Quantity `json:"main_source,omitempty" doc:"The series that the picture leads with."`
}

// Exception is one that nobody caught. Of several processes, it is the main one's, or the first of its children's where
// the main one's only tells of a child.
type Exception struct {
	Sentence string `json:"sentence,omitempty" doc:"All of it in a line; absent where the verdict tells of it."`
	Class    string `json:"class" doc:"Its class, without the module."`
	Text     string `json:"text,omitempty" doc:"Its text, with secrets masked."`
	From     string `json:"from,omitempty" doc:"Class and text of the first exception, where this one was raised in its handling."`
	Time     int64  `json:"time_ns" doc:"When, in ns since the run began."`
	Process  uint32 `json:"process" doc:"The process, by its id in the run."`
	File     string `json:"file,omitempty" doc:"The file of the innermost line of the user's own, else of the innermost."`
	Line     int    `json:"line,omitempty" doc:"That line, from 1."`
	Function string `json:"function,omitempty" doc:"Its function."`
	Serves   bool   `json:"serves,omitempty" doc:"Whether it was in a part of an LLM server's engine: what ends the server then is no cause."`
}

// Peak holds the high-water marks; absent where not observed.
type Peak struct {
	HostRSS    mem.Optional `json:"host_rss_bytes,omitzero" doc:"The highest resident memory of the process tree, in bytes."`
	HostPSS    mem.Optional `json:"host_pss_bytes,omitzero" doc:"The same with shared pages counted once, in bytes: estimated between readings."`
	PSSError   mem.Optional `json:"host_pss_error_bytes,omitzero" doc:"How far that may be off to either side, in bytes."`
	Heap       mem.Optional `json:"heap_bytes,omitzero" doc:"The highest live heap, sampled, of all processes, in bytes."`
	DeviceUsed mem.Optional `json:"device_used_bytes,omitzero" doc:"The highest use of each device, summed, in bytes."`
	Allocated  mem.Optional `json:"allocated_bytes,omitzero" doc:"The highest of what frameworks' allocators gave, in bytes."`
	Reserved   mem.Optional `json:"reserved_bytes,omitzero" doc:"The highest of what they took from the devices, in bytes."`
	Time       mem.Optional `json:"time_ns,omitzero" doc:"When the leading figure was highest, in ns since the run began."`
	Phase      mem.Phase    `json:"phase,omitempty" doc:"The phase in which that was."`
	Step       mem.Optional `json:"step,omitzero" doc:"How many steps were completed before."`
	Process    uint32       `json:"process,omitempty" doc:"The process, by its id in the run."`
	Label      mem.Label    `json:"label" doc:"Where the figures come from."`
	AtLeast    bool         `json:"at_least,omitempty" doc:"Whether processes that lived very shortly may have taken more between two readings."`
}

// Severities, worst first.
const (
	Critical = "critical" // memory ran out, or will
	Warning  = "warning"  // it costs something worth an hour of work
	Info     = "info"
)

// Finding kinds.
const (
	KindLeak          = "leak"    // grows with the steps, and the line is known
	KindGrowth        = "growth"  // grows with the steps, line not known
	KindBounded       = "bounded" // grew, and stopped before the end; or grows to a bound that is known
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
	KindGraphs        = "graphs"   // forward passes saved tensors for a backward pass that never came
	KindCycles        = "cycles"   // reference cycles keep memory until Python's collector runs
	KindCopies        = "copies"   // forked workers copy memory of their parent, page by page
	KindResource      = "resource" // something else than memory of which there is only so much: open files, threads
)

// Finding points at a line, with bytes and a reason to believe it. File and Line name the holder
// where it is known, else the site of allocation; the site has its own fields.
type Finding struct {
	Kind         string         `json:"kind" doc:"What sort it is, as leak, growth or oom."`
	Severity     string         `json:"severity" enum:"critical,warning,info" doc:"How bad it is."`
	Title        string         `json:"title" doc:"A few words."`
	Text         string         `json:"text" doc:"What was found, with its figures."`
	Advice       string         `json:"advice,omitempty" doc:"What to change."`
	Process      uint32         `json:"process,omitempty" doc:"Id in the run; absent: of no single one."`
	File         string         `json:"file,omitempty" doc:"Where the line to change is."`
	Line         int            `json:"line,omitempty" doc:"That line."`
	Holder       string         `json:"holder,omitempty" doc:"Name of the container that keeps it."`
	SiteFile     string         `json:"site_file,omitempty" doc:"Where it was allocated."`
	SiteLine     int            `json:"site_line,omitempty" doc:"The line that allocates, from 1."`
	SiteFunction string         `json:"site_function,omitempty" doc:"Its function."`
	Stack        []mem.Location `json:"stack,omitempty" doc:"The stack that allocates, innermost first."`
	Bytes        mem.Optional   `json:"bytes,omitzero" doc:"What it is about, at the peak or the end."`
	BytesPerStep mem.Optional   `json:"bytes_per_step,omitzero" doc:"Growth."`
	Error        mem.Optional   `json:"error_bytes,omitzero" doc:"Half width of the 95 % interval of bytes_per_step, else of bytes."`
	Confidence   float64        `json:"confidence,omitempty" doc:"0 to 1."`
	Phase        mem.Phase      `json:"phase,omitempty" doc:"In which it is."`
	Aspect       string         `json:"aspect,omitempty" doc:"Of kind ranks: in what the rank differs."`
	Label        mem.Label      `json:"label" doc:"Where the figures come from."`
}

// Rank is the place of a finding by how severe it is: the worst have the lowest.
func (f *Finding) Rank() int { return slices.Index([]string{Critical, Warning, Info}, f.Severity) }

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
	Name string `json:"name" doc:"What it tells: phases, modules, sites, blame and others."`
	Subject
	Title   string       `json:"title" doc:"Its title for people."`
	Note    string       `json:"note,omitempty" doc:"What is to be known of it."`
	Total   mem.Optional `json:"total_bytes,omitzero" doc:"What the shares in it are of, in bytes, where rows are missing."`
	Columns []Column     `json:"columns" doc:"Its columns; one in which nothing was observed is left out."`
	Rows    [][]Cell     `json:"rows" doc:"A cell is a text, an integer in its column's unit, or null."`
}

// Column says what the cells below it are.
type Column struct {
	Name  string    `json:"name" doc:"Its name for programs."`
	Title string    `json:"title" doc:"Its title for people; empty: it is for programs alone."`
	Unit  mem.Unit  `json:"unit,omitempty" doc:"The unit of its numbers; absent: it holds text."`
	Label mem.Label `json:"label,omitempty" doc:"Where its figures come from."`
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
	Label mem.Label `json:"label" doc:"Where the figures come from: measured, sampled, imagined, replayed, estimated."`
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
	Process uint32       `json:"process" doc:"The process, by its id in the run."`
	Step    uint64       `json:"step" doc:"The number of the step."`
	Time    int64        `json:"time_ns" doc:"When it ended, in ns since the run began."`
	RSS     mem.Optional `json:"rss_bytes,omitzero" doc:"Resident memory then, in bytes."`
	Kept    mem.Optional `json:"kept_bytes,omitzero" doc:"Resident and swapped memory without what of mapped files the kernel can take back, in bytes; absent where that tells no more."`
	Heap    mem.Optional `json:"heap_bytes,omitzero" doc:"Live heap then, sampled, in bytes."`
	Device  mem.Optional `json:"device_bytes,omitzero" doc:"Use of the device then, in bytes."`
}

// Mark is a moment on the timeline.
type Mark struct {
	Time    int64  `json:"time_ns" doc:"Since the run began."`
	Kind    string `json:"kind" doc:"alert, oom, exit, gap and so on."`
	Text    string `json:"text" doc:"What happened."`
	Process uint32 `json:"process,omitempty" doc:"Id in the run; absent: of no single one."`
}
