package allocator

import (
	"fmt"
	"slices"

	"hightide/internal/mem"
)

// Verification says how far the model agrees with a recorded trace.
type Verification struct {
	AddressesTotal, AddressesExact int
	// Ambiguous placements had to choose between equal blocks of segments whose age the trace does not
	// tell; Realigned of them turned out otherwise than assumed. Both count as exact only where the
	// record agrees with one of the choices.
	Ambiguous, Realigned         int
	SegmentsTotal, SegmentsExact int
	Ties                         Ties // the rule that was used

	// First is the first disagreement, in words; "" where there is none.
	First      string
	FirstEvent int

	Usage Usage // of the model at the end
}

// Exact says that nothing disagrees.
func (v *Verification) Exact() bool {
	return v.AddressesExact == v.AddressesTotal && v.SegmentsExact == v.SegmentsTotal
}

func (v *Verification) mismatch(event int, format string, args ...any) {
	if v.First == "" {
		v.First, v.FirstEvent = fmt.Sprintf(format, args...), event
	}
}

// Verify plays a trace through the model of the native allocator and compares every address and every
// segment. Where the version that wrote it is not sure, the rules that agree best are taken. Memory is the device's, by
// which expandable segments reserve address space; 0: not known.
func Verify(s *mem.AllocatorSnapshot, t *mem.Trace, settings Settings, memory mem.Bytes) (*Verification, error) {
	var best *Verification
	for _, rules := range RulesFor(s) {
		v, err := verifyReserved(s, t, settings, rules, memory)
		if err != nil {
			return nil, err
		}
		if best == nil || v.score() > best.score() {
			best = v
		}
		if best.Exact() && best.Realigned == 0 {
			break
		}
	}
	return best, nil
}

// mostReservations bounds how often verifyReserved looks again.
const mostReservations = 32

// verifyReserved follows a trace. If the memory is not known, the trace may tell what segments reserve. Where it
// begins a new one although the model would let the last one grow, that one was full.
func verifyReserved(s *mem.AllocatorSnapshot, t *mem.Trace, settings Settings, rules Rules,
	memory mem.Bytes) (*Verification, error) {
	told := memory > 0 || settings.ReserveBytes > 0
	var best *Verification
	for range mostReservations {
		begin, err := Rewind(s, t, settings)
		if err != nil {
			return nil, err
		}
		f := &follower{t: t, pool: poolsOf(s, t), live: map[uint64]Handle{}}
		v := f.run(begin, settings, rules, memory)
		f.final(s)
		if best == nil || v.score() > best.score() {
			best = v
		}
		if v.First == "" || told || f.full <= 0 {
			break
		}
		settings.ReserveBytes = f.full
	}
	return best, nil
}

func (v *Verification) score() int { return v.AddressesExact + v.SegmentsExact - v.Realigned }

// follower drives the model along a trace. What the trace shows is what happens, so that after a
// disagreement the next placement is judged anew.
type follower struct {
	t    *mem.Trace
	n    *Native
	v    Verification
	pool func(event int) mem.PoolID
	live map[uint64]Handle
	next uint64 // address for the segment to come

	// full is how much address space segments reserve at most, as the first disagreement tells; 0: it does not.
	full mem.Bytes
}

// Malloc gives the address that the trace shows next.
func (f *follower) Malloc(mem.Bytes) (uint64, bool) { return f.next, true }
func (f *follower) Reserve(mem.Bytes) uint64        { return f.next }
func (f *follower) Map(mem.Bytes) bool              { return true }
func (f *follower) Free(mem.Bytes)                  {}

func (f *follower) run(begin *Beginning, settings Settings, rules Rules, memory mem.Bytes) *Verification {
	settings.Fraction = 0 // a limit shows only in what the trace has
	f.n = NewNative(settings, rules, memory, f)
	f.v.Ties = rules.Ties
	handles := f.n.Load(begin)
	for _, g := range begin.Segments {
		for _, b := range g.Blocks {
			if b.State != mem.BlockInactive {
				f.live[b.Address], handles = handles[0], handles[1:]
			}
		}
	}
	for i := 0; i < f.t.Len(); {
		i += f.step(i)
	}
	f.v.Usage = f.n.Usage()
	return &f.v
}

