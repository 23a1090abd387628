package engine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"hightide/internal/allocator"
	"hightide/internal/gpus"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/pythons"
	"hightide/internal/report"
	"hightide/internal/store"
)

// ImagineOptions of Imagine; only Command, Env and GPU are needed. Of RunOptions, Steps is not looked at:
// Steps below has its place.
type ImagineOptions struct {
	RunOptions
	GPU         string    // slug or name, or "all"
	Catalogue   []string  // files with more GPUs
	GPUs        int       // of that model on this machine; 0: one, with World as many as a node has
	Memory      mem.Bytes // instead of the catalogue's; 0: the catalogue's
	Steps       string    // "auto", a number, or "0" for all
	AllocConf   string    // as PYTORCH_ALLOC_CONF
	Sandbox     bool      // the program's writes go to a folder that is deleted
	FakeWeights bool
	Sizes       string // upper, zero or a fraction
	ReadValue   string // a number: what the host reads where a kernel would have written
	World       int    // ranks of the imagined cluster; 0: what the command starts
	PlayList    string // of World, which ranks to play: "0,1,127"
	Play        []int  // PlayList, read; set by Imagine
	Vary        bool
	NoSuggest   bool

	OnProgress func(done, all int, text string)
}

// ImagineResult is what came of it. Verdict is nil where the recording could not be read back.
type ImagineResult struct {
	RunResult
	Verdict *report.Imagined
}

// ExitProgram: the imagined program failed for a reason of its own, so there is no verdict.
const ExitProgram = 5

// session is one call of Imagine.
type session struct {
	engine    *Engine
	o         *ImagineOptions
	id        string
	python    pythons.Interpreter // zero where the command does not tell
	catalogue *gpus.Catalogue
	helpers   *imagineHelpers
	notes     []string
	ctx       context.Context
	trials    atomic.Int32

	lock      sync.Mutex // of the two below
	done, all int
}

// Imagine runs a program on GPUs that nobody needs to own, records it and says whether it fits. An
// error means that there is no run; what came of a run that there was is in the result.
func (e *Engine) Imagine(ctx context.Context, o ImagineOptions) (*ImagineResult, error) {
	s := &session{engine: e, o: &o}
	t, err := s.prepare(ctx)
	if err != nil {
		return nil, err
	}
	s.ctx = ctx
	defer e.Runtime.TuneTo(Recording)()
	result := &ImagineResult{}
	result.Notes = append(result.Notes, s.notes...)
	info := mem.RunInfo{Name: o.Name, Tags: o.Tags, Verb: "imagine", Label: mem.Imagined, StartMono: 1}
	place, files, writer, err := e.place(info, &result.RunResult)
	if err != nil {
		return nil, explain(err)
	}
	defer files.Close()
	result.ID = writer.ID()
	s.id = writer.ID()
	if s.helpers, err = prepareHelpers(place.helpersDir()); err != nil {
		_ = writer.Close()
		_ = place.remove(files, result.ID)
		return nil, err
	}
	err = s.record(t, place.scratch(s.id), writer, result)
	if closing := writer.Close(); closing != nil {
		result.Notes = append(result.Notes, closing.Error())
	}
	if kept := place.keep(files, s.id); kept != nil {
		result.Notes = append(result.Notes, kept.Error())
	}
	if err != nil {
		_ = place.remove(files, result.ID)
		return nil, err
	}
	result.File = writer.Run().File
	place.conclude(&o.RunOptions, files, &result.RunResult)
	if result.Report != nil && result.Report.Imagined != nil {
		result.Verdict = result.Report.Imagined
	}
	return result, nil
}

