package observe

import (
	"hightide/internal/mem"
	"hightide/internal/shm"
)

// openSpans turns the edges of one process into spans and into sums over all of them. The sums are
// exact; of the spans an even selection of steps is kept, so that a long run stays small.
type openSpans struct {
	process uint32
	modules map[uint16]string
	threads map[uint32][]openSpan
	user    userSpans
	stats   map[statKey]*mem.PhaseStats
	order   []statKey // of first sight, and of writing
	changed map[statKey]bool

	pending []reading // RSS samples that are later than the last edge
	out     mem.Spans
	budget  thinning
	step    uint64 // of the last outermost span
	nth     int    // how many outermost spans this step has had
}

type openSpan struct {
	mem.Span
	module uint16
	keep   bool
	device mem.Optional // the most allocated at an edge within it
}

type statKey struct {
	phase mem.Phase
	name  string
}

type reading struct {
	time  int64
	value int64
}

// Of a process's spans the first seconds are kept whole, up to spanBurst; after that, whole steps
// at equal distances, about spanRate spans a second.
const (
	spanBurst = 4000
	spanRate  = 25
	// outermostKept bounds the outermost spans of one step, as in an evaluation of many batches.
	outermostKept = 64
)

func newOpenSpans(process uint32) *openSpans {
	return &openSpans{
		process: process, modules: map[uint16]string{}, threads: map[uint32][]openSpan{}, user: newUserSpans(),
		stats: map[statKey]*mem.PhaseStats{}, changed: map[statKey]bool{},
		budget: thinning{burst: spanBurst, rate: spanRate},
	}
}

// sample takes in a reading of RSS; times never decrease.
func (b *openSpans) sample(time, rss int64) {
	b.pending = append(b.pending, reading{time, rss})
}

// settle applies the samples up to a time to the spans that were open then. Call it once all edges
// before that time are in.
func (b *openSpans) settle(time int64) {
	n := 0
	for ; n < len(b.pending) && b.pending[n].time <= time; n++ {
		for _, open := range b.threads {
			for i := range open {
				open[i].RSSPeak.Raise(mem.Some(b.pending[n].value))
			}
		}
		b.user.sample(b.pending[n].value)
	}
	b.pending = b.pending[n:]
}

// edge takes in one edge. Edges of a thread come in order.
func (b *openSpans) edge(e *shm.Edge) {
	b.settle(e.When())
	b.user.device(e.DeviceAllocated)
	if e.Phase == mem.PhaseUser {
		b.userEdge(e)
		return
	}
	open := b.threads[e.Thread]
	for i := range open {
		open[i].device.Raise(e.DeviceAllocated)
	}
	if !e.Leave {
		b.threads[e.Thread] = append(open, openSpan{Span: b.enter(e), module: e.Module, keep: b.keeps(open, e),
			device: e.DeviceAllocated})
		return
	}
	at := len(open) - 1
	for at >= 0 && !(open[at].Phase == e.Phase && open[at].module == e.Module) {
		at--
	}
	if at < 0 {
		return // entered before we looked, or its record was dropped
	}
	b.leave(&open[at], e)
	b.threads[e.Thread] = open[:at] // what was left open inside has no edge of its own
}

func (b *openSpans) enter(e *shm.Edge) mem.Span {
	s := mem.Span{
		Process: b.process, Thread: e.Thread, Phase: e.Phase, Step: e.Step, Start: e.When(),
		RSSStart: e.RSS, RSSPeak: e.RSS, DeviceStart: e.DeviceAllocated,
	}
	if e.Module != 0 {
		s.Name = b.modules[e.Module]
	}
	return s
}

// keeps decides for an outermost span, and with it for all inside it.
func (b *openSpans) keeps(open []openSpan, e *shm.Edge) bool {
	if len(open) > 0 {
		return open[0].keep
	}
	if e.Step != b.step {
		b.step, b.nth = e.Step, 0
	}
	b.nth++
	return b.nth <= outermostKept && b.budget.keeps(e.Step)
}

func (b *openSpans) leave(open *openSpan, e *shm.Edge) {
	s := &open.Span
	s.End, s.RSSEnd, s.DeviceEnd = e.When(), e.RSS, e.DeviceAllocated
	s.RSSPeak.Raise(e.RSS)
	b.count(open)
	b.budget.count(s.End)
	if open.keep {
		b.out = append(b.out, *s)
	}
}

// sums are those of a phase, made at first sight, and about to change.
func (b *openSpans) sums(key statKey) *mem.PhaseStats {
	stats := b.stats[key]
	if stats == nil {
		stats = &mem.PhaseStats{Process: b.process, Phase: key.phase, Name: key.name}
		b.stats[key] = stats
		b.order = append(b.order, key)
	}
	b.changed[key] = true
	return stats
}

// count adds a span to the sums of its phase.
func (b *openSpans) count(open *openSpan) {
	s := &open.Span
	stats := b.sums(statKey{s.Phase, s.Name})
	stats.Count++
	stats.Total += s.End - s.Start
	stats.Max = max(stats.Max, s.End-s.Start)
	stats.RSSPeak.Raise(s.RSSPeak)
	net(&stats.RSSNet, s.RSSStart, s.RSSEnd)
	if peak, ok := s.RSSPeak.Get(); ok {
		if start, ok := s.RSSStart.Get(); ok {
			stats.RSSMaxRise.Raise(mem.Some(peak - start))
		}
	}
	stats.DevicePeak.Raise(open.device)
	net(&stats.DeviceNet, s.DeviceStart, s.DeviceEnd)
}

// takeChanges returns the kept spans and the sums that changed since the last call.
func (b *openSpans) takeChanges() (mem.Spans, []mem.PhaseStats) {
	spans := b.out
	b.out = nil
	var stats []mem.PhaseStats
	for _, key := range b.order {
		if b.changed[key] {
			stats = append(stats, *b.stats[key])
		}
	}
	clear(b.changed)
	return spans, stats
}

// phase is what the process is in now: the innermost open span of any thread.
func (b *openSpans) phase() mem.Phase {
	var newest *openSpan
	for _, open := range b.threads {
		if n := len(open); n > 0 && (newest == nil || open[n-1].Start > newest.Start) {
			newest = &open[n-1]
		}
	}
	if newest == nil {
		return mem.PhaseNone
	}
	return newest.Phase
}

// restart forgets open spans: the program was replaced by exec.
func (b *openSpans) restart() {
	clear(b.threads)
	clear(b.modules)
	clear(b.user.names)
}

// net adds end - start where both were observed.
func net(sum *mem.Optional, start, end mem.Optional) {
	from, ok1 := start.Get()
	to, ok2 := end.Get()
	if ok1 && ok2 {
		*sum = mem.Some(sum.Or(0) + to - from)
	}
}
