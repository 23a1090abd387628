package usage

import (
	"cmp"
	"slices"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

// HeldSegment is a segment with the spans whose blocks lie in it, by address.
type HeldSegment struct {
	mem.Segment // without its blocks
	Spans       []int
}

// SegmentsAfter is the memory after an event, with what has not gone yet: it may be in use, or wait for another stream.
func (d *Device) SegmentsAfter(at Moment) []HeldSegment {
	var blocks []int
	for i, from := range d.From {
		if int(from) > at {
			break
		}
		if int(d.Block.Gone[i]) > at {
			blocks = append(blocks, i)
		}
	}
	address := d.Block.Address
	slices.SortStableFunc(blocks, func(p, q int) int { return cmp.Compare(address[p], address[q]) })
	var all []HeldSegment
	next := 0
	for _, s := range allocator.SegmentsAfter(d.Snapshot, d.Trace, d.Settings, at) {
		for next < len(blocks) && address[blocks[next]] < s.Address {
			next++
		}
		p, end, until := HeldSegment{Segment: s}, s.Address, s.Address+uint64(s.Size)
		for ; next < len(blocks) && address[blocks[next]] < until; next++ {
			if n := blocks[next]; address[n] >= end && address[n]+uint64(d.Bytes[n]) <= until { // else it contradicts another
				p.Spans, end = append(p.Spans, n), address[n]+uint64(d.Bytes[n])
			}
		}
		all = append(all, p)
	}
	return all
}
