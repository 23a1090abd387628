package run

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/analyze/facts"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const sitesShown = 30

// leastAbsent is what a line must have allocated and not touched to be shown for that alone.
const leastAbsent = 16 * mem.MiB

// holding is what one line of one process held.
type holding struct {
	usage.Group
	process uint32
}

// sites lists the lines of the program that held the heap at its highest.
func sites(in *Input) (r report.Part) {
	var all []holding
	var total mem.Bytes
	peaks := map[uint32]mem.Bytes{}
	for _, p := range in.Run.Processes {
		h := in.Histories[p.ID]
		if h == nil {
			continue
		}
		peaks[p.ID] = h.Peak.Bytes
		total += h.Peak.Bytes
		for _, g := range usage.Groups(in.Names, h.AtPeak()) {
			all = append(all, holding{g, p.ID})
		}
	}
	if len(all) == 0 {
		return r
	}
	slices.SortStableFunc(all, func(a, b holding) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Site.File, b.Site.File),
			cmp.Compare(a.Site.Line, b.Site.Line))
	})
	sampled := all
	all = withoutNoise(slices.Clone(all), total)
	var absent mem.Bytes
	for _, h := range all {
		absent += h.Absent
	}
	several, label := in.severalHeaps(), in.HeapLabel()
	t := report.Table{
		Name: "sites", Title: "Lines that held the heap at its highest", Total: mem.Some(int64(total)),
		Note: "Estimates from a Poisson sample of the allocations; ± is half the 95 % interval. Blocks of 4 MiB and more " +
			"are all recorded; lines of less than 1 % that are smaller than their error are left out." + absentNote(absent),
		Columns: []report.Column{report.TextColumn("line", "line"), report.TextColumn("function", "function"),
			report.BytesColumn("bytes", "bytes", label),
			report.BytesColumn("error", "±", label), {Name: "share", Title: "share", Unit: mem.UnitMilli,
				Label: label},
			report.BytesColumn("absent", "not resident", label), report.CountColumn("samples", in.blocksName()),
			report.TextColumn("phase", "phase"), report.TextColumn("process", "process"), report.TextColumn("file", "file")},
	}
	if in.HeapTraced() {
		t.Title, t.Note = "Lines that held Python's memory at its highest", tracedSites
	}
	if several { // their peaks are not of one moment, so there is no sum to be a share of
		t.Note += " The share is of the heap of the line's own process."
	}
	if p := in.PSSPeak; several && p.Bytes > 0 && int64(total) > p.Bytes+p.Half {
		t.Note += fmt.Sprintf(" Together they are more than the %v that the processes took at one moment: each process is "+
			"shown at its own peak, and shared memory counts in each that maps it.", mem.Bytes(p.Bytes))
	}
	r.Lines = &report.HoldingLines{Total: int64(total),
		Unlisted: int64(in.unlisted(sampled, all[:min(len(all), sitesShown)]))}
	for _, h := range all[:min(len(all), sitesShown)] {
		share := int64(0)
		if peak := peaks[h.process]; peak > 0 {
			share = int64(h.Bytes) * 1000 / int64(peak)
		}
		half := usage.Half95(h.Variance, h.Bytes)
		r.Lines.Lines = append(r.Lines.Lines, report.Holding{Name: h.Site.Name, File: h.Site.File, Line: h.Site.Line,
			Function: h.Site.Function, Bytes: int64(h.Bytes), Half: int64(half), Label: label})
		t.Add(h.Site.Name, h.Site.Function, h.Bytes, half, share,
			facts.NonZero(mem.Some(int64(h.Absent))), h.Blocks, h.Phase, in.Whose(h.process, several), h.Site.File)
	}
	r.AddTable(t)
	in.threadsOfJAX(&r, all, total)
	in.smallObjects(&r, total)
	return r
}

// neverSampled is how many means of the sample a line may hold of which none was sampled, in 19 of 20 cases.
const neverSampled = 3

// unlisted is the most that lines of one function held together that are not listed, with the error of the sample.
func (in *Input) unlisted(all, listed []holding) (most mem.Bytes) {
	type line struct {
		file    string
		line    int
		process uint32
	}
	type function struct{ file, name string }
	shown := map[line]bool{}
	for _, h := range listed {
		shown[line{h.Site.File, h.Site.Line, h.process}] = true
	}
	sums := map[function]usage.Group{}
	for _, h := range all {
		if !shown[line{h.Site.File, h.Site.Line, h.process}] {
			of := function{h.Site.File, h.Site.Function[strings.LastIndexByte(h.Site.Function, '.')+1:]}
			sum := sums[of]
			sum.Bytes, sum.Variance = sum.Bytes+h.Bytes, sum.Variance+h.Variance
			sums[of] = sum
		}
	}
	for process := range in.Histories {
		most = max(most, mem.Rounded(neverSampled*usage.SamplingOf(in.Run, process).Mean))
	}
	for _, sum := range sums {
		most = max(most, sum.Bytes+usage.Half95(sum.Variance, sum.Bytes))
	}
	return most
}

// smallObjects says how much of the heap is memory that Python lays small objects in, where a program asks for much of
// it after its imports.
func (in *Input) smallObjects(r *report.Part, total mem.Bytes) {
	const least = 16 * mem.MiB
	var sum mem.Bytes
	for _, p := range in.Run.Processes {
		if h := in.Histories[p.ID]; h != nil {
			for _, use := range h.AtPeak() {
				if in.Run.Stacks.OfObjects(use.Stack) && !in.Run.Stacks.Importing(use.Stack) {
					sum += use.Bytes
				}
			}
		}
	}
	if sum >= least && sum >= total/10 {
		r.AddNote(fmt.Sprintf("%v of the heap at its highest (%s) were asked for to lay Python's small objects in, and stand at "+
			"the line that asked; objects of any line lie there. With PYTHONMALLOC=malloc in the environment each object is "+
			"sampled at its own line.", sum, mem.Sampled))
	}
}

// withoutNoise leaves out lines of little weight that are less than their error: another run would show others.
func withoutNoise(all []holding, total mem.Bytes) []holding {
	return slices.DeleteFunc(all, func(h holding) bool {
		return h.Absent < leastAbsent && h.Bytes*100 < total && 1.96*math.Sqrt(h.Variance) >= float64(h.Bytes)
	})
}

// threadsOfJAX says how to have lines where JAX allocates on threads of its own, which run no Python.
func (in *Input) threadsOfJAX(r *report.Part, all []holding, total mem.Bytes) {
	var native mem.Bytes
	for _, h := range all {
		// Keras imports jax, whatever it runs on: what counts is whose code allocates.
		if p := in.Run.Process(h.process); h.Site.Native && p != nil && p.Frameworks[frameworks.JAX] != "" && in.ofJAX(h.Stack) {
			native += h.Bytes
		}
	}
	if native > total/10 {
		r.AddNote(fmt.Sprintf("%v of the heap were allocated by JAX's own threads, which run no Python: %s. "+
			"--snapshot-on exit lists by line the arrays that are alive at the end.", native, frameworks.LinesOfThreads))
	}
}

// ofJAX says whether a native stack goes through JAX's own library.
func (in *Input) ofJAX(stack uint32) bool {
	return slices.ContainsFunc(in.Run.Stacks.Frames(stack), frameworks.Of(frameworks.JAX).Owns)
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
