package fit

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"hightide/internal/mem"
)

// Trial is what one batch size took. Bytes are absent where nobody could tell.
type Trial struct {
	Batch     int          `json:"batch" doc:"The batch."`
	OK        bool         `json:"ok" doc:"Whether it fits."`
	Allocated mem.Optional `json:"peak_allocated_bytes,omitzero" doc:"The highest of what the framework's allocator gave, in bytes."`
	Reserved  mem.Optional `json:"peak_reserved_bytes,omitzero" doc:"The highest of what it took from the device, in bytes."`
	Used      mem.Optional `json:"device_used_bytes,omitzero" doc:"Memory in use on the device then, with context and libraries, in bytes; where the framework takes memory ahead of need, as JAX does, what of it is needed."`
	Capacity  mem.Optional `json:"capacity_bytes,omitzero" doc:"What the allocator could have had, in bytes."`
	Total     mem.Optional `json:"total_bytes,omitzero" doc:"The memory of the device in bytes."`
	StepTime  mem.Optional `json:"step_time_ns,omitzero" doc:"The median of a step's time in ns, where time was measured."`
	Problem   string       `json:"problem,omitempty" doc:"Why it did not fit, in the framework's words: at most 1,000 characters, then how many more there were."`
	Rests     []string     `json:"rests_on,omitempty" doc:"What the answer rests on, for people: numbers that decide and that no kernel computed, memory that still rose."`
	Label     mem.Label    `json:"label" doc:"Where the figures come from."`
}

// EventName implements event.Event.
func (Trial) EventName() string { return "trial" }

// Plan bounds a search. Only multiples of Step are tried.
type Plan struct {
	Step  int // granularity; 0: 1
	First int // where to begin; 0: 8, or Step where that is more
	Most  int // never beyond; 0: 1<<20
}

// Found is what a search found: the largest batch that fits, and its neighbour that does not.
type Found struct {
	Largest int     // 0: not even Step fits
	Fails   int     // the smallest batch above Largest that was seen to fail; 0: Most fits
	Trials  []Trial // in the order they were run
}

// Search finds the largest multiple of plan.Step for which try succeeds, in few trials. Two small ones
// give the slope of allocated memory against the batch, which predicts the limit. Each one that fits
// corrects the prediction, as the memory of real programs is a line in pieces at best. What fails says
// only that it is too much. Next to it is tried whether the prediction was nearly right, then what the
// allocator's own holdings leave room for. Where what fitted confirms the prediction, further below the
// failed one each time; else the middle. Where a batch takes less than a smaller one, the end is looked
// for close above it. Both ends of the answer were run.
//
// Where a trial says no bytes it doubles instead of predicting. An error of try ends the search; the
// result then holds the trials so far.
func Search(plan Plan, try func(batch int) (Trial, error)) (Found, error) {
	s := search{step: max(plan.Step, 1), most: plan.Most}
	s.most = cmp.Or(s.most, 1<<20)
	s.most -= s.most % s.step
	if s.most == 0 {
		return Found{}, fmt.Errorf("no multiple of %d is within %d", s.step, plan.Most)
	}
	first := cmp.Or(plan.First, 8)
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
	fits, failed int  // the answer lies in [fits, failed)
	held         bool // what the allocator's holdings leave room for was tried
	up           int  // stride above a prediction that fitted, in steps; 0: none yet
	down         int  // stride below a prediction that failed, in doubts; 0: none yet
	trials       []Trial
}

func (s *search) result() Found {
	r := Found{Largest: s.fits, Fails: s.failed, Trials: s.trials}
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
	batch, ok := s.predict(allocated)
	switch {
	case s.fell() && s.failed > s.most:
		return s.above()
	case s.fell():
		return s.middle()
	case !ok && s.failed > s.most:
		return s.inside(max(4*s.fits, s.step))
	case !ok:
		return s.middle()
	case batch > furthest*s.fits && furthest*s.fits < s.failed:
		return s.inside(furthest * s.fits) // to predict again from there
	case batch < s.fits+s.step:
		return s.above()
	case batch < s.failed:
		return s.inside(batch)
	}
	if s.failed > s.most {
		return s.inside(batch)
	}
	return s.below()
}

// fell says whether a batch took clearly less than a smaller one: where memory is short, libraries choose
// algorithms that need less of it. Then the end is near, and what is allocated does not say where.
func (s *search) fell() bool {
	for _, a := range s.trials {
		for _, b := range s.trials {
			less, more := a.Allocated.Or(0), b.Allocated.Or(0)
			if a.OK && b.OK && a.Batch > b.Batch && a.Allocated.Known() && float64(less)*bent < float64(more) {
				return true
			}
		}
	}
	return false
}

// above is where to go on from a batch that fits though nothing more should: right above it, then
// further with each that fits too.
func (s *search) above() int {
	batch := s.fits + max(1, s.up)*s.step
	s.up = max(1, s.up) * 4
	if batch >= s.failed {
		return s.middle()
	}
	return s.inside(batch)
}

// below is where to go on when less has failed than the prediction says: memory that cannot be given
// back, or a slope that changes further up.
func (s *search) below() int {
	batch, ok := s.predict(reserved)
	if ok && s.down > 0 && !s.held && batch > s.fits && batch < s.failed {
		s.held = true
		return s.inside(batch)
	}
	// where what fitted says that the failed one should have, only a little lacks
	if confirmed := s.trials[len(s.trials)-1].OK; confirmed || s.down == 0 {
		s.down = max(1, 4*s.down)
		if near := s.failed - s.down*s.doubt(s.failed)*s.step; near > s.middle() {
			return s.inside(near)
		}
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

func allocated(t Trial) mem.Optional { return t.Allocated }
func reserved(t Trial) mem.Optional  { return t.Reserved }

// predict extends the line through the two largest batches that fit to where its memory would reach the
// capacity. By allocated memory that is the most that can fit: the allocator gives its cache back before
// it fails. By reserved memory it is what fits surely, unless the slope changes.
func (s *search) predict(of func(Trial) mem.Optional) (int, bool) {
	var known []Trial
	for _, t := range s.trials {
		if of(t).Known() && t.OK {
			known = append(known, t)
		}
	}
	if len(known) < 2 {
		return 0, false
	}
	slices.SortFunc(known, func(a, b Trial) int { return cmp.Compare(a.Batch, b.Batch) })
	a, b := known[len(known)-2], known[len(known)-1]
	capacity, ok := b.Capacity.Get()
	rise := of(b).Or(0) - of(a).Or(0)
	if !ok || rise <= 0 || b.Batch == a.Batch {
		return 0, false
	}
	left, slope := float64(capacity-of(b).Or(0)), float64(rise)/float64(b.Batch-a.Batch)
	more := left / slope
	if len(known) > 2 {
		first := known[len(known)-3]
		before := float64(of(a).Or(0)-of(first).Or(0)) / float64(a.Batch-first.Batch)
		if slope > bent*before && left > 0 {
			curve := (slope - before) / float64(b.Batch-first.Batch)
			toA := slope + curve*float64(b.Batch-a.Batch) // slope at b of the parabola through all three
			more = (math.Sqrt(toA*toA+4*curve*left) - toA) / (2 * curve)
		}
	}
	return b.Batch + int(max(0, min(more, float64(s.most)))), true
}

// bent is by how much a slope must grow to be not rounding: then a parabola through three batches
// predicts better than a line through two.
const bent = 1.02