// step follows one event, or all that one request made, and returns how many.
func (f *follower) step(i int) int {
	switch f.t.Action[i] {
	case mem.ActionAlloc:
		f.alloc(i, i)
	case mem.ActionSegmentAlloc, mem.ActionSegmentMap:
		return f.grow(i)
	case mem.ActionFreeRequested:
		if h, ok := f.live[f.t.Address[i]]; ok {
			f.n.FreeRequested(h)
		}
	case mem.ActionFreeCompleted:
		f.completed(i)
	case mem.ActionSegmentFree, mem.ActionSegmentUnmap:
		return f.sweep(i)
	}
	return 1
}

func (f *follower) completed(i int) {
	h, ok := f.live[f.t.Address[i]]
	if !ok {
		return
	}
	delete(f.live, f.t.Address[i])
	if f.n.blocks[h].state == allocated { // recorded without its request
		f.n.Free(h)
		return
	}
	f.n.FreeCompleted(h)
}

// grow follows new memory up to the allocation it was for. Memory without one was for a request that
// failed: pages stay where they were mapped.
func (f *follower) grow(i int) int {
	n := 1
	for i+n < f.t.Len() && f.t.Action[i+n] == f.t.Action[i] && f.t.Action[i] == mem.ActionSegmentMap {
		n++
	}
	if i+n < f.t.Len() && f.t.Action[i+n] == mem.ActionAlloc {
		f.alloc(i+n, i)
		return n + 1
	}
	for j := i; j < i+n; j++ {
		f.v.SegmentsTotal++
		if f.mapAt(j) {
			f.v.SegmentsExact++
		} else {
			f.v.mismatch(j, "the record maps %d bytes at %#x, where the model has no room", int64(f.t.Size[j]), f.t.Address[j])
		}
	}
	return n
}

// alloc follows an allocation that took the new memory of events [from, i).
func (f *follower) alloc(i, from int) {
	a := f.ask(i)
	f.v.AddressesTotal++
	f.v.SegmentsTotal += i - from
	if i == from {
		f.cached(a, i)
		return
	}
	f.next = f.t.Address[from]
	// A cached block that would do may have been pending until the allocator, out of memory, waited for
	// it. So not the miss is compared, but what was then taken from the device.
	var seen []Event
	f.n.Observe = func(e Event) { seen = append(seen, e) }
	b, _ := f.n.allocBlock(a, false)
	f.n.Observe = nil
	if b == 0 {
		f.v.mismatch(i, "the model finds no room for %d bytes", int64(a.Size))
		return
	}
	exact := 0
	for j, e := range seen {
		if from+j < i && e == (Event{f.t.Action[from+j], f.t.Address[from+j], f.t.Size[from+j], mem.At(f.t.Stream, from+j)}) {
			exact++
		}
	}
	f.v.SegmentsExact += min(exact, i-from)
	if exact != i-from || exact != len(seen) {
		f.reachedEnd(a, b, from, seen)
		f.v.mismatch(from, "%s", tookElse(i-from, f.t.Size[from:i], seen))
	}
	h := f.n.handOut(a, b)
	f.placed(i, h)
}

// tookElse is a difference in what was taken from the device, in words.
func tookElse(calls int, sizes []mem.Bytes, seen []Event) string {
	record := "nothing"
	if calls > 0 {
		record = fmt.Sprintf("%v in %d of its calls", sizes[0], calls)
		if calls == 1 {
			record = fmt.Sprintf("%v", sizes[0])
		}
	}
	model := "nothing"
	if len(seen) == 1 {
		model = seen[0].Size.String()
	} else if len(seen) > 1 {
		model = fmt.Sprintf("%v in the first of %d calls", seen[0].Size, len(seen))
	}
	return fmt.Sprintf("the record takes %s from the device, the model %s", record, model)
}

