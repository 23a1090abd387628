package tui

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// frameworkView makes the view of a framework. It shows what it holds in each process of the run: its allocators, its
// model, its phases.
func frameworkView(of *frameworks.Framework) func(s *State, width, height int) []string {
	return func(s *State, width, _ int) []string {
		lines := s.runLine(width)
		_, view := s.shownRun()
		if view == nil {
			return lines
		}
		found := slices.DeleteFunc(slices.Clone(view.Processes),
			func(p *mem.Process) bool { return p.Frameworks[of.Name] == "" })
		if len(found) == 0 {
			return append(lines, "  No process of this run has imported "+of.Title+", as far as is recorded.", "",
				paint(faint, "  [ and ] go to another run."))
		}
		alive := slices.DeleteFunc(slices.Clone(found), func(p *mem.Process) bool { return p.End.Known() })
		if len(alive) > 0 {
			found = alive
		}
		lines = append(lines, processFacts(of, found, view, width)...)
		lines = append(lines, allocators(of, found, view, width)...)
		lines = append(lines, models(found, view, width)...)
		return append(lines, phaseTable(found, view, width)...)
	}
}

func holds(all []*mem.Process, id uint32) bool {
	return slices.ContainsFunc(all, func(p *mem.Process) bool { return p.ID == id })
}

// who is how a process of a run is called.
func who(p *mem.Process) string {
	return firstOf(p.RankName(), p.Role, "process")
}

// processFacts are versions and settings, one process a line.
func processFacts(of *frameworks.Framework, found []*mem.Process, view *live.Run, width int) []string {
	columns := []column{{title: "PROCESS", width: 12}, {title: "PID", width: 7, right: true},
		{title: of.Title, width: 12}, {title: "STEPS", width: 7, right: true},
		{title: "RSS", width: 8, right: true}, {title: "HEAP ~", width: 8, right: true},
		{title: "TREND", width: 12, least: 100}, {title: "SETTINGS", grows: true, width: 6}}
	var rows [][]cell
	for _, p := range found {
		curve := ""
		if rss := view.Find(p.ID, mem.SeriesRSS); rss != nil {
			curve = trend(&rss.Curve, rss.Recent, 12)
		}
		heap := mem.Optional{}
		if use, ok := view.Heap[p.ID]; ok {
			heap = mem.Some(int64(use.Live))
		}
		rows = append(rows, []cell{text(who(p)), text(fmt.Sprint(p.PID)), text(p.Frameworks[of.Name]),
			text(report.Count(int64(view.Totals[p.ID].Steps))),
			text(size(view.Last(p.ID, mem.SeriesRSS))), text(size(heap)), inked(cyan, curve), dimmed(facts(p))})
	}
	return append(rowsOf(columns, rows, width, -1, ""), "")
}

