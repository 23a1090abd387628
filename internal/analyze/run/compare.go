package run

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// figure is one of those that two runs can be compared by.
type figure struct {
	name, what string // name is for programs
	of         func(*report.Peak) mem.Optional
	source     []mem.Quantity // series of which it is the peak, where a headline leads with it
}

var figures = []figure{
	{"reserved", "reserved on the device", func(p *report.Peak) mem.Optional { return p.Reserved },
		[]mem.Quantity{mem.SeriesReserved}},
	{"allocated", "allocated on the device", func(p *report.Peak) mem.Optional { return p.Allocated },
		[]mem.Quantity{mem.SeriesAllocated}},
	{"device_used", "used on the device", func(p *report.Peak) mem.Optional { return p.DeviceUsed },
		[]mem.Quantity{mem.SeriesDeviceProcess, mem.SeriesDeviceUsed}},
	{"host_pss", "PSS of all processes", func(p *report.Peak) mem.Optional { return p.HostPSS },
		[]mem.Quantity{mem.SeriesTreePSS}},
	{"host_rss", "RSS of all processes", func(p *report.Peak) mem.Optional { return p.HostRSS },
		[]mem.Quantity{mem.SeriesTreeRSS, mem.SeriesRSS}},
	{"heap", "sampled heap", func(p *report.Peak) mem.Optional { return p.Heap }, nil},
	{tracedFigure, "Python's memory by tracemalloc", func(p *report.Peak) mem.Optional { return p.Heap }, nil},
}

// Compare says what differs between two reports, of runs that recorded no snapshot too: their peaks, what the
// processes held at them, and the lines that held the heap. Nil: no figure is known of both.
func Compare(pair *report.Pair) *report.Report {
	a, b := pair.Before, pair.After
	lead := leading(a, b)
	if lead == nil {
		return nil
	}
	r := report.New()
	r.Run.Verb = "diff"
	r.Run.Name = cmp.Or(a.Run.Name, a.Run.ID) + " → " + cmp.Or(b.Run.Name, b.Run.ID)
	r.Headline.Say(lead.sentence())
	r.Headline.NotLooked = "Findings are each run's own: hightide show prints them."
	figures := figureTable(a, b)
	// it comes first
	if at := slices.IndexFunc(figures.Rows, func(row []report.Cell) bool { return row[0] == lead.what }); at > 0 {
		row := figures.Rows[at]
		figures.Rows = slices.Insert(slices.Delete(figures.Rows, at, at+1), 0, row)
	}
	r.AddTable(figures)
	r.AddTable(parts(a, b))
	r.AddTable(lines(a, b))
	for _, t := range r.Tables {
		text := tableNotes[t.Name]
		if t.Name == "lines" && heapTraced(a) {
			text = tracedLines
		}
		if text != "" {
			r.AddNote(text)
		}
	}
	r.Notes = append(r.Notes, compareNotes(a, b)...)
	return r
}

// tableNotes say how each table is to be read.
var tableNotes = map[string]string{
	"figures": "Each peak is of its own moment. RSS counts pages that processes share in each of them.",
	"parts":   "What they held is RSS, at the moment of each run's peak. Its rows add up to the change of that.",
	"lines": "Functions are estimates from a sample; ± is half the 95 % interval of the change. An empty cell: that " +
		"run does not list the function. " +
		"What it held there, if anything, is in the row of functions that a run does not list, so the changes add up.",
}

const tracedLines = "Lines are of Python's memory by tracemalloc; native memory is not among them. An empty cell: that " +
	"run does not list the line. What it held there, if anything, is in the row of functions that a run does not list."

// led is the figure that a comparison leads with, of both.
type led struct {
	what          string
	before, after mem.Figure
}

// leading is the figure by which both are known, where that is one of the same kind; else the first that both have.
// Nil: there is none.
func leading(a, b *report.Report) *led {
	p, q := a.Headline.Figure, b.Headline.Figure
	if p.Known() && q.Known() && p.What == q.What {
		return &led{inFull(p), p, q}
	}
	for i := range figures {
		f := &figures[i]
		before, knows := f.in(a).Get()
		if after, too := f.in(b).Get(); knows && too {
			of := func(r *report.Report, bytes int64) mem.Figure {
				return mem.Figure{Bytes: bytes, Error: f.half(&r.Headline.Peak).Or(0), What: f.what, Label: f.label(r),
					AtLeast: r.Headline.Peak.AtLeast}
			}
			return &led{f.what, of(a, before), of(b, after)}
		}
	}
	return nil
}

// inFull is what a figure is of, as a table of figures calls it.
func inFull(of mem.Figure) string {
	for _, f := range figures {
		if slices.Contains(f.source, of.Source) && f.name != "device_used" {
			return f.what
		}
	}
	return of.What
}

// half is how far a figure may be off; absent where it is exact or not known.
func (f *figure) half(p *report.Peak) mem.Optional {
	if f.name == "host_pss" {
		return p.PSSError
	}
	return mem.Optional{}
}

