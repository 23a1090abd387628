package allocator

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
)

// Beginning is the state in which a trace starts: what was held before its first event.
type Beginning struct {
	Segments     []mem.Segment // by address, apart; their blocks leave no gaps
	Reservations []Reservation // the address space of expandable segments, as far as the trace shows it

	// Loose are blocks in use that lie in no segment, or on one another, and Overlaps how many of the latter there
	// are. Only a file that contradicts itself has them, or one that tells of no segments.
	Loose    []LooseBlock
	Overlaps int
}

// LooseBlock is a block without a segment, and so with what else a segment would say of it.
type LooseBlock struct {
	mem.Block
	Stream uint64
	Pool   mem.PoolID
}

// Reservation is address space that an expandable segment may fill.
type Reservation struct {
	Address uint64
	Size    mem.Bytes
	Page    mem.Bytes
	Stream  uint64
	Large   bool
	Pool    mem.PoolID
}

// Rewind finds the state in which a device's trace begins, from the final state and the events
// backwards. The sizes of blocks that were freed in the trace follow from the rules of splitting under
// the settings. An error says where trace and state contradict each other.
func Rewind(s *mem.AllocatorSnapshot, t *mem.Trace, settings Settings) (*Beginning, error) {
	if err := checkCovered(s, t); err != nil {
		return nil, err
	}
	r := newRewind(s, t, settings)
	r.strict = true
	r.undoSegments(-1)
	r.undoBlocks()
	if r.err != nil {
		return nil, fmt.Errorf("event %d: %w", r.failed, r.err)
	}
	b := r.beginning()
	if r.err != nil {
		return nil, r.err
	}
	return b, nil
}

// RewindAnyway likewise, of any trace: what contradicts is left out, or taken as the later event has it.
func RewindAnyway(s *mem.AllocatorSnapshot, t *mem.Trace, settings Settings) *Beginning {
	r := newRewind(s, t, settings)
	r.undoSegments(-1)
	r.undoBlocks()
	return r.beginning()
}

// SegmentsAfter is the device memory that was held after an event of any trace, by address and without
// blocks.
func SegmentsAfter(s *mem.AllocatorSnapshot, t *mem.Trace, settings Settings, event int) []mem.Segment {
	r := newRewind(s, t, settings)
	r.undoSegments(event)
	return r.sorted()
}

// rewind plays a trace backwards from the final state.
type rewind struct {
	s        *mem.AllocatorSnapshot
	t        *mem.Trace
	settings *Settings
	strict   bool
	failed   int   // the last event that contradicts what comes after it
	err      error // of a strict one: how

	segments // held now, see rewindsegments.go

	live   mem.AddressMap // address → blocks
	blocks []LooseBlock   // in use now, and places of others
	spare  []int32        // such places
}

func newRewind(s *mem.AllocatorSnapshot, t *mem.Trace, settings Settings) *rewind {
	return &rewind{s: s, t: t, settings: &settings, segments: newSegments(s, t)}
}

// contradicts notes what is wrong with an event. Segments and blocks are undone one after the other: the
// later event is told of.
func (r *rewind) contradicts(event int, format string, args ...any) {
	if r.strict && (r.err == nil || event > r.failed) {
		r.failed, r.err = event, fmt.Errorf(format, args...)
	}
}

// undoBlocks finds the blocks that were in use before the first event.
func (r *rewind) undoBlocks() {
	t := r.t
	for _, g := range r.s.Segments {
		for _, b := range g.Blocks {
			if g.Device == t.Device && b.State != mem.BlockInactive {
				r.holdBlock(LooseBlock{b, g.Stream, g.Pool})
			}
		}
	}
	frees := freesOf{state: mem.BlockPendingFree, stacks: !stacksOfFrees(t), pool: r.poolOf}
	if !slices.Contains(t.Action, mem.ActionFreeRequested) { // PyTorch 2.0: completing is all there is of freeing
		frees.state = mem.BlockAllocated
	}
	for i := t.Len() - 1; i >= 0; i-- {
		switch t.Action[i] {
		case mem.ActionAlloc:
			if n, ok := r.live.Take(t.Address[i]); ok {
				r.spare = append(r.spare, n)
			} else {
				r.contradicts(i, "block %#x of %d bytes is allocated but never freed, and not in the final state", t.Address[i],
					int64(t.Size[i]))
			}
		case mem.ActionFreeCompleted:
			r.undoCompleted(i, &frees)
		case mem.ActionFreeRequested:
			r.undoRequested(i, &frees)
		}
	}
}

// freesOf is how the frees of a trace are to be read.
type freesOf struct {
	state  mem.BlockState // of a block between its two frees
	stacks bool           // they have the stack of who allocated
	pool   func(event int) mem.PoolID
}

// unknownSize is that of a block which the trace freed: what lies beside it will tell.
const unknownSize = -1

// block is what an event of freeing says of the block.
func (f *freesOf) block(t *mem.Trace, i int, state mem.BlockState) LooseBlock {
	b := LooseBlock{mem.Block{Address: t.Address[i], Size: unknownSize, Requested: t.Size[i], State: state}, mem.At(t.Stream, i),
		f.pool(i)}
	if f.stacks {
		b.Stack = t.Stack[i]
	}
	return b
}

func (r *rewind) undoCompleted(i int, frees *freesOf) {
	if n, ok := r.live.Take(r.t.Address[i]); ok {
		r.contradicts(i, "block %#x of %d bytes is freed while a later one lives there", r.t.Address[i], int64(r.t.Size[i]))
		r.spare = append(r.spare, n)
	}
	r.holdBlock(frees.block(r.t, i, frees.state))
}

