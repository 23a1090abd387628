package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/imagine"
	"hightide/internal/launch"
	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/testkit"
	"hightide/internal/tune"
)

// everyPlan is what came of all sets of blocks of one model, and of the one that a tune recommends.
type everyPlan struct {
	Model    string    `json:"model"`
	Blocks   int       `json:"blocks"`
	Plans    int       `json:"plans"` // that were imagined
	Enough   int       `json:"reach_goal"`
	Total    mem.Bytes `json:"total_bytes"`
	Found    float64   `json:"found_share"` // of the forward pass, computed again
	Best     float64   `json:"best_share"`
	FoundSet []string  `json:"found_blocks"`
	BestSet  []string  `json:"best_blocks"`
	Runs     int       `json:"imagined_runs"`
}

// TestEveryPlan: the blocks that a tune checkpoints are within 2 % of the forward pass of the best of all sets of blocks,
// each of which is imagined. HIGHTIDE_EVERY_PLAN names models of bench/programs/blocks.py, which are many runs; where
// HIGHTIDE_EVERY_PLAN_TO names a file, the results are written there.
func TestEveryPlan(t *testing.T) {
	python := testkit.Torch(t)
	if err := CheckImagines("tune"); err != nil {
		t.Skip(err)
	}
	models := strings.Fields(os.Getenv("HIGHTIDE_EVERY_PLAN"))
	if len(models) == 0 {
		models = []string{"wide-second"}
	}
	var all []everyPlan
	for _, model := range models {
		e := &Engine{DataDir: t.TempDir(), Runtime: launch.Runtime{Shared: filepath.Join(t.TempDir(), "shared")}}
		for _, one := range e.everyPlan(t, []string{python, testkit.Path(t, "../bench/programs/blocks.py"), model, "128"}) {
			one.Model = model
			t.Logf("%+v", one)
			if one.Found > one.Best+0.02 {
				t.Errorf("%s: %v compute %.1f %% again, and %v %.1f %%", model, one.FoundSet, 100*one.Found, one.BestSet, 100*one.Best)
			}
			all = append(all, one)
		}
	}
	if path := os.Getenv("HIGHTIDE_EVERY_PLAN_TO"); path != "" {
		text, _ := json.MarshalIndent(all, "", " ")
		if err := os.WriteFile(path, append(text, '\n'), 0o600); err != nil {
			t.Error(err)
		}
	}
}

// TestEveryPlanOfMoreBlocks: the same of models with more blocks, where one imagined process goes through all sets. Some
// of its peaks are held against runs of their own, to the byte. HIGHTIDE_MORE_BLOCKS names the models.
func TestEveryPlanOfMoreBlocks(t *testing.T) {
	python := testkit.Torch(t)
	if err := CheckImagines("tune"); err != nil {
		t.Skip(err)
	}
	models := strings.Fields(os.Getenv("HIGHTIDE_MORE_BLOCKS"))
	if len(models) == 0 {
		models = []string{"wide-second"}
	}
	for _, model := range models {
		e := &Engine{DataDir: t.TempDir(), Runtime: launch.Runtime{Shared: filepath.Join(t.TempDir(), "shared")}}
		command := []string{python, testkit.Path(t, "../bench/programs/blocks.py"), model, "128"}
		s, recorded, first := e.recordedPass(t, command)
		sets, ran := setsOf(recorded.Blocks), e.together(t, command)
		if len(ran) != len(sets) {
			t.Fatalf("%s: %d sets of %d ran", model, len(ran), len(sets))
		}
		var some [][]string
		for at := 0; at < len(sets); at += max(1, len(sets)/6) {
			some = append(some, sets[at])
		}
		for set, alone := range e.separately(t, s, some) {
			if want := alone.Allocated; ran[set].Allocated != want {
				t.Errorf("%s, %q: %v in the process with all sets, %v alone", model, set, ran[set].Allocated, want)
			}
		}
		for _, one := range bests(t, recorded, sets, ran, first) {
			one.Model = model
			t.Logf("%+v", one)
			if one.Found > one.Best+0.02 {
				t.Errorf("%s: %v compute %.1f %% again, and %v %.1f %%", model, one.FoundSet, 100*one.Found, one.BestSet, 100*one.Best)
			}
		}
	}
}

