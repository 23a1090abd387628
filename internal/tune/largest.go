package tune

import (
	"context"
	"fmt"

	"hightide/internal/fail"
	"hightide/internal/levers"
	"hightide/internal/mem"
)

// Batches are the places of the batch's size in a command, and what Largest needs to try another one.
type Batches struct {
	Start int                          // the size that is tried first
	With  func(size int) []string      // the command with another size
	Open  func(size int) (Host, error) // where that runs
	Owned bool                         // the command is the same: a trainer of the program has to own the size
}

const (
	mostProbes  = 24
	largestSize = 1 << 20
	flat        = 512 // times as large, where memory is still the same: it does not depend on the batch
	fine        = 64  // a size is known to its 64th part, below 128 samples to one
)

// largest is a search for a size: low fits, high does not.
type largest struct {
	Options
	batches Batches
	scout   *search // of the first size, which knows the program's levers
	low     *Probe
	high    *Probe
	probes  []Probe
	runs    int    // besides those of scout
	owner   string // the trainer's setting, where the command does not say the size
	most    int    // samples that its data set has, which is the largest size
}

// Largest finds the largest batch that fits with levers that leave nothing on the host, then the cheapest plan for it.
// A size fits where one of the plans that save most does; the search goes by a straight line through two sizes that fit.
func Largest(ctx context.Context, o Options, batches Batches) (*Result, error) {
	goal := o.Goal
	o.Goal = fitGoal
	l := &largest{Options: o, batches: batches, most: largestSize}
	host, err := batches.Open(batches.Start)
	if err != nil {
		return nil, err
	}
	first := o
	first.Command = batches.With(batches.Start)
	l.scout = newSearch(first, host)
	if err := l.scout.begin(ctx); err != nil {
		return l.scout.result, err
	}
	if err := l.owned(); err != nil {
		return l.scout.result, err
	}
	if err := l.search(ctx); err != nil {
		return l.scout.result, err
	}
	if l.low == nil {
		l.scout.conclude()
		return l.none(goal), nil
	}
	s := l.scout
	if l.low.Size != batches.Start {
		at := o
		at.Command = batches.With(l.low.Size)
		if host, err = batches.Open(l.low.Size); err != nil {
			return nil, err
		}
		s, l.runs = newSearch(at, host), l.runs+s.result.Runs
		err = s.begin(ctx)
	}
	r, err := s.find(ctx, err)
	r.Goal, r.Probes = goal, l.probes
	r.Runs += l.runs
	if err != nil || r.Recommended == nil {
		return r, err
	}
	r.Batch, r.Owner = l.low.Size, l.owner
	size := fmt.Sprint(l.low.Size)
	if l.owner != "" {
		size += ", to be set in the program as " + l.owner
	}
	r.Answer = fmt.Sprintf("The largest batch is %s; %s. %s", size, l.beyond(), r.Answer)
	return r, nil
}

// owned looks for the trainer that owns the size, where the command does not say it.
func (l *largest) owned() error {
	if !l.batches.Owned {
		return nil
	}
	if l.owner = l.scout.roomy.Owner; l.owner == "" {
		return fail.Usage("put {batch} where it goes, as in --goal batch -- python train.py {batch}",
			"the command does not say its batch, which --goal batch changes, and no Trainer of transformers or Lightning owns it")
	}
	if samples, known := l.scout.roomy.Samples.Get(); known && samples > 0 {
		l.most = int(min(samples, largestSize))
	}
	return nil
}

// beyond says what is known of larger sizes.
func (l *largest) beyond() string {
	switch {
	case l.high == nil && l.low.Size == l.most && l.most < largestSize:
		return "its data set has no more samples"
	case l.high == nil && l.level() > 0:
		return fmt.Sprintf("memory does not depend on it, as %d takes as much, and larger ones were not tried", l.level())
	case l.high == nil:
		return fmt.Sprintf("larger ones than %d were not tried", l.low.Size)
	case l.high.Size > l.low.Size+1:
		return fmt.Sprintf("%d does not fit with the plans that save most, and sizes between were not tried", l.high.Size)
	}
	return fmt.Sprintf("%d does not fit with the plans that save most", l.high.Size)
}

// none is the result where not even one sample fits.
func (l *largest) none(goal string) *Result {
	r := l.scout.result
	r.Goal, r.Runs, r.Probes, r.Recommended, r.Verdict = goal, r.Runs+l.runs, l.probes, nil, ""
	for _, p := range r.Points {
		p.Chosen = false
	}
	r.Answer = fmt.Sprintf("No batch fits on %s with the plans that save most, down to %d.", r.GPUName, l.high.Size)
	return r
}

// search looks for two sizes beside each other, of which the smaller fits.
func (l *largest) search(ctx context.Context) error {
	size := min(l.batches.Start, l.most)
	for len(l.probes) < mostProbes && 0 < size && size <= largestSize {
		if err := l.probe(ctx, size); err != nil {
			return err
		}
		size = l.next()
	}
	return nil
}

