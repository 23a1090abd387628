package mem

import (
	"slices"
	"strings"
)

// ofChild are exceptions that say no more than that a child failed, as launchers raise them.
var ofChild = []string{"ChildFailedError", "ProcessRaisedException", "ProcessExitedException", "CalledProcessError"}

// TellsOfChild says whether an exception says no more than that a child failed.
func TellsOfChild(e Event) bool { return slices.Contains(ofChild, e.Facts["class"]) }

// Shortage says whether an exception tells that memory ran out, or was raised in the handling of one that does.
func (e *Event) Shortage() bool {
	text := strings.ToLower(e.Text + " " + e.Facts["class"] + " " + e.Facts["from"])
	return strings.Contains(text, "out of memory") || strings.Contains(text, "outofmemory") || strings.Contains(text, "alloc_failed")
}

// Uncaught is the exception that nobody caught and that ended a process, the main one's where it has one. Where that
// only tells of a child, it is the first of those: the others may have failed for its sake.
func (r *Run) Uncaught() (last Event, ok bool) {
	main := func(process uint32) bool {
		p := r.Process(process)
		return p != nil && p.Role == "main"
	}
	var first Event
	for _, e := range r.Events {
		if e.Kind != "exception" || e.Facts["class"] == "" {
			continue
		}
		if first.Kind == "" && !main(e.Process) {
			first = e
		}
		if !ok || main(e.Process) || !main(last.Process) {
			last, ok = e, true
		}
	}
	if first.Kind != "" && main(last.Process) && TellsOfChild(last) {
		last = first
	}
	return last, ok
}