// together has one imagined process go through all sets of blocks.
func (e *Engine) together(t *testing.T, command []string) map[string]*tune.Outcome {
	file := filepath.Join(t.TempDir(), "sets")
	_, err := e.Imagine(t.Context(), ImagineOptions{
		Options:    imagine.Options{GPU: "a10", Memory: 100 << 30, Until: "0"},
		RunOptions: RunOptions{Options: observe.Options{Command: append(slices.Clone(command), file), Env: os.Environ()}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ran := map[string]*tune.Outcome{}
	for line := range strings.Lines(string(text)) {
		number, set, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		peak, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ran[set] = &tune.Outcome{Applied: true, GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictFits, Allocated: mem.Some(peak)}}
	}
	return ran
}

// byHand is a training whose weights an optimizer updates, or the program itself.
const byHand = `
import sys
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)) for _ in range(2))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x

model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters()) if sys.argv[1] == "optimizer" else None
for step in range(4):
    model.zero_grad()
    model(torch.randn(4096, 64, device="cuda")).square().mean().backward()
    if optimizer is not None:
        optimizer.step()
        continue
    for p in model.parameters():
        p.data.add_(p.grad, alpha=-0.1)
`

// TestBlocksOfALoopByHand: what blocks keep is recorded of a program that updates its weights without an optimizer too.
func TestBlocksOfALoopByHand(t *testing.T) {
	python := testkit.Torch(t)
	if err := CheckImagines("tune"); err != nil {
		t.Skip(err)
	}
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte(byHand), 0o600); err != nil {
		t.Fatal(err)
	}
	kept := map[string][]tune.Block{}
	for _, how := range []string{"optimizer", "hand"} {
		e := &Engine{DataDir: t.TempDir(), Runtime: launch.Runtime{Shared: filepath.Join(t.TempDir(), "shared")}}
		_, recorded, outcome := e.recordedPass(t, []string{python, script, how})
		kept[how] = recorded.Blocks
		if outcome.Weights.Or(0) == 0 {
			t.Errorf("%s: weights are not known", how)
		}
	}
	if want := kept["optimizer"]; len(want) != 2 || !slices.Equal(kept["hand"], want) {
		t.Errorf("%+v with an optimizer, %+v without", want, kept["hand"])
	}
}

// everyPlan imagines all sets of blocks with plenty of memory. Then tune searches among these runs. What the allocator
// keeps idle is left aside, and checkpointing alone is at hand.
func (e *Engine) everyPlan(t *testing.T, command []string) []everyPlan {
	s, recorded, first := e.recordedPass(t, command)
	sets := setsOf(recorded.Blocks)
	return bests(t, recorded, sets, e.separately(t, s, sets), first)
}

// recordedPass is what the first run of a tune knows of a model's blocks.
func (e *Engine) recordedPass(t *testing.T, command []string) (*imagine.Session, *tune.Recorded, *tune.Outcome) {
	s, err := e.imagineSession(t.Context(), &ImagineOptions{Options: imagine.Options{GPU: "a10"},
		RunOptions: RunOptions{Options: observe.Options{Command: command, Env: os.Environ()}}})
	if err != nil {
		t.Fatal(err)
	}
	s.Base.ID = "every"
	nothing := &levers.Plan{Version: levers.Version, Levers: map[string]levers.Settings{}}
	first := e.tuneRuns(t.Context(), s, []tune.Run{{Plan: nothing, Roomy: true, Blocks: true}})[0]
	var recorded tune.Recorded
	if first == nil || json.Unmarshal([]byte(first.Blocks), &recorded) != nil || len(recorded.Blocks) == 0 {
		t.Fatalf("no blocks were recorded: %+v", first)
	}
	return s, &recorded, first
}

// separately imagines each set with plenty of memory.
func (e *Engine) separately(t *testing.T, s *imagine.Session, sets [][]string) map[string]*tune.Outcome {
	ran := map[string]*tune.Outcome{}
	var runs []tune.Run
	for _, set := range sets {
		plan := &levers.Plan{Version: levers.Version, Levers: map[string]levers.Settings{}}
		if len(set) > 0 {
			plan.Levers[levers.Checkpoint] = levers.Settings{Blocks: set}
		}
		runs = append(runs, tune.Run{Plan: plan, Roomy: true})
	}
	for i, o := range e.tuneRuns(t.Context(), s, runs) {
		if o == nil || !o.Fits() || !o.Allocated.Known() {
			t.Fatalf("%v did not run: %+v", sets[i], o)
		}
		ran[strings.Join(sets[i], " ")] = o
	}
	return ran
}

// bests compares for two devices: one whose memory lies in the middle between the highest and the lowest peak of tensors,
// and one a little above the lowest.
func bests(t *testing.T, recorded *tune.Recorded, sets [][]string, ran map[string]*tune.Outcome,
	first *tune.Outcome) (found []everyPlan) {
	highest, lowest := int64(0), int64(0)
	for _, o := range ran {
		peak := o.Allocated.Or(0)
		if highest = max(highest, peak); lowest == 0 || peak < lowest {
			lowest = peak
		}
	}
	for _, total := range []int64{(highest + lowest) / 2, lowest + (highest-lowest)/20} {
		found = append(found, best(t, recorded, sets, ran, first, total))
	}
	return found
}

// best compares what tune finds among imagined runs with the best of all.
func best(t *testing.T, recorded *tune.Recorded, sets [][]string, ran map[string]*tune.Outcome, first *tune.Outcome,
	total int64) everyPlan {
	one := everyPlan{Blocks: len(recorded.Blocks), Plans: len(sets), Total: mem.Bytes(total), Best: 2}
	for _, set := range sets {
		if ran[strings.Join(set, " ")].Allocated.Or(0) > total {
			continue
		}
		one.Enough++
		if share, _ := recorded.Share(set); share < one.Best {
			one.Best, one.BestSet = share, set
		}
	}
	o := tune.Options{Command: []string{"python"}, GPU: "a10", Goal: "fit"}
	result, err := tune.Find(t.Context(), o, tune.Host{Try: func(_ context.Context, runs []tune.Run) []*tune.Outcome {
		outcomes := make([]*tune.Outcome, len(runs))
		for i, run := range runs {
			outcomes[i] = answer(run, sets[len(sets)-1], ran, first, total)
		}
		return outcomes
	}})
	if err != nil || result.Recommended == nil {
		t.Fatalf("no plan: %v, %+v", err, result)
	}
	one.Runs, one.FoundSet = result.Runs, result.Recommended.Levers[levers.Checkpoint].Blocks
	if slices.Equal(one.FoundSet, []string{"*"}) {
		one.FoundSet = sets[len(sets)-1]
	}
	one.Found, _ = recorded.Share(one.FoundSet)
	return one
}

// answer is what came of a run, on a device of which all belongs to tensors.
func answer(run tune.Run, all []string, ran map[string]*tune.Outcome, first *tune.Outcome, total int64) *tune.Outcome {
	if run.Blocks {
		return first
	}
	for name := range run.Plan.Levers {
		if name != levers.Checkpoint {
			return &tune.Outcome{Refused: name + ": not at hand"}
		}
	}
	blocks := run.Plan.Levers[levers.Checkpoint].Blocks
	if slices.Equal(blocks, []string{"*"}) {
		blocks = all
	}
	o := *ran[strings.Join(blocks, " ")]
	o.Tight, o.Total = 0, mem.Bytes(total)
	if left := total - o.Allocated.Or(0); left < 0 {
		o.Verdict = mem.VerdictOOM
	} else {
		o.Verdict, o.Headroom = mem.VerdictFits, mem.Some(left)
	}
	return &o
}

// setsOf are all sets of blocks, the small ones first.
func setsOf(blocks []tune.Block) [][]string {
	sets := make([][]string, 0, 1<<len(blocks))
	for mask := range 1 << len(blocks) {
		var set []string
		for i := range blocks {
			if mask>>i&1 == 1 {
				set = append(set, blocks[i].Name)
			}
		}
		sets = append(sets, set)
	}
	slices.SortStableFunc(sets, func(a, b []string) int { return len(a) - len(b) })
	return sets
}
