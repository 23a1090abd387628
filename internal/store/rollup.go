package store

import (
	"io"
	"maps"

	"hightide/internal/mem"
	"hightide/internal/wire"
)

// rollup sums frames up to a row of the index, in constant memory: the writer feeds it as frames
// pass, Reindex from the file.
type rollup struct {
	info      mem.RunInfo
	peaks     map[uint32]*mem.Optional // series → the figure it raises
	trees     Run                      // peaks of the process tree
	single    Run                      // peaks of single processes, where the tree was not observed
	processes map[uint32]mem.Optional  // → the kernel's high-water mark
	steps     uint64
	ooms      int
	snapshots map[snapshotKey]bool
	drops     map[dropKey]uint64
	last      int64 // newest moment seen
	end       *mem.End
	damaged   bool
}

type dropKey struct {
	process uint32
	place   string
}

type snapshotKey struct {
	process uint32
	name    string
}

func newRollup() *rollup {
	return &rollup{peaks: map[uint32]*mem.Optional{}, processes: map[uint32]mem.Optional{}, drops: map[dropKey]uint64{}, snapshots: map[snapshotKey]bool{}}
}

func (r *rollup) add(f mem.Frame) {
	switch f := f.(type) {
	case mem.RunInfo:
		r.info = f
	case mem.Process:
		r.processes[f.ID] = f.MaxRSS
		r.seen(f.Start)
	case mem.SeriesDef:
		r.define(f)
	case mem.Samples:
		r.samples(f)
	case mem.StepTotal:
		r.steps = max(r.steps, f.Steps)
	case mem.HeapUse:
		r.seen(f.Time)
	case mem.Event:
		r.seen(f.Time)
		if f.Kind == "oom" && f.Facts["source"] != "malloc" { // after that the program went on
			r.ooms++
		}
	case mem.Snapshot:
		if f.Last && f.Format != profileFormat {
			r.snapshots[snapshotKey{f.Process, f.Name}] = true
		}
	case mem.Drop:
		r.drops[dropKey{f.Process, f.Place}] = f.Records
	case mem.End:
		r.seen(f.Time)
		r.end = &f
	}
}

// profileFormat is that of memory by line, which is kept as a snapshot is and is none.
const profileFormat = "pprof"

func (r *rollup) seen(time int64) { r.last = max(r.last, time) }

// define finds the figure that a series raises.
func (r *rollup) define(s mem.SeriesDef) {
	switch s.Name {
	case mem.SeriesTreeRSS:
		r.peaks[s.ID] = &r.trees.HostRSS
	case mem.SeriesTreePSS:
		r.peaks[s.ID] = &r.trees.HostPSS
	case mem.SeriesRSS:
		r.peaks[s.ID] = &r.single.HostRSS
	case mem.SeriesPSS:
		r.peaks[s.ID] = &r.single.HostPSS
	case mem.SeriesDeviceUsed:
		r.peaks[s.ID] = &r.trees.Device
	case mem.SeriesAllocated:
		r.peaks[s.ID] = &r.trees.Allocated
	case mem.SeriesReserved:
		r.peaks[s.ID] = &r.trees.Reserved
	}
}

func (r *rollup) samples(f mem.Samples) {
	if len(f.Times) > 0 {
		r.seen(f.Times[len(f.Times)-1])
	}
	if peak := r.peaks[f.Series]; peak != nil {
		for _, v := range f.Values {
			peak.Raise(mem.Some(v))
		}
	}
}

// row is what the run looks like so far. State is Finished or CutOff: who still runs is not in the
// recording.
func (r *rollup) row() Run {
	row := Run{
		ID: r.info.ID, Name: r.info.Name, Tags: maps.Clone(r.info.Tags), Verb: r.info.Verb, Label: r.info.Label,
		Command: r.info.Command, Host: r.info.Host.Name, Start: r.info.StartWall, State: CutOff,
		Steps: r.steps, Processes: len(r.processes), OOMs: r.ooms, Snapshots: len(r.snapshots), Damaged: r.damaged,
		HostRSS: r.trees.HostRSS, HostPSS: r.trees.HostPSS, Device: r.trees.Device,
		Allocated: r.trees.Allocated, Reserved: r.trees.Reserved,
	}
	if r.last > r.info.StartMono {
		row.Duration = r.last - r.info.StartMono
	}
	for _, kernel := range r.processes {
		r.single.HostRSS.Raise(kernel)
	}
	row.HostRSS.Raise(r.single.HostRSS) // one process never takes more than the tree
	row.HostPSS.Raise(r.single.HostPSS)
	for _, records := range r.drops {
		row.Dropped += records
	}
	if r.end != nil {
		row.State, row.ExitCode, row.Signal, row.Stopped = Finished, r.end.ExitCode, r.end.Signal, r.end.Reason == "stopped" || r.end.Reason == "left"
		row.Duration = r.end.Time - r.info.StartMono
	}
	return row
}

// sumUp reads a recording to its end; next is the number of its next block. An error is that it is
// no recording.
func sumUp(src io.Reader) (sum *rollup, next uint64, err error) {
	reader, err := wire.NewReader(src)
	if err != nil {
		return nil, 0, err
	}
	sum = newRollup()
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
