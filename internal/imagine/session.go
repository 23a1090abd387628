// Package imagine runs a training program on GPUs that are not there, and on as many of them and in as many ways as it
// takes to answer a question.
//
//	Options ──▶ New: GPU, interpreter, ranks ──▶ Session.Run ──▶ the program once, recorded ──▶ Result
//	                                                   │
//	                                                   └──▶ trials: other GPUs (catalogue.go, copies.go), what could make
//	                                                        it fit, other conditions (suggest.go) ──▶ mem.Trial
//
// A trial is one run of the command with the device library preloaded (trial.go); devices.go reads what that library
// keeps in shared memory. A Session owns nothing of the process, and sessions share nothing. Start reading at
// Session.
package imagine

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/gpus"
	"hightide/internal/launch"
	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/pythons"
	"hightide/internal/system"
)

// Options are what a user can say of an imagined run beside what any run has; the zero value is a run on the default
// GPU.
type Options struct {
	GPU         string    // slug or name, several with commas, or "all"
	Catalogue   []string  // files with more GPUs
	GPUs        int       // of that model on this machine; 0: one, with World as many as a node has
	Memory      mem.Bytes // instead of the catalogue's; 0: the catalogue's
	Context     mem.Bytes // beside the allocator, likewise
	Until       string    // "auto": once the peak is steady; a number of steps; "0": to the end
	Reach       []string  // of Goals: what it must have come to before it is ended
	Longest     bool      // the largest sample of each data set stands in the first batch
	AllocConf   string    // as PYTORCH_ALLOC_CONF
	Sandbox     bool      // the program's writes go to a folder that is deleted
	FakeWeights bool
	Sizes       string   // upper, zero or a fraction
	ReadValues  []string // what the host reads where a kernel would have written: a number for all, or LINE=VALUE
	World       int      // ranks of the imagined cluster; 0: what the command starts
	PlayList    string   // of World, which ranks to play: "0,1,127"
	Users       int      // sequences that an LLM server is to run at once, 0: not asked
	Tokens      int      // of each; 0: the longest that its engine takes
	Load        string   // requests that a server answers before it ends: see Load
	Vary        bool
	NoSuggest   bool
	Plan        string // file of the levers that are applied

	// Excluded says of GPUs, by slug, why an LLM server needs not be started on them: what cannot be enough is computed
	// before anything runs. No setting.
	Excluded map[string]string
}

// Goals are what a training can be made to come to early, and what ends a server.
var Goals = []string{"evaluation", "checkpoint", "epoch", mem.StopReady, untilLoad}

const (
	untilLoad   = "load"
	defaultLoad = "8x512+128"
)

// Session is one program on imaginary GPUs. Its exported fields are set before Run or Try.
type Session struct {
	Options
	Base    observe.Options // what all its runs share: command, environment, name, runtime; and the id of the recording
	Helpers Helpers
	Record  func(context.Context, *observe.Options, observe.Sink) (observe.Outcome, error) // runs and records one command

	Notes  []string            // what New chose for the user, for people
	Python pythons.Interpreter // zero where the command does not tell

	play      []int // PlayList, read
	first     trial
	catalogue *gpus.Catalogue
	chosen    []gpus.GPU // that were asked for
	trials    atomic.Int32

	unforkable bool              // as the last start that was to be forked turned out
	serves     bool              // the program is an LLM server
	imports    []string          // what the first run imported of what takes long
	asNeeded   map[string]string // of the program's framework, once it was seen with plenty of memory
	began      time.Time
	// largestPrompt is a request by which a server takes what it takes at most beside its share; "": it has it already.
	largestPrompt string

	lock      sync.Mutex // of the two below
	done, all int
}

// New refuses what cannot be imagined, before anything is started.
func New(ctx context.Context, o Options, base observe.Options) (*Session, error) {
	s := &Session{Options: o, Base: base}
	var err error
	s.first, err = s.prepare(ctx)
	return s, err
}