func (r *rewind) undoRequested(i int, frees *freesOf) {
	n, ok := r.live.Get(r.t.Address[i])
	switch {
	case !ok:
		r.contradicts(i, "block %#x of %d bytes is freed, never completely, and not in the final state", r.t.Address[i],
			int64(r.t.Size[i]))
		r.holdBlock(frees.block(r.t, i, mem.BlockAllocated))
	case r.blocks[n].State != mem.BlockPendingFree:
		r.contradicts(i, "block %#x of %d bytes is freed, and lives on", r.t.Address[i], int64(r.t.Size[i]))
	default:
		r.blocks[n].State = mem.BlockAllocated
	}
}

// holdBlock adds a block in use.
func (r *rewind) holdBlock(b LooseBlock) {
	n := int32(len(r.blocks))
	if last := len(r.spare) - 1; last >= 0 {
		n, r.spare = r.spare[last], r.spare[:last]
		r.blocks[n] = b
	} else {
		r.blocks = append(r.blocks, b)
	}
	r.live.Set(b.Address, n)
}

// beginning gives the segments their blocks.
func (r *rewind) beginning() *Beginning {
	b := &Beginning{Segments: r.sorted(), Reservations: r.reservations()}
	for _, n := range r.spare {
		r.blocks[n].State = mem.BlockInactive
	}
	live := slices.DeleteFunc(r.blocks, func(b LooseBlock) bool { return b.State == mem.BlockInactive })
	slices.SortStableFunc(live, func(x, y LooseBlock) int { return cmp.Compare(x.Address, y.Address) })
	for i := range b.Segments {
		g := &b.Segments[i]
		before := blocksBefore(live, g.Address)
		inside := blocksBefore(live, g.Address+uint64(g.Size))
		r.outside(b, live[:before])
		r.fill(b, g, live[before:inside])
		live = live[inside:]
	}
	r.outside(b, live)
	return b
}

// blocksBefore is how many blocks begin before an address.
func blocksBefore(live []LooseBlock, address uint64) int {
	n, _ := slices.BinarySearchFunc(live, address, func(b LooseBlock, address uint64) int {
		if b.Address < address {
			return -1
		}
		return 1
	})
	return n
}

// outside adds blocks that lie in no segment.
func (r *rewind) outside(b *Beginning, live []LooseBlock) {
	for _, block := range live {
		r.refuse("block %#x of %d bytes lies in no segment", block.Address, int64(block.Requested))
		r.loosen(b, block)
	}
}

// refuse notes what is wrong with the state that the trace begins in.
func (r *rewind) refuse(format string, args ...any) {
	if r.strict && r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *rewind) loosen(b *Beginning, block LooseBlock) {
	if block.Size == unknownSize {
		block.Size = r.settings.Round(block.Requested)
		if r.s.Bare {
			block.Size = block.Requested
		}
	}
	b.Loose = append(b.Loose, block)
}

// fill lays live blocks and what is free between them out over a segment.
func (r *rewind) fill(b *Beginning, g *mem.Segment, live []LooseBlock) {
	at, end := g.Address, g.Address+uint64(g.Size)
	for i, block := range live {
		next := end
		if i+1 < len(live) {
			next = live[i+1].Address
		}
		size := block.Size
		if size == unknownSize {
			size = r.blockSize(g, block.Requested, mem.Bytes(next-block.Address))
		}
		if block.Address+uint64(size) > next {
			r.refuse("block %#x of %d bytes does not fit before %#x", block.Address, int64(block.Requested), next)
		}
		if block.Address < at || block.Address+uint64(size) > end {
			b.Overlaps++
			r.loosen(b, block)
			continue
		}
		if block.Address > at {
			g.Blocks = append(g.Blocks, mem.Block{Address: at, Size: mem.Bytes(block.Address - at)})
		}
		block.Size, at = size, block.Address+uint64(size)
		g.Blocks = append(g.Blocks, block.Block)
	}
	if at < end {
		g.Blocks = append(g.Blocks, mem.Block{Address: at, Size: mem.Bytes(end - at)})
	}
}

// blockSize is what a block must have had before a gap: no rest stays that would not have been split off.
func (r *rewind) blockSize(g *mem.Segment, requested, gap mem.Bytes) mem.Bytes {
	size := r.settings.Round(requested)
	if gap >= size && !r.settings.splits(size, gap-size, !g.Large || g.Expandable) {
		return gap
	}
	return size
}

// checkCovered refuses blocks at addresses where there never was a segment.
func checkCovered(s *mem.AllocatorSnapshot, t *mem.Trace) error {
	type span struct{ from, to uint64 }
	var spans []span
	for _, g := range s.Segments {
		if g.Device == t.Device {
			spans = append(spans, span{g.Address, g.Address + uint64(g.Size)})
		}
	}
	for i, action := range t.Action {
		if action == mem.ActionSegmentFree || action == mem.ActionSegmentUnmap {
			spans = append(spans, span{t.Address[i], t.Address[i] + uint64(t.Size[i])})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	joined := spans[:0]
	for _, next := range spans {
		if n := len(joined); n > 0 && next.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, next.to)
			continue
		}
		joined = append(joined, next)
	}
	for i, action := range t.Action {
		if action != mem.ActionAlloc {
			continue
		}
		at, _ := slices.BinarySearchFunc(joined, t.Address[i]+1,
			func(x span, address uint64) int { return cmp.Compare(x.from, address) })
		if at == 0 || t.Address[i]+uint64(t.Size[i]) > joined[at-1].to {
			return fmt.Errorf("event %d: block %#x of %d bytes lies where the allocator never had memory, so it did not make "+
				"this trace",
				i, t.Address[i], int64(t.Size[i]))
		}
	}
	return nil
}
