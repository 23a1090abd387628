package wire

import (
	"cmp"
	"fmt"
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
			if !yield(mem.HeapUse{Process: process, Time: p.Time, Step: p.Step, Live: p.Live, Variance: p.Variance,
				Absent: p.Absent, Sites: changed[at]}) {
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
	if !each(run.Cells, yield) || !each(run.Holders, yield) || !each(run.Events, yield) {
		return false
	}
	for _, s := range run.Snapshots {
		for at := 0; ; at += 1 << 20 {
			end := min(at+1<<20, len(s.Data))
			last := end == len(s.Data)
			if !yield(mem.Snapshot{Process: s.Process, Time: s.Time, Name: s.Name, Format: s.Format, Piece: s.Data[at:end],
				Last: last && s.Complete}) {
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
	return each(run.Drops, yield) && (run.End == nil || yield(*run.End)) && (run.Found == nil || yield(*run.Found))
}

func each[F mem.Frame](frames []F, yield func(mem.Frame) bool) bool {
	for _, f := range frames {
		if !yield(f) {
			return false
		}
	}
	return true
}

// maxWeight bounds the memory that one recording may take once it is loaded.
const maxWeight = 4 << 30

// Load reads a whole recording. What could not be read is in Damage of the Run; the error is that
// there is no recording, that it is of a newer version, or beyond every limit.
func Load(src io.Reader) (*mem.Run, error) {
	r, err := NewReader(src)
	if err != nil {
		return nil, err
	}
	run, err := collect(r)
	if err != nil {
		return nil, err
	}
	return run, nil
}

func collect(r *Reader) (*mem.Run, error) {
	run := mem.NewRun()
	r.decoder.scratch = &scratch{} // the Run copies the columns of every frame
	refused := map[string]*mem.Damage{}
	weight := int64(0)
	for {
		f, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read recording: %w", err)
		}
		if weight += weigh(f, r.last); weight > maxWeight {
			return nil, fmt.Errorf("read recording: %w: it would take more than %v of memory", ErrTooLarge, mem.Bytes(maxWeight))
		}
		if err := run.Add(f); err != nil {
			refuse(refused, r, err.Error())
		}
	}
	run.Damage = r.Damage()
	for _, d := range refused {
		run.Damage = append(run.Damage, *d)
	}
	slices.SortStableFunc(run.Damage, func(a, b mem.Damage) int { return cmp.Compare(a.Offset, b.Offset) })
	if n := r.Unknown(); n > 0 {
		run.Damage = append(run.Damage,
			mem.Damage{Text: fmt.Sprintf("%d facts are of kinds that only a newer hightide knows", n)})
	}
	return run, nil
}

// refuse notes a frame that makes no sense, as when the definition before it was damaged: once for
// each reason.
func refuse(refused map[string]*mem.Damage, r *Reader, text string) {
	if d := refused[text]; d != nil {
		d.Bytes += int64(r.last)
	} else if len(refused) < maxDamage {
		refused[text] = &mem.Damage{Offset: r.at, Bytes: int64(r.last), Text: text}
	}
}

// weigh is about what a frame takes in a Run.
func weigh(f mem.Frame, payload int) int64 {
	switch f := f.(type) {
	case mem.Samples:
		return 16*int64(len(f.Times)) + 64
	case mem.Spans:
		return 160 * int64(len(f))
	case mem.Steps:
		return 104 * int64(len(f))
	case mem.StackDef:
		return 64*int64(len(f.Locations)) + 128
	case mem.HeapAges:
		return 8*int64(payload) + 128
	case mem.HeapUse:
		return 96*int64(len(f.Sites)) + 128
	}
	return 512 + 2*int64(payload)
}