// record runs the program, then whatever else is to be tried, and writes all of it into one recording.
func (s *session) record(t trial, scratch string, writer store.Writer, result *ImagineResult) error {
	sandbox := ""
	if s.o.Sandbox {
		dir, err := os.MkdirTemp("", "hightide-sandbox-")
		if err != nil {
			return EnvironmentError("is the temporary folder full?", "make a sandbox: %w", err)
		}
		defer os.RemoveAll(dir)
		sandbox = dir
	}
	options, vendor := s.recordOptions(&t, s.id, scratch, sandbox)
	options.Alerts, options.OnStatus, options.OnAlert, options.OnPause = nil, s.o.OnStatus, s.o.OnAlert, s.o.OnPause
	if s.o.SnapshotOn != "" {
		options.SnapshotOn = s.o.SnapshotOn
	}
	options.Runtime = s.o.sharing(s.engine.Runtime)
	ctx := s.ctx
	if options.Runtime.PassSignals {
		ctx = context.WithoutCancel(ctx) // what cancels it is a signal, which the program gets itself
	}
	main, err := s.observe(ctx, &t, options, vendor, writer)
	if err != nil {
		return err
	}
	result.Outcome, result.Verdict = main.outcome, main.Imagined
	if err := s.usable(main); err != nil {
		return err
	}
	trials := s.further(t, main)
	if s.ctx.Err() != nil && !main.outcome.Signal.Known() {
		result.Notes = append(result.Notes, "interrupted: not everything was tried")
	}
	for _, trial := range trials {
		if err := writer.Write(trial); err != nil {
			result.Notes = append(result.Notes, err.Error())
			break
		}
	}
	return nil
}

// further makes the runs beside the first one.
func (s *session) further(t trial, main *trialResult) (trials []mem.Trial) {
	if main.outcome.Signal.Known() && !main.outcome.Stopped {
		return nil
	}
	add := func(set mem.TrialSet, tries ...mem.Try) {
		for _, try := range tries {
			trials = append(trials, mem.Trial{Set: set, Try: try})
		}
	}
	switch {
	case s.o.GPU == allGPUs && main.Verdict != mem.VerdictFailed:
		for _, v := range s.everyGPU(t, main) {
			add(mem.TrialCatalogue, mem.Try{GPUVerdict: v})
		}
	case main.Verdict == mem.VerdictOOM && !s.o.NoSuggest:
		add(mem.TrialTry, s.suggest(t, main)...)
	}
	if s.o.Vary && main.Verdict != mem.VerdictFailed {
		add(mem.TrialVariation, s.vary(t, main)...)
	}
	return trials
}

const (
	allGPUs    = "all"
	defaultGPU = "h100-sxm"
)

// prepare refuses what cannot be before anything is started, and makes the first trial.
func (s *session) prepare(ctx context.Context) (trial, error) {
	o := s.o
	if _, err := o.check(); err != nil {
		return trial{}, err
	}
	if o.GPU == "" {
		o.GPU = defaultGPU
		s.notes = append(s.notes, "no GPU was named, so it is a "+defaultGPU+"; name one with --gpu, or --gpu all")
	}
	if err := o.checkImagine(); err != nil {
		return trial{}, err
	}
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		return trial{}, EnvironmentError("imagine on a Linux machine or in a container", "imaginary GPUs need Linux on x86-64; this is %s on %s", runtime.GOOS, runtime.GOARCH)
	}
	var err error
	if s.catalogue, err = gpus.Load(o.Catalogue...); err != nil {
		return trial{}, err
	}
	if err := s.findPython(ctx); err != nil {
		return trial{}, err
	}
	t := trial{command: o.Command, count: max(o.GPUs, 1), env: map[string]string{}}
	if o.GPU == allGPUs {
		t.gpu = s.largest()
	} else {
		g, err := s.catalogue.Imaginable(o.GPU)
		if err != nil {
			return trial{}, err
		}
		t.gpu = *g
	}
	if o.Memory > 0 {
		t.gpu.Total, t.gpu.Lowest, t.gpu.TotalBasis = o.Memory, 0, "--memory"
		if t.gpu.Overhead >= t.gpu.Total {
			return trial{}, UsageError("as in --memory 24GiB", "--memory %v is less than a process takes on %s before its first tensor, %v", o.Memory, t.gpu.Slug, t.gpu.Overhead)
		}
	}
	if o.AllocConf != "" {
		t.env[allocator.Variable] = o.AllocConf
	}
	return t, s.cluster(&t)
}

