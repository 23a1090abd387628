package trace

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestReplacedByLargerOnesIsANote: a cache that is copied to be extended grows, and nothing of it is kept.
func TestReplacedByLargerOnesIsANote(t *testing.T) {
	s := &mem.AllocatorSnapshot{Label: mem.Measured}
	stack := func(line int) uint32 {
		return s.Stacks.Add([]uint32{s.Stacks.Location(mem.Location{File: "/home/me/generate.py", Line: line,
			Function: "f"})})
	}
	trace := mem.Trace{}
	add := func(action mem.Action, address uint64, size mem.Bytes, line int) {
		trace.Action, trace.Address, trace.Size = append(trace.Action, action), append(trace.Address, address<<30),
			append(trace.Size, size)
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
	r := reported(t, s, "x", Options{})
	notes := strings.Join(r.Notes, "\n")
	if len(r.Findings) != 0 || strings.Count(notes, "gets larger") != 1 ||
		!strings.Contains(notes, "What generate.py:9 holds gets larger") || !strings.Contains(notes, "little is kept of it") {
		t.Errorf("%+v\n%s", r.Findings, notes)
	}
}

// TestLookedOnSomeDevices: growth that was not looked for on one device is said beside what was looked for on another.
func TestLookedOnSomeDevices(t *testing.T) {
	one := func(title, looked, unlooked string) *explanation {
		return &explanation{Allocator: &report.Allocator{Title: title}, looked: looked, unlooked: unlooked}
	}
	x := Explaining{Report: report.New(), devices: []*explanation{one("device 0", "", "Growth was not looked for: A."),
		one("device 1", "a line", "")}}
	if did, not := x.looked(); did != "Device 1: looked for growth: a line." ||
		not != "Device 0: growth was not looked for: A." {
		t.Errorf("%q, %q", did, not)
	}
	x.Report.Headline.Looked, x.Report.Headline.NotLooked = x.looked()
	for _, said := range []string{x.Report.Text(report.TextOptions{}), x.Report.Markdown()} {
		if said := strings.Join(strings.Fields(said), " "); strings.Contains(said, "none.") || strings.Contains(said, "No findings") ||
			!strings.Contains(said, "not looked for: A. Device 1: looked for growth: a line.") {
			t.Error(said)
		}
	}
	x.devices = x.devices[1:]
	if did, not := x.looked(); did != "Looked for growth: a line." || not != "" {
		t.Errorf("%q, %q", did, not)
	}
	if got := counted(1, "event") + ", " + counted(2, "step"); got != "1 event is, 2 steps are" {
		t.Error(got)
	}
}
