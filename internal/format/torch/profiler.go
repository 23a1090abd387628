package torch

import (
	"bufio"
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

// chromeTrace is a trace while it is read.
type chromeTrace struct {
	*profiler.Trace
	count int
}

func IsTrace(head []byte) bool { return jsonHas(head, "traceEvents", "ph") }

// ReadTrace reads a Chrome trace that PyTorch's profiler exported with profile_memory: every
// allocation and free, with the operators and, where recorded with_stack, the Python functions
// that were running on its thread. The state at the end is what was not freed.
func ReadTrace(r io.Reader) (*mem.AllocatorSnapshot, error) {
	t := &chromeTrace{Trace: profiler.New("profiler-trace")}
	in := json.NewDecoder(bufio.NewReaderSize(r, 256<<10))
	if err := t.read(in); err != nil {
		return nil, fmt.Errorf("JSON at byte %d: %w", in.InputOffset(), err)
	}
	if len(t.Events) == 0 {
		return nil, errors.New("this trace has no memory events: record it with torch.profiler.profile(profile_memory=True)")
	}
	t.Assemble()
	return t.Out, nil
}

// read walks the outermost object, or the bare list of events that some tools write.
func (t *chromeTrace) read(in *json.Decoder) error {
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
		t.Events = append(t.Events, profiler.Event{Time: e.Start, Thread: thread, Device: profiler.Device{Kind: kind, Index: max(0, e.Args.Device)},
			Address: address, Bytes: size, Before: before, Reserved: e.Args.Reserved, Failed: failed})
	case e.Phase == "X" && (e.Category == "python_function" || e.Category == "cpu_op"):
		t.Stays[thread] = append(t.Stays[thread], profiler.Stay{Start: e.Start, End: e.Start + e.Duration, Location: t.location(e)})
	case e.Phase == "X" && e.Category == "user_annotation":
		t.Out.Annotations = append(t.Out.Annotations, mem.Annotation{Name: e.Name, Time: t.At(e.Start)},
			mem.Annotation{Name: e.Name, Time: t.At(e.Start + e.Duration), End: true})
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

func (t *chromeTrace) location(e *chromeEvent) uint32 {
	l := profilerLocation(e.Name)
	t.Python = t.Python || !l.Native
	return t.Out.Stacks.Location(l)
}
