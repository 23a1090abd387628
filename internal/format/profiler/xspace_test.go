package profiler

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// part is a field of a message that holds bytes, number one that holds a number.
func part(field int, data ...[]byte) []byte {
	inner := slices.Concat(data...)
	return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field<<3|2)), uint64(len(inner))), inner...)
}

func number(field int, value uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field<<3)), value)
}

// TestXSpaceOfAGPU is written as TensorFlow writes of a GPU, which is not here. Its allocator's name is its device,
// and functions of Python that are around an allocation on its thread are its stack.
func TestXSpaceOfAGPU(t *testing.T) {
	names := []string{"", "MemoryAllocation", "MemoryDeallocation", "$train.py:7 main"}
	stats := []string{"", "allocator_name", "tf_op", "allocation_bytes", "bytes_allocated", "addr", "GPU_1_bfc", "MatMul"}
	entries := func(field int, texts []string) (all []byte) {
		for i, text := range texts[1:] {
			all = append(all, part(field, number(1, uint64(i+1)), part(2, number(1, uint64(i+1)), part(2, []byte(text))))...)
		}
		return all
	}
	memory := func(kind, at, held uint64, op bool) []byte {
		event := slices.Concat(number(1, kind), number(2, at*1e6), part(4, number(1, 1), number(7, 6)),
			part(4, number(1, 3), number(4, 512)), part(4, number(1, 4), number(4, held)),
			part(4, number(1, 5), number(3, 4096)))
		if op {
			event = append(event, part(4, number(1, 2), number(7, 7))...)
		}
		return part(4, event)
	}
	main := part(4, number(1, 3), number(2, 0), number(3, 100e6)) // until 100 µs
	line := part(3, number(1, 9), number(3, 5000), main, memory(1, 10, 1512, true), memory(2, 200, 1000, false))
	data := slices.Concat(part(1, number(1, 1), part(2, []byte("/host:CPU")), line, entries(4, names), entries(5, stats)),
		part(1, part(2, []byte("/device:GPU:1")), line)) // what devices computed is not an allocation
	if !IsXSpace(data) || IsXSpace([]byte("\x0a\x04\x08\x01\x10\x02\x12\x06")) {
		t.Error("not told from other files")
	}
	s, err := ReadXSpace(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Traces) != 1 || s.Traces[0].Device != 1 ||
		!slices.Equal(s.Traces[0].Action, []mem.Action{mem.ActionAlloc, mem.ActionFreeCompleted}) {
		t.Fatalf("%+v", s.Traces)
	}
	frames := s.Stacks.Frames(s.Traces[0].Stack[0])
	if len(frames) != 2 || frames[0].Function != "MatMul" ||
		frames[1] != (mem.Location{File: "train.py", Line: 7, Function: "main"}) {
		t.Errorf("%+v", frames)
	}
	if len(s.Stacks.Frames(s.Traces[0].Stack[1])) != 0 {
		t.Error("what was freed after the function has its stack")
	}
	if total := s.Totals(1); total.Allocated != 1000 { // from before the profile, of which it does not say where
		t.Errorf("%+v", total)
	}
}

// TestXSpaceWithLines has the plane that our agent adds: an operation of a graph, on a thread without Python, has the
// line that made it; an operation of that name that ran eagerly has the line around it.
func TestXSpaceWithLines(t *testing.T) {
	event := func(n uint64, name string) []byte {
		return part(4, number(1, n), part(2, number(1, n), part(2, []byte(name))))
	}
	text := func(n uint64, name string) []byte {
		return part(5, number(1, n), part(2, number(1, n), part(2, []byte(name))))
	}
	memory := func(at, address uint64) []byte {
		return part(4, number(1, 1), number(2, at*1e6), part(4, number(1, 1), number(7, 5)),
			part(4, number(1, 2), number(7, 6)), part(4, number(1, 3), number(4, 512)),
			part(4, number(1, 4), number(3, address)), part(4, number(1, 7), number(4, 500)))
	}
	around := part(4, number(1, 2), number(2, 0), number(3, 100e6))
	host := part(1, part(2, []byte("/host:CPU")), event(1, "MemoryAllocation"), event(2, "$train.py:7 main"),
		text(1, "allocator_name"), text(2, "tf_op"), text(3, "allocation_bytes"), text(4, "addr"), text(5, "GPU_0_bfc"),
		text(6, "MatMul"), text(7, "requested_bytes"), part(3, number(1, 1), around, memory(10, 4096)), part(3, number(1, 2), memory(20, 8192)))
	shown := part(2, number(1, 1), part(2, []byte("MatMul")), part(4, []byte("$/home/me/model.py:12 dense/one")))
	lines := part(1, part(2, []byte(linesPlane)), part(4, number(1, 1), shown))
	s, err := ReadXSpace(bytes.NewReader(slices.Concat(host, lines)))
	if err != nil {
		t.Fatal(err)
	}
	if asked := s.Traces[0].Asked; !slices.Equal(asked, []mem.Bytes{500, 500}) {
		t.Errorf("asked for %v", asked)
	}
	stacks := s.Traces[0].Stack
	eager, graph := s.Stacks.Frames(stacks[0]), s.Stacks.Frames(stacks[1])
	if len(eager) != 2 || eager[1] != (mem.Location{File: "train.py", Line: 7, Function: "main"}) {
		t.Errorf("%+v", eager)
	}
	if len(graph) != 2 || graph[1] != (mem.Location{File: "/home/me/model.py", Line: 12, Function: "dense/one"}) {
		t.Errorf("%+v", graph)
	}
	for _, note := range s.Notes {
		if strings.Contains(note, "where a function begins") {
			t.Errorf("frames are lines that ran, and it says: %s", note)
		}
	}
}
