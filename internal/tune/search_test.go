package tune

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/report"
)

var update = flag.Bool("update", false, "write the golden files")

// program is a training whose memory is arithmetic: the fake of a host's imagined runs.
type program struct {
	recorded *Recorded
	model    string
	total    mem.Bytes
	tight    mem.Bytes
	saves    map[string]mem.Bytes // by the name of a lever, beside checkpoint
	idle     mem.Bytes            // that the allocator keeps without expandable segments
	stuck    bool                 // and does not give back where memory is short
	moved    mem.Bytes
	weights  mem.Bytes
	refuses  map[string]string
	compiled mem.Bytes // that its graphs keep
	late     string    // a lever that is refused once a step gets to its end
	runs     int
}

const beside = 100 * mem.MiB // of a process beside the allocator

func (p *program) try(_ context.Context, runs []Run) []*Outcome {
	outcomes := make([]*Outcome, len(runs))
	for i, run := range runs {
		p.runs++
		outcomes[i] = p.run(run)
	}
	return outcomes
}

func (p *program) run(run Run) *Outcome {
	o := &Outcome{Tight: p.tight, Applied: true}
	o.GPU, o.GPUName, o.Total, o.Label = "a10", "NVIDIA A10", p.total, mem.Imagined
	for _, lever := range levers.All {
		if _, on := run.Plan.Levers[lever.Name]; on && p.refuses[lever.Name] != "" {
			o.Verdict, o.Applied, o.Refused = mem.VerdictFailed, false, lever.Name+": "+p.refuses[lever.Name]
			return o
		}
	}
	blocks := run.Plan.Levers[levers.Checkpoint].Blocks
	if len(blocks) == 1 && blocks[0] == "*" {
		blocks = p.recorded.names()
	}
	allocated, idle := p.recorded.Peak(blocks), p.idle
	for name := range run.Plan.Levers {
		if name == levers.Allocator {
			idle = 0
		}
		switch name {
		case levers.Offload:
			o.Moved += p.moved
		case levers.Hosted:
			o.Moved += 2 * p.weights
			allocated -= 2 * p.weights
		case levers.Budget:
			allocated -= mem.Bytes((1 - run.Plan.Levers[name].Budget) * float64(p.compiled))
		}
		allocated -= p.saves[name]
	}
	if o.Total = cmp.Or(run.Memory, p.total); run.Memory > 0 && !p.stuck {
		idle = max(0, min(idle, o.Total-allocated-beside))
	}
	used := allocated + idle + beside
	o.Allocated, o.Reserved, o.Used = mem.Some(int64(allocated)), mem.Some(int64(allocated+idle)), mem.Some(int64(used))
	switch {
	case run.Roomy:
		text, _ := json.Marshal(p.recorded)
		o.Verdict, o.Model, o.Blocks = mem.VerdictFits, p.model, string(text)
		o.Weights, o.States = mem.Some(int64(p.weights)), mem.Some(int64(2*p.weights))
		o.Curve = p.step(blocks, allocated)
		return o
	case used > o.Total:
		o.Verdict, o.Used, o.Allocated, o.Reserved = mem.VerdictOOM, mem.Some(int64(o.Total)), mem.Optional{}, mem.Optional{}
		return o
	case o.Total-used < p.tight:
		o.Verdict = mem.VerdictTight
	default:
		o.Verdict = mem.VerdictFits
	}
	if _, on := run.Plan.Levers[p.late]; on {
		return &Outcome{GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictFailed}, Refused: p.late + ": gradients are read"}
	}
	o.Headroom, o.Curve = mem.Some(int64(o.Total-used)), p.step(blocks, allocated)
	return o
}

// step is the course of a step by the recorded pass; its highest is what the run's peak is.
func (p *program) step(checkpointed []string, peak mem.Bytes) *StepCurve {
	var levels []mem.Bytes
	now := peak / 4
	for i := range p.recorded.Blocks {
		b := &p.recorded.Blocks[i]
		levels = append(levels, now+b.Kept)
		if now += b.Kept; slices.Contains(checkpointed, b.Name) {
			now -= b.saves()
		}
	}
	for _, level := range slices.Backward(slices.Clone(levels)) {
		levels = append(levels, level*9/10)
	}
	highest := max(1, slices.Max(append(levels, 1)))
	c := &StepCurve{Step: 2, Events: max(1, len(levels)), Phases: []StepPhase{{mem.PhaseForward, 0, len(levels) / 2},
		{mem.PhaseBackward, len(levels)/2 + 1, len(levels) - 1}}}
	for i, level := range levels {
		c.Add(i, mem.Bytes(float64(level)/float64(highest)*float64(peak)))
	}
	return c
}

