package wire

import (
	"io"
	"maps"
	"slices"

	"hightide/internal/mem"
)

// Save writes a whole Run as a recording, the counterpart of Load: definitions first, then what is
// many in large blocks. Loading it gives the same Run, without its damage.
func Save(dst io.Writer, run *mem.Run) error {
	w, err := NewWriter(dst)
	if err != nil {
		return err
	}
	for f := range Frames(run) {
		if err := w.Write(f); err != nil {
			return err
		}
	}
	return w.Close()
}

// batch is how many items a frame of Frames holds at most.
const batch = 4096

// Frames takes a Run apart again, in an order in which Run.Add accepts it.
func Frames(run *mem.Run) func(yield func(mem.Frame) bool) {
	return func(yield func(mem.Frame) bool) {
		_ = definitions(run, yield) && columns(run, yield) && heaps(run, yield) && facts(run, yield)
	}
}

func definitions(run *mem.Run, yield func(mem.Frame) bool) bool {
	if !yield(run.Info) {
		return false
	}
	for _, p := range run.Processes {
		if !yield(*p) {
			return false
		}
	}
	for _, s := range run.Series {
		if !yield(s.SeriesDef) {
			return false
		}
	}
	for id, stack := range run.Stacks.Each {
		if !yield(mem.StackDef{ID: id, Locations: stack}) {
			return false
		}
	}
	return each(run.Modules, yield) && each(run.Models, yield)
}

func columns(run *mem.Run, yield func(mem.Frame) bool) bool {
	for _, s := range run.Series {
		for at := 0; at < len(s.Times); at += batch {
			end := min(at+batch, len(s.Times))
			if !yield(mem.Samples{Series: s.ID, Times: s.Times[at:end], Values: s.Values[at:end]}) {
				return false
			}
		}
	}
	for some := range run.Spans.Chunks(batch) {
		if !yield(some) {
			return false
		}
	}
	for some := range slices.Chunk(run.Steps, batch) {
		if !yield(mem.Steps(some)) {
			return false
		}
	}
	for _, process := range slices.Sorted(maps.Keys(run.Totals)) {
		if !yield(run.Totals[process]) {
			return false
		}
	}
	return each(run.Phases, yield)
}

// heaps puts the sites back to the moments at which they changed.
func heaps(run *mem.Run, yield func(mem.Frame) bool) bool {
	type moment struct {
		time int64
		step uint64
	}
	for _, process := range slices.Sorted(maps.Keys(run.Heap)) {
		h := run.Heap[process]
		changed := map[moment][]mem.SiteUse{}
		for _, stack := range slices.Sorted(maps.Keys(h.Sites)) {
			for _, p := range h.Sites[stack] {
				at := moment{p.Time, p.Step}
				changed[at] = append(changed[at], p.SiteUse)
			}
		}
		for _, p := range h.History {
			at := moment{p.Time, p.Step}
			if !yield(mem.HeapUse{Process: process, Time: p.Time, Step: p.Step, Live: p.Live, Variance: p.Variance, Absent: p.Absent, Sites: changed[at]}) {
				return false
			}
			delete(changed, at)
		}
		if h.Peak != nil && !yield(*h.Peak) {
			return false
		}
		if !each(h.Ages, yield) {
			return false
		}
	}
	return true
}

func facts(run *mem.Run, yield func(mem.Frame) bool) bool {
	if !each(run.Holders, yield) || !each(run.Events, yield) {
		return false
	}
	for _, s := range run.Snapshots {
		for at := 0; ; at += 1 << 20 {
			end := min(at+1<<20, len(s.Data))
			last := end == len(s.Data)
			if !yield(mem.Snapshot{Process: s.Process, Time: s.Time, Name: s.Name, Format: s.Format, Piece: s.Data[at:end], Last: last && s.Complete}) {
				return false
			}
			if last {
				break
			}
		}
	}
	for f := range run.Imagined.Frames {
		if !yield(f) {
			return false
		}
	}
	return each(run.Drops, yield) && (run.End == nil || yield(*run.End))
}

func each[F mem.Frame](frames []F, yield func(mem.Frame) bool) bool {
	for _, f := range frames {
		if !yield(f) {
			return false
		}
	}
	return true
}