// Run runs the program, then whatever else is to be tried, and writes all of it into one recording. An error means
// that there is no verdict to be had here; what came of the program's own run is then in the result, if it ran.
func (s *Session) Run(ctx context.Context, to observe.Sink) (*Result, error) {
	main, trials, err := s.runs(ctx, to)
	if err != nil {
		return main, err
	}
	for _, trial := range trials {
		if err := to.Write(trial); err != nil {
			s.Notes = append(s.Notes, err.Error())
			break
		}
	}
	if ctx.Err() != nil && !main.Outcome.Signal.Known() {
		s.Notes = append(s.Notes, "interrupted: not everything was tried")
	}
	return main, nil
}

// runs makes the run that is recorded, and the others.
func (s *Session) runs(ctx context.Context, to observe.Sink) (*Result, []mem.Trial, error) {
	s.began = time.Now()
	if s.several() && s.Users > 0 {
		start, verdicts, err := s.serveUsers(ctx, to)
		switch {
		case start == nil:
			return nil, nil, err
		case err != nil:
			return start.Result, nil, err
		}
		return start.Result, slices.Concat(s.further(ctx, start.trial, start.Result), onGPUs(verdicts)), nil
	}
	main, err := s.record(ctx, &s.first, to)
	if err != nil {
		return nil, nil, err
	}
	if err := s.usable(main); err != nil {
		return main, nil, err
	}
	return main, s.further(ctx, s.first, main), nil
}

// record makes a run as the user sees it, and records it.
func (s *Session) record(ctx context.Context, t *trial, to observe.Sink) (*Result, error) {
	sandbox := ""
	if s.Sandbox {
		dir, err := os.MkdirTemp("", "hightide-sandbox-")
		if err != nil {
			return nil, fail.Environment("is the temporary folder full?", "make a sandbox: %w", err)
		}
		defer os.RemoveAll(dir)
		sandbox = dir
	}
	options, vendor := s.recordOptions(t, s.Base.ID, s.Base.OutDir, sandbox)
	options.Events, options.Runtime = s.Base.Events, s.Base.Runtime
	if s.Base.SnapshotOn != "" {
		options.SnapshotOn = s.Base.SnapshotOn
	}
	if options.Runtime.PassSignals {
		ctx = context.WithoutCancel(ctx) // what cancels it is a signal, which the program gets itself
	}
	return s.observe(ctx, t, options, vendor, to)
}

// Try runs another command in the place of the program, of which nothing is to be seen or kept but its figures.
func (s *Session) Try(ctx context.Context, command []string) (*Result, error) {
	t := s.first
	t.command = command
	return s.attempt(ctx, t)
}

// TryOn is Try on other GPUs.
func (s *Session) TryOn(ctx context.Context, g *gpus.GPU, count int, command []string) (*Result, error) {
	t := s.first
	t.gpu, t.count, t.command = *g, max(1, count), command
	return s.attempt(ctx, t)
}

// further makes the runs beside the first one.
func (s *Session) further(ctx context.Context, t trial, main *Result) (trials []mem.Trial) {
	if main.interrupted() || ctx.Err() != nil {
		return nil
	}
	s.knows(main)
	add := func(set mem.TrialSet, tries ...mem.Try) {
		for _, try := range tries {
			trials = append(trials, mem.Trial{Set: set, Try: try})
		}
	}
	if s.rests(main) {
		add(mem.TrialValues, s.otherValues(ctx, t, main)...)
	}
	switch {
	case s.several() && s.Users > 0: // see serveUsers
	case s.several() && main.Verdict != mem.VerdictFailed:
		trials = append(trials, onGPUs(s.everyGPU(ctx, t, main))...)
	case main.Verdict == mem.VerdictFew && !s.NoSuggest:
		add(mem.TrialTry, s.varyServing(ctx, t, main)...)
	case main.Verdict == mem.VerdictOOM && !s.NoSuggest && main.Serving != nil:
		add(mem.TrialTry, s.suggestServing(ctx, t, main)...)
	case main.Verdict == mem.VerdictOOM && !s.NoSuggest:
		add(mem.TrialTry, s.suggest(ctx, t, main)...)
	}
	switch {
	case !s.Vary || main.Verdict == mem.VerdictFailed:
	case main.Serving != nil:
		add(mem.TrialVariation, s.varyServing(ctx, t, main)...)
	default:
		add(mem.TrialVariation, s.vary(ctx, t, main)...)
	}
	return trials
}

