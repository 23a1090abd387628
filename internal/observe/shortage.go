package observe

import (
	"hightide/internal/mem"
	"hightide/internal/shm"
)

// shortage is an allocation for which there was no memory, as the heap library saw it. Most become an
// exception of which the agent tells better; a shortage is an event of its own where the program
// caught that, or where there is none.
type shortage struct {
	time  int64
	step  mem.Optional
	bytes int64
	stack uint32
}

// shortagePatience is how long the exception may take to pass where the agent sees it.
const shortagePatience = int64(2e9)

// mostShortages bounds the lines that are told.
const mostShortages = 64

// shortKey is what makes a shortage another one than those before.
type shortKey struct {
	stack uint32
	size  uint64
}

// ranShort notes a shortage: of each stack and size the first.
func (p *process) ranShort(a *shm.Alloc, stack uint32) {
	key := shortKey{stack, a.Size}
	if p.shortAt[key] || len(p.shortAt) >= mostShortages {
		return
	}
	if p.shortAt == nil {
		p.shortAt = map[shortKey]bool{}
	}
	p.shortAt[key] = true
	short := shortage{time: a.When(), bytes: int64(min(a.Size, 1<<62)), stack: stack}
	if a.Word != 0 {
		short.step = mem.Some(int64(a.Word.Step()))
	}
	p.shortages = append(p.shortages, short)
}

// explained drops the shortages that an exception told of: those of about its size, or the last one
// where it does not say.
func (p *process) explained(bytes mem.Optional) {
	size, known := bytes.Get()
	kept := p.shortages[:0]
	if !known && len(p.shortages) > 0 {
		p.shortages = p.shortages[:len(p.shortages)-1]
		return
	}
	for _, f := range p.shortages {
		if float64(f.bytes) < 0.99*float64(size) || float64(f.bytes) > 1.01*float64(size)+64 {
			kept = append(kept, f)
		}
	}
	p.shortages = kept
}

// tellShortages writes those that nothing explained in time.
func (r *Recorder) tellShortages(p *process, now int64, last bool) {
	kept := p.shortages[:0]
	for _, f := range p.shortages {
		if !last && now-f.time < shortagePatience {
			kept = append(kept, f)
			continue
		}
		r.emit(mem.Event{Time: f.time, Process: p.ID, Kind: "oom", Step: f.step, Bytes: mem.Some(f.bytes),
			Facts: facts("source", "malloc"), Numbers: map[string]int64{"stack": int64(f.stack)},
			Text: "the program went on"})
	}
	p.shortages = kept
}
