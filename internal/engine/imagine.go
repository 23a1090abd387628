package engine

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/analyze/facts"
	"hightide/internal/fail"
	"hightide/internal/files"
	"hightide/internal/fit"
	"hightide/internal/frameworks"
	"hightide/internal/gpus"
	"hightide/internal/imagine"
	"hightide/internal/launch"
	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/options"
	"hightide/internal/plan"
	"hightide/internal/report"
	"hightide/internal/tune"
)

// ImagineOptions of Imagine; only Command, Env and GPU are needed. Of RunOptions, Steps is not looked at: Until has
// its place.
type ImagineOptions struct {
	RunOptions
	imagine.Options
	Stacks bool // sample the host heap with Python stacks; NoStacks is not looked at
}

// Settings are what a user can set of an imagined run.
func (o *ImagineOptions) Settings() options.List {
	list := options.List{options.Words(&o.Command,
		"the program and its arguments, as you would type it on the machine with the GPU; it runs here, unmodified, and no "+
			"kernel does", "python train.py --batch-size 32")}
	list[0].Required = true
	list = append(list, o.Options.Settings()...)
	list = append(list, options.Setting{Name: "stacks", Help: "also sample the host heap with Python stacks", To: &o.Stacks,
		Label: "Host stacks"})
	return append(list, o.Shared()...)
}

// ImagineResult is what came of it. Verdict is nil where the recording could not be read back.
type ImagineResult struct {
	RunResult
	Verdict *report.Imagined
	built   imagine.Built
}

// Signal is what ended the program from outside; 0: nothing did, or a process of its own that failed before.
func (r *ImagineResult) Signal() int64 {
	if v := r.Verdict; v != nil && (v.Verdict == mem.VerdictFailed && imagine.OfItsOwn(v)) {
		return 0
	}
	return r.Outcome.Signal.Or(0)
}

