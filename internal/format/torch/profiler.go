package torch

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"sort"
	"strconv"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// chromeEvent is what is read of an entry of a Chrome trace as PyTorch's profiler (Kineto) writes it.
type chromeEvent struct {
	Phase    string  `json:"ph"`
	Category string  `json:"cat"`
	Name     string  `json:"name"`
	Thread   any     `json:"tid"`
	Start    float64 `json:"ts"`  // µs
	Duration float64 `json:"dur"` // µs
	Args     struct {
		Type    *int    `json:"Device Type"` // c10::DeviceType
		Device  int     `json:"Device Id"`
		Address *uint64 `json:"Addr"` // nil: versions before 1.12
		Bytes   *int64  `json:"Bytes"`
		Total   *int64  `json:"Total Allocated"` // nil: the same

		Reserved int64 `json:"Total Reserved"` // of caching allocators; 0 elsewhere
	} `json:"args"`
}

// slice is a stay in a function or operator.
type slice struct {
	start, end float64
	location   uint32
}

// memoryEvent is an allocation, or with negative bytes a free, or a request that failed.
type memoryEvent struct {
	time    float64
	thread  string
	device  profilerDevice
	address uint64
	bytes   int64
	before  int64 // allocated before it; 0 where the trace does not say

	reserved int64 // after it
	failed   bool
}

type profilerDevice struct{ kind, index int }

const maxSlices = 1 << 26

// profilerTrace collects a trace before it is put in order.
type profilerTrace struct {
	out    *mem.AllocatorSnapshot
	base   int64 // ns of the wall clock at ts 0
	slices map[string][]slice
	events []memoryEvent
	count  int
	python bool // it has frames of Python

	noAddresses, noTotals bool // some events do not say where, or how much was allocated then
}

func IsTrace(head []byte) bool { return jsonHas(head, "traceEvents", "ph") }

// ReadTrace reads a Chrome trace that PyTorch's profiler exported with profile_memory: every
// allocation and free, with the operators and, where recorded with_stack, the Python functions
// that were running on its thread. The state at the end is what was not freed.
func ReadTrace(r io.Reader) (*mem.AllocatorSnapshot, error) {
	t := &profilerTrace{out: &mem.AllocatorSnapshot{Format: "profiler-trace", Label: mem.Measured}, slices: map[string][]slice{}}
	in := json.NewDecoder(bufio.NewReaderSize(r, 256<<10))
	if err := t.read(in); err != nil {
		return nil, fmt.Errorf("JSON at byte %d: %w", in.InputOffset(), err)
	}
	if len(t.events) == 0 {
		return nil, errors.New("this trace has no memory events: record it with torch.profiler.profile(profile_memory=True)")
	}
	t.assemble()
	return t.out, nil
}

// read walks the outermost object, or the bare list of events that some tools write.
func (t *profilerTrace) read(in *json.Decoder) error {
	first, err := in.Token()
	if err != nil {
		return err
	}
	if first == json.Delim('[') {
		return t.readEvents(in)
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return err
		}
		switch key {
		case "traceEvents":
			if open, err := in.Token(); err != nil || open != json.Delim('[') {
				return errors.Join(err, errors.New("traceEvents is no list"))
			}
			err = t.readEvents(in)
		case "baseTimeNanoseconds":
			err = in.Decode(&t.base)
		case "deviceProperties":
			err = t.readDevices(in)
		default:
			var skipped json.RawMessage
			err = in.Decode(&skipped)
		}
		if err != nil {
			return err
		}
	}
	_, err = in.Token()
	return err
}

func (t *profilerTrace) readEvents(in *json.Decoder) error {
	for in.More() {
		var e chromeEvent
		var wrong *json.UnmarshalTypeError
		if err := in.Decode(&e); err != nil && !errors.As(err, &wrong) {
			return err
		} else if err != nil && e.Name != memoryEntry && e.Name != failedEntry {
			continue // an entry of another tool, with fields of other types
		} else if err != nil {
			return err
		}
		if err := t.entry(&e); err != nil {
			return err
		}
	}
	_, err := in.Token() // ]
	return err
}

// readDevices keeps how much memory the devices have; what it cannot read it leaves.
func (t *profilerTrace) readDevices(in *json.Decoder) error {
	var text json.RawMessage
	if err := in.Decode(&text); err != nil {
		return err
	}
	var devices []struct {
		ID    int       `json:"id"`
		Total mem.Bytes `json:"totalGlobalMem"`
	}
	if json.Unmarshal(text, &devices) != nil {
		return nil
	}
	t.out.DeviceMemory = map[int]mem.Bytes{}
	for _, d := range devices {
		if d.Total > 0 {
			t.out.DeviceMemory[d.ID] = d.Total
		}
	}
	return nil
}

// How the profiler names an allocation or free, and a request that failed.
const memoryEntry, failedEntry = "[memory]", "[OutOfMemory]"

