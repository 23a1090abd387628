// Package bench measures a matrix of programs: package matrix says what is to be measured next and what the figures
// say, an engine runs and records each trial.
//
//	spec ──▶ Run ──▶ matrix.Run ──▶ trial ──▶ engine.Run or engine.Imagine ──▶ recording ──▶ matrix.Measure ──▶ journal
//	                    │                            ▲                                                        │
//	                    └──▶ cluster (jobs) ──▶ RunTrial on a node                       Compare, Matrix ◀────┘
//
// It stands on the engine as front doors do, as a matrix is made of whole use cases. Start reading at Run.
package bench

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/executor"
	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/gpus"
	"hightide/internal/imagine"
	"hightide/internal/launch"
	"hightide/internal/matrix"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/pythons"
	"hightide/internal/report"
	"hightide/internal/sampler"
	"hightide/internal/store"
	"hightide/internal/system"
)

// Options of Run; only File is needed.
type Options struct {
	File      string // the spec
	Text      []byte // the spec itself, in place of File
	Name      string // instead of the spec's
	Only      []string
	Repeats   int           // exactly so many; 0: as the spec says
	Timeout   time.Duration // of a trial; 0: as the spec says
	Jobs      int           // at most so many trials at once; 0: one, or what a cluster's queue takes
	Executor  string        // one of Executors; "": this machine
	Resources executor.Resources
	Again     bool // measure anew what was measured already
	Catalogue []string
	Env       []string
	Events    event.Sink // matrix.Progress
}

// Result is a matrix as far as it was measured.
type Result struct {
	*matrix.Result
	Dir   string // where its state is kept
	Notes []string
}

// The tags by which the runs of a matrix are known.
const (
	TagMatrix = "matrix"
	tagCell   = "cell"
	tagRepeat = "repeat"
)

// spec reads the matrix that is asked for; all are its cells, those that Only leaves out among them.
func (o *Options) spec() (spec *matrix.Spec, all []matrix.Cell, err error) {
	text, err := o.text()
	if err != nil {
		return nil, nil, err
	}
	catalogue, err := gpus.Load(o.Catalogue...)
	if err != nil {
		return nil, nil, err
	}
	if spec, err = matrix.ReadSpec(cmp.Or(o.File, "spec.yaml"), text, catalogue); err != nil {
		return nil, nil, err
	}
	if o.Name != "" {
		if problem := matrix.CheckName(o.Name); problem != "" {
			return nil, nil, fail.Usage("as in --name nightly", "--name: %s", problem)
		}
		spec.Name = o.Name
	}
	all = slices.Clone(spec.Cells)
	if len(o.Only) > 0 {
		if err := spec.Only(o.Only); err != nil {
			return nil, nil, err
		}
	}
	if o.Repeats > 0 {
		spec.Goal.Least, spec.Goal.Most, spec.Goal.Within = o.Repeats, o.Repeats, 0
	}
	if o.Timeout > 0 {
		spec.Timeout = o.Timeout
	}
	return spec, all, nil
}

// text of the spec.
func (o *Options) text() ([]byte, error) {
	switch {
	case o.File != "":
		return readSpec(o.File)
	case len(bytes.TrimSpace(o.Text)) == 0:
		return nil, fail.Input("hightide bench --help shows one", "the spec is empty")
	case len(o.Text) > largestSpec:
		return nil, fail.Input("hightide bench --help shows one", "the spec is larger than %v, which no spec is",
			mem.Bytes(largestSpec))
	}
	return o.Text, nil
}

// largestSpec is more than a person writes.
const largestSpec = 1 << 20

func readSpec(path string) ([]byte, error) {
	const hint = "name a YAML file; hightide bench --help shows one"
	file, err := os.Open(path)
	if err != nil {
		return nil, fail.Unread(hint, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, largestSpec+1))
	switch {
	case err != nil:
		return nil, fail.Unread(hint, err)
	case len(text) > largestSpec:
		return nil, fail.Input(hint, "%s is larger than %v, which no spec is", path, mem.Bytes(largestSpec))
	}
	return text, nil
}

