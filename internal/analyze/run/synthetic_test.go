package run

import (
	"cmp"
	"math"
	"math/rand/v2"
	"strconv"

	"hightide/internal/mem"
)

// A synthetic run: a training whose allocations are known, seen through the same Poisson sampling and
// the same thinning of frames as a real one.

const (
	ms      = int64(1e6)
	always  = 4 * mem.MiB // blocks that are all recorded
	forever = 1 << 30     // steps that a leaked block lives
)

// source is something that allocates: called at each step, it adds blocks of a size that live for a
// number of steps. The first frame is where.
type source struct {
	stack []mem.Location
	phase mem.Phase
	step  func(step int, rng *rand.Rand, alloc func(size mem.Bytes, life int))
}

// leakOf keeps bytes at every step, in blocks of a size.
func leakOf(perStep, block mem.Bytes) func(int, *rand.Rand, func(mem.Bytes, int)) {
	var due mem.Bytes
	return func(_ int, _ *rand.Rand, alloc func(mem.Bytes, int)) {
		for due += perStep; due >= block; due -= block {
			alloc(block, forever)
		}
	}
}

type synthetic struct {
	seed     uint64
	steps    int
	stepTime int64 // ns
	pace     int64 // of heap frames, ns
	noHeap   bool
	mean     mem.Bytes // of the heap's sampling, 512 KiB if 0
	sources  []source
	base     mem.Bytes // RSS beside the heap
	holders  []mem.Holder
	rssNoise float64 // bytes, standard deviation
	real     mem.Bytes

	// Of the resident memory, or beside it: mapped files, shared memory, swap, locked mappings, at each step.
	kinds map[mem.Quantity]func(step int) mem.Bytes
}

var kindSeries = map[mem.Quantity]uint32{mem.SeriesRSSFile: 60, mem.SeriesRSSShared: 61, mem.SeriesSwap: 62,
	mem.SeriesLocked: 63}

type liveBlock struct {
	site   int
	weight mem.Bytes
	size   mem.Bytes
	real   mem.Bytes
}

var userLine = func(line int) []mem.Location {
	return []mem.Location{
		{File: "/home/me/project/train.py", Line: line, Function: "step"},
		{File: "/home/me/project/train.py", Line: 90, Function: "main"},
		{File: "/home/me/project/train.py", Line: 99, Function: "<module>"},
	}
}

// run plays the training and returns its recording.
func (s *synthetic) run() *mem.Run {
	rng := rand.New(rand.NewPCG(s.seed, 7))
	s.mean = cmp.Or(s.mean, 512*mem.KiB)
	run := mem.NewRun()
	add := func(f mem.Frame) {
		if err := run.Add(f); err != nil {
			panic(err)
		}
	}
	add(mem.RunInfo{ID: "synthetic", Verb: "run", Label: mem.Measured, Command: []string{"python", "train.py"},
		Version: "0.1.0",
		Host:    mem.Host{OS: "linux", CPUs: 2, Memory: mem.Some(int64(24 * mem.GiB)), PageSize: 4096}, StartMono: 1e9,
		StartWall: 1.7e18})
	add(mem.Process{ID: 1, PID: 4242, Role: "main", Python: "3.12.1", Start: 1e9, Command: []string{"python", "train.py"},
		Facts: map[string]string{"heap": "sampled", "heap_mean_bytes": strconv.FormatInt(int64(s.mean), 10)}})
	add(mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured})
	add(mem.SeriesDef{ID: 2, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes, Label: mem.Measured})
	add(mem.SeriesDef{ID: 3, Name: mem.SeriesSystemAvailable, Unit: mem.UnitBytes, Label: mem.Measured})
	for kind := range s.kinds {
		add(mem.SeriesDef{ID: kindSeries[kind], Process: 1, Name: kind, Unit: mem.UnitBytes, Label: mem.Measured})
	}
	for i, src := range s.sources {
		add(mem.StackDef{ID: uint32(i + 1), Locations: src.stack})
	}
	b := &syntheticHeap{s: s, rng: rng, add: add, sites: make([]mem.SiteUse, len(s.sources)),
		told: make([]mem.SiteUse, len(s.sources)), ends: map[int][]liveBlock{}}
	for i, src := range s.sources {
		b.sites[i] = mem.SiteUse{Stack: uint32(i + 1), Phase: src.phase}
	}
	b.play()
	for _, h := range s.holders {
		h.Process = 1
		add(h)
	}
	add(mem.StepTotal{Process: 1, Steps: uint64(s.steps)})
	end := b.now + 200*ms
	add(mem.End{Time: end, ExitCode: mem.Some(0), Reason: "exit"})
	return run
}

// syntheticHeap does what the recorder does, with the truth beside it.
type syntheticHeap struct {
	s        *synthetic
	rng      *rand.Rand
	add      func(mem.Frame)
	now      int64
	step     int
	sites    []mem.SiteUse
	told     []mem.SiteUse
	live     mem.Bytes
	real     mem.Bytes
	variance float64
	ends     map[int][]liveBlock
	peak     mem.Bytes
	lastUse  int64
	peakUse  mem.HeapUse
}

