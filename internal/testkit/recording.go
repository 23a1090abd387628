package testkit

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"hightide/internal/mem"
)

// Recording is a run as a test writes it down, a fact a line:
//
//	run verb=run label=measured command="python train.py" host.memory=16GiB
//	process id=1 pid=41 role=main
//	stack id=1 train.py:12:step < train.py:30:main
//	curve host.rss process=1 0s=100MiB 10s=300MiB every=100ms
//	steps process=1 count=90 from=1s every=100ms rss=100MiB+2MiB
//	heap process=1 stack=1 1s=0B 10s=180MiB
//	event kind=oom time=9s process=1 facts.source=torch.cuda text="CUDA out of memory"
//	snapshot exit.pickle process=1
//	  alloc a 4MiB model.py:3:build
//	  free a
//	  oom 1GiB train.py:12:step free=100MiB
//	end time=10s exit_code=0
//
// A line of any frame but these four (curve, steps, heap, snapshot) sets fields by their names in JSON, without the
// unit that these end with. A curve, and what a stack of the heap holds, goes straight from point to point. Lines that
// begin with # say what the recording is of.
type Recording struct {
	Run       *mem.Run
	Snapshots map[string]*mem.AllocatorSnapshot
	Explain   map[string]string // of a line "explain at=end by=category": no run, and how its files are to be explained

	heaps map[uint32][]heapLine // by process
}

// frames are those that a line can stand for, by its first word: the name of the type in small letters.
var frames = []mem.Frame{mem.RunInfo{}, mem.Process{}, mem.PhaseStats{}, mem.StepTotal{}, mem.Holder{}, mem.Module{},
	mem.ModelUse{}, mem.Event{}, mem.Drop{}, mem.Found{}, mem.End{}, mem.Cell{}, mem.ImaginedSetup{},
	mem.ImaginedDevice{}, mem.DeviceUse{}, mem.LibraryCall{}, mem.ReadBack{}, mem.DevicePeak{}, mem.PeakParts{},
	mem.DataSize{}, mem.Unreached{}, mem.FakeWeights{}, mem.Redirected{}, mem.Switch{}, mem.Condition{},
	mem.Serving{}, mem.Trial{}}

func frameOf(word string) reflect.Type {
	if word == "run" {
		word = "RunInfo"
	}
	for _, f := range frames {
		if of := reflect.TypeOf(f); strings.EqualFold(of.Name(), word) {
			return of
		}
	}
	return nil
}