// Run measures a matrix, or goes on with one that was interrupted. Where ctx ends, the result has what was measured
// until then, and the error is that of ctx.
func Run(ctx context.Context, e *engine.Engine, o Options) (*Result, error) {
	spec, all, err := o.spec()
	if err != nil {
		return nil, err
	}
	journal, err := matrix.OpenJournal(matrixDir(e, spec.Name), spec, newSeed(spec), e.Runtime.Time().UnixNano(), o.Again)
	if err != nil {
		return nil, err
	}
	defer journal.Close()
	result := &Result{Dir: journal.Dir}
	if journal.Damaged > 0 {
		result.Notes = append(result.Notes, fmt.Sprintf("%s of the journal cannot be read; what was measured there is "+
			"measured again", report.Counted(int64(journal.Damaged), "line")))
	}
	if err := forget(ctx, e, spec.Name, journal); err != nil {
		return nil, err
	}
	b := newBench(e, &o, spec)
	host := matrix.Host{Now: e.Runtime.Time, Trial: b.trial, Events: o.Events,
		Free: func() mem.Optional { return sampler.Free("/") }}
	if o.Executor != "" && o.Executor != executorLocal {
		end, err := b.onCluster(ctx, journal, &host)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	done := e.Runtime.TuneTo(launch.Matrix)
	err = matrix.Run(ctx, spec, journal, o.Jobs, host)
	done()
	result.Result = journal.Result(spec, all)
	if saving := journal.Save(result.Result); err == nil {
		err = saving
	}
	return result, err
}

// Plan says what Run would do, and starts nothing.
func Plan(e *engine.Engine, o Options) (*matrix.Outlook, error) {
	spec, _, err := o.spec()
	if err != nil {
		return nil, err
	}
	trials, seed := []matrix.Trial(nil), newSeed(spec)
	if !o.Again {
		if trials, seed, err = matrix.PeekJournal(matrixDir(e, spec.Name), spec, seed); err != nil {
			return nil, err
		}
	}
	return matrix.Look(spec, trials, seed, o.Jobs), nil
}

func matrixDir(e *engine.Engine, name string) string {
	return filepath.Join(e.Folder(), "matrices", name)
}

// newSeed is the spec's, else one that no other matrix has.
func newSeed(spec *matrix.Spec) uint64 {
	if seed, ok := spec.Seed.Get(); ok {
		return uint64(seed)
	}
	var random [4]byte
	_, _ = rand.Read(random[:])
	return uint64(binary.LittleEndian.Uint32(random[:]))
}

// forget ends what a killed collector left running, and removes recordings of trials that are not in the journal:
// they are made again.
func forget(ctx context.Context, e *engine.Engine, name string, j *matrix.Journal) error {
	if len(j.Trials) == 0 && j.New {
		return nil
	}
	runs, err := e.Runs(ctx, store.Filter{Tags: map[string]string{TagMatrix: name}})
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, t := range j.Trials {
		kept[t.Run] = true
	}
	for _, run := range runs {
		if kept[run.ID] || run.Start < j.StartWall || run.State == store.Running {
			continue
		}
		endMarked("HIGHTIDE_RUN_ID=" + run.ID)
		if _, err := e.Remove(ctx, run.ID); err != nil {
			return err
		}
	}
	return nil
}

// endMarked kills this user's processes that were started with a variable.
func endMarked(mark string) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil || !slices.ContainsFunc(bytes.Split(text, []byte{0}),
			func(one []byte) bool { return string(one) == mark }) {
			continue
		}
		var pid int
		if _, err := fmt.Sscanf(path, "/proc/%d/environ", &pid); err == nil && pid != os.Getpid() {
			_ = system.Kill(pid, syscall.SIGKILL)
		}
	}
}

// bench is a matrix that is being measured.
type bench struct {
	engine  engine.Engine // with a runtime for programs that run for us alone
	options *Options
	spec    *matrix.Spec

	looked sync.Once
	found  []pythons.Interpreter // Pythons of this machine

	unpacked sync.Once
	worker   string // of the built-in models
	failed   error
}

func newBench(e *engine.Engine, o *Options, spec *matrix.Spec) *bench {
	b := &bench{engine: *e, options: o, spec: spec}
	b.engine.Runtime.Stdin, b.engine.Runtime.PassSignals, b.engine.Runtime.Own = nil, false, true
	b.engine.Runtime.Tune = nil // Run has tuned to all of them
	return b
}

