// Package fit finds the largest batch that fits.
//
//	Options ──▶ Run ──▶ Search ──▶ try(batch) ──▶ Trial ──▶ predict, gallop, bisect ──▶ Found ──▶ Result
//	                                   │
//	                                   ├── a model: a worker process that built it once and forks (model.go, worker.go)
//	                                   └── a command: one run for each batch, by the Host
//
// Search is a pure function of its trials. Serve plans for a program that runs them itself. Read search.go next.
package fit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// Options of Run: a model that hightide builds, or a command with {batch} in it.
type Options struct {
	Model   Model
	Command []string // holds "{batch}" in one of its words; empty: Model is built
	Env     []string

	GPU       string   // name in the catalogue; empty with Device "cuda"
	Catalogue []string // files with more GPUs
	Memory    string   // of the device instead of the catalogue's, as "24GiB"; of the host with Device "cpu"
	Device    string   // "imaginary", "cuda" or "cpu"; empty: imaginary where a GPU is named, else cuda
	Python    string   // for Model; empty: as FindPythons chooses
	AllocConf string

	Granularity int // only multiples are tried; 0: 1
	Start       int // 0: Current, else 8
	Most        int
	Current     int    // the batch in use now; 0: 16, as MemoryMark takes it
	Headroom    string // share of the device to leave free, "5%"; or bytes, "1GiB"
	TargetBatch int    // plan gradient accumulation towards it; 0: no
	Backward    bool   // compare forward alone with forward and backward
	Eval        bool   // Model.Train is off, which it is in any case
	Price       float64

	Events event.Sink // Ready, then Trying and Trial in turn

	MayRead func(path string) error // says why a file may not be read; nil: any may
}

// Model is what the worker builds and runs; its JSON form is agent/python/src/hightide/_fit/options.py.
type Model struct {
	Model         string       `json:"model"`
	Size          string       `json:"size"`
	Device        string       `json:"device"` // as torch calls it
	Imagined      bool         `json:"imagined"`
	DType         string       `json:"dtype"`
	AMP           string       `json:"amp"`
	Optimizer     string       `json:"optimizer"`
	Train         bool         `json:"train"`
	Inference     bool         `json:"inference"`
	SeqLen        int          `json:"seq_len"`
	ImageSize     int          `json:"image_size"`
	Checkpointing bool         `json:"checkpointing"`
	Compile       bool         `json:"compile"`
	Limit         mem.Optional `json:"limit_bytes"`
}

const defaultCurrentBatch = 16 // MemoryMark's

// Trying is told before each trial.
type Trying struct {
	Batch int `json:"batch"`
}

// EventName implements event.Event.
func (Trying) EventName() string { return "trying" }

// Host is what a fit needs of the engine that it works for.
type Host struct {
	Now    func() time.Time
	Stderr io.Writer // of the worker
	// Worker is where the worker's script stands.
	Worker func() (path string, err error)
	// Device makes an imaginary GPU: environment puts it into an environment, remove takes it away.
	Device func(gpu *gpus.GPU, allocConf string) (environment func([]string) []string, remove func(), err error)
	// Script prepares runs of the command, and says in the result what with.
	Script func(ctx context.Context, o *Options, result *Result) (Try, error)
}

// Try runs one trial. A *TrialError is a failure that is none of memory.
type Try func(Ask) (Trial, error)

// Run searches the largest batch that fits. Trials that ran before an error are in the result, which
// is then not nil.
func Run(ctx context.Context, o Options, host Host) (*Result, error) {
	result, headroom, err := o.check()
	if err != nil {
		return nil, err
	}
	began := host.Now()
	end := func() {}
	var try Try
	if len(o.Command) > 0 {
		try, err = host.Script(ctx, &o, result)
	} else {
		try, end, err = modelTrials(ctx, &o, result, host)
	}
	if err != nil {
		return nil, err
	}
	defer end()
	o.Events.Tell(result.Worker)
	err = o.search(ctx, try, result, headroom)
	result.Duration = host.Now().Sub(began).Nanoseconds()
	result.conclude(&o)
	return result, err
}

// search runs the trials. One that leaves less than the headroom free counts as one that fails.
func (o *Options) search(ctx context.Context, run Try, result *Result, headroom headroom) error {
	try := func(batch int) (Trial, error) {
		if err := ctx.Err(); err != nil {
			return Trial{}, err
		}
		o.Events.Tell(Trying{batch})
		trial, err := run(Ask{Batch: batch})
		if err == nil && trial.OK {
			headroom.apply(&trial, cmp.Or(mem.Bytes(trial.Total.Or(0)), result.total()))
		}
		if err == nil {
			o.Events.Tell(trial)
		}
		return trial, err
	}
	plan := Plan{Step: o.Granularity, First: o.Start, Most: o.Most}
	plan.First = cmp.Or(plan.First, result.Current)
	found, err := Search(plan, try)
	result.Largest, result.Fails, result.Trials = found.Largest, found.Fails, found.Trials
	if err == nil {
		err = result.tryRoom(try)
	}
	if err == nil && o.Backward {
		err = o.compareBackward(run, result)
	}
	if ctx.Err() != nil { // what failed failed by that
		return ctx.Err()
	}
	return fitError(err)
}

