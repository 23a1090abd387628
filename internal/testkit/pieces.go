package testkit

import (
	"hightide/internal/mem"
)

// OutOfPieces is a device with two segments of 1 GiB, each half cached, where 768 MiB were asked for.
func OutOfPieces() *mem.AllocatorSnapshot {
	s := &mem.AllocatorSnapshot{Label: mem.Measured}
	stack := func(file string, line int) uint32 {
		inner := s.Stacks.Location(mem.Location{File: "/env/lib/python3.11/site-packages/torch/nn/functional.py", Line: 7})
		return s.Stacks.Add([]uint32{inner, s.Stacks.Location(mem.Location{File: file, Line: line, Function: "forward"})})
	}
	keep, ask := stack("/home/me/model.py", 12), stack("/home/me/train.py", 40)
	for i := range uint64(2) {
		at := i << 32
		s.Segments = append(s.Segments, mem.Segment{Address: at, Size: mem.GiB, Large: true, Blocks: []mem.Block{
			{Address: at, Size: 512 * mem.MiB, Requested: 500 * mem.MiB, State: mem.BlockAllocated, Stack: keep},
			{Address: at + 512<<20, Size: 512 * mem.MiB}}})
	}
	s.Traces = []mem.Trace{{Action: []mem.Action{mem.ActionOOM}, Address: []uint64{100 << 20},
		Size: []mem.Bytes{768 * mem.MiB}, Stream: []uint64{0}, Stack: []uint32{ask}}}
	return s
}

// WithPinned is OutOfPieces whose program also holds 3 GiB of pinned host memory, more than of the device.
func WithPinned() *mem.AllocatorSnapshot {
	s := OutOfPieces()
	line := s.Stacks.Add([]uint32{s.Stacks.Location(mem.Location{File: "/home/me/data.py", Line: 5, Function: "load"})})
	s.HostSegments = []mem.Segment{{Device: mem.HostDevice, Address: 1 << 40, Size: 3 * mem.GiB, Stack: line,
		Blocks: []mem.Block{
			{Address: 1 << 40, Size: 3 * mem.GiB, Requested: 3 * mem.GiB, State: mem.BlockAllocated, Stack: line}}}}
	return s
}