func (b *syntheticHeap) alloc(site int, size mem.Bytes, life int) {
	b.real += size
	k := liveBlock{site: site, real: size}
	p := -math.Expm1(-float64(size) / float64(b.s.mean))
	switch {
	case size >= always:
		k.size, k.weight = size, size
	case b.rng.Float64() < p:
		k.size, k.weight = size, mem.Bytes(float64(size)/p)
	}
	if life != forever {
		b.ends[b.step+life] = append(b.ends[b.step+life], k)
	}
	b.count(k, +1)
}

func (b *syntheticHeap) count(k liveBlock, sign mem.Bytes) {
	if k.weight == 0 {
		return
	}
	u := &b.sites[k.site]
	u.Live += sign * k.weight
	u.Count += uint64(sign)
	if sign > 0 {
		u.Allocated += k.weight
	}
	b.live += sign * k.weight
	b.variance += float64(sign) * float64(k.weight) * float64(k.weight-k.size)
}

func (b *syntheticHeap) play() {
	s := b.s
	b.now = 3e9 // imports took two seconds
	rss := func() int64 {
		of := s.base + b.real
		for _, kind := range []mem.Quantity{mem.SeriesRSSFile, mem.SeriesRSSShared} {
			if bytes := s.kinds[kind]; bytes != nil {
				of += bytes(b.step)
			}
		}
		if swapped := s.kinds[mem.SeriesSwap]; swapped != nil {
			of -= swapped(b.step)
		}
		return int64(of) + int64(b.rng.NormFloat64()*s.rssNoise)
	}
	sample := func(v int64) {
		for id, value := range []int64{v, v, int64(20*mem.GiB) - v} {
			b.add(mem.Samples{Series: uint32(id + 1), Times: []int64{b.now}, Values: []int64{value}})
		}
		for kind, bytes := range s.kinds {
			b.add(mem.Samples{Series: kindSeries[kind], Times: []int64{b.now}, Values: []int64{int64(bytes(b.step))}})
		}
	}
	sample(rss())
	for b.step = 0; b.step < s.steps; b.step++ {
		start := b.now
		for i, src := range s.sources {
			src.step(b.step, b.rng, func(size mem.Bytes, life int) { b.alloc(i, size, life) })
		}
		high := rss()
		b.spans(start, high)
		b.now += s.stepTime / 2
		if b.live > b.peak {
			b.peak = b.live
			b.peakUse = mem.HeapUse{Process: 1, Time: b.now, Step: uint64(b.step), Live: b.live, Variance: b.variance,
				Peak: true}
			for _, u := range b.sites {
				if u.Live > 0 {
					b.peakUse.Sites = append(b.peakUse.Sites, u)
				}
			}
		}
		sample(high)
		b.now = start + s.stepTime
		for _, k := range b.ends[b.step] {
			b.real -= k.real
			b.count(k, -1)
		}
		delete(b.ends, b.step)
		step := mem.Step{Process: 1, Number: uint64(b.step + 1), Time: b.now, Duration: s.stepTime, RSS: mem.Some(rss())}
		if !s.noHeap {
			step.Heap = mem.Some(int64(b.live))
			b.use()
		}
		b.add(mem.Steps{step})
		sample(rss())
	}
	if b.peakUse.Peak && !s.noHeap {
		b.add(b.peakUse)
	}
	s.real = b.real
}

// use writes a heap frame when one is due, with the sites that moved enough to be told.
func (b *syntheticHeap) use() {
	if b.now-b.lastUse < b.s.pace {
		return
	}
	b.lastUse = b.now
	use := mem.HeapUse{Process: 1, Time: b.now, Step: uint64(b.step + 1), Live: b.live, Variance: b.variance}
	for i, u := range b.sites {
		moved := max(u.Live-b.told[i].Live, b.told[i].Live-u.Live)
		if moved < 32*mem.KiB || moved*100 < b.told[i].Live {
			continue
		}
		b.told[i] = u
		use.Sites = append(use.Sites, u)
	}
	b.add(use)
}

func (b *syntheticHeap) spans(start, high int64) {
	at := start
	part := b.s.stepTime / 10
	for _, p := range []struct {
		phase mem.Phase
		parts int64
	}{{mem.PhaseData, 1}, {mem.PhaseForward, 3}, {mem.PhaseBackward, 5}, {mem.PhaseOptimizer, 1}} {
		b.add(mem.Spans{{Process: 1, Phase: p.phase, Step: uint64(b.step), Start: at, End: at + p.parts*part,
			RSSStart: mem.Some(high), RSSEnd: mem.Some(high), RSSPeak: mem.Some(high)}})
		at += p.parts * part
	}
}