// Record reads a recording; a line that it does not understand fails the test.
func Record(t testing.TB, text string) *Recording {
	t.Helper()
	r := &Recording{Run: mem.NewRun(), Snapshots: map[string]*mem.AllocatorSnapshot{},
		heaps: map[uint32][]heapLine{}}
	var open *snapshotText
	for n, line := range strings.Split(text, "\n") {
		words := split(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		var err error
		if strings.HasPrefix(line, " ") && open != nil {
			err = open.add(words)
		} else if words[0] == "snapshot" {
			open = newSnapshotText(words)
			r.Snapshots[words[1]] = open.s
			err = r.Run.Add(mem.Snapshot{Process: uint32(number(open.set["process"])),
				Name: words[1], Format: "torch-pickle", Last: true})
		} else {
			err = r.line(words)
		}
		if err != nil {
			t.Fatalf("line %d, %q: %v", n+1, line, err)
		}
	}
	for _, process := range slices.Sorted(maps.Keys(r.heaps)) {
		if err := r.heap(process); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func (r *Recording) line(words []string) error {
	set := settings(words[1:])
	switch kind := words[0]; kind {
	case "explain":
		r.Explain = set
		return nil
	case "stack":
		return r.Run.Add(mem.StackDef{ID: uint32(number(set["id"])), Locations: stack(words[2:])})
	case "curve":
		return r.curve(words[1], set)
	case "steps":
		return r.steps(set)
	case "heap":
		process := uint32(number(set["process"]))
		r.heaps[process] = append(r.heaps[process], heapLine{stack: uint32(number(set["stack"])), points: points(set)})
		return nil
	default:
		of := frameOf(kind)
		if of == nil {
			return fmt.Errorf("no frame is called %q", kind)
		}
		v := reflect.New(of).Elem()
		for name, text := range set {
			if err := assign(v, name, text); err != nil {
				return err
			}
		}
		return r.Run.Add(v.Interface().(mem.Frame))
	}
}

// curve adds a series that goes straight from point to point.
func (r *Recording) curve(name string, set map[string]string) error {
	def := mem.SeriesDef{ID: uint32(len(r.Run.Series) + 1), Process: uint32(number(set["process"])),
		Device: set["device"], Framework: set["framework"], Name: mem.Quantity(name),
		Unit: mem.Unit(cmp.Or(set["unit"], "bytes")), Label: mem.Label(cmp.Or(set["label"], "measured"))}
	if err := r.Run.Add(def); err != nil {
		return err
	}
	s, all := mem.Samples{Series: def.ID}, points(set)
	every := max(number(cmp.Or(set["every"], "100ms")), 1)
	for at := all[0].at; at <= all[len(all)-1].at; at += every {
		s.Times, s.Values = append(s.Times, at), append(s.Values, valueAt(all, at))
	}
	return r.Run.Add(s)
}

// steps adds the ends of steps; a figure such as rss=100MiB+2MiB grows with each.
func (r *Recording) steps(set map[string]string) error {
	process, every := uint32(number(set["process"])), number(set["every"])
	figure := func(name string, n int64) (v mem.Optional) {
		if text, ok := set[name]; ok {
			first, more, _ := strings.Cut(text, "+")
			v = mem.Some(number(first) + n*number(cmp.Or(more, "0")))
		}
		return v
	}
	var steps mem.Steps
	for n := range number(set["count"]) {
		steps = append(steps, mem.Step{Process: process, Number: uint64(n + 1), Time: number(set["from"]) + n*every,
			Duration: every, RSS: figure("rss", n), Heap: figure("heap", n), Device: figure("device", n)})
	}
	if err := r.Run.Add(steps); err != nil {
		return err
	}
	return r.Run.Add(mem.StepTotal{Process: process, Steps: uint64(len(steps))})
}

// heapLine is what a stack of a heap holds from point to point.
type heapLine struct {
	stack  uint32
	points []point
}

// heap adds readings of a process's heap, a quarter of a second apart, and its peak. Each MiB counts as two samples.
func (r *Recording) heap(process uint32) error {
	lines := r.heaps[process]
	from, to := lines[0].points[0].at, int64(0)
	for _, line := range lines {
		from, to = min(from, line.points[0].at), max(to, line.points[len(line.points)-1].at)
	}
	var peak mem.HeapUse
	reading := func(at int64) mem.HeapUse {
		use := mem.HeapUse{Process: process, Time: at}
		for i := range r.Run.Steps {
			if s := &r.Run.Steps[i]; s.Process == process && s.Time <= at {
				use.Step = s.Number
			}
		}
		for _, line := range lines {
			site := mem.SiteUse{Stack: line.stack, Live: mem.Bytes(valueAt(line.points, at))}
			site.Count = uint64(site.Live / (mem.MiB / 2))
			site.Allocated = site.Live
			use.Sites, use.Live = append(use.Sites, site), use.Live+site.Live
			if !r.Run.Process(process).HeapTraced() {
				use.Variance += float64(site.Live) * float64(mem.MiB/2)
			}
		}
		return use
	}
	for at := from; at <= to; at += int64(250 * time.Millisecond) {
		use := reading(at)
		if use.Live > peak.Live {
			peak = use
		}
		if err := r.Run.Add(use); err != nil {
			return err
		}
	}
	peak.Peak = true
	return r.Run.Add(peak)
}

// point is a value at a time in ns.
type point struct{ at, value int64 }

// points are the settings whose names are times.
func points(set map[string]string) (all []point) {
	for name, text := range set {
		if at, err := time.ParseDuration(name); err == nil {
			all = append(all, point{int64(at), number(text)})
		}
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Compare(a.at, b.at) })
	return all
}

func valueAt(all []point, at int64) int64 {
	i, _ := slices.BinarySearchFunc(all, at, func(p point, at int64) int { return cmp.Compare(p.at, at) })
	switch {
	case i == len(all):
		return all[i-1].value
	case i == 0:
		return all[0].value
	}
	a, b := all[i-1], all[i]
	return a.value + int64(float64(b.value-a.value)*float64(at-a.at)/float64(b.at-a.at))
}

// split is the words of a line; one with spaces stands in quotes: text="CUDA out of memory".
func split(line string) (words []string) {
	quoted := false
	for _, word := range strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	}) {
		words = append(words, strings.ReplaceAll(word, `"`, ""))
	}
	return words
}