// Imagine runs a program on GPUs that are not there, records it and says whether it fits. An
// error means that there is no run; what came of a run that there was is in the result.
func (e *Engine) Imagine(ctx context.Context, o ImagineOptions) (*ImagineResult, error) {
	o.NoStacks = !o.Stacks
	if err := o.RunOptions.check(); err != nil {
		return nil, err
	}
	if err := CheckImagines("imagine"); err != nil {
		return nil, err
	}
	s, err := e.imagineSession(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer e.Runtime.TuneTo(launch.Recording)()
	result := &ImagineResult{}
	p, err := e.place(o.begins(e, "imagine", mem.Imagined), &result.RunResult)
	if err != nil {
		return nil, err
	}
	defer p.store.Close()
	o.Events.Tell(p.begun(ctx, &result.RunResult))
	s.Base.ID, s.Base.OutDir = result.ID, p.engine.scratch(result.ID)
	main, err := s.Run(ctx, p.writer)
	result.Notes = append(result.Notes, s.Notes...)
	if err != nil {
		p.close(&result.RunResult, false)
		return nil, err
	}
	result.Outcome, result.Verdict, result.built = main.Outcome, main.Imagined, main.Built()
	result.plan = s.Plan()
	p.tellPlan(&result.RunResult)
	p.conclude(ctx, &o.RunOptions, &result.RunResult)
	if result.Report != nil && result.Report.Imagined != nil {
		result.Verdict = result.Report.Imagined
	}
	return result, result.refusedPlan()
}

// imagineSession prepares a session of package imagine that records by this engine.
func (e *Engine) imagineSession(ctx context.Context, o *ImagineOptions) (*imagine.Session, error) {
	base := o.RunOptions.Options
	base.Version, base.Runtime = Version, o.sharing(e.Runtime)
	o.Excluded = excluded(ctx, o)
	s, err := imagine.New(ctx, o.Options, base)
	if err != nil {
		return nil, refused(err)
	}
	helpers, err := e.imagineHelpers()
	if err != nil {
		return nil, err
	}
	s.Helpers = *helpers
	s.Record = func(ctx context.Context, o *observe.Options, sink observe.Sink) (observe.Outcome, error) {
		outcome, err := observe.Run(ctx, o, sink)
		if err != nil {
			err = launchError(err)
		}
		return outcome, err
	}
	return s, nil
}

// Tune finds the cheapest changes by which a training fits, and writes them as a plan. Runs before an error are in the
// result, which is then not nil.
func (e *Engine) Tune(ctx context.Context, o tune.Options) (*tune.Result, error) {
	if err := CheckImagines("tune"); err != nil {
		return nil, err
	}
	if err := o.Check(); err != nil {
		return nil, err
	}
	if o.Serves() != "" {
		return e.tuneServer(ctx, &o)
	}
	if !o.Dry {
		if err := files.CheckFolder(o.Output, "the plan"); err != nil {
			return nil, err
		}
	}
	began := e.Runtime.Time()
	var notes []string
	open := func(gpu string, command []string, batch int) (tune.Host, error) {
		host, s, err := e.tuneHost(ctx, &o, gpu, command)
		if err == nil && batch > 0 {
			s.Resize(batch)
		}
		if err == nil && notes == nil {
			notes = s.Notes
		}
		return host, err
	}
	result, err := tuned(ctx, o, open)
	if result == nil {
		return nil, err
	}
	result.Notes = append(result.Notes, notes...)
	result.Duration = e.Runtime.Time().Sub(began).Nanoseconds()
	if err != nil || result.Recommended == nil || o.Dry {
		return result, err
	}
	if err := writeText(o.Output, "plan", result.Recommended.Text()); err != nil {
		return result, err
	}
	result.File = o.Output
	if p := result.Patch; p != nil && p.Text != "" {
		path := strings.TrimSuffix(o.Output, ".toml") + ".patch"
		if err := writeText(path, "patch", p.Text); err != nil {
			return result, err
		}
		p.File = path
	}
	return result, nil
}

// tuneServer finds the settings by which an LLM server holds what it is to hold.
func (e *Engine) tuneServer(ctx context.Context, o *tune.Options) (*tune.Result, error) {
	began, count := e.Runtime.Time(), imagine.SharedBy(o.Command)
	if o.GPUs > 0 && o.GPUs < count {
		return nil, fail.Usage("as in --gpus 2", "the command shares each layer among %d GPUs, and --gpus says %d", count,
			o.GPUs)
	}
	s, err := e.imagineSession(ctx, &ImagineOptions{
		RunOptions: RunOptions{Options: observe.Options{Command: o.Command, Env: o.Env, Events: o.Events}},
		Options: imagine.Options{GPU: o.GPU, GPUs: count, Catalogue: o.Catalogue, Memory: o.Memory, Users: o.Users,
			Tokens: o.Tokens}})
	if err != nil {
		return nil, err
	}
	defer e.Runtime.TuneTo(launch.Recording)()
	s.Base.ID = "tune"
	var first *imagine.Result
	result, err := tune.Serve(ctx, *o, tune.ServerHost{
		Start: func(ctx context.Context) (start *tune.Start, err error) {
			first, err = s.Start(ctx)
			return startOf(first), err
		},
		Settings: func() (must, list []tune.Setting) {
			return s.SettingsOf(first, slices.Contains(o.Allow, tune.EightBits), max(o.GPUs, count))
		},
		Try: func(ctx context.Context, sets [][]tune.Setting) []*tune.Start {
			starts := make([]*tune.Start, len(sets))
			for i, r := range s.TrySettings(ctx, sets) {
				starts[i] = startOf(r)
			}
			return starts
		},
		Whole: func(ctx context.Context, set []tune.Setting) (*tune.Start, error) {
			r, err := s.TryWhole(ctx, set)
			return startOf(r), err
		},
		Command: func(set []tune.Setting) []string {
			return slices.Concat(o.Command, imagine.FlagsOf(set))
		},
	})
	result.Notes = append(result.Notes, s.Notes...)
	result.Duration = e.Runtime.Time().Sub(began).Nanoseconds()
	return result, err
}

// startOf is what a tune reads of a server's start.
func startOf(r *imagine.Result) *tune.Start {
	if r == nil {
		return nil
	}
	start := &tune.Start{GPUVerdict: r.Noted(), How: r.How}
	if v := r.Serving; v != nil {
		start.Figures, start.Engine, start.Version, start.Ready = v.ServingFigures, v.Engine, v.Version, v.Ready
	}
	return start
}

// opening is where a command runs on a GPU; with a batch, that is what the program's own trainer makes.
type opening func(gpu string, command []string, batch int) (tune.Host, error)

// tuned finds a plan on the GPU that was asked for, or the cheapest GPU that has one.
func tuned(ctx context.Context, o tune.Options, open opening) (*tune.Result, error) {
	switch o.Goal {
	case tune.Cost:
		return tune.Cheapest(ctx, o, func(gpu string) (tune.Host, error) { return open(gpu, o.Command, 0) })
	case tune.Batch:
		return tune.Largest(ctx, o, batchesOf(&o, open))
	}
	host, err := open(o.GPU, o.Command, 0)
	if err != nil {
		return nil, err
	}
	return tune.Find(ctx, o, host)
}

// ownedStart is the first size of a batch that a trainer of the program owns.
const ownedStart = 8

// batchesOf is where the batch is said: in the command at {batch}, or behind a flag as --batch-size; else a trainer of the
// program may own it.
func batchesOf(o *tune.Options, open opening) tune.Batches {
	start, with, said := imagine.BatchOf(o.Command)
	if fit.HasBatch(o.Command) {
		start, with, said = 1, func(size int) []string { return fit.WithBatch(o.Command, size) }, true
	}
	if said {
		return tune.Batches{Start: start, With: with,
			Open: func(size int) (tune.Host, error) { return open(o.GPU, with(size), 0) }}
	}
	return tune.Batches{Start: ownedStart, Owned: true, With: func(int) []string { return o.Command },
		Open: func(size int) (tune.Host, error) { return open(o.GPU, o.Command, size) }}
}

// tuneHost is where a tune's runs of one command on one GPU are made.
func (e *Engine) tuneHost(ctx context.Context, o *tune.Options, gpu string, command []string) (host tune.Host,
	s *imagine.Session, err error) {
	s, err = e.imagineSession(ctx, &ImagineOptions{
		RunOptions: RunOptions{Options: observe.Options{Command: command, Env: o.Env, Events: o.Events}},
		Options:    imagine.Options{GPU: gpu, GPUs: o.GPUs, Catalogue: o.Catalogue, Memory: o.Memory}})
	if err != nil {
		return host, nil, err
	}
	s.Base.ID = "tune"
	host.Try = func(ctx context.Context, runs []tune.Run) []*tune.Outcome { return e.tuneRuns(ctx, s, runs) }
	host.Parted = func(parts int) ([]string, string) { return imagine.Parted(command, parts) }
	host.Ranked = func(ranks int) ([]string, string) { return imagine.Ranked(command, ranks) }
	if o.Patch {
		err = patches(&host, s)
	}
	return host, s, err
}

// patches completes a tune's host by what a patch needs.
func patches(host *tune.Host, s *imagine.Session) (err error) {
	if host.Folder, err = os.Getwd(); err != nil {
		return fail.Environment("start it in a folder that exists", "find the program's folder: %w", err)
	}
	s.AskCode()
	host.Source = func(path string) (string, error) {
		text, err := os.ReadFile(path)
		return string(text), err
	}
	host.Patched = func(ctx context.Context, plan *levers.Plan, root string, changed map[string]string) (*tune.Outcome,
		error) {
		result, ran, err := s.TryPatched(ctx, plan, host.Folder, root, changed)
		if err != nil {
			return nil, err
		}
		o := outcomeOf(result)
		o.Applied = ran
		return o, nil
	}
	return nil
}

func writeText(path, what, text string) error {
	return files.Write(path, what, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// tuneRuns are imagined runs with plans.
func (e *Engine) tuneRuns(ctx context.Context, s *imagine.Session, runs []tune.Run) []*tune.Outcome {
	defer e.Runtime.TuneTo(launch.Recording)()
	plans := make([]imagine.Planned, len(runs))
	for i, run := range runs {
		plans[i] = imagine.Planned(run)
	}
	outcomes := make([]*tune.Outcome, len(runs))
	for i, r := range s.TryPlans(ctx, plans) {
		if r == nil {
			continue
		}
		outcomes[i] = outcomeOf(r)
		if runs[i].Apart {
			outcomes[i].Host, outcomes[i].HostError = facts.HostOf(r.Frames())
		} else if r.Fits() {
			outcomes[i].Curve = tune.CurveOf(r.History())
		}
	}
	return outcomes
}

// outcomeOf is what a tune reads of an imagined run.
func outcomeOf(r *imagine.Result) *tune.Outcome {
	return &tune.Outcome{Other: frameworks.Other(r.Uses), GPUVerdict: r.GPUVerdict, Tight: r.Tight, How: r.How, Refused: r.PlanRefused(),
		Applied: r.Fact(mem.FactPlan) != "", Left: r.Fact(mem.FactPlanLeft), Model: r.Fact(levers.FactModel),
		Counted: r.Fact(levers.FactCounted), Blocks: r.Fact(levers.FactBlocks),
		Moved: mem.Bytes(r.Number(levers.NumberMoved).Or(0) + r.Number(levers.NumberHosted).Or(0)),
		Code:  r.Fact(levers.FactCode), Donated: frameworks.Donated(r.Frames()),
		Weights: r.Number(levers.NumberWeights), States: r.Number(levers.NumberStates),
		Owner: r.Fact(levers.FactOwner), Samples: r.Number(levers.NumberSamples)}
}

// Plan tells from a model's files which GPUs hold it.
func (e *Engine) Plan(ctx context.Context, o plan.Options) (*plan.Result, error) {
	if o.MayRead == nil {
		o.MayRead = e.MayRead
	}
	o.Host = plan.Host{Check: func() error { return CheckImagines("plan --imagine") },
		Trainer: func() (string, error) { return e.script("planned.py") }, AtOnce: imagine.Workers,
		Session: func(variables map[string]string, command []string) plan.Trial {
			runs := &planRuns{engine: e, options: &o, variables: variables, command: command,
				sessions: map[int]*imagine.Session{}}
			return runs.try
		}}
	return plan.Run(ctx, o)
}

// trialPatience is how long a server that is asked to end has before it is asked harder: nothing of it is to be kept.
const trialPatience = 5 * time.Second

// planRuns runs a command on the imaginary GPUs that a plan asks for.
type planRuns struct {
	engine    *Engine
	options   *plan.Options
	variables map[string]string // of the program, besides those that it has by itself
	command   []string          // by which its interpreter is known

	lock     sync.Mutex
	sessions map[int]*imagine.Session
}

// node is how many GPUs a machine has at most of which a training takes some.
const node = 8

// try is a plan.Trial. A server starts its own processes; of a training each GPU has one, and the first is played.
func (p *planRuns) try(ctx context.Context, g *gpus.GPU, count int, command []string) (*report.Imagined, string, error) {
	world := 1
	if p.options.For != plan.Serve {
		world, count = count, min(count, node)
	}
	s, err := p.session(ctx, world)
	if err != nil {
		return nil, "", err
	}
	done, err := s.TryOn(ctx, g, count, command)
	if err != nil {
		return nil, "", err
	}
	return done.Imagined, done.Said, nil
}

// session is where runs of a world of so many processes are made; 1: of what a command starts by itself.
func (p *planRuns) session(ctx context.Context, world int) (*imagine.Session, error) {
	p.lock.Lock()
	defer p.lock.Unlock()
	if s := p.sessions[world]; s != nil {
		return s, nil
	}
	env := launch.With(os.Environ(), p.variables)
	o := ImagineOptions{RunOptions: RunOptions{Options: observe.Options{Command: p.command, Env: env, Patience: trialPatience}},
		Options: imagine.Options{GPU: "h100-sxm", Catalogue: p.options.Catalogue, NoSuggest: true}}
	if world > 1 {
		o.World, o.PlayList = world, "0"
	}
	s, err := p.engine.imagineSession(ctx, &o)
	if err != nil {
		return nil, err
	}
	s.Base.ID = "plan"
	p.sessions[world] = s
	return s, nil
}

// Fit searches the largest batch that fits. Trials that ran before an error are in the result, which
// is then not nil.
func (e *Engine) Fit(ctx context.Context, o fit.Options) (*fit.Result, error) {
	if err := CheckImagines("fit"); err != nil {
		return nil, err
	}
	stderr := io.Discard
	if e.Runtime.Stderr != nil {
		stderr = e.Runtime.Stderr
	}
	o.MayRead = e.MayRead
	return fit.Run(ctx, o, fit.Host{Now: e.Runtime.Time, Stderr: stderr,
		Worker: func() (string, error) { return e.script("worker.py") }, Device: e.fitDevice,
		Script: e.fitScript})
}

// script is where one of hightide's programs for a framework stands: beside the agent.
func (e *Engine) script(name string) (string, error) {
	dir, _, err := e.UnpackAgent()
	if err != nil {
		return "", fail.Environment("is there room, and can it be written to?", "unpack what builds models: %w", err)
	}
	return filepath.Join(dir, "hightide", "_fit", name), nil
}

// measuredSteps are enough for the optimizer's state and a median of the time.
const measuredSteps = 8

// fitScript runs the command once a trial: on an imaginary GPU until its memory is steady, on this
// machine's for a few steps.
func (e *Engine) fitScript(ctx context.Context, o *fit.Options, result *fit.Result) (fit.Try, error) {
	if o.Device == "imaginary" {
		return e.fitImagined(ctx, o, result)
	}
	return func(ask fit.Ask) (fit.Trial, error) {
		run, err := e.Run(ctx, RunOptions{JSONOnStdout: true,
			Options: observe.Options{Command: fit.WithBatch(o.Command, ask.Batch), Env: o.Env,
				Name: fmt.Sprintf("fit batch %d", ask.Batch), Steps: measuredSteps, NoStacks: true, SnapshotOn: "never"}})
		if err != nil {
			return fit.Trial{}, err
		}
		return fit.MeasuredTrial(ask.Batch, run.ID, run.Report, run.Outcome.ExitCode)
	}, nil
}

// fitImagined runs the command on the imaginary GPU.
func (e *Engine) fitImagined(ctx context.Context, o *fit.Options, result *fit.Result) (fit.Try, error) {
	s, err := e.imagineSession(ctx,
		&ImagineOptions{RunOptions: RunOptions{Options: observe.Options{Command: fit.WithBatch(o.Command, 1), Env: o.Env}},
			Options: imagine.Options{GPU: o.GPU, Catalogue: o.Catalogue, Memory: result.GPU.Total, AllocConf: o.AllocConf}})
	if err != nil {
		return nil, err
	}
	s.Base.ID = "fit"
	result.Worker.Versions = map[string]string{frameworks.Torch: s.Python.Frameworks[frameworks.Torch]}
	result.Worker.Python = s.Python.Path
	return func(ask fit.Ask) (fit.Trial, error) {
		done, err := s.Try(ctx, fit.WithBatch(o.Command, ask.Batch))
		if err != nil {
			return fit.Trial{}, err
		}
		built := done.Built()
		result.Worker.Built, result.Worker.CUDA = built.Architectures, built.CUDA
		return fit.ImaginedTrial(ask.Batch, done.Imagined, done.Said)
	}, nil
}

// fitDevice prepares the imaginary GPU for the worker; environment puts it into an environment.
func (e *Engine) fitDevice(gpu *gpus.GPU, allocConf string) (environment func([]string) []string, remove func(),
	err error) {
	observe.Leftovers(&e.Runtime, func(observe.Leftover) {}) // what a killed search left goes
	helpers, err := e.imagineHelpers()
	if err != nil {
		return nil, nil, err
	}
	shared, err := observe.Hold(observe.SharedPath(e.Runtime.SharedDir(), "fit"), "", "")
	if err != nil {
		return nil, nil, fail.Environment("is there room in shared memory? see df /dev/shm", "%w", err)
	}
	device := helpers.Device
	device.Env = map[string]string{"HIGHTIDE_DEVICE_TABLE": filepath.Join(shared.Dir, "device-table"),
		"HIGHTIDE_DEVICE_SPEC": imagine.DeviceSpec(gpu, 1)}
	vars := map[string]string{}
	if allocConf != "" {
		vars[allocator.Variable] = allocConf
	}
	return func(env []string) []string {
		return launch.Environment(launch.With(env, vars), []launch.Helper{device}, nil)
	}, shared.Close, nil
}

// ImagineSummary is what `imagine --json` prints: that of a run, and the verdict.
type ImagineSummary struct {
	Summary
	*report.Imagined
}

// OtherGPUs is what other GPUs of the catalogue would have left, without a run on them.
func (r *ImagineResult) OtherGPUs() ([]mem.GPUVerdict, error) {
	if r.Verdict == nil || len(r.Verdict.All) > 0 {
		return nil, nil // or they were tried
	}
	known, err := gpus.Load()
	if err != nil {
		return nil, err
	}
	if r.Verdict.Serving != nil {
		return nil, nil // a server takes a share of whatever a GPU has: only a run can tell
	}
	return imagine.Others(known.Common(), r.built, &r.Verdict.GPUVerdict,
		max(1, len(r.Verdict.Ranks)/max(1, len(r.Verdict.Devices)))), nil
}

// Summary of a run that ended.
func (r *ImagineResult) Summary() ImagineSummary {
	s := ImagineSummary{r.RunResult.Summary(), r.Verdict}
	s.Label = mem.Imagined
	return s
}

// excluded says of GPUs why a server need not be started on them, as far as the command and the model's files tell.
func excluded(ctx context.Context, o *ImagineOptions) map[string]string {
	served, ok := imagine.ServedBy(o.Command)
	if !ok || o.Users == 0 || o.Tokens == 0 {
		return nil
	}
	use := plan.Use{For: plan.Serve, Users: o.Users, Seq: o.Tokens, GPUs: served.GPUs, Utilization: served.Utilization,
		SGLang: served.SGLang}
	switch served.Cache {
	case "", "auto", "bfloat16":
	case "fp8", "fp8_e4m3", "fp8_e5m2":
		use.Cache = "fp8"
	default:
		return nil
	}
	return plan.Excluded(ctx, plan.Options{Model: served.Model, Catalogue: o.Catalogue, Offline: true, Use: use})
}
