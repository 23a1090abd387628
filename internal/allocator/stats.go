package allocator

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// Stat follows one figure, as torch.cuda.memory_stats shows it.
type Stat struct {
	Current, Peak    int64
	Allocated, Freed int64 // sums of all increases and decreases
}

func (s *Stat) up(n int64) {
	s.Current += n
	s.Peak = max(s.Peak, s.Current)
	s.Allocated += n
}

func (s *Stat) down(n int64) {
	s.Current -= n
	s.Freed += n
}

// Kinds of pools that statistics are kept for.
const (
	AllPools = iota
	SmallPool
	LargePool
	kinds
)

// Figures are the statistics kept for each kind of pool.
type Figures struct {
	Allocation, Segment, Active, InactiveSplit                                Stat
	AllocatedBytes, ReservedBytes, ActiveBytes, InactiveBytes, RequestedBytes Stat
}

// Stats are all of torch.cuda.memory_stats.
type Stats struct {
	By [kinds]Figures // AllPools, SmallPool, LargePool

	OversizeAllocations, OversizeSegments  Stat
	AllocRetries, OOMs, SyncAllStreams     int64
	DeviceAllocs, DeviceFrees, OOMRejected int64
}

// handedOut counts a block that the program got.
func (f *Figures) handedOut(size, requested mem.Bytes) {
	f.Allocation.up(1)
	f.AllocatedBytes.up(int64(size))
	f.Active.up(1)
	f.ActiveBytes.up(int64(size))
	f.RequestedBytes.up(int64(requested))
}

func (f *Figures) letGo(size mem.Bytes) {
	f.Allocation.down(1)
	f.AllocatedBytes.down(int64(size))
}

func (f *Figures) reusable(size, requested mem.Bytes) {
	f.Active.down(1)
	f.ActiveBytes.down(int64(size))
	f.RequestedBytes.down(int64(requested))
}

// change moves the figure of cached parts of segments; the two counters move on their own.
func (f *Figures) change(blocks int64, size mem.Bytes) {
	moveStat(&f.InactiveSplit, blocks)
	moveStat(&f.InactiveBytes, int64(size))
}

func moveStat(s *Stat, by int64) {
	if by > 0 {
		s.up(by)
	} else if by < 0 {
		s.down(-by)
	}
}

// State is the segments and their blocks, as a snapshot has them: by address, each stretch of memory
// of an expandable segment a segment of its own.
func (n *Native) State() []mem.Segment {
	var out []mem.Segment
	for i := 1; i < len(n.blocks); i++ {
		b := &n.blocks[i]
		if b.state == gone || b.state == returned || b.state == unmapped {
			continue
		}
		if b.prev == 0 || n.blocks[b.prev].state == unmapped { // the first of its stretch
			out = append(out, n.stretch(int32(i)))
		}
	}
	slices.SortFunc(out, func(a, b mem.Segment) int { return cmp.Compare(a.Address, b.Address) })
	return out
}

// stretch is the memory from a block to the end of its segment or the next hole.
func (n *Native) stretch(first int32) mem.Segment {
	s := n.segmentOf(first)
	out := mem.Segment{Address: n.blocks[first].address, Stream: s.list.stream, Large: !s.list.pool.small,
		Expandable: s.expandable}
	if owner := s.list.pool.owner; owner != nil {
		out.Pool = owner.id
	}
	for i := first; i != 0 && n.blocks[i].state != unmapped; i = n.blocks[i].next {
		b := &n.blocks[i]
		block := mem.Block{Address: b.address, Size: b.size}
		switch b.state {
		case allocated:
			block.State, block.Requested = mem.BlockAllocated, b.requested
		case waiting:
			block.State, block.Requested = mem.BlockPendingFree, b.requested
		}
		out.Size += b.size
		out.Blocks = append(out.Blocks, block)
	}
	return out
}

// Usage is what is held now and was held at most.
func (n *Native) Usage() Usage {
	f := &n.Stats.By[AllPools]
	u := Usage{DeviceAllocs: n.Stats.DeviceAllocs, DeviceFrees: n.Stats.DeviceFrees, Retries: n.Stats.AllocRetries,
		OOMs: n.Stats.OOMs}
	u.Requested, u.PeakRequested = mem.Bytes(f.RequestedBytes.Current), mem.Bytes(f.RequestedBytes.Peak)
	u.Allocated, u.PeakAllocated = mem.Bytes(f.AllocatedBytes.Current), mem.Bytes(f.AllocatedBytes.Peak)
	u.Active, u.PeakActive = mem.Bytes(f.ActiveBytes.Current), mem.Bytes(f.ActiveBytes.Peak)
	u.Reserved, u.PeakReserved = mem.Bytes(f.ReservedBytes.Current), mem.Bytes(f.ReservedBytes.Peak)
	return u
}