// TestRefusedLate: a lever that is refused only by the run that gets to the end of a step is left out, and that run is
// made again without it.
func TestRefusedLate(t *testing.T) {
	p := gpt()
	p.late, p.total, p.tight = "step_in_backward", 300*mem.MiB, 10*mem.MiB
	p.recorded.Blocks = nil
	p.recorded.Middle, p.recorded.Highest = 480*mem.MiB, 480*mem.MiB
	r := p.tuned(t, Options{})
	if r.Recommended == nil || r.Recommended.Levers[levers.Offload].Blocks != nil || r.Recommended.Planned.Moved == 0 {
		t.Errorf("%s", r.Text(report.TextOptions{}))
	}
	if r.Refused["step_in_backward"] == "" {
		t.Errorf("refused are %v", r.Refused)
	}
}

// TestLeft: what is not known of the unchanged program is not told.
func TestLeft(t *testing.T) {
	known := Outcome{GPUVerdict: mem.GPUVerdict{Used: mem.Some(100), Reserved: mem.Some(90), Allocated: mem.Some(80)},
		Weights: mem.Some(20), States: mem.Some(40)}
	if told := known.left(false); len(told) != 1 || !strings.Contains(told[0], "weights 20 B (20 %)") ||
		!strings.Contains(told[0], "temporary tensors, 20 B (20 %)") {
		t.Errorf("%q", told)
	}
	if told := known.left(true); !strings.Contains(told[0], "The rest are the optimizer's state, 40 B (40 %), gradients") ||
		strings.Contains(told[0], "(20 %), the optimizer") {
		t.Errorf("%q", told)
	}
	for name, change := range map[string]func(*Outcome){
		"no weights":     func(o *Outcome) { o.Weights = mem.Optional{} },
		"no states":      func(o *Outcome) { o.States = mem.Optional{} },
		"more than that": func(o *Outcome) { o.States = mem.Some(61) },
		"no peak":        func(o *Outcome) { o.Allocated = mem.Optional{} },
	} {
		o := known
		if change(&o); len(o.left(false)) > 0 {
			t.Errorf("%s: %q", name, o.left(false))
		}
	}
}

// TestNotReached: what levers do not reach is said where no plan fits, too.
func TestNotReached(t *testing.T) {
	p, o := gpt(), Options{Command: []string{"python", "train.py"}, GPU: "a10"}
	p.total = 300 * mem.MiB
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	r, err := Find(t.Context(), o, Host{Try: func(ctx context.Context, runs []Run) []*Outcome {
		outcomes := p.try(ctx, runs)
		for _, one := range outcomes {
			one.Left = "Adam trains another model"
		}
		return outcomes
	}})
	if err != nil || r.Recommended != nil || r.Smallest == nil || !slices.Contains(r.Notes, "Adam trains another model") {
		t.Errorf("%v, %v: %q", err, r.Smallest, r.Notes)
	}
}

// MarshalJSON writes the list that the agent writes.
func (b Block) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{b.Name, b.Kept, b.Out, b.FLOPs, b.Forward, b.Backward})
}