func (t *profilerTrace) entry(e *chromeEvent) error {
	if t.count++; t.count > maxSlices {
		return fmt.Errorf("more than %d entries", maxSlices)
	}
	thread := fmt.Sprint(e.Thread)
	switch {
	case (e.Name == memoryEntry || e.Name == failedEntry) && e.Args.Bytes != nil:
		size, before, kind := *e.Args.Bytes, int64(0), 1
		if e.Args.Type != nil {
			kind = *e.Args.Type
		}
		failed := e.Name == failedEntry
		if size > int64(mem.MaxSize) || size < -int64(mem.MaxSize) || failed && size < 0 {
			return fmt.Errorf("a memory event of %d bytes", size)
		}
		if e.Args.Total == nil {
			t.noTotals = true
		} else if before = *e.Args.Total; !failed {
			before -= size
		}
		var address uint64
		if e.Args.Address != nil {
			address = *e.Args.Address
		} else if !failed {
			t.noAddresses = true
		}
		t.events = append(t.events, memoryEvent{e.Start, thread, profilerDevice{kind, max(0, e.Args.Device)}, address, size, before, e.Args.Reserved, failed})
	case e.Phase == "X" && (e.Category == "python_function" || e.Category == "cpu_op"):
		t.slices[thread] = append(t.slices[thread], slice{e.Start, e.Start + e.Duration, t.location(e)})
	case e.Phase == "X" && e.Category == "user_annotation":
		t.out.Annotations = append(t.out.Annotations, mem.Annotation{Name: e.Name, Time: t.time(e.Start)},
			mem.Annotation{Name: e.Name, Time: t.time(e.Start + e.Duration), End: true})
	}
	return nil
}

// pythonFunction is how the profiler names one: "train.py(5): main".
var pythonFunction = words.Lazy(`^(.+)\((\d+)\): (.+)$`)

// packaged matches files of well-known packages. The profiler leaves the folders of sys.path out, which would tell them
// from the program.
var packaged = words.Lazy(`^(torch|torchvision|torchaudio|triton|transformers|accelerate|diffusers|peft|timm|lightning|pytorch_lightning|deepspeed|megatron|numpy)/`)

func profilerLocation(name string) mem.Location {
	if m := pythonFunction.FindStringSubmatch(name); m != nil {
		file := m[1]
		if packaged.MatchString(file) {
			file = "site-packages/" + file
		}
		line, _ := strconv.Atoi(m[2])
		return mem.Location{File: file, Line: line, Function: m[3]}
	}
	return mem.Location{Function: name, Native: true}
}

func (t *profilerTrace) location(e *chromeEvent) uint32 {
	l := profilerLocation(e.Name)
	t.python = t.python || !l.Native
	return t.out.Stacks.Location(l)
}

// time is ns of the wall clock where the trace says when it began.
func (t *profilerTrace) time(us float64) int64 {
	if math.Abs(us) > 1e15 {
		return t.base
	}
	return t.base + int64(math.Round(us*1000))
}

// assemble gives every memory event its stack and device, and the end its state.
func (t *profilerTrace) assemble() {
	sort.SliceStable(t.events, func(i, j int) bool { return t.events[i].time < t.events[j].time })
	sort.SliceStable(t.out.Annotations, func(i, j int) bool { return t.out.Annotations[i].Time < t.out.Annotations[j].Time })
	if t.noAddresses {
		t.address()
	}
	if t.noTotals {
		t.out.Notes = append(t.out.Notes, "Its events do not tell totals: what was allocated before the trace began is not known, and in no figure here.")
	}
	stacks := t.stacks()
	numbers := t.devices()
	traces := map[int]*mem.Trace{}
	live := map[int]map[uint64]mem.Block{}
	before := map[int]int64{} // allocated before the trace, and not freed in it
	var end uint64            // beyond every address
	for i, e := range t.events {
		device := numbers[e.device]
		trace := traces[device]
		if trace == nil {
			trace = &mem.Trace{Device: device}
			traces[device], live[device], before[device] = trace, map[uint64]mem.Block{}, e.before
			if e.before > 0 {
				t.out.Notes = append(t.out.Notes, fmt.Sprintf("%v on %s were allocated before this trace began: of which blocks and where, it does not say.", mem.Bytes(e.before), t.name(device)))
			}
		}
		action, size, address := mem.ActionAlloc, mem.Bytes(e.bytes), e.address
		if e.failed {
			action, address = mem.ActionOOM, mem.FreeUnknown
		} else if size >= 0 {
			end = max(end, e.address+uint64(size))
			live[device][e.address] = mem.Block{Address: e.address, Size: size, Requested: size, State: mem.BlockAllocated, Stack: stacks[i]}
		} else {
			action, size = mem.ActionFreeCompleted, -size
			if _, ok := live[device][e.address]; !ok {
				before[device] -= int64(size)
			}
			delete(live[device], e.address)
		}
		trace.Action = append(trace.Action, action)
		trace.Address = append(trace.Address, address)
		trace.Size = append(trace.Size, size)
		trace.Stream = append(trace.Stream, 0)
		trace.Time = append(trace.Time, t.time(e.time))
		trace.Stack = append(trace.Stack, stacks[i])
		trace.Reserved = append(trace.Reserved, mem.Bytes(max(0, e.reserved)))
	}
	for _, device := range slices.Sorted(maps.Keys(traces)) {
		if slices.Max(traces[device].Reserved) == 0 { // nothing that caches, or that says what it holds
			traces[device].Reserved = nil
		}
		t.out.Traces = append(t.out.Traces, *traces[device])
		if size := before[device]; size > 0 && end < 1<<62 {
			live[device][end] = mem.Block{Address: end, Size: mem.Bytes(size), Requested: mem.Bytes(size), State: mem.BlockAllocated}
		}
		for _, address := range slices.Sorted(maps.Keys(live[device])) {
			b := live[device][address]
			t.out.Segments = append(t.out.Segments, mem.Segment{Device: device, Address: address, Size: b.Size, Large: b.Size > mem.MiB, Stack: b.Stack, Blocks: []mem.Block{b}})
		}
	}
	t.out.Bare = true
	t.out.Notes = append(t.out.Notes, "A profiler's trace says nothing of the allocator's own segments, so nothing is said of fragmentation.")
	if t.python {
		t.out.Notes = append(t.out.Notes, "Its Python frames name where a function begins, not the line that ran in it.")
	}
}

