// Package live keeps what a run that is being recorded looks like now: the newest of everything, and a history whose
// size does not grow with the run.
//
//	store.Batch ──▶ mem.Frame ──▶ Run.Add ──▶ newest values, curves, events ──▶ a view
//
// It is for those who watch. What is said of a recording (analyze/run) is made of the whole of it. Everything is
// a plain value.
package live

import (
	"slices"

	"hightide/internal/mem"
)

const (
	keptEvents = 200
	keptSpans  = 2000
	keptSteps  = 240
)

// Run is a run while it is recorded.
type Run struct {
	Info      mem.RunInfo
	Processes []*mem.Process // by ID
	Series    []*Series      // in order of definition
	Spans     []mem.Span     // the newest, in order of their end
	Steps     []mem.Step     // the newest
	Totals    map[uint32]mem.StepTotal
	Phases    []mem.PhaseStats
	Modules   []mem.Module
	Models    []mem.ModelUse
	Heap      map[uint32]mem.HeapUse // by process, without its sites
	Holders   []mem.Holder
	Events    []mem.Event    // the newest
	Kinds     map[string]int // how many events there were since the run began, by kind
	Drops     []mem.Drop
	Damage    []mem.Damage
	End       *mem.End
	Now       int64 // the newest time of any frame
	Imagined  bool
	Setup     mem.ImaginedSetup // of an imagined run

	series map[uint32]*Series
}

// Series is a quantity of a process or a device, as a curve.
type Series struct {
	mem.SeriesDef
	Curve
}

// New is a run of which nothing is known.
func New() *Run {
	return &Run{Totals: map[uint32]mem.StepTotal{}, Heap: map[uint32]mem.HeapUse{}, Kinds: map[string]int{},
		series: map[uint32]*Series{}}
}

// Add takes in a frame. What does not concern a view, or makes no sense, is passed over.
func (r *Run) Add(frame mem.Frame) {
	switch f := frame.(type) {
	case mem.RunInfo:
		r.Info = f
		r.Imagined = f.Label == mem.Imagined
		r.at(f.StartMono)
	case mem.Process:
		r.Processes = replace(r.Processes, f)
		r.at(f.Start)
	case mem.SeriesDef:
		r.define(f)
	case mem.Samples:
		r.sample(f)
	case mem.Spans:
		r.Spans = newest(append(r.Spans, f...), keptSpans)
	case mem.Steps:
		r.Steps = newest(append(r.Steps, f...), keptSteps)
	case mem.StepTotal:
		r.Totals[f.Process] = f
	case mem.PhaseStats:
		r.Phases = keep(r.Phases, f, func(o mem.PhaseStats) bool {
			return o.Process == f.Process && o.Phase == f.Phase &&
				o.Name == f.Name
		})
	case mem.Module:
		r.Modules = keep(r.Modules, f, func(o mem.Module) bool { return o.Process == f.Process && o.Name == f.Name })
	case mem.ModelUse:
		r.Models = keep(r.Models, f, func(o mem.ModelUse) bool { return o.Process == f.Process && o.Device == f.Device })
	default:
		r.addRare(frame)
	}
}

// addRare takes in the frames that come now and then.
func (r *Run) addRare(frame mem.Frame) {
	switch f := frame.(type) {
	case mem.ImaginedSetup:
		r.Setup = f
	case mem.HeapUse:
		if !f.Peak {
			f.Sites = nil
			r.Heap[f.Process] = f
		}
		r.at(f.Time)
	case mem.Holder:
		r.Holders = keep(r.Holders, f, func(o mem.Holder) bool {
			return o.Process == f.Process && o.Kind == f.Kind &&
				o.Name == f.Name
		})
	case mem.Event:
		r.Events = newest(append(r.Events, f), keptEvents)
		r.Kinds[f.Kind]++
		r.at(f.Time)
	case mem.Drop:
		r.Drops = keep(r.Drops, f, func(o mem.Drop) bool { return o.Process == f.Process && o.Place == f.Place })
	case mem.End:
		r.End = &f
		r.at(f.Time)
	}
}

func (r *Run) at(time int64) { r.Now = max(r.Now, time) }

func (r *Run) define(f mem.SeriesDef) {
	if s := r.series[f.ID]; s != nil {
		s.SeriesDef = f
		return
	}
	s := &Series{SeriesDef: f}
	r.series[f.ID] = s
	r.Series = append(r.Series, s)
}

func (r *Run) sample(f mem.Samples) {
	s := r.series[f.Series]
	if s == nil || len(f.Times) != len(f.Values) {
		return
	}
	for i, time := range f.Times {
		s.Curve.Add(time, f.Values[i])
		r.at(time)
	}
}

// replace puts a process in the place of the earlier one of its ID.
func replace(all []*mem.Process, f mem.Process) []*mem.Process {
	for _, p := range all {
		if p.ID == f.ID {
			*p = f
			return all
		}
	}
	return append(all, &f)
}

// keep puts a frame in the place of the one that it replaces, or appends it.
func keep[F mem.Frame](all []F, f F, same func(F) bool) []F {
	if i := slices.IndexFunc(all, same); i >= 0 {
		all[i] = f
		return all
	}
	return append(all, f)
}

// Of is what a recording that was read looks like.
func Of(recorded *mem.Run) *Run {
	r := New()
	r.Add(recorded.Info)
	if recorded.Imagined.Setup.Count > 0 {
		r.Add(recorded.Imagined.Setup)
	}
	for _, p := range recorded.Processes {
		r.Add(*p)
	}
	for _, s := range recorded.Series {
		r.Add(s.SeriesDef)
		r.Add(mem.Samples{Series: s.ID, Times: s.Times, Values: s.Values})
	}
	for some := range recorded.Spans.Chunks(keptSpans) {
		r.Add(some)
	}
	r.Add(mem.Steps(recorded.Steps))
	for _, t := range recorded.Totals {
		r.Add(t)
	}
	for _, p := range recorded.Phases {
		r.Add(p)
	}
	for _, e := range recorded.Events {
		r.Add(e)
	}
	if recorded.End != nil {
		r.Add(*recorded.End)
	}
	return r
}

// Outline is a recording of what is kept of a run's processes, steps and curves: for what is said of a recording by its
// curves, without having all of it.
func (r *Run) Outline() *mem.Run {
	out := mem.NewRun()
	frames := []mem.Frame{r.Info}
	for _, p := range r.Processes {
		frames = append(frames, *p)
	}
	for _, t := range r.Totals {
		frames = append(frames, t)
	}
	for _, s := range r.Series {
		samples := mem.Samples{Series: s.ID}
		for _, p := range s.All() {
			samples.Times, samples.Values = append(samples.Times, p.Time), append(samples.Values, p.Value)
		}
		frames = append(frames, s.SeriesDef, samples)
	}
	for _, f := range frames {
		_ = out.Add(f) // one that makes no sense is passed over, as everywhere here
	}
	return out
}