// next is the size to be tried; 0: it is known.
func (l *largest) next() int {
	switch {
	case l.low == nil:
		return l.high.Size / 2
	case l.high == nil && (l.low.Size >= l.most || l.level() > 0):
		return 0
	case l.high == nil:
		return min(l.most, max(l.low.Size+1, min(l.line(), 8*l.low.Size)))
	case l.high.Size-l.low.Size <= max(1, l.low.Size/fine):
		return 0
	}
	middle := (l.low.Size + l.high.Size) / 2
	if guess := l.line(); l.low.Size < guess && guess < l.high.Size && len(l.probes)%3 != 0 { // now and then by halves
		middle = guess
	}
	return middle
}

// level is the smallest size that fits and takes as much as the largest, to the byte, where that one is very many times as
// large; 0: there is none.
func (l *largest) level() int {
	smallest := l.low
	for i := range l.probes {
		if p := &l.probes[i]; p.Fits && p.Least.Known() && p.Least == l.low.Least && p.Size < smallest.Size {
			smallest = p
		}
	}
	if l.low.Size/smallest.Size < flat {
		return 0
	}
	return smallest.Size
}

// line is the largest size by a straight line through the largest that fits and the smallest that does not, where that
// one ran, else through the two largest that fit; a multiple of the largest where that says nothing.
func (l *largest) line() int {
	if l.high != nil && l.high.Least.Known() {
		return l.through(l.low, l.high)
	}
	var before *Probe
	for i := range l.probes {
		if p := &l.probes[i]; p.Fits && p.Size < l.low.Size && (before == nil || p.Size > before.Size) {
			before = p
		}
	}
	if before == nil {
		return 2 * l.low.Size
	}
	return l.through(before, l.low)
}

func (l *largest) through(a, b *Probe) int {
	rise := float64(b.Least.Or(0)-a.Least.Or(0)) / float64(b.Size-a.Size)
	if rise <= 0 {
		return 8 * l.low.Size
	}
	left := float64(l.scout.result.Total - l.scout.room - mem.Bytes(l.low.Least.Or(0)))
	return l.low.Size + int(max(1, min(left/rise, largestSize)))
}

// probe tries a size with the plans that save most, from one start. Of the first size the scout has run some.
func (l *largest) probe(ctx context.Context, size int) error {
	s, strong := l.scout, l.scout.strong()
	if size == l.batches.Start {
		s.try(ctx, strong...)
	} else {
		host, err := l.batches.Open(size)
		if err != nil {
			return err
		}
		s = l.scout.of(l.batches.With(size), host)
		s.try(ctx, strong...)
		l.runs += s.result.Runs
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p := Probe{Size: size}
	for _, plan := range strong {
		point := s.ran[key(plan)]
		if point == nil {
			continue
		}
		p.Fits = p.Fits || point.Enough
		used, known := point.Verdict.Used.Get()
		if least, some := p.Least.Get(); known && point.Verdict.Fits() && (!some || used < least) {
			p.Least, p.What = mem.Some(used), point.What
		}
	}
	l.probes = append(l.probes, p)
	switch {
	case p.Fits && (l.low == nil || p.Size > l.low.Size):
		l.low = &p
	case !p.Fits && (l.high == nil || p.Size < l.high.Size):
		l.high = &p
	}
	return nil
}

// of is a search in the same program with another command.
func (s *search) of(command []string, host Host) *search {
	o := s.Options
	o.Command, o.Events = command, nil
	other := newSearch(o, host)
	other.recorded, other.model, other.size, other.room = s.recorded, s.model, s.size, s.room
	other.framework, other.donated = s.framework, s.donated
	r := other.result
	r.GPU, r.GPUName, r.Total, r.Room, r.Blocks = s.result.GPU, s.result.GPUName, s.result.Total, s.result.Room, s.result.Blocks
	return other
}

// strong are plans that save most and leave nothing on the host: all blocks, with expandable segments and with all that is
// free; each budget and lever that is allowed at its strongest.
func (s *search) strong() []*levers.Plan {
	names := s.recorded.names()
	all := append(s.free(), levers.Checkpoint)
	if s.usable(levers.Budget) {
		all = append(all, strongest(levers.Budget))
	}
	if s.usable(levers.Remat) {
		all = append(all, levers.Remat)
	}
	plans := []*levers.Plan{s.plan(nil), s.plan(names, levers.Checkpoint), s.plan(names, levers.Allocator, levers.Checkpoint),
		s.plan(names, all...)}
	for _, more := range s.Allow {
		if s.usable(more) && more != levers.Parts && more != levers.Words { // a batch in parts is a smaller batch
			all = append(levers.Beside(all, more), strongest(more))
			plans = append(plans, s.plan(names, all...))
		}
	}
	return plans
}
