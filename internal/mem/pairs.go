package mem

// Pairs tell which allocation each event of a trace is about, by its address. To find that out takes as
// long as all else that a trace is played for, so a reader can do it as the events come.
type Pairs struct {
	// Of has, by event, the allocation whose block lay at the event's address just before it, as the
	// number of allocations in the trace before that one; -1: none of the trace's, or no such event.
	Of []int32

	Allocations int        // in the trace
	open        AddressMap // of blocks that are not gone: allocation by address
}

// Extend takes the events of a trace that follow those taken before; room is how many may come in all.
func (p *Pairs) Extend(actions []Action, addresses []uint64, room int) {
	if cap(p.Of) < len(actions) {
		p.Of = append(make([]int32, 0, max(room, len(actions))), p.Of...)
	}
	for i := len(p.Of); i < len(actions); i++ {
		of := int32(-1)
		var found bool
		switch address := addresses[i]; actions[i] {
		case ActionAlloc:
			of, found = p.open.Swap(address, int32(p.Allocations))
			p.Allocations++
		case ActionFreeRequested:
			of, found = p.open.Get(address)
		case ActionFreeCompleted:
			of, found = p.open.Take(address)
		}
		if !found {
			of = -1
		}
		p.Of = append(p.Of, of)
	}
}

// Open says whether a block at an address was allocated in the trace and is not gone at its end.
func (p *Pairs) Open(address uint64) bool {
	_, open := p.open.Get(address)
	return open
}

// Paired returns the pairs of a trace, which are made unless its reader did.
func (t *Trace) Paired() *Pairs {
	if t.Pairs != nil && len(t.Pairs.Of) == t.Len() {
		return t.Pairs
	}
	p := &Pairs{}
	p.Extend(t.Action, t.Address, t.Len())
	return p
}
