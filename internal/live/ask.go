package live

import (
	"slices"

	"hightide/internal/mem"
)

// Find is the series of that quantity of a process, 0 for the whole run; nil where there is none. Of several devices or
// frameworks, the first.
func (r *Run) Find(process uint32, name mem.Quantity) *Series {
	for _, s := range r.Series {
		if s.Process == process && s.Name == name {
			return s
		}
	}
	return nil
}

// Last is the newest value of a series; absent where there is none.
func (r *Run) Last(process uint32, name mem.Quantity) mem.Optional {
	if s := r.Find(process, name); s != nil {
		return s.Last()
	}
	return mem.Optional{}
}

// Alive are the processes that have not ended.
func (r *Run) Alive() (alive []*mem.Process) {
	for _, p := range r.Processes {
		if !p.End.Known() {
			alive = append(alive, p)
		}
	}
	return alive
}

// StepCount is that of the process that took the most.
func (r *Run) StepCount() (most uint64) {
	for _, t := range r.Totals {
		most = max(most, t.Steps)
	}
	return most
}

// Elapsed is how long it has been recorded, ns.
func (r *Run) Elapsed() int64 { return max(r.Now-r.Info.StartMono, 0) }

// Phase is what the process that takes the steps did last; a phase is known when it ends.
func (r *Run) Phase() mem.Phase {
	leader := r.Leader()
	for _, s := range slices.Backward(r.Spans) {
		if s.Process == leader && s.Phase != mem.PhaseModule && s.Phase != mem.PhaseStep {
			return s.Phase
		}
	}
	return mem.PhaseNone
}

// Leader is the process that takes the steps, else the one that holds most; 0 where there is none.
func (r *Run) Leader() uint32 {
	var best mem.Process
	for _, p := range r.Processes {
		steps, than := r.Totals[p.ID].Steps, r.Totals[best.ID].Steps
		if steps > than || steps == than && r.Last(p.ID, mem.SeriesRSS).Or(0) > r.Last(best.ID, mem.SeriesRSS).Or(-1) {
			best = *p
		}
	}
	return best.ID
}

// Device is what is in use on the fullest device, and what the frameworks' allocators hold where no vendor says it.
func (r *Run) Device() (most mem.Optional) {
	for _, name := range []mem.Quantity{mem.SeriesDeviceUsed, mem.SeriesReserved, mem.SeriesAllocated} {
		for _, s := range r.Series {
			if s.Name == name {
				most.Raise(s.Last())
			}
		}
		if most.Known() {
			return most
		}
	}
	return most
}
