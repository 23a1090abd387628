// Package tune finds the cheapest changes by which a training fits.
//
//	Options ──▶ Run ──▶ search ──▶ Host.Try: imagined runs with plans ──▶ Point ──▶ Result ──▶ the plan's file
//	                      │
//	                      └── Recorded: what each block keeps, by one pass ──▶ Frontier: which blocks to checkpoint
//
// What is recommended was run whole. Frontier is a pure function of the recorded pass; what it says of peaks only
// orders the runs. Read find.go next.
package tune

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/options"
)

// Cost is the goal of the least money: the cheapest GPU, or machine to rent, on which a plan fits.
const Cost = "cost"

// Batch is the goal of the largest batch that fits with levers.
const Batch = "batch"

const (
	allGPUs = "all"
	fitGoal = "fit"
)

// Options of Run.
type Options struct {
	Command   []string
	Env       []string
	GPU       string
	GPUs      int // in the machine; 0: one
	Catalogue []string
	Memory    mem.Bytes
	Host      mem.Bytes // of the host's memory, for all processes; 0: not looked at
	Goal      string    // "fit", "headroom=10%", Batch or Cost
	Instances bool      // of the goal Cost: machines that clouds rent
	Allow     []string  // levers that change numbers
	Output    string    // where the plan is written; "": levers.File
	Patch     bool      // write the plan as a change of the program's own files too
	Dry       bool      // write no file
	Users     int       // of an LLM server: sequences that it runs at once
	Tokens    int       // and how long each is; 0: the greatest length

	Events event.Sink
}

// Settings are what a user can set.
func (o *Options) Settings() options.List {
	list := options.List{options.Words(&o.Command, "the training and its arguments; it runs here, unmodified, and no kernel does",
		"python train.py --batch-size 32")}
	list[0].Required = true
	list[0].Hint = "A training of PyTorch or JAX, or an LLM server, as you would start it. It runs here, unmodified, again " +
		"and again; no kernel is computed."
	return append(list, options.List{
		{Name: "gpu", Help: "`name` of the GPU as in hightide gpus; with --goal cost several with commas, or all", To: &o.GPU,
			Label: "GPU", Example: "rtx4090", First: true, Once: "with --goal cost, several with commas"},
		{Name: "gpus", Help: "`number` of these GPUs in the machine (default 1)", To: &o.GPUs, Least: 1, Label: "How many",
			Example: "2", Hint: "GPUs in the machine, of which a launcher as torchrun starts a rank each."},
		{Name: "memory", Help: "`size` of the GPU's memory in place of the catalogue's, as 24GiB", To: &o.Memory,
			Label: "Memory", Example: "24GiB"},
		{Name: "host-memory", Help: "`size` of the host's memory that all processes of the program may take " +
			"together, as 16GiB: changes of its loaders and of malloc are tried too", To: &o.Host,
			Label: "Host memory", Example: "16GiB"},
		{Name: "goal", Help: "`what` is to be reached: fit, with the room that a verdict needs not to be tight; or " +
			"headroom=10%, a share of the memory that the training can do without; or batch, the largest that " +
			"fits; or cost, the cheapest of the GPUs on which a plan fits", To: &o.Goal,
			Default: "fit", Check: checkGoal, Label: "Goal", Example: "headroom=10%", First: true},
		{Name: "instances", Help: "with --goal cost: the cheapest machine that a cloud rents, in place of GPUs", To: &o.Instances,
			Label: "Machines to rent"},
		{Name: "allow", Help: "`lever` of PyTorch that changes numbers and may be used all the same: " +
			strings.Join(Changing(), ", ") + ", and of an LLM server " + EightBits + "; several with commas",
			To: &o.Allow, Commas: true, Among: append(Changing(), EightBits), Label: "Allow", Example: "bf16"},
		{Name: "users", Help: "of an LLM server: `number` of sequences that it is to run at once", To: &o.Users,
			Least: 1, Label: "Users", Example: "20"},
		{Name: "tokens", Help: "with --users: `number` of tokens of each sequence, prompt and answer together",
			To: &o.Tokens, Least: 1, Label: "Tokens of each", Example: "8192"},
		{Name: "output", Short: "o", Help: "write the plan to this `file`", To: &o.Output, Default: levers.File,
			Not: options.CommandOnly, Why: "the page and an assistant get the plan's text"},
		{Name: "patch", Help: "write the plan as a change of the program's own files too, applied to a copy and imagined: a " +
			"unified diff beside the plan", To: &o.Patch, Label: "As a patch too"},
		options.Catalogue(&o.Catalogue),
	}...)
}