// knows takes from a first run how the others are started.
func (s *Session) knows(r *Result) {
	s.serves = r.Serving != nil
	s.unforkable = s.serves && r.Serving.Engine != "vLLM" // others' processes are started anew
	if s.serves && r.Serving.Engine == "SGLang" {         // takes activations once it is asked, beside its share
		if most := min(r.Serving.MaxBatched.Or(0), r.Serving.MaxModelLen.Or(0)-2); most > 0 {
			s.largestPrompt = fmt.Sprintf("1x%d+2", most)
		}
	}
	for _, p := range r.run.Processes {
		if name := p.Facts["imports"]; name != "" {
			s.imports = []string{name}
		}
	}
}

// interrupted says that somebody ended the run. A server that lacks memory may send itself SIGKILL, as SGLang does.
func (r *Result) interrupted() bool {
	signal, ended := r.Outcome.Signal.Get()
	itself := signal == int64(syscall.SIGKILL) && r.Serving != nil && r.Verdict == mem.VerdictOOM
	return ended && !r.Outcome.Stopped && !itself
}

// onGPUs are verdicts on a catalogue's GPUs as what was tried.
func onGPUs(verdicts []mem.GPUVerdict) (trials []mem.Trial) {
	for _, v := range verdicts {
		trials = append(trials, mem.Trial{Set: mem.TrialCatalogue, Try: mem.Try{GPUVerdict: v}})
	}
	return trials
}

const (
	AllGPUs    = "all"
	defaultGPU = "h100-sxm"
)

// prepare refuses what cannot be before anything is started, and makes the first trial.
func (s *Session) prepare(ctx context.Context) (trial, error) {
	o := &s.Options
	if o.GPU == "" {
		o.GPU = defaultGPU
		s.Notes = append(s.Notes, "no --gpu was given: imagining the default, "+defaultGPU+"; --gpu all tries every GPU")
	}
	if err := o.Check(); err != nil {
		return trial{}, err
	}
	t, err := s.asked()
	if err != nil {
		return trial{}, err
	}
	return t, s.machine(ctx)
}

// asked is the first trial as the user's words say it; nothing of the machine is looked at but the catalogue's files.
func (s *Session) asked() (trial, error) {
	o := &s.Options
	var err error
	if s.catalogue, err = gpus.Load(o.Catalogue...); err != nil {
		return trial{}, err
	}
	t := trial{command: s.Base.Command, count: max(o.GPUs, 1), env: map[string]string{}}
	if s.chosen, err = s.choose(); err != nil {
		return trial{}, err
	}
	switch {
	case !s.several():
		t.gpu = s.chosen[0]
	case o.Users > 0:
		t.gpu = s.inPrice()[0]
	default:
		t.gpu = s.largest()
	}
	if o.Memory > 0 {
		t.gpu.Total, t.gpu.Lowest, t.gpu.TotalBasis = o.Memory, 0, "--memory"
	}
	if o.Context > 0 {
		t.gpu.Overhead, t.gpu.OverheadBasis, t.gpu.OverheadKnown = o.Context, "--context", true
	}
	if t.gpu.Overhead >= t.gpu.Total {
		return trial{}, fail.Usage("as in --memory 24GiB",
			"--memory %v is less than a process takes on %s before its first tensor, %v", t.gpu.Total, t.gpu.Slug,
			t.gpu.Overhead)
	}
	if o.AllocConf != "" {
		t.env[allocator.Variable] = o.AllocConf
	}
	if o.Plan != "" {
		plan, err := levers.Read(o.Plan)
		if err != nil {
			return trial{}, err
		}
		if t.command, err = Changed(plan, t.command); err != nil {
			return trial{}, err
		}
		if err := enough(plan, t.count); err != nil {
			return trial{}, err
		}
		t = s.planned(t, plan)
	}
	return t, s.cluster(&t)
}