func facts(p *mem.Process) string {
	var words []string
	for key, n := range p.Numbers {
		words = append(words, clean(fmt.Sprintf("%s %d", key, n)))
	}
	for key, value := range p.Facts {
		if key == "executable" { // as long as a path, and in the overview
			continue
		}
		words = append(words, clean(key+" "+value))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// allocators are the figures of the framework's own allocators, one device a line.
func allocators(of *frameworks.Framework, found []*mem.Process, view *live.Run, width int) []string {
	type place struct {
		process uint32
		device  string
	}
	var places []place
	figures := map[place]map[mem.Quantity]*live.Series{}
	for _, series := range view.Series {
		if !strings.HasPrefix(string(series.Name), "allocator.") || series.Framework != of.Name && series.Framework != "" ||
			!holds(found, series.Process) {
			continue
		}
		at := place{series.Process, series.Device}
		if figures[at] == nil {
			figures[at] = map[mem.Quantity]*live.Series{}
			places = append(places, at)
		}
		figures[at][series.Name] = series
	}
	if len(places) == 0 {
		return []string{paint(faint,
			"  "+of.Title+" reported no allocator on a device in this run: it works in host memory."), ""}
	}
	columns := []column{{title: "ALLOCATOR", width: 12}, {title: "ON", width: 8},
		{title: "ALLOCATED", width: 9, right: true}, {title: "RESERVED", width: 8, right: true},
		{title: "PEAK", width: 8, right: true}, {title: "ACTIVE", width: 8, right: true, least: 90},
		{title: "SPLIT", width: 8, right: true, least: 90},
		{title: "RETRIES", width: 7, right: true, least: 80}, {title: "OOM", width: 4, right: true, least: 80},
		{title: "ALLOCATED, TREND", grows: true, width: 6}}
	var rows [][]cell
	for _, at := range places {
		f := figures[at]
		last := func(name mem.Quantity) mem.Optional {
			if f[name] == nil {
				return mem.Optional{}
			}
			return f[name].Last()
		}
		peak, curve := mem.Optional{}, ""
		if a := f[mem.SeriesAllocated]; a != nil {
			peak, curve = a.Peak, trend(&a.Curve, a.Recent, min(max(width-96, 8), 40))
		}
		rows = append(rows, []cell{text(nameOf(found, at.process)), text(at.device), text(size(last(mem.SeriesAllocated))),
			text(size(last(mem.SeriesReserved))), text(size(peak)),
			text(size(last(mem.SeriesActive))), text(size(last(mem.SeriesInactiveSplit))),
			text(number(last(mem.SeriesRetries))), text(number(last(mem.SeriesOOMs))), inked(cyan, curve)})
	}
	return append(rowsOf(columns, rows, width, -1, ""), "")
}

func nameOf(found []*mem.Process, id uint32) string {
	for _, p := range found {
		if p.ID == id {
			return who(p)
		}
	}
	return ""
}

func number(o mem.Optional) string {
	if n, ok := o.Get(); ok {
		return report.Count(n)
	}
	return "-"
}

// models are what the models themselves take, and the largest of their parts.
func models(found []*mem.Process, view *live.Run, width int) []string {
	var rows [][]cell
	for _, m := range view.Models {
		if holds(found, m.Process) {
			rows = append(rows, []cell{text(nameOf(found, m.Process)), text(m.Device), text(size(m.Parameters)),
				text(size(m.Gradients)), text(size(m.Optimizer)), text("")})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	columns := []column{{title: "MODEL", width: 12}, {title: "ON", width: 8}, {title: "PARAMS", width: 9, right: true},
		{title: "GRADS", width: 8, right: true},
		{title: "OPTIMIZER", width: 9, right: true}, {title: "", grows: true, width: 1}}
	return append(rowsOf(columns, rows, width, -1, ""), "")
}

// phaseTable is where the time goes and where memory is highest.
func phaseTable(found []*mem.Process, view *live.Run, width int) []string {
	all := slices.DeleteFunc(slices.Clone(view.Phases), func(p mem.PhaseStats) bool {
		return !holds(found, p.Process) || p.Count == 0
	})
	if len(all) == 0 {
		return nil
	}
	longest := int64(1)
	for _, p := range all {
		longest = max(longest, p.Total)
	}
	columns := []column{{title: "PHASE", width: 12}, {title: "OF", width: 18}, {title: "COUNT", width: 7, right: true},
		{title: "MEAN", width: 8, right: true},
		{title: "RSS PEAK", width: 8, right: true}, {title: "DEVICE", width: 8, right: true, least: 90},
		{title: "TIME", grows: true, width: 6}}
	var rows [][]cell
	for _, p := range all {
		rows = append(rows, []cell{inked(phaseInk(p.Phase), string(p.Phase)),
			text(firstOf(p.Name, nameOf(found, p.Process))), text(report.Count(int64(p.Count))),
			text(report.Duration(p.Total / int64(p.Count))), text(size(p.RSSPeak)), text(size(p.DevicePeak)),
			inked(phaseInk(p.Phase), strings.Repeat("█", int(min(max(width-70, 8), 30)*int(p.Total*100/longest)/100)))})
	}
	return rowsOf(columns, rows, width, -1, "")
}