// Changing are the levers that change numbers.
func Changing() (names []string) {
	for _, lever := range levers.All {
		if lever.Price == levers.Changing {
			names = append(names, lever.Name)
		}
	}
	return names
}

// Check refuses settings that make no sense.
func (o *Options) Check() error {
	o.Settings().Fill()
	if engine := o.Serves(); engine != "" {
		return o.checkServer(engine)
	}
	if o.Users > 0 || o.Tokens > 0 {
		return fail.Usage("as in -- vllm serve MODEL",
			"--users and --tokens are asked of an LLM server, and this command starts none")
	}
	for _, name := range o.Allow {
		said := strings.ReplaceAll(strings.ToLower(name), "-", "")
		if name != levers.Eight && strings.Contains(said, "8bit") {
			return fail.Usage("--allow "+levers.Eight+" keeps the states of Adam in 8 bits",
				"--allow %s: there is no such lever", name)
		}
		if strings.Contains(strings.ToLower(name), "fp8") {
			return fail.Usage("as in --allow "+EightBits+" -- vllm serve MODEL",
				"--allow %s: a training keeps no cache", name)
		}
		if strings.EqualFold(name, "tf32") {
			return fail.Usage("--allow bf16 computes in 16 bits", "--allow tf32: it takes as much memory, as tensors keep 32 bits")
		}
		if !slices.Contains(Changing(), name) {
			return fail.Choice("--allow", name, Changing())
		}
	}
	switch {
	case slices.Contains(o.Allow, levers.Spread) && o.GPUs < 2:
		return fail.Usage("as in --gpus 2",
			"--allow %s spreads the training over the GPUs of the machine, which has one", levers.Spread)
	case o.Host > 0 && (o.Goal == Cost || o.Goal == Batch):
		return fail.Usage("leave it out, or take --goal fit", "--host-memory does not go with --goal %s", o.Goal)
	case o.Host > 0 && o.Host < 64*mem.MiB:
		return fail.Usage("as in --host-memory 16GiB", "--host-memory %v is less than a Python with PyTorch takes", o.Host)
	}
	switch o.Goal {
	case Cost:
		return o.checkCost()
	case Batch:
		for _, cuts := range []string{levers.Parts, levers.Words} {
			if slices.Contains(o.Allow, cuts) {
				return fail.Usage("leave it out", "--goal batch asks for the largest batch, and --allow %s cuts it in parts", cuts)
			}
		}
	}
	return o.oneGPU()
}

// Serves is the engine of the LLM server that the command starts; "": it starts another program.
func (o *Options) Serves() string {
	engine, _ := frameworks.ServerOf(o.Command)
	return engine
}

// checkServer refuses what cannot be asked of a server.
func (o *Options) checkServer(engine string) error {
	flags := "its plan is flags of its command, which the answer names"
	switch {
	case o.Goal != fitGoal:
		return fail.Usage("as in --users 20 --tokens 8192; hightide imagine --gpu all finds the cheapest GPU for them",
			"--goal %s is made for trainings; this command serves with %s", o.Goal, engine)
	case o.Host > 0:
		return fail.Usage("leave it out", "--host-memory is made for trainings; this command serves with %s", engine)
	case o.Patch:
		return fail.Usage("leave it out: "+flags, "--patch is made for trainings; this command serves with %s", engine)
	case o.Output != "" && o.Output != o.Settings().Find("output").Default:
		return fail.Usage("leave it out: "+flags, "no plan is written for a command that serves with %s", engine)
	case o.Tokens > 0 && o.Users == 0:
		return fail.Usage("as in --users 20 --tokens 8192", "--tokens says how long the sequences of --users are")
	}
	for _, name := range o.Allow {
		if name != EightBits {
			return fail.Usage("--allow "+EightBits+" has the KV cache in 8 bits",
				"--allow %s is made for trainings; this command serves with %s", name, engine)
		}
	}
	return o.oneGPU()
}