// machine refuses what this machine cannot imagine: another platform, a program that is not here, an interpreter
// without a framework that can be imagined.
func (s *Session) machine(ctx context.Context) error {
	if !system.Imagines {
		return fail.Environment("imagine on a Linux machine or in a container",
			"imaginary GPUs need Linux on x86-64 or arm64; this is %s", system.Name)
	}
	if _, err := launch.Find(s.Base.Command[0], s.Base.Env); err != nil {
		return err
	}
	return s.findPython(ctx)
}

// Check refuses settings that make no sense, and fills in defaults.
func (o *Options) Check() error {
	o.Settings().Fill()
	if _, err := strconv.ParseUint(o.Until, 10, 32); err != nil && o.Until != "auto" {
		return fail.Usage("--steps auto, --steps 20, or --steps 0 for all of them", "--steps %s is not a number of steps",
			o.Until)
	}
	for _, goal := range o.Reach {
		if !slices.Contains(Goals, goal) {
			return fail.Usage("one or more of "+strings.Join(Goals, ", ")+", separated by commas",
				"--until %s is not a point that a program reaches", goal)
		}
	}
	if fraction, err := strconv.ParseFloat(o.Sizes, 64); o.Sizes != "upper" && o.Sizes != "zero" && (err != nil || !(fraction >= 0 && fraction <= 1)) {
		return fail.Usage("--data-sizes upper, --data-sizes zero, or a fraction as 0.25",
			"--data-sizes %s is neither a name nor a fraction", o.Sizes)
	}
	if _, err := readValues(o.ReadValues); err != nil {
		return err
	}
	if o.GPUs < 0 || o.GPUs > 16 {
		return fail.Usage("a machine has 1 to 16 GPUs; larger worlds are imagined with --world-size",
			"--gpus %d is out of range", o.GPUs)
	}
	const world = "as in --world-size 128 --play 0,1,127"
	if o.World < 0 || o.World > 1<<20 {
		return fail.Usage(world, "--world-size %d: a world has 1 to %d ranks", o.World, 1<<20)
	}
	if o.World == 0 && o.PlayList != "" {
		return fail.Usage(world, "--play %s without --world-size", o.PlayList)
	}
	if o.several() && (o.Memory > 0 || o.Context > 0 || o.World > 0) {
		return fail.Usage("name one GPU",
			"--gpu %s imagines whole catalogue GPUs, without --memory, --context and --world-size", o.GPU)
	}
	if o.Load == "" && slices.Contains(o.Reach, untilLoad) {
		o.Load = defaultLoad
	}
	if _, ok := mem.ParseLoad(o.Load); !ok && o.Load != "" {
		return fail.Usage("as in --load 8x512+128: 8 sequences at once, of 512 tokens and 128 of answer each",
			"--load %s says no requests", o.Load)
	}
	if o.Tokens > 0 && o.Users == 0 {
		return fail.Usage("as in --users 20 --tokens 8192", "--tokens says how long the sequences of --users are")
	}
	return nil
}

// cluster prepares a trial of a world larger than this machine, and refuses a command that says no program.
func (s *Session) cluster(t *trial) (err error) {
	o := &s.Options
	if o.World == 0 {
		return nil
	}
	if s.play, err = parsePlay(o.PlayList, o.World); err != nil {
		return err
	}
	apart, err := takeApart(t.command)
	if err != nil {
		return err
	}
	t.command = apart.rank
	if o.GPUs == 0 {
		t.count = min(cmp.Or(apart.perNode, 8), o.World, 16)
	}
	return nil
}