// reachedEnd learns from the first disagreement, of pages that the model maps elsewhere than the record.
func (f *follower) reachedEnd(a *ask, b int32, from int, seen []Event) {
	if f.v.First != "" || len(seen) == 0 || seen[0].Action != mem.ActionSegmentMap ||
		seen[0].Address == f.t.Address[from] {
		return
	}
	var mapped mem.Bytes
	for _, e := range seen {
		mapped += e.Size
	}
	needed := mem.Bytes(seen[0].Address-f.n.segmentOf(b).base) + mapped
	f.full = needed - f.n.settings.page(a.pool.small)
}

func (f *follower) ask(i int) *ask {
	r := Request{Size: f.t.Size[i], Stream: mem.At(f.t.Stream, i), Pool: f.pool(i)}
	if r.Pool != (mem.PoolID{}) {
		f.n.UsePool(r.Pool)
	}
	a := &ask{}
	f.n.ask(a, r)
	return a
}

// placed compares where a block came to lie.
func (f *follower) placed(i int, b int32) {
	address := f.n.blocks[b].address
	if address == f.t.Address[i] {
		f.v.AddressesExact++
	} else {
		f.v.mismatch(i, "the record places %d bytes at %#x, the model at %#x", int64(f.t.Size[i]), f.t.Address[i], address)
	}
	f.live[f.t.Address[i]] = Handle(b)
}

// cached follows an allocation from cached memory.
func (f *follower) cached(a *ask, i int) {
	want := f.t.Address[i]
	at, ok := f.n.findFree(a)
	if !ok && a.expandable && f.grown(a, i) {
		return
	}
	if !ok {
		f.v.mismatch(i, "the record places %d bytes in cached memory at %#x, the model finds none", int64(a.Size), want)
		f.force(a, i)
		return
	}
	b := a.list.free.at(at).block
	if f.n.blocks[b].address != want && f.retried(a, i) {
		f.grown(a, i)
		return
	}
	f.judgeTie(a, b, i)
	if f.n.blocks[b].address == want {
		f.v.AddressesExact++
		f.n.takeBlock(a, at)
		f.live[want] = Handle(f.n.handOut(a, b))
		return
	}
	f.v.mismatch(i, "the record places %d bytes at %#x, the model at %#x", int64(a.Size), want, f.n.blocks[b].address)
	f.force(a, i)
}

// grown follows an allocation that an expandable segment serves as if it had to grow, though memory
// is mapped already: a block that was refused as oversize.
func (f *follower) grown(a *ask, i int) bool {
	b := f.n.findExpandable(a)
	if b == 0 || f.n.blocks[b].state != free || f.n.blocks[b].size < a.rounded {
		return false
	}
	f.n.removeFree(b)
	f.n.blocks[b].state = taken
	f.placed(i, f.n.handOut(a, b))
	return true
}

// retried says that memory was given back just before, after no cached block would do. And the
// expandable segment then serves the request where the record has it, before cached memory is looked at.
func (f *follower) retried(a *ask, i int) bool {
	if !a.expandable || i == 0 || f.t.Action[i-1] != mem.ActionSegmentUnmap {
		return false
	}
	b := f.n.findExpandable(a)
	return b != 0 && f.n.blocks[b].state == free && f.n.blocks[b].size >= a.rounded &&
		f.n.blocks[b].address == f.t.Address[i]
}

// judgeTie counts a choice between equal blocks of which the trace does not tell what is older, and learns it from the
// record.
func (f *follower) judgeTie(a *ask, b int32, i int) {
	if !f.n.ageless(b) {
		return
	}
	equal := []int32{b} // up to the one that the record chose
	tied, chosen := false, false
	own, _ := a.list.free.lowerBound(f.n.keyOf(b))
	for at, ok := a.list.free.next(own); ok && !chosen; at, ok = a.list.free.next(at) {
		c := a.list.free.at(at).block
		if f.n.blocks[c].size != f.n.blocks[b].size {
			break
		}
		if f.n.ageless(c) && f.n.apart(b, c) {
			equal = append(equal, c)
			tied, chosen = true, f.n.blocks[c].address == f.t.Address[i]
		}
	}
	if tied {
		f.v.Ambiguous++
	}
	if !chosen {
		return
	}
	f.v.Realigned++
	f.v.AddressesExact++ // as good as told
	f.n.makeOlder(equal)
}