// oneGPU refuses several GPUs, and none.
func (o *Options) oneGPU() error {
	switch {
	case o.Instances:
		return fail.Usage("as in --goal cost --instances --gpu all", "--instances belongs to --goal cost")
	case len(listed(o.GPU)) > 1:
		return fail.Usage("or --goal cost, which takes the cheapest of several", "name one GPU: a plan is made for it")
	case o.GPU == "":
		return fail.Usage("as in --gpu rtx4090; hightide gpus lists them", "no GPU to fit on")
	case strings.EqualFold(o.GPU, "all"):
		return fail.Usage("or --goal cost, which takes the cheapest of all", "name one GPU: a plan is made for it")
	}
	return checkGoal(o.Goal)
}

// checkCost refuses what the cheapest GPU cannot be asked with.
func (o *Options) checkCost() error {
	switch {
	case o.Memory > 0:
		return fail.Usage("leave it out: each GPU has its own", "--goal cost compares GPUs of the catalogue, without --memory")
	case o.GPU == "" || strings.EqualFold(o.GPU, allGPUs):
		o.GPU = allGPUs
	}
	return nil
}

// listed are names with commas between them.
func listed(text string) (names []string) {
	for name := range strings.SplitSeq(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func checkGoal(text string) error {
	if _, ok := room(text); !ok {
		return fail.Usage("fit, a share of the memory as headroom=10%, batch, or cost", "--goal %s is not known", text)
	}
	return nil
}

// room is the share of the memory that a goal leaves free; 0: what a verdict needs not to be tight.
func room(goal string) (share float64, ok bool) {
	if goal == fitGoal || goal == Cost || goal == Batch {
		return 0, true
	}
	text, named := strings.CutPrefix(goal, "headroom=")
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(number, 64)
	return share / 100, named && percent && err == nil && share > 0 && share < 100
}

// Run is one imagined run that is asked for.
type Run struct {
	Plan   *levers.Plan
	Roomy  bool // with all the memory that the program wants
	Blocks bool // record what each block takes

	Counted bool // record how the backward passes of a step add up

	Memory mem.Bytes // of such a GPU, what there is of its memory; 0: all
	Apart  bool      // started for itself: what it takes of the host is known
}

// Outcome is what came of it.
type Outcome struct {
	mem.GPUVerdict
	Tight   mem.Bytes // headroom below which a fit is called tight
	How     string    // how a program without a verdict ended
	Refused string    // why the plan could not be applied
	Applied bool      // the agent applied it
	Left    string    // what the program trains that its levers do not reach
	Model   string    // "GPT 124439808", where blocks were recorded
	Blocks  string    // JSON of Recorded
	Counted string    // JSON of counted
	Moved   mem.Bytes // offloaded
	Other   string    // a framework in place of PyTorch, where the program has one; see frameworks.Other
	Donated []string  // functions with arguments that a result replaces, and that could be donated, as a plan has them
	Code    string    // JSON of the levers as code, see patch.go

	Owner   string       // where the program says its batch, if a known trainer owns it
	Samples mem.Optional // of that trainer's data set

	Curve *StepCurve // nil: not known

	Host, HostError mem.Optional // PSS of all processes at its highest, of a run apart, and how far it may be off

	Weights, States mem.Optional // of the model and its optimizers, in bytes, where blocks were recorded
}

// Host is what a tune needs of the engine that it works for. A nil outcome did not run. Patched runs a copy of a folder
// with other text in some of its files; only where a file of the copy itself ran, the outcome is applied. The last three
// are for a patch.
type Host struct {
	Try    func(context.Context, []Run) []*Outcome
	Parted func(parts int) (command []string, why string) // the command with its batch in parts, or why not; nil: never

	Ranked func(ranks int) (command []string, why string) // the command as so many processes, or why not; nil: never

	Folder  string                            // the program is started in
	Source  func(path string) (string, error) // the text of one of its files
	Patched func(ctx context.Context, nothing *levers.Plan, folder string, changed map[string]string) (*Outcome, error)
}

// Point is a plan that was run.
type Point struct {
	Plan    *levers.Plan   `json:"plan" doc:"The plan."`
	What    string         `json:"what" doc:"What it changes, in words."`
	Verdict mem.GPUVerdict `json:"verdict" doc:"What came of the imagined run with it."`
	Enough  bool           `json:"reaches_goal" doc:"Whether that reaches the goal."`
	Within  mem.Optional   `json:"also_runs_in_bytes,omitzero" doc:"With the goal headroom, where the run itself left less free: it ran in so much memory too, as the allocator gives back what it keeps idle."`
	Best    bool           `json:"on_frontier" doc:"No other plan that ran takes less at no more cost."`
	Exact   bool           `json:"numbers_stay" doc:"Losses and gradients stay the same bit for bit."`
	Numbers string         `json:"numbers" doc:"What becomes of losses and gradients, in words."`
	Chosen  bool           `json:"recommended" doc:"It is the one that is recommended."`
	Costs   string         `json:"costs" doc:"What it costs, in words."`
	Host    mem.Optional   `json:"host_pss_bytes,omitzero" doc:"With --host-memory: the highest PSS of all processes, as far as the run went, in bytes; absent: that was not looked at."`
	Off     mem.Optional   `json:"host_pss_error_bytes,omitzero" doc:"How far that may be off to either side, in bytes."`
	Curve   *StepCurve     `json:"curve,omitempty" doc:"Memory over the step in which its run was fullest; absent: memory ran out, or the program is several processes."`
	left    string         // what it does not reach
	Text    string         `json:"plan_file" doc:"The text of its plan, as hightide run --plan reads it."`
}

// EventName says of a plan that was run, while others are to come, what it is.
func (Point) EventName() string { return "point" }

// cost is what the point costs.
func (p *Point) cost() (changed bool, moved mem.Bytes, recomputed float64, levers int) {
	return !p.Exact, p.Plan.Planned.Moved, p.Plan.Planned.Recomputed, len(p.Plan.Levers)
}

// cheaper orders points by what they cost: numbers that change, then bytes over PCIe, then what is computed again,
// then how much is changed at all.
func cheaper(a, b *Point) int {
	ac, am, ar, al := a.cost()
	bc, bm, br, bl := b.cost()
	truth := func(b bool) int { return map[bool]int{true: 1}[b] }
	blocks := func(p *Point) int { return len(p.Plan.Levers[levers.Checkpoint].Blocks) }
	parts := func(p *Point) int { return max(p.Plan.Levers[levers.Parts].Parts, p.Plan.Levers[levers.Words].Parts) }
	kept := func(p *Point) float64 { return cmp.Or(p.Plan.Levers[levers.Budget].Budget, 1) }
	again := func(p *Point) int { _, on := p.Plan.Levers[levers.Remat]; return truth(on) }
	return cmp.Or(cmp.Compare(truth(ac), truth(bc)), cmp.Compare(am, bm), cmp.Compare(ar, br),
		cmp.Compare(again(a), again(b)),
		cmp.Compare(blocks(a), blocks(b)), cmp.Compare(kept(b), kept(a)),
		cmp.Compare(parts(a), parts(b)), slices.Compare(ofHost(a), ofHost(b)), cmp.Compare(al, bl))
}

// ofHost is what the levers of the host cost, to compare plans by: fewer workers first.
func ofHost(p *Point) (costs []int) {
	for _, name := range slices.Backward(levers.OfHost) {
		settings, on := p.Plan.Levers[name]
		cost := map[bool]int{true: 1}[on]
		if settings.Workers > 0 {
			cost = 1<<20 - settings.Workers
		}
		costs = append(costs, cost)
	}
	return costs
}

// Result is what `tune --json` prints.
type Result struct {
	Version     int               `json:"version" doc:"The version of this form."`
	Label       mem.Label         `json:"label" doc:"Where the figures come from: imagined."`
	Command     []string          `json:"command" doc:"The program."`
	GPU         string            `json:"gpu" doc:"The GPU's short name."`
	GPUName     string            `json:"gpu_name" doc:"Its full name."`
	Total       mem.Bytes         `json:"total_bytes" doc:"Its memory in bytes."`
	Room        mem.Bytes         `json:"room_bytes" doc:"What the goal wants to stay free, in bytes."`
	Host        mem.Bytes         `json:"host_memory_bytes,omitempty" doc:"With --host-memory: what the processes may take of the host, in bytes."`
	Goal        string            `json:"goal" doc:"What was to be reached."`
	Need        mem.Optional      `json:"need_bytes,omitzero" doc:"What the unchanged program takes of a GPU that has plenty, in bytes."`
	NeedCurve   *StepCurve        `json:"need_curve,omitempty" doc:"Memory over the step in which that run was fullest; absent: the program is several processes."`
	Model       string            `json:"model,omitempty" doc:"The class of the model."`
	Blocks      int               `json:"blocks" doc:"How many repeated blocks it has."`
	Points      []*Point          `json:"points" doc:"All plans that were run, the cheapest first."`
	Refused     map[string]string `json:"refused,omitempty" doc:"Levers that cannot be used in this program, and why."`
	Recommended *levers.Plan      `json:"recommended,omitempty" doc:"The cheapest plan that reaches the goal; absent: none does."`
	Verdict     mem.Verdict       `json:"verdict,omitempty" doc:"That of its run."`
	Answer      string            `json:"answer,omitempty" doc:"The recommendation in a sentence; absent: the search was ended before."`
	Smallest    *Point            `json:"smallest,omitempty" doc:"Where no plan fits: the one that takes least of those that save most, run where there is plenty of memory."`
	Batch       int               `json:"batch,omitempty" doc:"With the goal batch: how many samples the largest batch has that fits with the plan."`
	Owner       string            `json:"batch_owner,omitempty" doc:"With the goal batch, where the command does not say it: the setting of a known trainer that does."`
	Probes      []Probe           `json:"tried_batches,omitempty" doc:"With the goal batch: the sizes that were tried, in that order."`
	Price       float64           `json:"price_usd_per_hour,omitempty" doc:"With the goal cost: what the cheapest place costs, in USD an hour."`
	Machine     string            `json:"machine,omitempty" doc:"With --instances: the machine to rent."`
	File        string            `json:"file,omitempty" doc:"Where it was written."`
	Patch       *Patch            `json:"patch,omitempty" doc:"A plan as a change of the program's own files, where it was asked for."`
	Server      *Server           `json:"server,omitempty" doc:"Of an LLM server: what was found of its settings; there are then no plans."`
	Runs        int               `json:"imagined_runs" doc:"How many imagined runs it took."`
	Duration    int64             `json:"duration_ns" doc:"How long it took, in ns."`
	Notes       []string          `json:"notes" doc:"What else is to be known, for people."`
}

// Reached says whether something is recommended.
func (r *Result) Reached() bool {
	return r.Recommended != nil || r.Server != nil && r.Server.Chosen != nil
}

// Probe is a size of the batch that was tried with the plans that save most.
type Probe struct {
	Size  int          `json:"batch" doc:"How many samples a batch has."`
	Fits  bool         `json:"fits" doc:"Whether one of these plans fits."`
	Least mem.Optional `json:"least_used_bytes,omitzero" doc:"The least that one of them takes of the device, in bytes; absent: none ran to its end."`
	What  string       `json:"what,omitempty" doc:"That plan, in words."`
}

// Patch is a plan as a change of the program's own files. It was applied to a copy, which was imagined.
type Patch struct {
	Plan    *levers.Plan      `json:"plan" doc:"The plan that it writes: the recommended one, or the cheapest that reaches the goal and can be written whole."`
	Text    string            `json:"text,omitempty" doc:"The unified diff; absent: nothing could be written, or the changed copy did not run."`
	Folder  string            `json:"folder" doc:"Where git apply or patch -p1 takes it."`
	Missing map[string]string `json:"not_written,omitempty" doc:"Levers of the plan that it does not have, and why."`
	Verdict mem.GPUVerdict    `json:"verdict,omitzero" doc:"What came of the imagined run of the changed copy, without a plan."`
	Same    bool              `json:"as_planned" doc:"Whether the allocator's peak was that of the plan's run, to the byte."`
	Problem string            `json:"problem,omitempty" doc:"Why there is no diff."`
	Says    string            `json:"says" doc:"What it does beside the plan, in words, or why it is not shown."`
	File    string            `json:"file,omitempty" doc:"Where it was written."`
}