// findPython looks at the interpreter that the command names, and refuses one that cannot be imagined.
func (s *Session) findPython(ctx context.Context) error {
	path := pythons.OfCommand(s.Base.Command)
	if path == "" {
		return nil // a shell script, uv run: it is seen when it runs
	}
	s.Python = pythons.Interpreter{Path: path}
	s.Python.Ask(ctx)
	note, err := imaginable(&s.Python)
	if note != "" {
		s.Notes = append(s.Notes, note)
	}
	return err
}

// imaginable says why an interpreter's programs cannot use an imaginary GPU, or what of them cannot.
func imaginable(p *pythons.Interpreter) (note string, err error) {
	if p.Version == "" {
		return "", nil // it does not answer: let the run say why
	}
	return frameworks.Imaginable(p.Frameworks, p.Build, p.Path)
}

// usable says why a first run has no verdict, where that lies in the environment.
func (s *Session) usable(main *Result) error {
	if main.Verdict != mem.VerdictUnused && main.Verdict != mem.VerdictFailed || len(main.Devices) > 0 {
		return nil
	}
	served, other := false, ""
	for _, p := range main.run.Processes {
		if p.Facts[frameworks.FactRuntime] == frameworks.RuntimeIsInside {
			return frameworks.RuntimeInside(p.Frameworks[frameworks.Torch],
				slices.Concat(p.Command, []string{"the program"})[0])
		}
		if name := p.Facts[frameworks.FactInside]; name != "" {
			return frameworks.Inside(name, slices.Concat(p.Command, []string{"the program"})[0])
		}
		for name := range p.Frameworks {
			if frameworks.Of(name).Imagined != nil {
				served = true
			} else if other == "" || frameworks.Rank(name) < frameworks.Rank(other) {
				other = name
			}
		}
	}
	for _, e := range main.run.Events {
		if e.Kind == "unobserved" && e.Facts["helper"] == "device" {
			return fail.Environment("use a glibc build of Python, as of python.org images, conda or uv",
				"imaginary GPUs cannot be preloaded into %s: %s", e.Facts["program"], e.Facts["why"])
		}
	}
	if main.Verdict == mem.VerdictUnused && !served && other != "" {
		return fail.Environment("imaginary GPUs serve "+frameworks.Served(), "the program used %s and no %s",
			frameworks.Of(other).Title, frameworks.Served())
	}
	return nil
}

// Helpers are the files that ride along.
type Helpers struct {
	Agent  launch.Helper
	Heap   *launch.Helper // nil: there is none in this build
	Device launch.Helper
}

// with is the list for one run.
func (h *Helpers) with(agent, device map[string]string, heap bool) []launch.Helper {
	a, d := h.Agent, h.Device
	a.Env = mergeEnv(a.Env, agent)
	d.Env = mergeEnv(d.Env, device)
	list := []launch.Helper{a}
	if heap && h.Heap != nil {
		list = append(list, *h.Heap) // before the device: what it interposes on is the host's alone
	}
	return append(list, d)
}

// largest is the GPU to begin with where all are wanted: the one with most memory of a generation that
// every PyTorch of the last years knows.
func (s *Session) largest() gpus.GPU {
	list := slices.DeleteFunc(slices.Clone(s.chosen), func(g gpus.GPU) bool {
		major, _, ok := g.Capability()
		return !ok || !g.CUDA() || major < 8 || major > 9
	})
	if len(list) == 0 {
		list = s.chosen
	}
	return slices.MaxFunc(list, func(a, b gpus.GPU) int { return cmp.Compare(a.Total, b.Total) })
}

// advance tells that one more of the runs beside the first one is done.
func (s *Session) advance(format string, args ...any) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.done++
	s.Base.Events.Tell(event.Progress{Done: s.done, All: s.all, Text: fmt.Sprintf(format, args...)})
}