// address gives events addresses where the trace has none: a free is taken for that of the newest allocation of its size.
func (t *profilerTrace) address() {
	type kind struct {
		device profilerDevice
		size   int64
	}
	live, next := map[kind][]uint64{}, uint64(1)
	for i := range t.events {
		e := &t.events[i]
		of := kind{e.device, max(e.bytes, -e.bytes)}
		held := live[of]
		switch {
		case e.failed:
		case e.bytes < 0 && len(held) > 0:
			e.address, live[of] = held[len(held)-1], held[:len(held)-1]
		default:
			e.address, next = next, next+uint64(max(of.size, 1))
			if e.bytes >= 0 {
				live[of] = append(held, e.address)
			}
		}
	}
	t.out.Label = mem.Estimated
	t.out.Notes = append(t.out.Notes, "Its events have no addresses, as those of old versions: a free is taken for that of the newest allocation of its size. Sums are right; whose memory it is, is estimated.")
}

func (t *profilerTrace) name(device int) string {
	if name, ok := t.out.DeviceNames[device]; ok {
		return name
	}
	return fmt.Sprintf("GPU %d", device)
}

// devices numbers them: GPUs keep their index, others follow.
func (t *profilerTrace) devices() map[profilerDevice]int {
	const cpu, cuda = 0, 1
	numbers := map[profilerDevice]int{}
	next := 0
	for _, e := range t.events {
		if e.device.kind == cuda {
			numbers[e.device] = e.device.index
			next = max(next, e.device.index+1)
		}
	}
	for _, e := range t.events {
		if _, ok := numbers[e.device]; ok {
			continue
		}
		numbers[e.device] = next
		if t.out.DeviceNames == nil {
			t.out.DeviceNames = map[int]string{}
		}
		name := "cpu"
		if e.device.kind != cpu {
			name = fmt.Sprintf("device %d of type %d", e.device.index, e.device.kind)
		}
		t.out.DeviceNames[next] = name
		next++
	}
	return numbers
}

// stacks finds for every memory event the slices around it on its thread, by one sweep a thread.
func (t *profilerTrace) stacks() []uint32 {
	out := make([]uint32, len(t.events))
	byThread := map[string][]int{}
	for i, e := range t.events {
		byThread[e.thread] = append(byThread[e.thread], i)
	}
	for thread, events := range byThread {
		list := t.slices[thread]
		sort.SliceStable(list, func(i, j int) bool {
			return list[i].start < list[j].start || list[i].start == list[j].start && list[i].end > list[j].end
		})
		var open []slice
		var innermost []uint32
		next := 0
		for _, i := range events {
			at := t.events[i].time
			for ; next < len(list) && list[next].start <= at; next++ {
				open = append(inside(open, list[next].start), list[next])
			}
			open = inside(open, at)
			innermost = innermost[:0]
			for _, s := range slices.Backward(open) {
				innermost = append(innermost, s.location)
			}
			out[i] = t.out.Stacks.Add(innermost)
		}
	}
	return out
}

// inside drops the slices that ended before a moment.
func inside(open []slice, at float64) []slice {
	return slices.DeleteFunc(open, func(s slice) bool { return s.end < at })
}
