// Package profiler turns what profilers write of a program's time line into allocations and frees with stacks.
//
//	a Chrome trace of PyTorch (package torch) ──┐
//	an XSpace of tf.profiler (xspace.go) ───────┴──▶ Trace: stays and events ──▶ mem.AllocatorSnapshot
//	a profile of ONNX Runtime (onnxruntime.go) ────▶ mem.NodeProfile
package profiler

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"

	"hightide/internal/mem"
)

// Stay is one in a function or operator: times in µs since the trace's base.
type Stay struct {
	Start, End float64
	Location   uint32
}

// Event is an allocation, or with negative bytes a free, or a request that failed.
type Event struct {
	Time     float64 // µs since the trace's base
	Thread   string
	Device   Device
	Address  uint64
	Bytes    int64
	Asked    int64 // of an allocation, where Bytes is what it was given; 0: they are one
	Before   int64 // allocated before it; 0 where the trace does not say
	Reserved int64 // after it
	Failed   bool
	Within   uint32 // with Named: a location inside of all stays, as the operator that allocates
	Named    bool
	Line     uint32 // with Lined: of the program, where no stay of its thread says one
	Lined    bool
	Metadata string // what else the profiler says of it; "": nothing
}

// Device is one by its kind: 1 is a GPU, 0 the host, others are numbered after these.
type Device struct {
	Kind, Index int
	Name        string // of others than GPUs; "": made from the kind
}

// Trace collects what a profiler says before it is put in order.
type Trace struct {
	Out    *mem.AllocatorSnapshot
	Base   int64 // ns of the wall clock at time 0
	Stays  map[string][]Stay
	Events []Event
	Python bool // it has frames of Python

	texts map[string]uint32

	NoAddresses, NoTotals bool // some events do not say where, or how much was allocated then
	SinceAsked            bool // the host's totals begin with 0 when memory is first recorded, whatever was there
}

// New is an empty trace, of a format.
func New(format string) *Trace {
	return &Trace{Out: &mem.AllocatorSnapshot{Format: format, Label: mem.Measured}, Stays: map[string][]Stay{}}
}

// At is ns of the wall clock where the trace says when it began.
func (t *Trace) At(us float64) int64 {
	if math.Abs(us) > 1e15 {
		return t.Base
	}
	return t.Base + int64(math.Round(us*1000))
}

// Assemble gives every memory event its stack and device, and the end its state.
func (t *Trace) Assemble() {
	sort.SliceStable(t.Events, func(i, j int) bool { return t.Events[i].Time < t.Events[j].Time })
	sort.SliceStable(t.Out.Annotations, func(i,
		j int) bool {
		return t.Out.Annotations[i].Time < t.Out.Annotations[j].Time
	})
	if t.NoAddresses {
		t.address()
	}
	if t.NoTotals {
		t.Out.Notes = append(t.Out.Notes,
			"Its events do not tell totals: what was allocated before the trace began is not known, and in no figure here.")
	}
	stacks := t.stacks()
	numbers := t.devices()
	traces := map[int]*mem.Trace{}
	live := map[int]map[uint64]mem.Block{}
	before := map[int]int64{} // allocated before the trace, and not freed in it
	var end uint64            // beyond every address
	for i, e := range t.Events {
		device := numbers[e.Device]
		trace := traces[device]
		if trace == nil {
			trace = &mem.Trace{Device: device}
			traces[device], live[device], before[device] = trace, map[uint64]mem.Block{}, e.Before
			t.countsOnly(device, e.Device.Kind == 0)
			if e.Before > 0 {
				t.Out.Notes = append(t.Out.Notes, fmt.Sprintf("%v on %s were allocated before this trace began: of which blocks "+
					"and where, it does not say.", mem.Bytes(e.Before), t.name(device)))
			}
		}
		action, size, address := mem.ActionAlloc, mem.Bytes(e.Bytes), e.Address
		if e.Failed {
			action, address = mem.ActionOOM, mem.FreeUnknown
		} else if size >= 0 {
			end = max(end, e.Address+uint64(size))
			live[device][e.Address] = mem.Block{Address: e.Address, Size: size, Requested: size, State: mem.BlockAllocated,
				Stack: stacks[i]}
		} else {
			action, size = mem.ActionFreeCompleted, -size
			if _, ok := live[device][e.Address]; !ok {
				before[device] -= int64(size)
			}
			delete(live[device], e.Address)
		}
		trace.Action = append(trace.Action, action)
		trace.Address = append(trace.Address, address)
		trace.Size = append(trace.Size, size)
		trace.Stream = append(trace.Stream, 0)
		trace.Time = append(trace.Time, t.At(e.Time))
		trace.Stack = append(trace.Stack, stacks[i])
		if e.Metadata != "" {
			trace.Metadata = append(trace.Metadata, make([]uint32, trace.Len()-1-len(trace.Metadata))...)
			trace.Metadata = append(trace.Metadata, t.text(e.Metadata))
		}
		trace.Reserved = append(trace.Reserved, mem.Bytes(max(0, e.Reserved)))
		trace.Asked = append(trace.Asked, mem.Bytes(e.Asked))
	}
	for _, device := range slices.Sorted(maps.Keys(traces)) {
		withoutEmpty(traces[device])
		t.Out.Traces = append(t.Out.Traces, *traces[device])
		if size := before[device]; size > 0 && end < 1<<62 {
			live[device][end] = mem.Block{Address: end, Size: mem.Bytes(size), Requested: mem.Bytes(size),
				State: mem.BlockAllocated}
		}
		for _, address := range slices.Sorted(maps.Keys(live[device])) {
			b := live[device][address]
			t.Out.Segments = append(t.Out.Segments, mem.Segment{Device: device, Address: address, Size: b.Size,
				Large: b.Size > mem.MiB, Stack: b.Stack, Blocks: []mem.Block{b}})
		}
	}
	t.Out.Bare = true
	t.Out.Notes = append(t.Out.Notes,
		"A profiler's trace says nothing of the allocator's own segments, so nothing is said of fragmentation.")
	if t.Python {
		t.Out.Notes = append(t.Out.Notes, "Its Python frames name where a function begins, not the line that ran in it.")
	}
}