// in is what a figure is in a report. Of a heap that was traced it is another than of one that was sampled.
func (f *figure) in(r *report.Report) mem.Optional {
	if traced := heapTraced(r); f.name == "heap" && traced || f.name == tracedFigure && !traced {
		return mem.Optional{}
	}
	return f.of(&r.Headline.Peak)
}

const tracedFigure = "python_heap"

// heapTraced says whether the lines of a report are those that tracemalloc told.
func heapTraced(r *report.Report) bool {
	return r.Lines != nil && len(r.Lines.Lines) > 0 && r.Lines.Lines[0].Label == mem.Measured
}

// label is how a figure was obtained.
func (f *figure) label(r *report.Report) mem.Label {
	switch f.name {
	case "host_pss":
		return mem.Estimated
	case "heap":
		return mem.Sampled
	case "host_rss", tracedFigure:
		return mem.Measured
	}
	return cmp.Or(r.Headline.Peak.Label, mem.Measured)
}

// sentence: "The peak, PSS of all processes, rose by 512 MiB: 1.00 GiB before, 1.50 GiB after (estimated)".
func (l *led) sentence() string {
	delta, half := l.after.Bytes-l.before.Bytes, both(mem.Some(l.before.Error), mem.Some(l.after.Error)).Or(0)
	least := ""
	if l.before.AtLeast || l.after.AtLeast {
		least = "; processes that lived very shortly may have taken more"
	}
	how := ""
	switch {
	case delta == 0:
		how = "is the same"
	case max(delta, -delta) <= half:
		how = fmt.Sprintf("differs by %v, which is within the error of ± %v", mem.Bytes(max(delta, -delta)), mem.Bytes(half))
	case delta > 0:
		how = fmt.Sprintf("rose by %v", mem.Bytes(delta))
	default:
		how = fmt.Sprintf("fell by %v", mem.Bytes(-delta))
	}
	labels := string(l.before.Label)
	if other := string(l.after.Label); other != labels {
		labels += " and " + other
	}
	return fmt.Sprintf("The peak, %s, %s: %v before, %v after (%s%s)", l.what, how, mem.Bytes(l.before.Bytes),
		mem.Bytes(l.after.Bytes), labels, least)
}

// both is the error of a difference of two independent figures.
func both(a, b mem.Optional) mem.Optional {
	if !a.Known() && !b.Known() {
		return mem.Optional{}
	}
	return mem.Some(int64(math.Round(math.Hypot(float64(a.Or(0)), float64(b.Or(0))))))
}

func changeColumns(what string, label mem.Label, more ...report.Column) []report.Column {
	return append([]report.Column{report.TextColumn("what", what), report.BytesColumn("delta", "Change", label),
		report.BytesColumn("error", "±", label),
		report.BytesColumn("a", "Before", label), report.BytesColumn("b", "After", label)}, more...)
}

func change(a, b mem.Optional) mem.Optional {
	if !a.Known() || !b.Known() {
		return mem.Optional{}
	}
	return mem.Some(b.Or(0) - a.Or(0))
}

// figureTable has every figure that one of both has.
func figureTable(a, b *report.Report) report.Table {
	t := report.Table{Name: "figures", Title: "Peaks", Columns: changeColumns("Peak", "",
		report.TextColumn("label", "Label"), report.TextColumn("name", ""))}
	add := func(name, what string, before, after, half mem.Optional, label, other mem.Label) {
		text := string(label)
		switch {
		case !before.Known() && !after.Known():
			return
		case !before.Known():
			text = string(other)
		case after.Known() && other != label:
			text += " → " + string(other)
		}
		t.Add(what, change(before, after), half, before, after, text, name)
	}
	for i := range figures {
		f := &figures[i]
		p, q := &a.Headline.Peak, &b.Headline.Peak
		add(f.name, f.what, f.in(a), f.in(b), both(f.half(p), f.half(q)), f.label(a), f.label(b))
	}
	add("growth_per_step", "growth per step", a.Headline.Growth, b.Headline.Growth, mem.Optional{}, mem.Estimated,
		mem.Estimated)
	return t
}

// part is what rows of one name hold on one side.
type part struct {
	bytes    int64
	variance float64
}

// comparedSide is what one run held by name, and what that adds up to.
type comparedSide struct {
	parts map[string]part
	total int64
}

// sideOf gathers what was held by name.
func sideOf(all []report.Holding, name func(*report.Holding) string) comparedSide {
	side := comparedSide{parts: map[string]part{}}
	for i := range all {
		h := &all[i]
		p := side.parts[name(h)]
		side.parts[name(h)] = part{p.bytes + h.Bytes, p.variance + float64(h.Half)*float64(h.Half)}
		side.total += h.Bytes
	}
	return side
}

