package usage

import "hightide/internal/mem"

// pairs says which block lay at the address of each event just before it, as the number of its span. They are
// found on another core while the trace is played: looking addresses up takes as long as all the rest.
type pairs struct {
	full, empty chan []int32
	now         []int32
}

const (
	noSpan      = int32(-1)
	pairedOnce  = 1 << 13 // events that are found at once
	pairsWaited = 4       // such stretches, at most
)

// pair begins to find the pairs of a trace, given the spans of before it. All are to be asked for, in order.
func (d *Device) pair() *pairs {
	p := &pairs{full: make(chan []int32, pairsWaited), empty: make(chan []int32, pairsWaited)}
	for range pairsWaited {
		p.empty <- make([]int32, pairedOnce)
	}
	go p.numberSpans(d.Trace, &d.live, int32(d.Len()))
	return p
}

// numberSpans numbers the spans that begin in the trace from born on.
func (p *pairs) numberSpans(t *mem.Trace, live *mem.AddressMap, born int32) {
	for first := 0; first < t.Len(); first += pairedOnce {
		of := (<-p.empty)[:min(pairedOnce, t.Len()-first)]
		for i := range of {
			n, ok := noSpan, false
			switch address := t.Address[first+i]; t.Action[first+i] {
			case mem.ActionAlloc:
				n, ok = live.Get(address)
				live.Set(address, born)
				born++
			case mem.ActionFreeRequested:
				n, ok = live.Get(address)
			case mem.ActionFreeCompleted:
				n, ok = live.Take(address)
			}
			if !ok {
				n = noSpan
			}
			of[i] = n
		}
		p.full <- of
	}
}

// of is the span of an event.
func (p *pairs) of(event int) int32 {
	i := event % pairedOnce
	if i == 0 {
		if p.now != nil {
			p.empty <- p.now
		}
		p.now = <-p.full
	}
	return p.now[i]
}

// roomFor gets the memory of columns for so many blocks on another core while the caller has other things to do. Having
// come there, it waits for the room.
func roomFor(blocks int) (room func() (Spans, Blocks)) {
	n := blocks + blocks/8 + 1024
	s := Spans{make([]uint32, 0, n), make([]mem.Bytes, 0, n), make([]int32, 0, n), make([]int32, 0, n)}
	b := Blocks{Gone: make([]int32, 0, n), Lane: make([]uint32, 0, n)}
	done := make(chan struct{})
	go func() {
		touch(s.Stack, blocks)
		touch(s.Bytes, blocks)
		touch(s.From, blocks)
		touch(s.To, blocks)
		touch(b.Gone, blocks)
		touch(b.Lane, blocks)
		close(done)
	}()
	return func() (Spans, Blocks) { <-done; return s, b }
}

// touch writes to each page of a column to come.
func touch[T any](column []T, n int) {
	var zero T
	for i := 0; i < n; i += 512 {
		column[:n][i] = zero
	}
}