// roomTrials is how many batches are run at most to find one that leaves room.
const roomTrials = 2

// tryRoom runs the batch that is estimated to leave room, where the largest that fits does not.
func (r *Result) tryRoom(try func(batch int) (Trial, error)) error {
	for range roomTrials {
		r.room()
		if r.Roomy == 0 || r.RoomyLabel != mem.Estimated {
			return nil
		}
		trial, err := try(r.Roomy)
		if err != nil {
			return err
		}
		r.Trials = append(r.Trials, trial)
		if !trial.OK {
			return nil
		}
	}
	return nil
}

// compareBackward runs one batch that is known to fit without its backward pass.
func (o *Options) compareBackward(run Try, result *Result) error {
	whole, ok := result.smallest()
	if !ok {
		return nil
	}
	forward, err := run(Ask{Batch: whole.Batch, Forward: true})
	var failed *TrialError
	if errors.As(err, &failed) {
		result.Notes = append(result.Notes, fmt.Sprintf("The forward pass alone was not run: %s.", failed.Text))
		return nil
	}
	if err != nil {
		return err
	}
	result.Backward = &BackwardCheck{Batch: whole.Batch, Forward: forward.Allocated, Both: whole.Allocated}
	return nil
}

func fitError(err error) error {
	var trial *TrialError
	switch {
	case errors.As(err, &trial):
		return fail.Input("this is not a lack of memory: the step itself fails", "%w", err)
	case errors.Is(err, ErrWorker):
		return fail.Environment("what it printed last stands above", "%w", err)
	}
	return err
}

// check refuses what cannot be and resolves names before anything is started.
func (o *Options) check() (*Result, headroom, error) {
	var room headroom
	o.Settings().Fill()
	result := &Result{Version: 1, Label: mem.Measured, Granularity: o.Granularity, Current: o.Current,
		Trials: []Trial{}, Notes: []string{}}
	if result.Current <= 0 {
		result.Current = defaultCurrentBatch
	}
	if err := o.checkDevice(result); err != nil {
		return nil, room, err
	}
	if err := o.checkModel(); err != nil {
		return nil, room, err
	}
	room, err := parseHeadroom(o.Headroom)
	if err != nil {
		return nil, room, err
	}
	switch {
	case o.Most > 0 && o.Most < o.Granularity:
		return nil, room, fail.Usage("raise --most or lower --step", "--most %d leaves no multiple of --step %d", o.Most,
			o.Granularity)
	case o.Price < 0:
		return nil, room, fail.Usage("as in --price 0.75", "a price of %v USD an hour", o.Price)
	}
	for name, n := range map[string]int{"--step": o.Granularity, "--start": o.Start, "--most": o.Most,
		"--current": o.Current, "--grad-accum": o.TargetBatch} {
		if n < 0 {
			return nil, room, fail.Usage("", "%s %d: a batch cannot be negative", name, n)
		}
	}
	if o.Device == "cuda" && !hasGPU(o.Env) {
		return nil, room, fail.Environment("--gpu a10 imagines one (hightide gpus lists them); --device cpu measures on "+
			"the host", "this machine has no GPU")
	}
	return result, room, nil
}

func (o *Options) checkDevice(result *Result) error {
	if o.Device == "" {
		o.Device = "cuda"
		if o.GPU != "" {
			o.Device = "imaginary"
		}
	}
	switch o.Device {
	case "imaginary":
		if o.GPU == "" {
			return fail.Usage("as in --gpu a10; hightide gpus lists them", "an imaginary device needs a GPU's name")
		}
		if strings.EqualFold(o.GPU, "all") {
			return fail.Usage("name one, as in --gpu a10; hightide imagine --gpu all says which of them take a batch that "+
				"you name",
				"the largest batch is searched on one GPU at a time")
		}
		result.Label = mem.Imagined
	case "cuda", "cpu":
		if o.GPU != "" {
			return fail.Usage("leave --gpu out to use this machine's, or --device out to imagine it",
				"--gpu %s with --device %s", o.GPU, o.Device)
		}
	case "mps":
		return fail.Environment("use --device cpu, or --gpu NAME to imagine a GPU",
			"mps is Apple's, and this build of hightide is for Linux")
	default:
		return fail.Usage("imaginary, cuda or cpu", "no device %q", o.Device)
	}
	result.Device = o.Device
	if o.GPU != "" {
		catalogue, err := gpus.Load(o.Catalogue...)
		if err != nil {
			return err
		}
		if result.GPU, err = catalogue.Imaginable(o.GPU); err != nil {
			return err
		}
	}
	if o.Memory != "" {
		bytes, err := mem.ParseBytes(o.Memory)
		if err != nil || bytes <= 0 {
			return fail.Usage("as in --memory 24GiB", "--memory %s is not a size", o.Memory)
		}
		if result.GPU != nil {
			gpu := *result.GPU
			gpu.Total = bytes
			result.GPU = &gpu
		}
		o.Model.Limit = mem.Some(int64(bytes))
	}
	return nil
}

