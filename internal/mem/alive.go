package mem

// Peak is the moment at which a device's trace had the most bytes in use, and what was in use then.
type Peak struct {
	Event  int   // index in the trace: just after it; -1: the trace's beginning
	Time   int64 // ns of the wall clock; 0: the trace has no times
	Bytes  Bytes // in use, as asked for: before rounding
	Before Bytes // of those in use when the trace began, for all that is known
	Blocks []Held
}

// Held is a block in use.
type Held struct {
	Address uint64
	Size    Bytes // as asked for
	Stack   uint32
	Since   int // index of the event that allocated it; -1: before the trace began
}

// Peak plays the trace of a device forward once. Blocks that the trace frees without allocating
// them, and those of the final state that it does not allocate, were in use from the start. Where
// there is no trace, the peak is the final state. The cost is linear in the events.
func (s *AllocatorSnapshot) Peak(device int) Peak {
	var trace *Trace
	for i := range s.Traces {
		if s.Traces[i].Device == device {
			trace = &s.Traces[i]
		}
	}
	if trace == nil || trace.Len() == 0 {
		return s.final(device)
	}
	freeing := trace.freeing()
	live := &AddressMap{}
	freed := make([]int32, trace.Len()) // 1 + the event that freed what this event allocated
	var early []int32                   // events that freed what was there before
	var level, top Bytes
	at := -1
	for i, action := range trace.Action {
		switch action {
		case ActionAlloc:
			live.Set(trace.Address[i], int32(i))
			level += trace.Size[i]
			if level > top {
				top, at = level, i
			}
		case freeing:
			if begun, ok := live.Take(trace.Address[i]); ok {
				freed[begun] = int32(i) + 1
				level -= trace.Size[begun]
			} else {
				early = append(early, int32(i))
				level -= trace.Size[i]
			}
		}
	}
	return s.collect(trace, at, freed, early, live)
}

// freeing is the action by which the program gives a block back: free_requested, or where a trace
// has none of those, free_completed.
func (t *Trace) freeing() Action {
	for _, a := range t.Action {
		if a == ActionFreeRequested {
			return ActionFreeRequested
		}
	}
	return ActionFreeCompleted
}

// collect lists the blocks in use after an event.
func (s *AllocatorSnapshot) collect(t *Trace, at int, freed, early []int32, live *AddressMap) Peak {
	p := Peak{Event: at}
	if at >= 0 && t.Time != nil {
		p.Time = t.Time[at]
	}
	add := func(h Held) {
		p.Bytes += h.Size
		p.Blocks = append(p.Blocks, h)
	}
	for _, b := range s.inUse(t.Device) {
		if _, ok := live.Take(b.Address); !ok {
			p.Before += b.Requested
			add(Held{b.Address, b.Requested, b.Stack, -1})
		}
	}
	for _, i := range early {
		p.Before += t.Size[i]
		if int(i) > at {
			add(Held{t.Address[i], t.Size[i], t.Stack[i], -1})
		}
	}
	for i := 0; i <= at; i++ {
		if t.Action[i] == ActionAlloc && (freed[i] == 0 || int(freed[i]) > at+1) {
			add(Held{t.Address[i], t.Size[i], t.Stack[i], i})
		}
	}
	return p
}

func (s *AllocatorSnapshot) inUse(device int) []Block {
	var blocks []Block
	for i := range s.Segments {
		if s.Segments[i].Device != device {
			continue
		}
		for _, b := range s.Segments[i].Blocks {
			if b.State == BlockAllocated {
				blocks = append(blocks, b)
			}
		}
	}
	return blocks
}

// final is the peak of a device without a trace.
func (s *AllocatorSnapshot) final(device int) Peak {
	p := Peak{Event: -1}
	for _, b := range s.inUse(device) {
		p.Bytes += b.Requested
		p.Blocks = append(p.Blocks, Held{b.Address, b.Requested, b.Stack, -1})
	}
	p.Before = p.Bytes
	return p
}

// AllDevices lists the devices that hold segments or have a trace, ascending.
func (s *AllocatorSnapshot) AllDevices() []int {
	devices := s.Devices()
	for _, t := range s.Traces {
		at := 0
		for at < len(devices) && devices[at] < t.Device {
			at++
		}
		if at == len(devices) || devices[at] != t.Device {
			devices = append(devices[:at], append([]int{t.Device}, devices[at:]...)...)
		}
	}
	return devices
}
