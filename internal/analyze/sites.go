package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

const sitesShown = 30

// holding is what the stacks that lead to one line of one process held.
type holding struct {
	place    place
	process  uint32
	stack    uint32 // the largest
	largest  mem.Bytes
	live     mem.Bytes
	count    uint64
	variance float64
	phase    mem.Phase
}

// sites lists the lines of the program that held the heap at its highest.
func sites(in *Input, r *report.Report) {
	var all []holding
	var total mem.Bytes
	for _, p := range in.Run.Processes {
		h := in.Run.Heap[p.ID]
		if h == nil || h.Peak == nil {
			continue
		}
		total += h.Peak.Live
		all = append(all, in.holdings(p.ID, h.Peak.Sites)...)
	}
	if len(all) == 0 {
		return
	}
	slices.SortStableFunc(all, func(a, b holding) int {
		return cmp.Or(cmp.Compare(b.live, a.live), cmp.Compare(a.place.File, b.place.File), cmp.Compare(a.place.Line, b.place.Line))
	})
	all = withoutNoise(all, total)
	t := report.Table{
		Name: "sites", Title: "Lines that held the heap at its highest", Total: mem.Some(int64(total)),
		Note: "Estimates from a Poisson sample of the allocations; ± is half the 95 % interval. Blocks of 4 MiB and more are all recorded; lines of less than 1 % that are smaller than their error are left out.",
		Columns: []report.Column{report.TextColumn("line", "line"), report.TextColumn("function", "function"), report.BytesColumn("bytes", "bytes", mem.Sampled),
			report.BytesColumn("error", "±", mem.Sampled), {Name: "share", Title: "share", Unit: mem.UnitMilli, Label: mem.Sampled},
			report.CountColumn("samples", "samples"), report.TextColumn("phase", "phase"), report.TextColumn("process", "process"), report.TextColumn("file", "file")},
	}
	several := in.severalHeaps()
	for _, h := range all[:min(len(all), sitesShown)] {
		process := ""
		if several {
			process = in.processName(h.process)
		}
		share := int64(0)
		if total > 0 {
			share = int64(h.live) * 1000 / int64(total)
		}
		t.Rows = append(t.Rows, []report.Cell{h.place.name(), report.TextCell(h.place.Function), int64(h.live), int64(half95(h.variance, h.live)), share,
			int64(h.count), report.TextCell(string(h.phase)), report.TextCell(process), report.TextCell(h.place.File)})
	}
	r.AddTable(t)
	in.threadsOfJAX(r, all, total)
}

// withoutNoise leaves out lines of little weight that are less than their error: another run would show others.
func withoutNoise(all []holding, total mem.Bytes) []holding {
	return slices.DeleteFunc(all, func(h holding) bool { return h.live*100 < total && 1.96*math.Sqrt(h.variance) >= float64(h.live) })
}

// threadsOfJAX says how to have lines where JAX allocates on threads of its own, which run no Python.
func (in *Input) threadsOfJAX(r *report.Report, all []holding, total mem.Bytes) {
	var native mem.Bytes
	for _, h := range all {
		if p := in.Run.Process(h.process); h.place.Native && p != nil && p.Frameworks["jax"] != "" {
			native += h.live
		}
	}
	if native > total/10 {
		r.AddNote(fmt.Sprintf("%v of the heap were allocated by JAX's own threads, which run no Python: with "+
			"jax.config.update(\"jax_cpu_enable_async_dispatch\", False) before the first computation they are blamed on lines.", native))
	}
}

func (p place) name() string {
	switch {
	case p.File == report.UnknownPlace:
		return "(no stack)"
	case p.Native:
		return report.LineName(p.Location) + " (native)"
	case !p.user: // base.py says little; sklearn/base.py does
		if at := installed.FindAllStringIndex(p.File, -1); len(at) > 0 {
			return fmt.Sprintf("%s:%d", p.File[at[len(at)-1][1]:], p.Line)
		}
	}
	return report.LineName(p.Location)
}

func (in *Input) severalHeaps() bool {
	n := 0
	for _, h := range in.Run.Heap {
		if h.Peak != nil {
			n++
		}
	}
	return n > 1
}

// holdings sums a complete picture of a heap by line.
func (in *Input) holdings(process uint32, uses []mem.SiteUse) []holding {
	s := in.samplingOf(process)
	index := map[place]int{}
	var all []holding
	for _, u := range uses {
		at := in.places.of(u.Stack)
		i, ok := index[at]
		if !ok {
			i = len(all)
			index[at] = i
			all = append(all, holding{place: at, process: process})
		}
		h := &all[i]
		h.live += u.Live
		h.count += u.Count
		h.variance += s.variance(u.Live, u.Count)
		if u.Live > h.largest {
			h.stack, h.largest, h.phase = u.Stack, u.Live, u.Phase
		}
	}
	return all
}