// withoutEmpty drops columns in which no event says anything: of what does not cache, or tells less.
func withoutEmpty(trace *mem.Trace) {
	if slices.Max(trace.Reserved) == 0 {
		trace.Reserved = nil
	}
	if slices.Max(trace.Asked) == 0 {
		trace.Asked = nil
	}
}

// countsOnly notes what the events of a device leave out.
func (t *Trace) countsOnly(device int, host bool) {
	what := ""
	switch {
	case t.NoTotals:
		what = "what was allocated in the trace"
	case t.SinceAsked && host:
		what = "what was allocated while the profiler recorded memory"
		t.Out.Notes = append(t.Out.Notes, fmt.Sprintf("On %s PyTorch counts only what is allocated while a profiler "+
			"records memory: what was there before is not known, and in no figure here.", t.name(device)))
	default:
		return
	}
	if t.Out.CountsOnly == nil {
		t.Out.CountsOnly = map[int]string{}
	}
	t.Out.CountsOnly[device] = what
}

// address gives events addresses where the trace has none: a free is taken for that of the newest allocation of its
// size.
func (t *Trace) address() {
	type kind struct {
		device Device
		size   int64
	}
	live, next := map[kind][]uint64{}, uint64(1)
	for i := range t.Events {
		e := &t.Events[i]
		of := kind{e.Device, max(e.Bytes, -e.Bytes)}
		held := live[of]
		switch {
		case e.Failed:
		case e.Bytes < 0 && len(held) > 0:
			e.Address, live[of] = held[len(held)-1], held[:len(held)-1]
		default:
			e.Address, next = next, next+uint64(max(of.size, 1))
			if e.Bytes >= 0 {
				live[of] = append(held, e.Address)
			}
		}
	}
	t.Out.Label = mem.Estimated
	t.Out.Notes = append(t.Out.Notes, "Its events have no addresses, as those of old versions: a free is taken for "+
		"that of the newest allocation of its size. Sums are right; whose memory it is, is estimated.")
}

// text is the number of a text.
func (t *Trace) text(text string) uint32 {
	if t.texts == nil {
		t.texts, t.Out.Texts = map[string]uint32{}, []string{""}
	}
	number, known := t.texts[text]
	if !known {
		number = uint32(len(t.Out.Texts))
		t.texts[text], t.Out.Texts = number, append(t.Out.Texts, text)
	}
	return number
}

func (t *Trace) name(device int) string {
	if name, ok := t.Out.DeviceNames[device]; ok {
		return name
	}
	return fmt.Sprintf("GPU %d", device)
}

// devices numbers them: GPUs keep their index, others follow.
func (t *Trace) devices() map[Device]int {
	const cpu, cuda = 0, 1
	numbers := map[Device]int{}
	next := 0
	for _, e := range t.Events {
		if e.Device.Kind == cuda {
			numbers[e.Device] = e.Device.Index
			next = max(next, e.Device.Index+1)
		}
	}
	for _, e := range t.Events {
		if _, ok := numbers[e.Device]; ok {
			continue
		}
		numbers[e.Device] = next
		if t.Out.DeviceNames == nil {
			t.Out.DeviceNames = map[int]string{}
		}
		name := e.Device.Name
		switch {
		case name != "":
		case e.Device.Kind == cpu:
			name = "cpu"
		default:
			name = fmt.Sprintf("device %d of type %d", e.Device.Index, e.Device.Kind)
		}
		t.Out.DeviceNames[next] = name
		next++
	}
	return numbers
}

// stacks finds for every memory event the slices around it on its thread, by one sweep a thread.
func (t *Trace) stacks() []uint32 {
	out := make([]uint32, len(t.Events))
	byThread := map[string][]int{}
	for i, e := range t.Events {
		byThread[e.Thread] = append(byThread[e.Thread], i)
	}
	for thread, events := range byThread {
		list := t.Stays[thread]
		sort.SliceStable(list, func(i, j int) bool {
			return list[i].Start < list[j].Start || list[i].Start == list[j].Start && list[i].End > list[j].End
		})
		var open []Stay
		var innermost []uint32
		next := 0
		for _, i := range events {
			at := t.Events[i].Time
			for ; next < len(list) && list[next].Start <= at; next++ {
				open = append(inside(open, list[next].Start), list[next])
			}
			open = inside(open, at)
			innermost = innermost[:0]
			if t.Events[i].Named {
				innermost = append(innermost, t.Events[i].Within)
			}
			for _, s := range slices.Backward(open) {
				innermost = append(innermost, s.Location)
			}
			if len(open) == 0 && t.Events[i].Lined {
				innermost = append(innermost, t.Events[i].Line)
			}
			out[i] = t.Out.Stacks.Add(innermost)
		}
	}
	return out
}

// inside drops the slices that ended before a moment.
func inside(open []Stay, at float64) []Stay {
	return slices.DeleteFunc(open, func(s Stay) bool { return s.End < at })
}
