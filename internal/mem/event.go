package mem

import (
	"maps"
	"strconv"
	"strings"
)

// Event is something that happened once. Kinds: start, end, exit, oom, alert, drop, gap, log,
// process-start, process-end, unobserved, kill, EventDescriptors.
type Event struct {
	Time    int64             `json:"time_ns"`
	Process uint32            `json:"process,omitempty"`
	Kind    string            `json:"kind"`
	Text    string            `json:"text,omitempty"`
	Step    Optional          `json:"step,omitzero"`
	Bytes   Optional          `json:"bytes,omitzero"`
	Where   *Location         `json:"where,omitempty"`
	Facts   map[string]string `json:"facts,omitempty"`
	Numbers map[string]int64  `json:"numbers,omitempty"` // as Facts, of integers: bytes, ns and counts, by what they are of
}

// Number is one of the event's integers; absent: it does not have it.
func (e *Event) Number(name string) Optional {
	if n, ok := e.Numbers[name]; ok {
		return Some(n)
	}
	return Optional{}
}

// textNumbers are the integers that events of a kind had among their facts, in recordings of before there were Numbers.
var textNumbers = map[string][]string{
	"oom":      {"limit", "mapped", "stack"},
	"traced":   {"count"},
	"program":  {"count", "argument_bytes", "output_bytes", "alias_bytes", "temp_bytes", "code_bytes", "code_total_bytes"},
	"donation": {"count"}, "cycle": {"count"}, "dataset": {"items"}, "attach": {"age_ns"},
	EventGarbage: {"often", "device_bytes", "device_often", "collections", "objects", "longest_ns", "spent_ns", "stack",
		"stack_bytes"},
	EventUnusedGraphs: {"count", "at_once", "used"},
	EventSharedLeft:   {"blocks", "before_bytes", "before_blocks"},
}

// withNumbers is an event as it is recorded now: what was an integer in words is one. A number that is none is left out.
func (e Event) withNumbers() Event {
	if len(e.Facts) == 0 || len(e.Numbers) > 0 {
		return e
	}
	facts, numbers := maps.Clone(e.Facts), map[string]int64{}
	take := func(name, text string) {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			numbers[name] = n
		}
	}
	for _, name := range textNumbers[e.Kind] {
		take(name, facts[name])
		delete(facts, name)
	}
	if e.Kind == EventDescriptors { // "560 /data/*.txt"
		for name, text := range facts {
			count, kind, _ := strings.Cut(text, " ")
			take(name, count)
			facts[name] = kind
		}
	}
	if len(numbers) > 0 {
		e.Facts, e.Numbers = facts, numbers
	}
	return e
}

// EventDescriptors is the kind of an event that says how many open descriptors of each kind a process has. The most
// frequent kind is the fact "1", as socket, pipe or /data/*.txt; the number of that name is how many there are.
const EventDescriptors = "descriptors"

// EventSharedLeft is the kind of an event that says at the end what of /dev/shm no process maps or has open: Bytes of
// blocks that were made or written to meanwhile; as a number how many, as a fact the largest one's name, and the same of
// those from before.
const EventSharedLeft = "shared-left"

// EventGarbage is the kind of an event that says what Python's collector freed at most at once: Bytes of the host; as
// numbers those of devices, how often a quarter of that or more, and the stack that allocated most of it. A later one of a
// process replaces the earlier.
const EventGarbage = "garbage"

// EventUnusedGraphs is the kind of an event that says how many forward passes of a line saved tensors for a backward pass
// that never came; as numbers also how many such graphs were there at once, and how many of the line were used. A later
// one of the same line replaces the earlier.
const EventUnusedGraphs = "unused_graphs"

func (Event) frame() {}

// withNumbers is a process as it is recorded now, likewise.
func (p Process) withNumbers() Process {
	cloned := false
	take := func(name string, put func(int64)) {
		text, old := p.Facts[name]
		if !old {
			return
		}
		if !cloned {
			p.Facts, p.Numbers, cloned = maps.Clone(p.Facts), maps.Clone(p.Numbers), true
		}
		delete(p.Facts, name)
		if n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64); err == nil {
			put(n)
		}
	}
	for name, to := range map[string]*Optional{"peak_before_bytes": &p.PeakBefore, "heap_mean_bytes": &p.HeapMean} {
		take(name, func(n int64) { *to = Some(n) })
	}
	for _, name := range []string{NumberParameters, "agent_cpu_ns", "heap_untracked", "heap_walk", "offloaded bytes"} {
		take(name, func(n int64) { p.SetNumber(name, n) })
	}
	return p
}

// Number is what a process said of a thing in numbers; absent where it said nothing.
func (p *Process) Number(name string) Optional {
	if n, ok := p.Numbers[name]; ok {
		return Some(n)
	}
	return Optional{}
}

// SetNumber notes a number; the last one of a name stands.
func (p *Process) SetNumber(name string, n int64) {
	if p.Numbers == nil {
		p.Numbers = map[string]int64{}
	}
	p.Numbers[name] = n
}

// NumberOwnLimit is the number of an event of memory that ran out that says to how many bytes of the device the program
// limits itself, as by torch.cuda.set_per_process_memory_fraction.
const NumberOwnLimit = "own_limit"

// NumberHistory is the number of a process that says how many bytes of its host memory the history of a device's
// allocator may come to take, which the agent has recorded.
const NumberHistory = "allocator_history_bytes"

// NumberParameters is the number of a process that says how many numbers its model's parameters have.
const NumberParameters = "parameters"
