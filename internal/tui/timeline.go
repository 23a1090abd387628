package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// curves are what the timeline shows.
type curves struct {
	chosen, top int           // row of the list
	span        time.Duration // the newest of the run; 0: all of it
}

var spans = []time.Duration{0, time.Hour, 10 * time.Minute, 2 * time.Minute, 30 * time.Second, 10 * time.Second}

func timelineKeys() []binding {
	zoom := func(by int) func(*State) []ask {
		return func(s *State) []ask {
			at := max(slices.Index(spans, s.Curves.span), 0)
			s.Curves.span = spans[min(max(at+by, 0), len(spans)-1)]
			return nil
		}
	}
	return []binding{
		{[]string{"+", "="}, "+", "a shorter time", "Timeline", zoom(1)},
		{[]string{"-"}, "-", "a longer time", "Timeline", zoom(-1)},
		{[]string{"0"}, "0", "the whole run", "Timeline", func(s *State) []ask { s.Curves.span = 0; return nil }},
	}
}

// timeline draws one series large, the phases below it, and lists the others.
func timeline(s *State, width, height int) []string {
	lines := s.runLine(width)
	_, view := s.shownRun()
	if view == nil {
		return lines
	}
	all := s.seriesOf(view)
	if len(all) == 0 {
		return append(lines, paint(faint, "  nothing has been read yet, or the filter lets nothing through"))
	}
	chosen := min(s.Curves.chosen, len(all)-1)
	begin := view.Info.StartMono
	if s.Curves.span > 0 {
		begin = max(begin, view.Now-int64(s.Curves.span))
	}
	lines = append(lines, picture(view, all[chosen], begin, view.Now, width, min(max(height/3, 4), 14))...)
	lines = append(lines, s.eventLines(view, width, height)...)
	return append(lines, s.seriesTable(view, all, chosen, begin, width, height-len(lines)-1)...)
}

func moveTimeline(s *State, by int) []ask {
	if _, view := s.shownRun(); view != nil {
		s.Curves.chosen = min(max(s.Curves.chosen+by, 0), max(len(s.seriesOf(view))-1, 0))
	}
	return nil
}

