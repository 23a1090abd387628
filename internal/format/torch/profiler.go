package torch

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"hightide/internal/format/profiler"
	"hightide/internal/mem"
	"hightide/internal/words"
)

// chromeEvent is what is read of an entry of a Chrome trace as PyTorch's profiler (Kineto) writes it.
type chromeEvent struct {
	Phase    string  `json:"ph"`
	Category string  `json:"cat"`
	Name     string  `json:"name"`
	Process  any     `json:"pid"`
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

const maxSlices = 1 << 26

// maxStrange bounds how many entries of another tool may come before the first memory event: each takes as long as an
// error does.
const maxStrange = 1 << 19

// chromeTrace is a trace while it is read.
type chromeTrace struct {
	*profiler.Trace
	strange int // entries of another tool
	count   int
	process string // of the first memory event; traces of several are merged by other tools
	others  bool   // there are more
}

func IsTrace(head []byte) bool { return jsonHas(head, "traceEvents", "ph") }

// ErrTimeline says why a memory timeline is not read.
var ErrTimeline = errors.New("a memory timeline of PyTorch's profiler has sums of categories and no blocks: export " +
	"the same profile with export_chrome_trace, which is read")

// IsTimeline knows a memory timeline of export_memory_timeline: lists that begin with a time in µs or ns, or with −1
// for what was there before.
func IsTimeline(head []byte) bool {
	inner, ok := bytes.CutPrefix(bytes.TrimSpace(head), []byte("[["))
	digits := bytes.IndexFunc(inner, func(r rune) bool { return r < '0' || r > '9' })
	return ok && (bytes.HasPrefix(inner, []byte("-1, ")) || digits >= 16)
}

// ReadTrace reads a Chrome trace that PyTorch's profiler exported with profile_memory. It has every
// allocation and free, with the operators. Where it was recorded with_stack, it has the Python functions
// that were running on its thread. The state at the end is what was not freed.
func ReadTrace(r io.Reader) (*mem.AllocatorSnapshot, error) {
	t := &chromeTrace{Trace: profiler.New("profiler-trace")}
	t.SinceAsked = true
	in := json.NewDecoder(bufio.NewReaderSize(r, 256<<10))
	if err := t.readTrace(in); err != nil {
		return nil, fmt.Errorf("JSON at byte %d: %w", in.InputOffset(), err)
	}
	if len(t.Events) == 0 {
		return nil, errors.New("this trace has no memory events: record it with torch.profiler.profile(profile_memory=True)")
	}
	if t.others { // nothing tells whose they are
		t.Out.Annotations = nil
	}
	t.Assemble()
	if t.others {
		t.Out.Notes = append(t.Out.Notes, fmt.Sprintf("It is of several processes, each with devices of its own here; "+
			"those without a process in their name are of process %s.", t.process))
	}
	return t.Out, nil
}

// readTrace walks the outermost object, or the bare list of events that some tools write.
func (t *chromeTrace) readTrace(in *json.Decoder) error {
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
				return errors.Join(err, errors.New("traceEvents is not a list"))
			}
			err = t.readEvents(in)
		case "baseTimeNanoseconds":
			err = in.Decode(&t.Base)
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

func (t *chromeTrace) readEvents(in *json.Decoder) error {
	for in.More() {
		var e chromeEvent
		var wrong *json.UnmarshalTypeError
		if t.count++; t.count > maxSlices {
			return fmt.Errorf("more than %d entries", maxSlices)
		}
		if err := in.Decode(&e); err != nil && !errors.As(err, &wrong) {
			return err
		} else if err != nil && e.Name != memoryEntry && e.Name != failedEntry {
			if t.strange++; t.strange > maxStrange && len(t.Events) == 0 {
				return fmt.Errorf("more than %d entries of another form than the profiler's, and no memory event among them",
					maxStrange)
			}
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
func (t *chromeTrace) readDevices(in *json.Decoder) error {
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
	t.Out.DeviceMemory = map[int]mem.Bytes{}
	for _, d := range devices {
		if d.Total > 0 {
			t.Out.DeviceMemory[d.ID] = d.Total
		}
	}
	return nil
}

// How the profiler names an allocation or free, and a request that failed.
const memoryEntry, failedEntry = "[memory]", "[OutOfMemory]"

func (t *chromeTrace) entry(e *chromeEvent) error {
	thread := fmt.Sprint(e.Process, "/", e.Thread)
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
			t.NoTotals = true
		} else if before = *e.Args.Total; !failed {
			before -= size
		}
		var address uint64
		if e.Args.Address != nil {
			address = *e.Args.Address
		} else if !failed {
			t.NoAddresses = true
		}
		t.Events = append(t.Events, profiler.Event{Time: e.Start, Thread: thread, Device: t.device(e, kind),
			Address: address, Bytes: size, Before: before, Reserved: e.Args.Reserved, Failed: failed})
	case e.Phase == "X" && (e.Category == "python_function" || e.Category == "cpu_op"):
		t.Stays[thread] = append(t.Stays[thread], profiler.Stay{Start: e.Start, End: e.Start + e.Duration,
			Location: t.location(e)})
	case e.Phase == "X" && e.Category == "user_annotation":
		t.Out.Annotations = append(t.Out.Annotations, mem.Annotation{Name: e.Name, Time: t.At(e.Start)},
			mem.Annotation{Name: e.Name, Time: t.At(e.Start + e.Duration), End: true})
	}
	return nil
}

// device is that of a memory event: in a trace of several processes each has its own.
func (t *chromeTrace) device(e *chromeEvent, kind int) profiler.Device {
	d := profiler.Device{Kind: kind, Index: max(0, e.Args.Device)}
	process := fmt.Sprint(e.Process)
	t.process = cmp.Or(t.process, process)
	if process == t.process {
		return d
	}
	t.others = true
	switch kind {
	case 0:
		d.Name = "cpu"
	case 1:
		d.Kind, d.Name = -1, fmt.Sprintf("GPU %d", d.Index) // GPUs alone keep their number
	default:
		d.Name = fmt.Sprintf("device %d of type %d", d.Index, kind)
	}
	d.Name += " of process " + process
	return d
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

func (t *chromeTrace) location(e *chromeEvent) uint32 {
	l := profilerLocation(e.Name)
	t.Python = t.Python || !l.Native
	return t.Out.Stacks.Location(l)
}
