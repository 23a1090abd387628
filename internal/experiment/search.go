// Package experiment runs something again with other knobs until a question is answered: here, what
// is the largest batch that fits.
//
//	Search ──▶ try(batch) ──▶ Trial ──▶ predict, gallop, bisect ──▶ Result
//
// The search is a pure function of its trials: whoever runs them (a worker process with the model
// already built, a whole script under hightide) is behind the function it is given. Worker speaks
// with such a process. Read Search first.
package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
)

// Trial is what one batch size took. Bytes are absent where nobody could tell.
type Trial struct {
	Batch     int          `json:"batch"`
	OK        bool         `json:"ok"`
	Allocated mem.Optional `json:"peak_allocated_bytes,omitzero"` // highest of the framework's tensors
	Reserved  mem.Optional `json:"peak_reserved_bytes,omitzero"`  // highest the allocator held
	Used      mem.Optional `json:"device_used_bytes,omitzero"`    // allocator, context and libraries, at the peak of reserved
	Capacity  mem.Optional `json:"capacity_bytes,omitzero"`       // what the allocator could have had
	Total     mem.Optional `json:"total_bytes,omitzero"`          // of the device
	StepTime  mem.Optional `json:"step_time_ns,omitzero"`         // median; only where time was measured
	Problem   string       `json:"problem,omitempty"`             // why it did not fit, in the framework's words
	Label     mem.Label    `json:"label"`
}

// Plan bounds a search. Only multiples of Step are tried.
type Plan struct {
	Step  int // granularity; 0: 1
	First int // where to begin; 0: 8, or Step where that is more
	Most  int // never beyond; 0: 1<<20
}

// Result of a search: the largest batch that fits, and its neighbour that does not.
type Result struct {
	Largest int     // 0: not even Step fits
	Fails   int     // the smallest batch above Largest that was seen to fail; 0: Most fits
	Trials  []Trial // in the order they were run
}

// At returns the trial of a batch.
func (r *Result) At(batch int) (Trial, bool) {
	i := slices.IndexFunc(r.Trials, func(t Trial) bool { return t.Batch == batch })
	if i < 0 {
		return Trial{}, false
	}
	return r.Trials[i], true
}

// Search finds the largest multiple of plan.Step for which try succeeds, in few trials: two small
// ones give the slope of allocated memory against the batch, which predicts the limit; from there it
// gallops until the answer is enclosed and bisects what is left. Both ends of the answer were run.
//
// Where a trial says no bytes it doubles instead of predicting. An error of try ends the search; the
// result then holds the trials so far.
func Search(plan Plan, try func(batch int) (Trial, error)) (Result, error) {
	s := search{step: max(plan.Step, 1), most: plan.Most}
	if s.most == 0 {
		s.most = 1 << 20
	}
	s.most -= s.most % s.step
	if s.most == 0 {
		return Result{}, fmt.Errorf("no multiple of %d is within %d", s.step, plan.Most)
	}
	first := plan.First
	if first == 0 {
		first = 8
	}
	s.failed = s.most + s.step
	next := s.inside(first)
	for next > s.fits && next < s.failed {
		trial, err := try(next)
		if err != nil {
			return s.result(), fmt.Errorf("batch %d: %w", next, err)
		}
		s.add(trial)
		next = s.next()
	}
	return s.result(), nil
}

type search struct {
	step, most   int
	fits, failed int // the answer lies in [fits, failed)
	stride       int // of the gallop, in steps; 0: not yet galloping
	up           bool
	trials       []Trial
}

func (s *search) result() Result {
	r := Result{Largest: s.fits, Fails: s.failed, Trials: s.trials}
	if s.failed > s.most {
		r.Fails = 0
	}
	return r
}

func (s *search) add(t Trial) {
	s.trials = append(s.trials, t)
	if t.OK {
		s.fits = max(s.fits, t.Batch)
	} else {
		s.failed = min(s.failed, t.Batch)
	}
}

// inside rounds to a step and keeps what is asked within the answer's bounds.
func (s *search) inside(batch int) int {
	batch -= batch % s.step
	return max(s.fits+s.step, min(batch, s.failed-s.step))
}

// next chooses the batch to try; one outside (fits, failed) says that the answer is known.
func (s *search) next() int {
	if s.failed-s.fits <= s.step {
		return 0
	}
	last := s.trials[len(s.trials)-1]
	if s.stride == 0 {
		if batch, ok := s.predict(); ok {
			if far := furthest * s.fits; batch > far && far < s.failed {
				return s.inside(far) // to predict again from there
			}
			s.stride, s.up = -1, false // the next one is the prediction
			return s.inside(batch)
		}
		if s.failed > s.most { // nothing failed yet
			return s.inside(max(4*s.fits, s.step))
		}
		return s.middle()
	}
	if s.stride < 0 { // the prediction was tried: off from there, towards the other answer
		s.stride, s.up = s.doubt(last.Batch), last.OK
	} else if last.OK != s.up {
		s.stride = 1 << 30 // enclosed
	} else {
		s.stride *= 4
	}
	hop := s.stride * s.step
	switch {
	case s.up && (s.failed > s.most || s.fits+hop < s.middle()):
		return s.inside(s.fits + hop)
	case !s.up && s.failed-hop > s.middle():
		return s.inside(s.failed - hop)
	}
	return s.middle()
}

// furthest is how many times the largest batch that fits a line through small ones is followed: what
// a process takes before its first sample weighs too much in them.
const furthest = 16

func (s *search) middle() int {
	steps := (s.failed - s.fits) / s.step
	return s.fits + steps/2*s.step
}

// doubt is how far off a prediction is likely to be, in steps: half a percent.
func (s *search) doubt(batch int) int { return max(1, batch/200/s.step) }

// predict extends the line through the two largest batches that fit to where allocated memory would
// reach the capacity. Reserved memory would be too low a guess: the allocator gives its cache back
// before it fails.
func (s *search) predict() (int, bool) {
	var known []Trial
	for _, t := range s.trials {
		if _, ok := t.Allocated.Get(); ok && t.OK {
			known = append(known, t)
		}
	}
	if len(known) < 2 {
		return 0, false
	}
	slices.SortFunc(known, func(a, b Trial) int { return cmp.Compare(a.Batch, b.Batch) })
	a, b := known[len(known)-2], known[len(known)-1]
	capacity, ok := b.Capacity.Get()
	rise := b.Allocated.Or(0) - a.Allocated.Or(0)
	if !ok || rise <= 0 || b.Batch == a.Batch {
		return 0, false
	}
	more := (capacity - b.Allocated.Or(0)) * int64(b.Batch-a.Batch) / rise
	return b.Batch + int(max(0, min(more, int64(s.most)))), true
}