// Stopping a trial: its agent is asked first, then it is told, then it is killed with all that it started.
const (
	benchGrace    = 2 * time.Second
	benchPatience = 3 * time.Second
)

// trial runs one, to its end.
func (b *bench) trial(ctx context.Context, cell *matrix.Cell, repeat int, seed uint64,
	watch func(mem.Bytes)) (matrix.Trial, matrix.Machine, error) {
	began := b.engine.Runtime.Time()
	trial := matrix.Trial{Cell: cell.Key, Repeat: repeat, StartWall: began.UnixNano()}
	var machine matrix.Machine
	o, why, err := b.run(ctx, cell, repeat, seed)
	if err != nil {
		return trial, machine, err
	}
	if why != "" {
		trial.State, trial.Reason = matrix.Unavailable, why
		machine = thisMachine()
		trial.Machine = machine.Name
		return trial, machine, nil
	}
	o.Events = held(watch)
	ended, result, err := b.record(ctx, o, b.spec.Value(cell, matrix.AxisDevice))
	if ctx.Err() != nil {
		if result != nil {
			_, _ = b.engine.Remove(context.WithoutCancel(ctx), result.ID) // half a trial is none
		}
		return trial, machine, ctx.Err()
	}
	trial.Duration = b.engine.Runtime.Time().Sub(began).Nanoseconds()
	if err != nil {
		machine, trial.State, trial.Reason = thisMachine(), matrix.Unavailable, err.Error()
		trial.Machine = machine.Name
		if !cellsOwn(err) {
			return trial, machine, err
		}
		return trial, machine, nil
	}
	trial.Run = result.ID
	trial.State, trial.Reason = ended.Became()
	if ended.Run == nil {
		machine = thisMachine()
	} else {
		machine = machineOf(&ended.Run.Info.Host)
		trial.StartWall = ended.Run.Info.StartWall
		trial.Figures = matrix.Measure(ended.Run, result.Report, b.spec.Warmup)
		if ended.Run.End != nil {
			trial.Duration = ended.Run.End.Time - ended.Run.Start()
		}
	}
	trial.Machine = machine.Name
	return trial, machine, nil
}

// held tells what a run holds, once a second.
func held(watch func(mem.Bytes)) event.Sink {
	next := int64(0)
	return func(e event.Event) {
		status, ok := e.(observe.Status)
		if !ok || status.Elapsed < next {
			return
		}
		next = status.Elapsed + int64(time.Second)
		if bytes, ok := status.PSS.Get(); ok {
			watch(mem.Bytes(bytes))
		} else if bytes, ok := status.RSS.Get(); ok {
			watch(mem.Bytes(bytes))
		}
	}
}

// cellsOwn says whether a trial could not be started for a reason of its cell, and not of this machine's.
func cellsOwn(err error) bool {
	if errors.Is(err, store.ErrPlace) {
		return false
	}
	switch fail.Code(err) {
	case fail.ExitNotFound, fail.ExitNotRunnable, fail.ExitUsage, fail.ExitBadInput, fail.ExitEnvironment:
		return true
	}
	return false
}

// run prepares a trial; why says that it cannot be here.
func (b *bench) run(ctx context.Context, cell *matrix.Cell, repeat int, seed uint64) (o engine.RunOptions, why string,
	err error) {
	env := b.spec.Environment(cell)
	env.Python = b.home(env.Python)
	python, why := b.python(ctx, cell, env.Python)
	if why != "" {
		return o, why, nil
	}
	var command []string
	if len(b.spec.Command) > 0 {
		command = b.spec.Words(cell, python, repeat, seed)
		if name := command[0]; env.Python != "" && (name == "python" || name == "python3") {
			command[0] = env.Python
		}
	} else {
		if err := b.prepare(); err != nil {
			return o, "", err
		}
		command = append([]string{python, b.worker}, b.spec.Arguments(cell, seed)...)
	}
	set := env.Env
	if env.Python != "" { // as an activated environment has it
		path := launch.Lookup(b.options.Env, "PATH")
		set["PATH"] = filepath.Dir(env.Python) + string(filepath.ListSeparator) + path
	}
	return engine.RunOptions{HTML: true, Options: observe.Options{Command: command, Env: launch.With(b.options.Env, set),
		Name:     b.spec.Name,
		Tags:     map[string]string{TagMatrix: b.spec.Name, tagCell: cell.Key, tagRepeat: fmt.Sprint(repeat)},
		NoStacks: !b.spec.Stacks, Duration: b.spec.Timeout, Grace: benchGrace, Patience: benchPatience,
		SnapshotOn: "never"}}, "", nil
}