// seriesOf are the series that the filter lets through: of the whole run first, then devices, sizes before counts,
// and last what hightide keeps for its own sums.
func (s *State) seriesOf(view *live.Run) (all []*live.Series) {
	for _, series := range view.Series {
		if len(series.Recent) > 0 && matches(s.Filter, seriesName(view, series)) {
			all = append(all, series)
		}
	}
	rank := func(s *live.Series) int {
		own := strings.HasPrefix(string(s.Name), "hightide.") ||
			slices.Contains([]mem.Quantity{mem.SeriesTreeShared, mem.SeriesTreeSegments, mem.SeriesTreePSSError}, s.Name)
		return slices.Index([]bool{!own && strings.HasPrefix(string(s.Name), "tree."), s.Name.OfDevice(), !own &&
			s.Unit == mem.UnitBytes, !own, true}, true)
	}
	slices.SortStableFunc(all, func(a, b *live.Series) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Process, b.Process), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// seriesName is what a series measures, and of what.
func seriesName(view *live.Run, s *live.Series) string {
	name := string(s.Name)
	for _, p := range view.Processes {
		if p.ID == s.Process && s.Process != 0 {
			name += fmt.Sprintf(", %s %d", who(p), p.PID)
		}
	}
	if s.Device != "" {
		name += " on " + s.Device
	}
	return clean(name)
}

// figure writes a value in its unit.
func figure(o mem.Optional, unit mem.Unit) string {
	value, ok := o.Get()
	if !ok {
		return "-"
	}
	if unit == mem.UnitBytes {
		return size(o)
	}
	return report.FormatCell(value, unit)
}

// picture is a curve with its scale, the phases and the time below it.
func picture(view *live.Run, s *live.Series, begin, end int64, width, height int) []string {
	const margin = 11
	columns := width - margin - 2
	values := s.Highest(begin, end, columns)
	high := max(slices.Max(values), 1)
	title := paint(strong, " "+seriesName(view, s)) + "  " + figure(s.Last(), s.Unit) +
		paint(faint, ", at most "+figure(s.Peak, s.Unit)+" ("+string(s.Label)+")")
	lines := []string{title}
	lines = append(lines, scaled(values, high, s.Unit, margin, height)...)
	lines = append(lines, pad("phase", margin-2, true)+" └"+phaseStrip(view, begin, end, columns))
	from, to := report.Duration(begin-view.Info.StartMono), report.Duration(end-view.Info.StartMono)
	return append(lines, strings.Repeat(" ", margin)+paint(faint,
		from+strings.Repeat(" ", max(columns-len(from)-len(to), 1))+to))
}

// scaled is a chart with its highest and lowest value beside it.
func scaled(values []int64, high int64, unit mem.Unit, margin, height int) (lines []string) {
	for i, l := range chart(values, high, height) {
		scale := ""
		if i == 0 {
			scale = figure(mem.Some(high), unit)
		} else if i == height-1 {
			scale = figure(mem.Some(0), unit)
		}
		lines = append(lines, pad(scale, margin-2, true)+" │"+paint(cyan, l))
	}
	return lines
}

// phaseLetters are how a phase shows without colours.
var phaseLetters = map[mem.Phase]string{mem.PhaseData: "d", mem.PhaseForward: "f", mem.PhaseBackward: "b",
	mem.PhaseOptimizer:  "o",
	mem.PhaseEvaluation: "e", mem.PhaseCheckpoint: "c", mem.PhaseUser: "u"}

// phaseStrip is which phase took most of each column, in the process that takes the steps.
func phaseStrip(view *live.Run, begin, end int64, columns int) string {
	taken := make([]map[mem.Phase]int64, columns)
	leader, width := view.Leader(), max(end-begin, 1)
	column := func(t int64) int {
		return min(max(int(float64(t-begin)/float64(width)*float64(columns)), 0), columns-1)
	}
	for _, span := range view.Spans {
		if span.Process != leader || phaseLetters[span.Phase] == "" || span.End < begin {
			continue
		}
		for at := column(span.Start); at <= column(span.End); at++ {
			if taken[at] == nil {
				taken[at] = map[mem.Phase]int64{}
			}
			from, to := begin+width*int64(at)/int64(columns), begin+width*int64(at+1)/int64(columns)
			taken[at][span.Phase] += max(min(span.End, to)-max(span.Start, from), 1)
		}
	}
	strip := ""
	for _, column := range taken {
		best, most := mem.PhaseNone, int64(0)
		for _, phase := range mem.Phases {
			if column[phase] > most {
				best, most = phase, column[phase]
			}
		}
		if best == mem.PhaseNone {
			strip += paint(faint, "─")
		} else {
			strip += paint(phaseInk(best), phaseLetters[best])
		}
	}
	return strip
}

// eventLines are what happened last.
func (s *State) eventLines(view *live.Run, width, height int) []string {
	lines := []string{""}
	n := min(len(view.Events), max(height/8, 1))
	for _, e := range view.Events[len(view.Events)-n:] {
		look := faint
		switch e.Kind {
		case "oom", "kill":
			look = red
		case "alert", "drop":
			look = yellow
		}
		lines = append(lines, pad(report.Duration(e.Time-view.Info.StartMono), 11, true)+"  "+paint(look,
			pad(e.Kind+"  "+clean(e.Text), width-14, false)))
	}
	if n > 0 {
		lines = append(lines, "")
	}
	return lines
}

// seriesTable lists the series, each with its newest value and its highest.
func (s *State) seriesTable(view *live.Run, all []*live.Series, chosen int, begin int64, width, height int) []string {
	columns := []column{{title: "SERIES", width: 34}, {title: "NOW", width: 10, right: true},
		{title: "HIGHEST", width: 10, right: true}, {title: "TREND", grows: true, width: 8}}
	from, to := window(len(all), height, chosen)
	var rows [][]cell
	for _, series := range all[from:to] {
		rows = append(rows, []cell{text(seriesName(view, series)), text(figure(series.Last(), series.Unit)),
			text(figure(series.Peak, series.Unit)),
			inked(cyan, spark(series.Highest(begin, view.Now, min(max(width-60, 8), 60))))})
	}
	lines := rowsOf(columns, rows, width, chosen-from, "")
	rowSpots(lines[1:], from-chosen)
	return lines
}