// hasGPU says whether a driver shows its device files, or the environment brings an imaginary GPU.
func hasGPU(env []string) bool {
	if slices.ContainsFunc(env, func(entry string) bool { return strings.HasPrefix(entry, "HIGHTIDE_DEVICE_TABLE=") }) {
		return true
	}
	for _, file := range []string{"nvidiactl", "dxg", "nvhost-gpu", "nvgpu", "kfd"} { // servers, WSL, two Jetsons, AMD
		if _, err := os.Stat("/dev/" + file); err == nil {
			return true
		}
	}
	return false
}

func (o *Options) checkModel() error {
	if len(o.Command) > 0 {
		if o.Model.Model != "" {
			return fail.Usage("one or the other", "both --model and a command")
		}
		if !HasBatch(o.Command) {
			return fail.Usage("as in hightide fit --gpu a10 -- python train.py --batch-size {batch}",
				"the command has no %s, where the batch size goes", batchPlace)
		}
		return nil
	}
	if o.Model.Model == "" {
		return fail.Usage("as in hightide fit --gpu a10 --model bert, or -- python train.py --batch-size {batch}",
			"nothing to fit: name a model or a command")
	}
	if err := o.ofModel().Verify(); err != nil {
		return err
	}
	m := &o.Model
	switch {
	case o.Eval && m.Train:
		return fail.Usage("leave one of them out", "--train and --eval are opposites")
	case m.SeqLen < 1 || m.ImageSize < 1:
		return fail.Usage("both are at least 1", "a sequence length of %d and an image size of %d", m.SeqLen, m.ImageSize)
	case m.Inference && (m.Optimizer != "none" || m.Train):
		return fail.Usage("leave --inference or the other out",
			"--inference trains nothing: it has no optimizer and no training mode")
	}
	return nil
}

const batchPlace = "{batch}"

// headroom is what to leave free of the device.
type headroom struct {
	percent float64
	bytes   mem.Bytes
}

func parseHeadroom(text string) (headroom, error) {
	if text == "" {
		return headroom{}, nil
	}
	bad := fail.Usage("as in --headroom 5% or --headroom 1GiB",
		"--headroom %s is neither a share of the memory nor a size", text)
	if number, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(number, 64)
		if err != nil || percent < 0 || percent >= 100 {
			return headroom{}, bad
		}
		return headroom{percent: percent}, nil
	}
	bytes, err := mem.ParseBytes(text)
	if err != nil || bytes < 0 {
		return headroom{}, bad
	}
	return headroom{bytes: bytes}, nil
}

// apply takes the headroom off what a trial could have had, and turns one that ran but left too little
// into one that failed.
func (h headroom) apply(t *Trial, total mem.Bytes) {
	used, ok := t.Used.Get()
	wanted := max(h.bytes, mem.Bytes(h.percent/100*float64(total)))
	if !ok || total <= 0 || wanted <= 0 {
		return
	}
	if capacity, ok := t.Capacity.Get(); ok {
		t.Capacity = mem.Some(capacity - int64(wanted))
	}
	if free := total - mem.Bytes(used); free < wanted {
		t.OK = false
		t.Problem = fmt.Sprintf("it ran, but left %v free of the %v asked for", free, wanted)
	}
}

// Serve plans for a program that runs the trials itself: it asks on out, and reads answers on in.
func Serve(ctx context.Context, o Options, in io.Reader, out io.Writer, imagined bool) (*Result, error) {
	room, err := parseHeadroom(o.Headroom)
	if err != nil {
		return nil, err
	}
	worker, err := NewWorker(out, in)
	if err != nil {
		return nil, fail.Input("hightide.fit of the Python package speaks with it", "%w", err)
	}
	result := &Result{Version: 1, Label: mem.Measured, Granularity: max(o.Granularity, 1),
		Current: cmp.Or(o.Current, defaultCurrentBatch),
		Device:  worker.Ready.Device, Worker: worker.Ready, Trials: []Trial{}, Notes: []string{}}
	if imagined {
		result.Label = mem.Imagined
	}
	try := func(ask Ask) (Trial, error) { return worker.Try(ask, result.Label) }
	err = o.search(ctx, try, result, room)
	result.conclude(&o)
	return result, err
}

// total is the device's memory, as far as it is known.
func (r *Result) total() mem.Bytes {
	if r.GPU != nil {
		return r.GPU.Total
	}
	for _, t := range r.Trials {
		if t.Total.Known() {
			return mem.Bytes(t.Total.Or(0))
		}
	}
	return 0
}
