package analyze

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestReplacedByLargerOnesIsANote: a cache that is copied to be extended grows, and nothing of it is kept.
func TestReplacedByLargerOnesIsANote(t *testing.T) {
	s := &mem.AllocatorSnapshot{Label: mem.Measured}
	stack := func(line int) uint32 {
		return s.Stacks.Add([]uint32{s.Stacks.Location(mem.Location{File: "/home/me/generate.py", Line: line, Function: "f"})})
	}
	trace := mem.Trace{}
	add := func(action mem.Action, address uint64, size mem.Bytes, line int) {
		trace.Action, trace.Address, trace.Size = append(trace.Action, action), append(trace.Address, address<<30), append(trace.Size, size)
		trace.Stream, trace.Stack = append(trace.Stream, 0), append(trace.Stack, stack(line))
	}
	add(mem.ActionAlloc, 1, 64*mem.KiB, 9)
	for token := uint64(1); token <= 300; token++ {
		add(mem.ActionAlloc, 500, mem.MiB, 7)
		add(mem.ActionAlloc, 1+token, mem.Bytes(token+1)*64*mem.KiB, 9)
		add(mem.ActionFreeCompleted, token, mem.Bytes(token)*64*mem.KiB, 9)
		add(mem.ActionFreeCompleted, 500, mem.MiB, 7)
	}
	s.Traces = []mem.Trace{trace}
	r := reported(t, s, "x", ExplainOptions{})
	notes := strings.Join(r.Notes, "\n")
	if len(r.Findings) != 0 || strings.Count(notes, "gets larger") != 1 || !strings.Contains(notes, "What generate.py:9 holds gets larger") || !strings.Contains(notes, "little is kept of it") {
		t.Errorf("%+v\n%s", r.Findings, notes)
	}
}
