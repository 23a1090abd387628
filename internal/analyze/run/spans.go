package run

import (
	"cmp"
	"slices"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const (
	spansShown     = 60
	spanLinesShown = 5 // of each span
	// spanSlack is how long before a span the heap may have been read last, for its lines to be told.
	spanSlack = int64(20 * time.Millisecond)
	// leastSpanShare of what a span's heap rose by is the least that a line is named for.
	leastSpanShare = 0.01
)

const spansNote = "A rise is from a span's beginning to its highest " +
	"point; net is what a " +
	"pass left behind, on average. Memory is that of the whole process: what other threads did meanwhile is in it."

// userSpans shows the spans that the program named, and the lines that held what memory rose by in them.
func userSpans(in *Input) (r report.Part) {
	all := in.sortedStats(func(s *mem.PhaseStats) bool { return s.Phase == mem.PhaseUser })
	if len(all) == 0 {
		return r
	}
	slices.SortStableFunc(all, func(a, b *mem.PhaseStats) int {
		return cmp.Or(cmp.Compare(a.Process, b.Process), cmp.Compare(b.Total, a.Total))
	})
	note, ofDevice := "What the program named with hightide.span. "+spansNote, ""
	if in.Run.Serves() {
		note = "The steps of the server's start, and what the program named with hightide.span. " + spansNote
	}
	several := in.severalSteppers()
	t := report.Table{
		Name: "spans", Title: "Spans",
		Columns: append([]report.Column{report.TextColumn("span", "span"), report.TextColumn("process", "process"),
			report.CountColumn("process_id", "")}, stayColumns(in.Label())...),
	}
	for _, s := range all[:min(len(all), spansShown)] {
		if s.DevicePeak.Known() {
			ofDevice = deviceNote
		}
		t.Add(append([]any{s.Name, in.Whose(s.Process, several), s.Process}, stayCells(s)...)...)
	}
	t.Note = note + ofDevice
	r.AddTable(t)
	in.spanLines(&r, several)
	return r
}

// spanRise is the stay of one span in which the heap rose most, of those whose beginning was read.
type spanRise struct {
	span     *mem.Span
	from, to usage.Moment
	bytes    mem.Bytes
}

// spanLines lists, for the stay of each span in which the heap rose most, the lines that it rose by.
func (in *Input) spanLines(r *report.Part, several bool) {
	t := report.Table{
		Name: "span-lines", Title: "Lines that held what spans took",
		Note: "Of each span the stay in which the heap rose most: what each line held at its highest beyond what it held " +
			"at the stay's " +
			"beginning. Estimates from a sample; ± is half the 95 % interval.",
		Columns: []report.Column{report.TextColumn("span", "span"), report.TextColumn("line", "line"),
			report.TextColumn("function", "function"),
			report.BytesColumn("bytes", "bytes", in.HeapLabel()), report.BytesColumn("error", "±", in.HeapLabel()),
			report.TextColumn("process", "process"),
			report.TextColumn("file", "file"), report.CountColumn("number", ""), report.CountColumn("process_id", "")},
	}
	if in.HeapTraced() {
		t.Note = "Of each span the stay in which Python's memory rose most: what each line held at its highest beyond what " +
			"it held at the stay's beginning, as far as a look by tracemalloc came within it."
	}
	for _, rise := range in.spanRises() {
		h := in.Histories[rise.span.Process]
		shown := 0
		for _, g := range usage.Groups(in.Names, usage.Rise(h, rise.from, rise.to)) {
			error := usage.Half95(g.Variance, g.Bytes)
			if g.Bytes <= error || float64(g.Bytes) < leastSpanShare*float64(rise.bytes) || shown == spanLinesShown {
				continue
			}
			shown++
			t.Add(rise.span.Name, g.Site.Name, g.Site.Function, g.Bytes, error, in.Whose(rise.span.Process, several),
				g.Site.File, g.Site.Line, rise.span.Process)
		}
	}
	if len(t.Rows) > 0 {
		r.AddTable(t)
	}
}

// spanRises finds that stay of each span, most bytes first.
func (in *Input) spanRises() []spanRise {
	type key struct {
		process uint32
		name    string
	}
	best := map[key]int{}
	var all []spanRise
	for s := range in.Run.Spans.User() {
		h := in.Histories[s.Process]
		if h == nil {
			continue
		}
		span := *s
		rise, ok := in.riseIn(h, &span)
		if !ok || rise.bytes <= 0 {
			continue
		}
		k := key{s.Process, s.Name}
		if at, seen := best[k]; !seen {
			best[k] = len(all)
			all = append(all, rise)
		} else if rise.bytes > all[at].bytes {
			all[at] = rise
		}
	}
	slices.SortStableFunc(all, func(a, b spanRise) int { return cmp.Compare(b.bytes, a.bytes) })
	return all[:min(len(all), spansShown)]
}

// riseIn looks for the highest reading of the heap in a span, of those without pages that were never touched. Not ok:
// none was made at its beginning, or none within it. Before its first reading a heap held nothing that is known.
func (in *Input) riseIn(h *usage.History, s *mem.Span) (spanRise, bool) {
	from := h.MomentAt(s.Start)
	last := h.MomentAt(s.End)
	if from >= 0 && s.Start-h.TimeOf(from) > spanSlack || last <= from {
		return spanRise{}, false
	}
	heap := in.Run.Heap[s.Process].History
	highest := usage.Moment(-1)
	for m := from + 1; m <= last; m++ {
		if !in.WithUntouched(s.Process, heap[m]) && (highest < 0 || heap[m].Live > heap[highest].Live) {
			highest = m
		}
	}
	if highest < 0 {
		return spanRise{}, false
	}
	bytes := heap[highest].Live
	if from >= 0 {
		bytes -= heap[from].Live
	}
	return spanRise{s, from, highest, bytes}, true
}