// record runs a trial and keeps its output with its recording.
func (b *bench) record(ctx context.Context, o engine.RunOptions, device string) (*matrix.Ended, *engine.RunResult,
	error) {
	output, err := launch.NewCapture()
	if err != nil {
		return nil, nil, err
	}
	e := b.engine
	e.Runtime.Stdout, e.Runtime.Stderr = output.File, output.File
	ended := &matrix.Ended{Timeout: o.Duration}
	o.Loaded = func(run *mem.Run) { ended.Run = run }
	var result *engine.RunResult
	if gpu, imagined := strings.CutPrefix(device, matrix.DeviceImagined); imagined {
		until := "auto"
		if len(b.spec.Command) == 0 {
			until = "0" // the built-in models end by themselves
		}
		var done *engine.ImagineResult
		done, err = e.Imagine(ctx, engine.ImagineOptions{RunOptions: o,
			Options: imagine.Options{GPU: gpu, Catalogue: b.options.Catalogue, Until: until, NoSuggest: true}})
		if done != nil {
			result, ended.Imagined = &done.RunResult, done.Verdict
		}
	} else {
		result, err = e.Run(ctx, o)
	}
	output.Close()
	if err != nil || result == nil {
		return nil, result, err
	}
	ended.ExitCode, ended.Signal = result.Outcome.ExitCode, result.Outcome.Signal
	begins := ""
	if ended.ExitCode == mem.Some(matrix.CannotRunHere) {
		begins = matrix.SaysWhy
	}
	ended.Said = mem.MaskText(output.LastLine(begins))
	ended.Stopped = result.Outcome.Stopped && (ended.Imagined == nil || ended.Imagined.StoppedFor == "duration")
	if text := output.Text(); len(text) > 0 {
		_ = b.engine.AttachText(result.ID, "output.txt", text) // without it the figures are as good
	}
	return ended, result, nil
}

// prepare unpacks the built-in models, once.
func (b *bench) prepare() error {
	b.unpacked.Do(func() {
		dir, _, err := b.engine.UnpackAgent()
		if err != nil {
			b.failed = fail.Environment("is there room, and can it be written to?", "unpack the models: %w", err)
			return
		}
		b.worker = filepath.Join(dir, filepath.FromSlash(matrix.WorkloadScript))
	})
	return b.failed
}

// home puts the user's folder in place of a leading ~/, as a shell does.
func (b *bench) home(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		return filepath.Join(launch.Lookup(b.options.Env, "HOME"), rest)
	}
	return path
}

// python is the interpreter of a cell: the one that its environment names, else for a built-in model the first that has
// the framework. why says that there is none.
func (b *bench) python(ctx context.Context, cell *matrix.Cell, named string) (path, why string) {
	if named != "" || len(b.spec.Command) > 0 {
		return named, ""
	}
	framework := b.spec.Value(cell, matrix.AxisFramework)
	if framework == "" {
		framework = matrix.Frameworks[0]
	}
	wanted := frameworks.OfBench(framework).Distribution()
	if runtime := b.spec.Value(cell, matrix.AxisRuntime); runtime != "" {
		wanted = frameworks.OfRuntime(runtime).Distribution()
	}
	b.looked.Do(func() { b.found = pythons.Find(ctx, "") })
	for _, p := range b.found {
		if p.Problem == "" && p.Frameworks[wanted] != "" {
			return p.Path, ""
		}
	}
	return "", fmt.Sprintf("no Python with %s was found; name one under environments: python", wanted)
}

func thisMachine() matrix.Machine {
	host := sampler.Host("/", 0, nil)
	return machineOf(&host)
}

func machineOf(h *mem.Host) matrix.Machine {
	return matrix.Machine{Name: h.Name, Kernel: h.Kernel, Processors: h.CPUs, Memory: h.Memory.Or(0)}
}