func (p *program) tuned(t *testing.T, o Options) *Result {
	t.Helper()
	o.Command, o.GPU = []string{"python", "train.py"}, "a10"
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	result, err := Find(t.Context(), o, Host{Try: p.try})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// gpt is a training of 12 blocks, of which 100 MiB each can be computed again.
func gpt() *program {
	const mib = mem.MiB
	r := &Recorded{FLOPs: 12*70 + 160}
	for i := range 12 {
		at := 500*mib + mem.Bytes(i)*110*mib
		r.Blocks = append(r.Blocks, Block{Name: fmt.Sprintf("h.%d", i), Kept: 110 * mib, Out: 10 * mib, FLOPs: 70,
			Forward: at + 115*mib, Backward: at + 130*mib})
	}
	r.Middle = (500 + 12*110 + 200) * mib
	r.Highest = r.Middle
	return &program{recorded: r, compiled: 1000 * mib, model: "GPT 124439808", total: 1800 * mib, tight: 90 * mib, idle: 60 * mib, moved: 1200 * mib,
		saves:   map[string]mem.Bytes{"step_in_backward": 40 * mib, levers.Offload: 300 * mib, "bf16": 400 * mib},
		refuses: map[string]string{levers.Budget: "GPT is not compiled", levers.Hosted: "AdamW is capturable"}}
}

// TestFind: which plan is recommended, in programs whose answer a person can see.
func TestFind(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*program)
		o      Options
		want   string
	}{
		"as it is":            {func(p *program) { p.total = 3000 * mem.MiB }, Options{}, "no change"},
		"expandable segments": {func(p *program) { p.total = 2240 * mem.MiB }, Options{}, "expandable_segments:True"},
		"the step": {func(p *program) { p.total, p.idle = 2180*mem.MiB, 0 }, Options{},
			"optimizer's step in the backward pass"},
		"blocks": {func(*program) {}, Options{},
			"expandable_segments:True, optimizer's step in the backward pass, checkpointing of 4 blocks"},
		"a refused lever": {func(p *program) { p.refuses["step_in_backward"] = "gradients are clipped" }, Options{},
			"checkpointing of 5 blocks"},
		"headroom":                     {func(*program) {}, Options{Goal: "headroom=20%"}, "checkpointing of 7 blocks"},
		"headroom, with idle segments": {func(p *program) { p.total = 2390 * mem.MiB }, Options{Goal: "headroom=10%"}, "no change"},
		"headroom, where they stay": {func(p *program) { p.total, p.stuck = 2390*mem.MiB, true },
			Options{Goal: "headroom=10%"}, "expandable_segments:True"},
		"the host": {func(p *program) { p.total = 900 * mem.MiB }, Options{},
			"expandable_segments:True, optimizer's step in the backward pass, checkpointing of 10 blocks, activations on the host"},
		"the optimizer's state": {func(p *program) {
			p.total, p.weights, p.refuses[levers.Hosted] = 900*mem.MiB, 150*mem.MiB, ""
		}, Options{}, "expandable_segments:True, optimizer's step in the backward pass, checkpointing of 10 blocks, " +
			"optimizer's state on the host"},
		"compiled": {func(p *program) {
			p.total, p.refuses[levers.Budget], p.refuses[levers.Checkpoint] = 1600*mem.MiB, "", "GPT is compiled"
		}, Options{}, "expandable_segments:True, optimizer's step in the backward pass, the compiler's activation budget of 0.4"},
		"numbers that change": {func(p *program) { p.total, p.refuses[levers.Offload] = 900*mem.MiB, "it is compiled" },
			Options{Allow: []string{"bf16"}}, "expandable_segments:True, optimizer's step in the backward pass, checkpointing of 9 blocks, bf16 autocast"},
		"nothing is enough": {func(p *program) { p.total = 300 * mem.MiB }, Options{}, ""},
	} {
		p := gpt()
		test.change(p)
		got := ""
		r := p.tuned(t, test.o)
		if r.Recommended != nil {
			got = r.Recommended.Changes()
		}
		if got != test.want {
			t.Errorf("%s: %q, not %q", name, got, test.want)
		}
		if r.Runs != p.runs || r.Runs > 40 {
			t.Errorf("%s: %d runs, said to be %d", name, p.runs, r.Runs)
		}
	}
}

// TestBestOfAll: what is recommended computes no more than 2 % more again than the best of all plans, in 60 models whose
// sets of blocks are all tried.
func TestBestOfAll(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	needed := 0
	for range 60 {
		p := &program{recorded: drawn(random), model: "M 1", tight: 1, refuses: gpt().refuses, idle: mem.Bytes(random.Int64N(50))}
		least := p.recorded.Peak(p.recorded.names())
		p.total = beside + 1 + least + mem.Bytes(random.Int64N(int64(p.recorded.Highest-least)+1))
		best := int64(-1)
		sets, costs := subsets(p.recorded)
		for i, set := range sets {
			plan := &levers.Plan{Levers: map[string]levers.Settings{levers.Allocator: {Value: expandable}, levers.Checkpoint: {Blocks: set}}}
			o := p.run(Run{Plan: plan})
			if o.Fits() && o.Headroom.Or(0) >= int64(p.tight) && (best < 0 || costs[i] < best) {
				best = costs[i]
			}
		}
		r := p.tuned(t, Options{})
		if r.Recommended == nil {
			t.Fatalf("no plan, and one of cost %d fits", best)
		}
		cost := p.recorded.costOf(r.Recommended.Levers[levers.Checkpoint].Blocks)
		if float64(cost) > 1.02*float64(best) {
			t.Errorf("%s costs %d, and the best of all plans %d", r.Recommended.Changes(), cost, best)
		}
		if p.runs > 40 {
			t.Errorf("%d runs", p.runs)
		}
		if best > 0 {
			needed++
		}
	}
	if needed < 20 {
		t.Errorf("only %d models needed a block", needed)
	}
}

