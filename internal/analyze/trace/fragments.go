package trace

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// pinShare is the part of a segment, as its divisor, that may be in use where it counts as mostly empty.
const pinShare = 4

// fragments fills in what the memory looked like at the moment explained, with all its blocks in the map
// for pictures.
func (a *explanation) fragments(d *usage.Device, at int, g *grouper, pictures bool) {
	f := &report.Fragmentation{Reserved: mem.Bytes(a.At.Reserved.Or(0)), InactiveSplit: 0, Classes: []report.SizeClass{},
		ByRounding: []report.RoundingWaste{},
		EmptyCache: report.EmptyCache{Event: d.Releasable.Moment, Time: d.TimeOf(d.Releasable.Moment),
			Most: d.Releasable.Bytes, End: d.AtEnd}}
	var waste mem.Tally[string, report.RoundingWaste]
	var pins mem.Tally[string, pinning]
	for _, s := range d.SegmentsAfter(at) {
		f.Segments++
		a.Map = append(a.Map, a.segment(d, &s, at, g, f, pictures))
		g.pin(&s, &pins)
	}
	var requested, rounding mem.Bytes
	d.Each(at, func(n int) {
		lost := d.Bytes[n] - d.RequestedOf(n)
		requested += d.RequestedOf(n)
		rounding += lost
		if lost == 0 {
			return
		}
		name := g.site(n)
		w := waste.At(name)
		w.Name, w.Waste, w.Blocks = name, w.Waste+lost, w.Blocks+1
	})
	f.Requested, f.Rounding = ofRequests(d, requested), ofRequests(d, rounding)
	f.ByRounding = append(f.ByRounding, waste.All...)
	slices.SortFunc(f.ByRounding, func(p, q report.RoundingWaste) int {
		return cmp.Or(cmp.Compare(q.Waste, p.Waste), cmp.Compare(p.Name, q.Name))
	})
	slices.SortFunc(f.Classes, func(p, q report.SizeClass) int { return cmp.Compare(p.From, q.From) })
	f.Waiting = a.At.Active - a.At.Allocated
	// less than nothing only where a file contradicts itself
	f.Stuck = max(0, f.Reserved-a.At.Active-f.Releasable-f.Pooled)
	a.Fragmentation = f
	a.Pins = make([]report.Pin, 0, len(pins.All))
	for _, p := range pins.All {
		a.Pins = append(a.Pins, p.Pin)
	}
	slices.SortFunc(a.Pins, func(p, q report.Pin) int {
		return cmp.Or(cmp.Compare(q.Pinned, p.Pinned),
			cmp.Compare(p.Name, q.Name))
	})
}

// segment draws one segment and adds its free pieces to the sums.
func (a *explanation) segment(d *usage.Device, s *usage.HeldSegment, at int, g *grouper, f *report.Fragmentation,
	pictures bool) report.SegmentMap {
	m := report.SegmentMap{Address: s.Address, Size: s.Size, Large: s.Large, Expandable: s.Expandable, Stream: s.Stream,
		Blocks: []report.MapBlock{}}
	if s.Pool != (mem.PoolID{}) {
		m.Pool = poolName(s.Pool)
	}
	end := s.Address
	free := func(until uint64) {
		size := mem.Bytes(until - end)
		if size == 0 {
			return
		}
		m.Blocks = append(m.Blocks, report.MapBlock{int64(size), int64(mem.BlockInactive), -1, -1})
		if len(s.Spans) > 0 {
			addPiece(f, size)
		}
		returned := d.Settings.Releasable(&s.Segment, end, size, len(s.Spans) > 0)
		if f.Releasable += returned; s.Pool != (mem.PoolID{}) {
			f.Pooled += size - returned
		}
	}
	for _, n := range s.Spans {
		address, size := d.AddressOf(n), d.Bytes[n]
		free(address)
		block := report.MapBlock{int64(size), int64(mem.BlockAllocated), -1, -1}
		if !d.HeldAt(n, at) {
			block[1] = int64(mem.BlockPendingFree)
		}
		if pictures {
			block[2], block[3] = a.mapCategory(g.sorter.Of(n)), a.mapNode(g, d.Stack[n])
		}
		m.Blocks = append(m.Blocks, block)
		m.Active += size
		end = address + uint64(size)
	}
	free(s.Address + uint64(s.Size))
	return m
}

// addPiece counts a cached piece of a segment that is in use.
func addPiece(f *report.Fragmentation, size mem.Bytes) {
	f.InactiveSplit += size
	class := sizeClass(size)
	i := slices.IndexFunc(f.Classes, func(c report.SizeClass) bool { return c.From == class })
	if i < 0 {
		i = len(f.Classes)
		f.Classes = append(f.Classes, report.SizeClass{From: class})
	}
	f.Classes[i].Bytes += size
	f.Classes[i].Pieces++
}

func (a *explanation) mapCategory(name string) int64 {
	i := slices.Index(a.MapCategories, name)
	if i < 0 {
		i = len(a.MapCategories)
		a.MapCategories = append(a.MapCategories, name)
	}
	return int64(i)
}

// mapNode is the node of a block's stack in the flame graph's tree, which grows by it up to a size.
func (a *explanation) mapNode(g *grouper, stack uint32) int64 {
	node, ok := a.nodes[stack]
	if !ok {
		node = -1
		if frames := g.names.Pictured(stack); len(frames) > 0 && len(a.tree.Set.Parents) < treeNodes {
			node = int64(a.tree.Add(frames))
		}
		if a.nodes == nil {
			a.nodes = map[uint32]int64{}
		}
		a.nodes[stack] = node
	}
	return node
}

// treeNodes is where a tree stops growing by the stacks of the map: a page has to stay light.
const treeNodes = 20000

// pinning is a pin, and what one of its segments keeps at most.
type pinning struct {
	report.Pin
	largest mem.Bytes
}

// pin attributes a mostly empty segment's cached bytes to its largest block, so that the pinned bytes
// of all rows add up. Expandable segments give back the pages between their blocks, and private pools keep theirs: no
// block pins them.
func (g *grouper) pin(s *usage.HeldSegment, pins *mem.Tally[string, pinning]) {
	var used mem.Bytes
	d, largest := g.d, -1
	for _, n := range s.Spans {
		used += d.Bytes[n]
		if largest < 0 || d.Bytes[n] > d.Bytes[largest] {
			largest = n
		}
	}
	if used == 0 || s.Expandable || s.Pool != (mem.PoolID{}) || used > s.Size/pinShare {
		return
	}
	name := g.site(largest)
	p := pins.At(name)
	p.Name, p.Bytes, p.Blocks, p.Pinned = name, p.Bytes+d.Bytes[largest], p.Blocks+1, p.Pinned+s.Size-used
	if s.Size-used > p.largest {
		p.largest, p.Frames = s.Size-used, d.Stacks.Frames(d.Stack[largest])
	}
}