// checkImagine refuses flags that make no sense, and fills in defaults.
func (o *ImagineOptions) checkImagine() error {
	o.Steps, o.Sizes = cmp.Or(o.Steps, "auto"), cmp.Or(o.Sizes, "upper")
	if _, err := strconv.ParseUint(o.Steps, 10, 32); err != nil && o.Steps != "auto" {
		return UsageError("--steps auto, --steps 20, or --steps 0 for all of them", "--steps %s is no number of steps", o.Steps)
	}
	if fraction, err := strconv.ParseFloat(o.Sizes, 64); o.Sizes != "upper" && o.Sizes != "zero" && (err != nil || !(fraction >= 0 && fraction <= 1)) {
		return UsageError("--data-sizes upper, --data-sizes zero, or a fraction as 0.25", "--data-sizes %s is neither a name nor a fraction", o.Sizes)
	}
	// The libraries that compute on the host fault on what is not finite.
	if value, err := strconv.ParseFloat(o.ReadValue, 64); o.ReadValue != "" && (err != nil || !(math.Abs(value) <= math.MaxFloat32)) {
		return UsageError("as in --read-value 1", "--read-value %s is no finite number", o.ReadValue)
	}
	if o.GPUs < 0 || o.GPUs > 16 {
		return UsageError("a machine has 1 to 16; larger worlds are imagined with --world-size", "%d GPUs", o.GPUs)
	}
	const world = "as in --world-size 128 --play 0,1,127"
	if o.World < 0 || o.World > 1<<20 {
		return UsageError(world, "--world-size %d: a world has 1 to %d ranks", o.World, 1<<20)
	}
	if o.World == 0 && o.PlayList != "" {
		return UsageError(world, "--play %s without --world-size", o.PlayList)
	}
	if o.GPU == allGPUs && (o.Memory > 0 || o.World > 0) {
		return UsageError("name one GPU", "--gpu all imagines whole catalogue GPUs, without --memory and --world-size")
	}
	return nil
}

// cluster prepares a trial of a world larger than this machine.
func (s *session) cluster(t *trial) (err error) {
	o := s.o
	if o.World == 0 {
		return nil
	}
	if o.Play, err = parsePlay(o.PlayList, o.World); err != nil {
		return err
	}
	apart, ok := takeApart(t.command)
	if !ok {
		return UsageError("give the command as torchrun takes it: torchrun [flags] train.py", "no script in %s", strings.Join(t.command, " "))
	}
	t.command = apart.rank
	if o.GPUs == 0 {
		t.count = min(cmp.Or(apart.perNode, 8), o.World, 16)
	}
	return nil
}

// findPython looks at the interpreter that the command names, and refuses one that cannot be imagined.
func (s *session) findPython(ctx context.Context) error {
	path := pythons.OfCommand(s.o.Command)
	if path == "" {
		return nil // a shell script, uv run: it is seen when it runs
	}
	s.python = pythons.Interpreter{Path: path}
	s.python.Ask(ctx)
	note, err := imaginable(&s.python)
	if note != "" {
		s.notes = append(s.notes, note)
	}
	return err
}

// imaginable says why an interpreter's programs cannot use an imaginary GPU, or what of them cannot.
func imaginable(p *pythons.Interpreter) (note string, err error) {
	torch := p.Frameworks["torch"]
	switch {
	case p.Version == "":
		return "", nil // it does not answer: let the run say why
	case torch == "" && p.Frameworks["tensorflow"] != "":
		return "", EnvironmentError("the host's memory: hightide run -- ...", "imaginary GPUs serve PyTorch; %s has TensorFlow %s, which cannot be imagined", p.Path, p.Frameworks["tensorflow"])
	case torch == "":
		return "", EnvironmentError("name the interpreter of the environment you train in, or install torch into it", "%s has no PyTorch", p.Path)
	case p.ROCm != "":
		return "", EnvironmentError("install a CUDA build of torch into an environment of its own; it needs no GPU", "torch %s of %s is built for ROCm, and imaginary GPUs are NVIDIA's", torch, p.Path)
	case p.CUDA == "":
		return "", EnvironmentError("install a CUDA build (pip install torch on Linux gives one; it needs no GPU)", "torch %s of %s is built for the CPU alone", torch, p.Path)
	}
	var major, minor int
	if n, _ := fmt.Sscanf(torch, "%d.%d", &major, &minor); n == 2 && (major < 2 || major == 2 && minor < 4) {
		note = fmt.Sprintf("PyTorch %s brings cuDNN 8, and imaginary GPUs know 9 alone: convolutions and recurrent layers fail. From 2.4 on they work.", torch)
	}
	return note, nil
}

