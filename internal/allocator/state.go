package allocator

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

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
	out := mem.Segment{Address: n.blocks[first].address, Stream: s.list.stream, Large: !s.list.pool.small, Expandable: s.expandable}
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
	u := Usage{DeviceAllocs: n.Stats.DeviceAllocs, DeviceFrees: n.Stats.DeviceFrees, Retries: n.Stats.AllocRetries, OOMs: n.Stats.OOMs}
	u.Requested, u.PeakRequested = mem.Bytes(f.RequestedBytes.Current), mem.Bytes(f.RequestedBytes.Peak)
	u.Allocated, u.PeakAllocated = mem.Bytes(f.AllocatedBytes.Current), mem.Bytes(f.AllocatedBytes.Peak)
	u.Active, u.PeakActive = mem.Bytes(f.ActiveBytes.Current), mem.Bytes(f.ActiveBytes.Peak)
	u.Reserved, u.PeakReserved = mem.Bytes(f.ReservedBytes.Current), mem.Bytes(f.ReservedBytes.Peak)
	return u
}