// changes fills a table from two sides; what a side's rows leave out of its total is in the last row.
func changes(t *report.Table, a, b comparedSide, wholeA, wholeB int64, rest string) {
	names := slices.Sorted(maps.Keys(a.parts))
	for name := range b.parts {
		if _, ok := a.parts[name]; !ok {
			names = append(names, name)
		}
	}
	value := func(s comparedSide, name string) mem.Optional {
		if p, ok := s.parts[name]; ok {
			return mem.Some(p.bytes)
		}
		return mem.Optional{}
	}
	delta := func(name string) int64 { return value(b, name).Or(0) - value(a, name).Or(0) }
	slices.SortFunc(names, func(p, q string) int {
		return cmp.Or(cmp.Compare(max(delta(q), -delta(q)), max(delta(p), -delta(p))), cmp.Compare(p, q))
	})
	for _, name := range names {
		var half mem.Optional
		if v := a.parts[name].variance + b.parts[name].variance; v > 0 {
			half = mem.Some(int64(math.Round(math.Sqrt(v))))
		}
		t.Add(name, delta(name), half, value(a, name), value(b, name))
	}
	if p, q := wholeA-a.total, wholeB-b.total; p != 0 || q != 0 {
		t.Add(rest, q-p, mem.Optional{}, p, q)
	}
}

// parts compares what the processes held at the peak. Processes of one kind are one part: their numbers differ from
// run to run.
func parts(a, b *report.Report) report.Table {
	t := report.Table{Name: "parts", Title: "What they held at the peak", Columns: changeColumns("Part", mem.Estimated)}
	sampled := knowsAllocations(a) && knowsAllocations(b)
	name := func(h *report.Holding) string {
		if h.Kind != "process" && !sampled { // where one heap was not sampled, what it held is not told apart
			return mainProcess
		}
		return h.Name
	}
	if len(a.Parts) == 0 || len(b.Parts) == 0 {
		return t
	}
	before, after := sideOf(a.Parts, name), sideOf(b.Parts, name)
	for _, side := range []comparedSide{before, after} {
		if p, ok := side.parts[mainProcess]; ok { // its RSS was read; only which part is what is estimated
			side.parts[mainProcess] = part{bytes: p.bytes}
		}
	}
	changes(&t, before, after, before.total, after.total, "")
	return t
}

const mainProcess = "the process that held most"

// knowsAllocations says whether the heap of the process that held most was sampled.
func knowsAllocations(r *report.Report) bool {
	return slices.ContainsFunc(r.Parts, func(h report.Holding) bool { return h.Kind == "allocations" })
}

const unlisted = "functions that a run does not list"

// lines compares the functions of the program that held the heap at its highest. Lines may move, so a function counts.
func lines(a, b *report.Report) report.Table {
	t := report.Table{Name: "lines", Title: "Functions that held the heap at its highest",
		Columns: changeColumns("Function", mem.Sampled)}
	name := func(h *report.Holding) string {
		if h.Function == "" || h.File == "" {
			return h.Name
		}
		return path.Base(h.File) + ":" + h.Function
	}
	if a.Lines == nil || b.Lines == nil || heapTraced(a) != heapTraced(b) {
		return t
	}
	if heapTraced(a) {
		t.Title, t.Columns = "Lines that held Python's memory at its highest", changeColumns("Line", mem.Measured)
	}
	before, after := sideOf(a.Lines.Lines, name), sideOf(b.Lines.Lines, name)
	changes(&t, before, after, max(a.Lines.Total, before.total), max(b.Lines.Total, after.total), unlisted)
	return t
}

// compareNotes say what else differs between two runs, and what is not compared.
func compareNotes(a, b *report.Report) (notes []string) {
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	if a.Imagined == nil && b.Imagined == nil { // where no kernel ran, times are those of the host alone
		if p, q := a.Headline.Duration, b.Headline.Duration; p > 0 && q > 0 {
			note("It took %s before, %s after.", report.Duration(p), report.Duration(q))
		}
		p, ok := a.Headline.StepTime.Get()
		if q, too := b.Headline.StepTime.Get(); ok && too {
			note("The median step took %s before, %s after.", report.Duration(p), report.Duration(q))
		}
	}
	if p, q := a.Headline.Steps, b.Headline.Steps; p != q {
		note("%s before, %s after: memory that grows with the steps is compared at different steps.",
			report.Counted(int64(p), "step"), report.Counted(int64(q), "step"))
	}
	if p, q := a.Headline.Ended, b.Headline.Ended; p != q && p.Text != "" && q.Text != "" {
		note("They ended differently: %s before, %s after.", p.Text, q.Text)
	}
	if p, q := a.Headline.Figure, b.Headline.Figure; p.Known() && q.Known() && p.What != q.What {
		note("By itself the run before is known by %v, the run after by %v: these are not of one kind, so another figure "+
			"leads here.", p, q)
	}
	if p, q := len(a.Processes), len(b.Processes); p != q {
		note("Processes that were seen: %d before, %d after.", p, q)
	}
	for _, side := range []struct {
		which string
		r     *report.Report
	}{{"before", a}, {"after", b}} {
		if !side.r.Headline.Complete {
			note("The recording of the run %s has no end: what came later is not known.", side.which)
		}
		if side.r.Lines == nil {
			note("The run %s names no lines that held the heap, so lines are not compared.", side.which)
		}
	}
	return notes
}
