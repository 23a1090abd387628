package allocator

import "math/bits"

// poolSet is a set of private pools in the order in which PyTorch goes through its own: that of ska::flat_hash_set, a
// table that is at most half full and probes as Robin Hood does. A pool's hash is its number, spread by the golden ratio.
type poolSet struct {
	buckets int // a power of two: slots that a hash can mean; a few more are behind them
	slots   []poolSlot
	count   int
}

// poolSlot is free where pool is nil. off is how far behind its own bucket the pool lies.
type poolSlot struct {
	pool *privatePool
	off  int
}

// farthest is how far off a pool may be.
func (s *poolSet) farthest() int { return max(4, bits.Len(uint(s.buckets))-1) }

// bucket is where a pool belongs.
func (s *poolSet) bucket(p *privatePool) int {
	const golden = 11400714819323198485 // 2^64 by the golden ratio
	number := p.id[0]
	if number == 0 {
		number = p.id[1]
	}
	return int(golden * number >> (65 - bits.Len(uint(s.buckets))))
}

func (s *poolSet) add(p *privatePool) {
	if s.find(p) >= 0 {
		return
	}
	if 2*(s.count+1) > s.buckets {
		s.grow()
	}
	held := poolSlot{pool: p}
	for at := s.bucket(p); held.off < s.farthest(); at++ {
		slot := &s.slots[at]
		if slot.pool == nil {
			*slot = held
			s.count++
			return
		}
		if slot.off < held.off {
			*slot, held = held, *slot
		}
		held.off++
	}
	if first := s.find(p); first >= 0 { // the one that found no room takes the new one's, which goes into a larger table
		s.slots[first].pool = held.pool
	}
	s.grow()
	s.add(p)
}

func (s *poolSet) grow() {
	old := s.slots
	s.buckets, s.count = max(4, 2*s.buckets), 0
	s.slots = make([]poolSlot, s.buckets+s.farthest())
	for _, slot := range old {
		if slot.pool != nil {
			s.add(slot.pool)
		}
	}
}

// remove moves those behind the pool nearer to where they belong.
func (s *poolSet) remove(p *privatePool) {
	at := s.find(p)
	if at < 0 {
		return
	}
	for ; s.slots[at+1].off > 0; at++ { // the last slot is always free
		s.slots[at] = poolSlot{s.slots[at+1].pool, s.slots[at+1].off - 1}
	}
	s.slots[at] = poolSlot{}
	s.count--
}

func (s *poolSet) find(p *privatePool) int {
	for i := range s.slots {
		if s.slots[i].pool == p {
			return i
		}
	}
	return -1
}
