package store

import (
	"io"
	"maps"
	"slices"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/wire"
)

// rollup sums frames up to a row of the index: the writer feeds it as frames pass, Reindex from the file. It keeps a
// run of what a row needs: no spans, stacks, heaps or contents of snapshots, and of most series the highest reading.
type rollup struct {
	run     *mem.Run
	bounds  map[uint32]bool // series by which the PSS of the tree is bounded
	whole   bool            // keep every reading of those, however many: the run has ended
	read    int             // how many are kept
	last    int64           // newest moment seen
	damaged bool
}

func newRollup(whole bool) *rollup {
	return &rollup{run: mem.NewRun(), whole: whole, bounds: map[uint32]bool{}}
}

// boundsKept is how many readings of the tree a run in the making keeps, so that its figure is the one that its page
// has. Of those that come later it keeps the highest of each second, until it has ended.
const boundsKept = 1 << 18

func (r *rollup) add(f mem.Frame) {
	switch f := f.(type) {
	case mem.Spans, mem.PhaseStats, mem.Steps, mem.StackDef, mem.HeapAges, mem.Holder, mem.Cell, mem.Module, mem.ModelUse:
		return
	case mem.HeapUse:
		r.seen(f.Time)
		return
	case mem.Samples:
		r.samples(f)
		return
	case mem.SeriesDef:
		r.bounds[f.ID] = f.Process == 0 && slices.Contains(boundsOf, f.Name)
	case mem.Snapshot:
		f.Piece = nil
		_ = r.run.Add(f)
		return
	case mem.Process:
		r.seen(f.Start)
	case mem.Event:
		r.seen(f.Time)
	case mem.End:
		r.seen(f.Time)
	}
	_ = r.run.Add(f) // what cannot be taken in changes nothing
}

// boundsOf are the series that bound what the processes took together.
var boundsOf = []mem.Quantity{
	mem.SeriesTreePSS, mem.SeriesTreePSSError, mem.SeriesTreeShared, mem.SeriesTreeSegments, mem.SeriesTreeRSS,
}

func (r *rollup) seen(time int64) { r.last = max(r.last, time) }

func (r *rollup) samples(f mem.Samples) {
	if len(f.Times) > 0 {
		r.seen(f.Times[len(f.Times)-1])
	}
	if !r.bounds[f.Series] {
		r.run.Raise(f)
		return
	}
	peak := (&mem.Series{Values: f.Values}).Peak()
	if !r.whole && r.read > boundsKept && peak >= 0 && len(f.Times) == len(f.Values) {
		f.Times, f.Values = f.Times[peak:peak+1], f.Values[peak:peak+1]
	}
	r.read += len(f.Times)
	_ = r.run.Add(f)
}

// row is what the run looks like so far. State is Finished or CutOff: who still runs is not in the
// recording.
func (r *rollup) row() Run {
	run, said := r.run, facts.Conclude(r.run)
	row := Run{
		ID: run.Info.ID, Name: run.Info.Name, Tags: maps.Clone(run.Info.Tags), Verb: run.Info.Verb, Label: run.Info.Label,
		Command: run.Info.Command, Host: run.Info.Host.Name, Start: run.Info.StartWall, Steps: run.StepCount(),
		Processes: len(run.Processes),
		State:     CutOff, Damaged: r.damaged, Figure: said.Figure, Ended: said.Ending,
		Allocated: said.Allocated, Reserved: said.Reserved, Device: said.DeviceUsed,
	}
	if git := run.Info.Git; git != nil {
		row.GitCommit, row.GitDirty = git.Commit, git.Dirty
	}
	if r.last > run.Info.StartMono {
		row.Duration = r.last - run.Info.StartMono
	}
	r.peaks(&row)
	for i := range run.Events {
		if run.Events[i].RanOut() {
			row.OOMs++
		}
	}
	for _, s := range run.Snapshots {
		if s.Complete && !s.IsProfile() {
			row.Snapshots++
		}
	}
	for _, d := range run.Drops {
		row.Dropped += d.Records
	}
	if run.Found != nil {
		row.Findings = mem.Some(int64(run.Found.Findings))
		row.keepFigures(run.Found.Figures)
		if run.Found.Places != nil {
			row.keepPlaces(run.Found.Places)
		}
	}
	if end := run.End; end != nil {
		row.State = Finished
		row.ExitCode, row.Signal, row.Stopped = end.ExitCode, end.Signal, end.Reason == "stopped" || end.Reason == "left"
		row.Duration = end.Time - run.Info.StartMono
	}
	return row
}

// peaks are the highest of each figure of the host that is listed beside the one that a run is known by.
func (r *rollup) peaks(row *Run) {
	places := map[mem.Quantity]*mem.Optional{
		mem.SeriesTreeRSS: &row.HostRSS, mem.SeriesRSS: &row.HostRSS, mem.SeriesTreePSS: &row.HostPSS,
		mem.SeriesPSS: &row.HostPSS,
	}
	for _, s := range r.run.Series {
		at := places[s.Name]
		if at != nil && len(s.Values) > 0 {
			at.Raise(mem.Some(s.Values[s.Peak()]))
		}
	}
	for _, p := range r.run.Processes {
		row.HostRSS.Raise(p.MaxRSS) // one process never takes more than the tree
	}
}

// sumUp reads a recording to its end; next is the number of its next block. An error is that it is
// no recording.
func sumUp(src io.Reader, whole bool) (sum *rollup, next uint64, err error) {
	reader, err := wire.NewReader(src)
	if err != nil {
		return nil, 0, err
	}
	sum = newRollup(whole)
	for {
		f, err := reader.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, 0, err
		}
		sum.add(f)
	}
	sum.damaged = len(reader.Damage()) > 0
	return sum, reader.Sequence(), nil
}