// usable says why a first run has no verdict, where that lies in the environment.
func (s *session) usable(main *trialResult) error {
	if main.Verdict != mem.VerdictUnused && main.Verdict != mem.VerdictFailed || len(main.Devices) > 0 {
		return nil
	}
	torch, other := "", ""
	for _, p := range main.run.Processes {
		torch = cmp.Or(torch, p.Frameworks["torch"])
		for name := range p.Frameworks {
			if name != "torch" {
				other = name
			}
		}
	}
	for _, e := range main.run.Events {
		if e.Kind == "unobserved" && e.Facts["helper"] == "device" {
			return EnvironmentError("use a glibc build of Python, as of python.org images, conda or uv", "imaginary GPUs cannot be preloaded into %s: %s", e.Facts["program"], e.Facts["why"])
		}
	}
	if main.Verdict == mem.VerdictUnused && torch == "" && other != "" {
		return EnvironmentError("imaginary GPUs serve PyTorch", "the program used %s and no PyTorch", other)
	}
	return nil
}

// imagineHelpers are the files that ride along.
type imagineHelpers struct {
	agent  launch.Helper
	heap   *launch.Helper
	device launch.Helper
}

// with is the list for one run.
func (h *imagineHelpers) with(agent, device map[string]string, heap bool) []launch.Helper {
	a, d := h.agent, h.device
	a.Env = mergeEnv(a.Env, agent)
	d.Env = mergeEnv(d.Env, device)
	list := []launch.Helper{a}
	if heap && h.heap != nil {
		list = append(list, *h.heap) // before the device: what it interposes on is the host's alone
	}
	return append(list, d)
}

// prepareHelpers extracts agent, heap sampler and device.
func prepareHelpers(fallback string) (*imagineHelpers, error) {
	h := &imagineHelpers{}
	list, notes := helpers(fallback, true)
	for _, helper := range list {
		switch helper.Name {
		case "agent":
			h.agent = helper
		case "heap":
			h.heap = &helper
		}
	}
	if h.agent.Name == "" {
		return nil, EnvironmentError("is there a folder that hightide can write to?", "%s", strings.Join(notes, "; "))
	}
	files, err := deviceFiles()
	if err != nil {
		return nil, err
	}
	dir, err := launch.Extract(files, helperParents(fallback)...)
	if err != nil {
		return nil, EnvironmentError("is there a folder that hightide can write to?", "%w", err)
	}
	h.device = deviceHelper(dir)
	return h, nil
}

// largest is the GPU to begin with where all are wanted: the one with most memory of a generation that
// every PyTorch of the last years knows.
func (s *session) largest() gpus.GPU {
	list := slices.DeleteFunc(slices.Clone(s.catalogue.GPUs), func(g gpus.GPU) bool {
		major, _, ok := g.Capability()
		return !ok || !g.CUDA() || major < 8 || major > 9
	})
	return slices.MaxFunc(list, func(a, b gpus.GPU) int { return cmp.Compare(a.Total, b.Total) })
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// advance tells that one more of the runs beside the first one is done.
func (s *session) advance(format string, args ...any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.done++
	if s.o.OnProgress != nil {
		s.o.OnProgress(s.done, s.all, fmt.Sprintf(format, args...))
	}
}

// ImagineSummary is what `imagine --json` prints: that of a run, and the verdict.
type ImagineSummary struct {
	Summary
	*report.Imagined
}

// ImagineSummary of a run that ended.
func (r *ImagineResult) ImagineSummary() ImagineSummary {
	s := ImagineSummary{r.Summary(), r.Verdict}
	s.Label = mem.Imagined
	return s
}

// Judged says whether there is a verdict.
func (r *ImagineResult) Judged() bool {
	if r.Verdict == nil {
		return false
	}
	return r.Verdict.Fits() || r.Verdict.Verdict == mem.VerdictOOM
}

// ExitCode is 0 for a program that fits (over a catalogue: on one of its GPUs), 1 for one that does not.
func (r *ImagineResult) ExitCode() int {
	if r.Verdict == nil {
		return ExitOwn
	}
	if slices.ContainsFunc(r.Verdict.All, func(v mem.GPUVerdict) bool { return v.Fits() }) {
		return 0
	}
	switch r.Verdict.Verdict {
	case mem.VerdictFits, mem.VerdictTight:
		return 0
	case mem.VerdictOOM:
		return 1
	case mem.VerdictUnused:
		return ExitEnvironment
	}
	return ExitProgram
}

// ParseSize reads a size as people write it: 24GiB.
func ParseSize(text string) (mem.Bytes, error) {
	size, err := mem.ParseBytes(text)
	if err != nil {
		return 0, UsageError("as in --memory 24GiB", "%w", err)
	}
	return size, nil
}