func settings(words []string) map[string]string {
	set := map[string]string{}
	for _, word := range words {
		if name, text, ok := strings.Cut(word, "="); ok {
			set[name] = text
		}
	}
	return set
}

// number reads a count, a size ("24GiB") or a time ("1.5s") in ns; 0 for "".
func number(text string) int64 {
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if d, err := time.ParseDuration(text); err == nil {
		return int64(d)
	}
	size, less := strings.CutPrefix(text, "-")
	b, err := mem.ParseBytes(size)
	if err != nil {
		panic(err) // the test's own text
	}
	if less {
		b = -b
	}
	return int64(b)
}

// stack reads "train.py:12:step < train.py:30:main"; a place without a line is native.
func stack(words []string) (all []mem.Location) {
	for _, word := range words {
		if word != "<" {
			all = append(all, place(word))
		}
	}
	return all
}

func place(text string) mem.Location {
	parts := strings.SplitN(text+"::", ":", 3)
	l := mem.Location{File: parts[0], Line: int(number(parts[1])), Function: strings.Trim(parts[2], ":")}
	l.Native = l.Line == 0
	return l
}

// assign sets a field of a frame by its name in JSON, with or without the unit at its end; "facts.source" is a key of
// a map or a field of a field, and "at" a place that the frame embeds. What it embeds is looked through, too.
func assign(v reflect.Value, name, text string) error {
	whole := name
	name, rest, _ := strings.Cut(name, ".")
	for i := range v.NumField() {
		field := v.Type().Field(i)
		tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		short := tag
		for _, unit := range []string{"_mono_ns", "_wall_ns", "_ns", "_bytes"} {
			short = strings.TrimSuffix(short, unit)
		}
		if name == tag || name == short && short != "" && name != "" || field.Anonymous && name == "at" {
			return setField(v.Field(i), rest, text)
		}
		if field.Anonymous && assign(v.Field(i), whole, text) == nil {
			return nil
		}
	}
	return fmt.Errorf("%s has no field %q", v.Type(), name)
}

func setField(v reflect.Value, rest, text string) error {
	switch v.Interface().(type) {
	case mem.Location:
		v.Set(reflect.ValueOf(place(text)))
		return nil
	case *mem.Location:
		at := place(text)
		v.Set(reflect.ValueOf(&at))
		return nil
	case mem.Optional:
		v.Set(reflect.ValueOf(mem.Some(number(text))))
		return nil
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(text == "true")
	case reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		v.SetFloat(f)
		return err
	case reflect.Int, reflect.Int64:
		v.SetInt(number(text))
	case reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(number(text)))
	case reflect.Struct:
		return assign(v, rest, text)
	case reflect.Slice:
		for _, word := range strings.Fields(text) {
			item := reflect.New(v.Type().Elem()).Elem()
			if err := setField(item, "", word); err != nil {
				return err
			}
			v.Set(reflect.Append(v, item))
		}
	case reflect.Map:
		if v.IsNil() {
			v.Set(reflect.MakeMap(v.Type()))
		}
		item := reflect.New(v.Type().Elem()).Elem()
		if err := setField(item, "", text); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(rest), item)
	default:
		return fmt.Errorf("a %s cannot be written down", v.Type())
	}
	return nil
}
