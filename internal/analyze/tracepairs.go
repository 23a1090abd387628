package analyze

import "hightide/internal/mem"

// pairs says which block lay at the address of each event just before it, as the number of its life. They are
// found on another core while the trace is played: looking addresses up takes as long as all the rest.
type pairs struct {
	full, empty chan []int32
	now         []int32
}

const (
	noLife      = int32(-1)
	pairedOnce  = 1 << 13 // events that are found at once
	pairsWaited = 4       // such stretches, at most
)

// pair begins to find the pairs of a trace, given the lives of before it. All are to be asked for, in order.
func (b *traceBooks) pair() *pairs {
	p := &pairs{full: make(chan []int32, pairsWaited), empty: make(chan []int32, pairsWaited)}
	for range pairsWaited {
		p.empty <- make([]int32, pairedOnce)
	}
	go p.find(b.trace, &b.live, int32(len(b.lives)))
	return p
}

// find numbers the lives that begin in the trace from born on.
func (p *pairs) find(t *mem.Trace, live *mem.AddressMap, born int32) {
	for first := 0; first < t.Len(); first += pairedOnce {
		of := (<-p.empty)[:min(pairedOnce, t.Len()-first)]
		for i := range of {
			n, ok := noLife, false
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
				n = noLife
			}
			of[i] = n
		}
		p.full <- of
	}
}

// of is the life of an event.
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

// roomFor gets the memory of lives, which is hundreds of megabytes, on another core while the caller has other
// things to do. Having come there, it waits for the room.
func roomFor(lives int) (room func() []life) {
	all, done := make([]life, 0, lives+lives/8+1024), make(chan struct{})
	go func() {
		for i := 0; i < lives; i += 64 { // in each page
			all[:lives][i] = life{}
		}
		close(done)
	}()
	return func() []life { <-done; return all }
}