// TestResult: what is printed, and its JSON.
func TestResult(t *testing.T) {
	for name, change := range map[string]func(*program){
		"blocks": func(p *program) { p.refuses["foreach"] = "AdamW has foreach=False already" },
		"none":   func(p *program) { p.total, p.weights = 300*mem.MiB, 100*mem.MiB },
		"as-is":  func(p *program) { p.total = 3000 * mem.MiB },
	} {
		p := gpt()
		change(p)
		r := p.tuned(t, Options{})
		if r.Recommended != nil {
			r.File = levers.File
		}
		r.Duration = 41e9
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		golden(t, name+".txt", r.Text(report.TextOptions{Width: 100}))
		if name == "none" && r.Smallest == nil {
			t.Error("the smallest peak is not told")
		}
		if name == "blocks" {
			golden(t, name+".json", string(text)+"\n")
			golden(t, name+".toml", r.Recommended.Text())
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s: %v\n%s", name, err, got)
	}
}

// TestNoVerdict: a program that says nothing is told of, and nothing more is run.
func TestNoVerdict(t *testing.T) {
	p := gpt()
	for want, change := range map[string]func(*Outcome){
		"gives no verdict on a GPU with plenty of memory: exit code 3": func(o *Outcome) {
			o.Verdict, o.How = mem.VerdictFailed, "exit code 3"
		},
		"trains no PyTorch model":                      func(o *Outcome) { o.Model = "" },
		"this program computes with TensorFlow":        func(o *Outcome) { o.Model, o.Other = "", "tensorflow" },
		"trainings, and this program serves with vLLM": func(o *Outcome) { o.Model, o.Other = "", "vllm" },
	} {
		o := Options{Command: []string{"python", "train.py"}, GPU: "a10"}
		if err := o.Check(); err != nil {
			t.Fatal(err)
		}
		r, err := Find(t.Context(), o, Host{Try: func(ctx context.Context, runs []Run) []*Outcome {
			outcomes := p.try(ctx, runs)
			change(outcomes[0])
			return outcomes
		}})
		if err == nil || !strings.Contains(err.Error(), want) || r.Recommended != nil {
			t.Errorf("%v, %v; want %q", err, r.Recommended, want)
		}
	}
}

// TestJAX: a program of JAX runs with levers of JAX alone, a plan of which is found, and refuses those of PyTorch by name.
func TestJAX(t *testing.T) {
	tried := map[string]int{}
	try := func(_ context.Context, runs []Run) (outcomes []*Outcome) {
		for _, run := range runs {
			o := &Outcome{Tight: 100 * mem.MiB, Other: levers.JAX}
			o.GPU, o.Total, o.Verdict = "a10", 1000*mem.MiB, mem.VerdictOOM
			_, again := run.Plan.Levers[levers.Remat]
			_, donates := run.Plan.Levers[levers.Donate]
			again = again || donates
			switch {
			case !run.Roomy && len(run.Plan.Levers) > 0 && !again:
				outcomes = append(outcomes, nil) // of PyTorch: the host does not run it
				continue
			case run.Roomy || again:
				o.Applied, o.Verdict, o.Used, o.Headroom = again, mem.VerdictFits, mem.Some(int64(800*mem.MiB)),
					mem.Some(int64(200*mem.MiB))
			}
			tried[run.Plan.Changes()]++
			outcomes = append(outcomes, o)
		}
		return outcomes
	}
	o := Options{Command: []string{"python", "train.py"}, GPU: "a10"}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	r, err := Find(t.Context(), o, Host{Try: try})
	if err != nil || r.Recommended == nil || r.Recommended.Changes() != "layers computed again" || r.Recommended.Exact() {
		t.Fatalf("%v: %+v", err, r.Recommended)
	}
	if r.Runs != 3 || len(tried) != 2 || tried["no change"] != 2 {
		t.Errorf("%d runs, of %v", r.Runs, tried)
	}
	if text := r.Text(report.TextOptions{}); strings.Contains(text, "blocks") || !strings.Contains(text, "peak used has that share") {
		t.Error(text)
	}
	both := func(ctx context.Context, runs []Run) []*Outcome {
		outcomes := try(ctx, runs)
		for i, o := range outcomes {
			if o == nil {
				continue
			}
			o.Donated = []string{"step(params, state) at train.py:8"}
			if !runs[i].Roomy && len(runs[i].Plan.Levers) < 2 {
				o.Verdict, o.Headroom = mem.VerdictOOM, mem.Optional{}
			}
		}
		return outcomes
	}
	r, err = Find(t.Context(), o, Host{Try: both})
	if err != nil || r.Recommended == nil || len(r.Recommended.Levers[levers.Donate].Arguments) != 1 ||
		len(r.Recommended.Levers) != 2 {
		t.Errorf("%v: %+v", err, r.Recommended)
	}
	o.Allow = []string{"bf16"}
	if _, err := Find(t.Context(), o, Host{Try: try}); err == nil || !strings.Contains(err.Error(),
		"--allow bf16: it is a lever of PyTorch") {
		t.Error(err)
	}
}