// force gives the program the block that the record shows.
func (f *follower) force(a *ask, i int) {
	b := f.n.freeAt(a.list, f.t.Address[i])
	if b == 0 || f.n.blocks[b].size < a.rounded {
		return
	}
	f.n.removeFree(b)
	f.n.blocks[b].state = taken
	f.live[f.t.Address[i]] = Handle(f.n.handOut(a, b))
}

// sweep follows memory given back: each piece must be one that the model could give back, and what a
// full sweep would give back besides is missing in the record. Sweeps that are not full: garbage collection, oversize
// blocks, a private pool that was dropped.
func (f *follower) sweep(i int) int {
	n := sweepLength(f.t, i)
	want := f.n.releasable()
	full := false
	for j := i; j < i+n; j++ {
		f.v.SegmentsTotal++
		e := Event{f.t.Action[j], f.t.Address[j], f.t.Size[j], mem.At(f.t.Stream, j)}
		at := slices.Index(want, e)
		if at < 0 && !f.releasePrivateAt(e) {
			f.v.mismatch(j, "the record gives %d bytes at %#x back, which the model could not", int64(e.Size), e.Address)
			continue
		}
		f.v.SegmentsExact++
		if at >= 0 {
			full = f.n.settings.GCThreshold == 0 && f.n.settings.MaxSplit == 0
			f.n.releaseAt(e)
			want = slices.Delete(want, at, at+1)
		}
	}
	if full && len(want) > 0 {
		f.v.SegmentsTotal += len(want)
		f.v.mismatch(i, "the model would give %d more segments back, first %d bytes at %#x", len(want), int64(want[0].Size),
			want[0].Address)
	}
	return n
}

// releasePrivateAt gives back memory of a private pool, which must have lost its users.
func (f *follower) releasePrivateAt(e Event) bool {
	for _, p := range f.n.private {
		for _, pool := range []*pool{p.small, p.large} {
			if slices.Contains(f.n.releasableOf(pool, nil), e) {
				f.n.releaseAt(e)
				return true
			}
		}
	}
	return false
}

// mapAt maps pages where the record shows them.
func (f *follower) mapAt(i int) bool {
	for _, p := range f.n.pools() {
		for _, list := range p.streams {
			for _, b := range list.unmapped {
				if f.n.blocks[b].address == f.t.Address[i] && f.n.blocks[b].size >= f.t.Size[i] && list.stream == mem.At(f.t.Stream, i) {
					return f.n.mapBlock(b, f.t.Size[i])
				}
			}
		}
	}
	return false
}

// final compares the state at the end with the file's. Blocks must be where they are; the trace is
// copied a little before the state, so that a program's other threads may have moved on.
func (f *follower) final(s *mem.AllocatorSnapshot) {
	have := f.n.State()
	var want []mem.Segment
	for _, g := range s.Segments {
		if g.Device == f.t.Device {
			want = append(want, g)
		}
	}
	if len(have) != len(want) {
		f.v.mismatch(f.t.Len(), "the record ends with %d segments, the model with %d", len(want), len(have))
		return
	}
	for i := range want {
		if want[i].Address != have[i].Address || want[i].Size != have[i].Size || !sameBlocks(want[i].Blocks, have[i].Blocks) {
			f.v.mismatch(f.t.Len(), "at the end, segment %#x is divided otherwise than in the model", want[i].Address)
			return
		}
	}
}

func sameBlocks(a, b []mem.Block) bool {
	return slices.EqualFunc(a, b, func(x, y mem.Block) bool {
		return x.Address == y.Address && x.Size == y.Size && x.State == y.State
	})
}
