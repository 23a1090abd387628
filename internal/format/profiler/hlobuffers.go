package profiler

import (
	"cmp"
	"maps"
	"slices"

	"hightide/internal/format/protobuf"
)

// The kinds of what a program needs, as labels of samples.
const (
	HLOKind      = "kind"
	HLOOperation = "op"
	HLOTemporary = "temporary"
	HLOArgument  = "argument"
	HLOOutput    = "output"
	HLOConstant  = "constant"

	// HLOArguments stands for the line of an argument, whose name is its function.
	HLOArguments = "arguments"
)

// hloBuffers is an assignment of buffers (BufferAssignmentProto).
type hloBuffers struct {
	defined     map[uint64]uint64 // of a buffer, the instruction that writes it
	size        map[uint64]int64
	path        map[uint64][]uint64 // of a buffer, to its array in what that instruction makes
	allocations []hloAllocation
	moves       [][]hloMove // of each heap
}

// hloAllocation is memory that one or several buffers have, one after the other or side by side.
type hloAllocation struct {
	size                               int64
	local, argument, output, unchanged bool
	buffers                            []uint64
}

// hloMove is one event of the order in which temporaries come and go.
type hloMove struct {
	kind, buffer, shares uint64
}

// The kinds of hloMove.
const (
	hloAlloc = iota
	hloFree
	hloShare // the buffer has the memory of another one
)

func (b *hloBuffers) field(number int, _ uint64, data []byte) error {
	switch number {
	case 1:
		return b.buffer(data)
	case 3:
		return b.allocation(data)
	case 4:
		return b.trace(data)
	}
	return nil
}

func (b *hloBuffers) buffer(data []byte) error {
	var id, instruction uint64
	var size int64
	var path []uint64
	err := protobuf.Fields(data, func(number int, value uint64, inner []byte) error {
		switch number {
		case 1:
			id = value
		case 2:
			size = int64(value)
		case 3:
			return protobuf.Fields(inner, func(number int, value uint64, data []byte) (err error) {
				switch number {
				case 3:
					path, err = protobuf.Varints(path, value, data)
				case 4:
					instruction = value
				}
				return err
			})
		}
		return nil
	})
	b.defined[id], b.size[id] = instruction, max(0, size)
	if len(path) > 0 {
		b.path[id] = path
	}
	return err
}

func (b *hloBuffers) allocation(data []byte) error {
	var a hloAllocation
	err := protobuf.Fields(data, func(number int, value uint64, inner []byte) error {
		switch number {
		case 2:
			a.size = int64(value)
		case 3:
			a.local = value != 0
		case 5:
			a.argument = value != 0
		case 7:
			a.output = value != 0
		case 12:
			a.unchanged = value != 0
		case 9:
			var id uint64 // 0 is a buffer, too, and is not written
			err := protobuf.Fields(inner, func(number int, value uint64, _ []byte) error {
				if number == 1 {
					id = value
				}
				return nil
			})
			a.buffers = append(a.buffers, id)
			return err
		}
		return nil
	})
	b.allocations = append(b.allocations, a)
	return err
}

func (b *hloBuffers) trace(data []byte) error {
	var moves []hloMove
	err := protobuf.Fields(data, func(number int, _ uint64, inner []byte) error {
		if number != 1 {
			return nil
		}
		var m hloMove
		err := protobuf.Fields(inner, func(number int, value uint64, _ []byte) error {
			switch number {
			case 1:
				m.kind = value
			case 2:
				m.buffer = value
			case 5:
				m.shares = value
			}
			return nil
		})
		moves = append(moves, m)
		return err
	})
	b.moves = append(b.moves, moves)
	return err
}

// kind is what an allocation is for. An output in a donated argument is an argument.
func (a *hloAllocation) kind() string {
	switch {
	case a.argument:
		return HLOArgument
	case a.unchanged:
		return HLOConstant
	case a.output:
		return HLOOutput
	}
	return HLOTemporary
}

// held are the buffers of an allocation that fill it at its fullest.
func (b *hloBuffers) held(a *hloAllocation) []uint64 {
	if moves := b.movesOf(a); moves != nil && a.kind() == HLOTemporary {
		return b.fullest(moves)
	}
	for _, id := range slices.Backward(a.buffers) { // the last to be written is what comes out
		if b.size[id] == a.size {
			return []uint64{id}
		}
	}
	return nil
}

// movesOf is the heap whose buffers an allocation has. The number that a heap gives of its allocation is from before
// XLA numbered them anew.
func (b *hloBuffers) movesOf(a *hloAllocation) []hloMove {
	for _, moves := range b.moves {
		if len(moves) > 0 && slices.Contains(a.buffers, moves[0].buffer) {
			return moves
		}
	}
	return nil
}

// fullest plays temporaries and returns those that are alive when they are most.
func (b *hloBuffers) fullest(moves []hloMove) []uint64 {
	heap := newHLOHeap(b.size)
	var most int64
	best := 0
	for i, m := range moves {
		if heap.play(m); heap.now >= most {
			most, best = heap.now, i
		}
	}
	heap = newHLOHeap(b.size)
	for _, m := range moves[:best+1] {
		heap.play(m)
	}
	alive := slices.Collect(maps.Values(heap.holder))
	slices.SortFunc(alive, func(x, y uint64) int { return cmp.Or(cmp.Compare(b.size[y], b.size[x]), cmp.Compare(x, y)) })
	return alive
}

// hloHeap is what is alive. Of several buffers that share memory the one that had it last is told: XLA writes that the
// memory is free, and then who has it.
type hloHeap struct {
	size   map[uint64]int64
	now    int64
	first  map[uint64]uint64 // of a buffer, the one that had its memory first
	users  map[uint64]int    // of that memory
	holder map[uint64]uint64 // its last one
}

func newHLOHeap(size map[uint64]int64) *hloHeap {
	return &hloHeap{size: size, first: map[uint64]uint64{}, users: map[uint64]int{}, holder: map[uint64]uint64{}}
}

func (h *hloHeap) play(m hloMove) {
	first := m.buffer
	switch m.kind {
	case hloAlloc, hloShare:
		if known, ok := h.first[m.shares]; ok && m.kind == hloShare {
			first = known
		}
		h.first[m.buffer], h.holder[first] = first, m.buffer
		if h.users[first]++; h.users[first] == 1 {
			h.now += h.size[first]
		}
	case hloFree:
		if known, ok := h.first[m.buffer]; ok {
			first = known
		}
		if h.users[first] == 0 {
			return
		}
		if h.users[first]--; h.users[first] == 0 {
			h.now -= h.size[first]
			delete(h.holder, first)
		}
	}
}
