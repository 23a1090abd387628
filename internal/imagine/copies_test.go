package imagine

import (
	"slices"
	"testing"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/report"
)

func TestApartTakesOneCopy(t *testing.T) {
	whole := mem.NewRun()
	for _, f := range []mem.Frame{
		mem.RunInfo{ID: "a", Verb: "imagine", Label: mem.Imagined, StartMono: 1, StartWall: 1},
		mem.Process{ID: 1, PID: 10, Numbers: map[string]int64{"copy a10": 0, "copy t4": -9}, Start: 1},
		mem.Process{ID: 2, PID: 11, Parent: 1, Facts: map[string]string{"copy": "a10"}, Start: 1},
		mem.Process{ID: 3, PID: 12, Parent: 1, Facts: map[string]string{"copy": "t4"}, Start: 1},
		mem.Process{ID: 4, PID: 13, Parent: 2, Role: "dataloader", Start: 1},
		mem.Event{Kind: "oom", Time: 2, Process: 3},
		mem.Event{Kind: "stop", Time: 2, Process: 2},
		mem.Steps{{Process: 2, Number: 1, Time: 2}, {Process: 3, Number: 1, Time: 2}},
		mem.Switch{Process: 2, Name: "bf16", Applied: true},
		mem.Switch{Process: 3, Name: "bf16"},
		mem.End{Time: 3, ExitCode: mem.Some(int64(0)), Reason: "exit"},
	} {
		if err := whole.Add(f); err != nil {
			t.Fatal(err)
		}
	}
	run := apart(whole, "a10", mem.ImaginedSetup{GPU: "a10"})
	if run == nil || len(run.Processes) != 2 || len(run.Events) != 1 || run.Events[0].Kind != "stop" ||
		run.End.ExitCode.Or(-1) != 0 || run.Imagined.Setup.GPU != "a10" || len(run.Imagined.Switches) != 1 ||
		len(run.Steps) != 1 || run.Steps[0].Process != 2 {
		t.Errorf("the A10's copy: %+v", run)
	}
	if run := apart(whole, "t4", mem.ImaginedSetup{}); run == nil || run.End.Signal.Or(0) != 9 || run.End.ExitCode.Known() || len(run.Events) != 1 {
		t.Errorf("the killed copy: %+v", run)
	}
	if run := apart(whole, "l4", mem.ImaginedSetup{}); run != nil {
		t.Errorf("there was no such copy: %+v", run)
	}
}

// Forked from one start are trials whose programs do the same up to their first use of CUDA.
func TestTrialsThatAreAlike(t *testing.T) {
	first := trial{command: []string{"python", "train.py", "--batch-size", "8"}, count: 1,
		env: map[string]string{"A": "b"}, gpu: gpus.GPU{Slug: "a10"}}
	with := func(change func(*trial)) trial {
		other := first
		other.env = mergeEnv(first.env)
		change(&other)
		return other
	}
	apart := map[string]trial{
		"command":   with(func(t *trial) { t.command = []string{"python", "train.py", "--batch-size", "4"} }),
		"launcher":  with(func(t *trial) { t.command = []string{"torchrun", "train.py"} }),
		"GPUs":      with(func(t *trial) { t.count = 2 }),
		"variable":  with(func(t *trial) { t.env["A"] = "c" }),
		"allocator": with(func(t *trial) { t.env[allocator.Variable] = "backend:cudaMallocAsync" }),
		"kernels":   with(func(t *trial) { t.switches = []string{"attention:math"} }),
		"sizes":     with(func(t *trial) { t.sizes = "zero" }),
		"values":    with(func(t *trial) { t.other = true }),
		"time":      with(func(t *trial) { t.atMost = time.Minute }),
	}
	s := &Session{}
	for name, other := range apart {
		if found := s.alike([]trial{first, other}); found != nil {
			t.Errorf("%s: %v are alike", name, found)
		}
	}
	list := []trial{first, apart["sizes"], with(func(t *trial) { t.gpu.Slug = "t4" }),
		with(func(t *trial) { t.env[allocator.Variable] = "expandable_segments:True" }),
		apart["kernels"], with(func(t *trial) { t.switches = []string{"bf16"} }), with(func(t *trial) { t.lag = true })}
	if found := s.alike(list); !slices.Equal(found, []int{0, 2, 3, 5, 6}) {
		t.Errorf("alike are %v", found)
	}
	s.serves = true
	if found := s.alike([]trial{first, with(func(t *trial) { t.gpu.Slug = "t4" }), with(func(t *trial) { t.load = "1x16+2" }),
		with(func(t *trial) { t.switches = []string{"engine:max_num_seqs=64"} })}); !slices.Equal(found, []int{0, 2, 3}) {
		t.Errorf("an LLM server asks about its GPU while it is imported: %v are alike", found)
	}
	s.serves = false
	s.play = []int{0, 1}
	if found := s.alike(list); found != nil {
		t.Errorf("ranks that are played: %v are alike", found)
	}
}

func TestWalkAsksForARunOnlyWhereNothingElseTells(t *testing.T) {
	group := []gpus.GPU{{Slug: "large", Total: 40 << 30, Overhead: 1 << 30},
		{Slug: "middle", Total: 24 << 30, Overhead: 1 << 30},
		{Slug: "close", Total: 20 << 30, Overhead: 1 << 30}, {Slug: "small", Total: 8 << 30, Overhead: 1 << 30}}
	known := map[string]*Result{}
	if _, next := walk(group, known); next == nil || next.Slug != "large" {
		t.Fatalf("first of all the largest, not %v", next)
	}
	// 18 GiB of tensors in 20.5 GiB of the allocator: whether that fits into 20 only a run can tell.
	known["large"] = &Result{Imagined: &report.Imagined{GPUVerdict: mem.GPUVerdict{GPU: "large",
		Verdict: mem.VerdictFits, Label: mem.Imagined, Context: 1 << 30,
		Allocated: mem.Some(int64(18 << 30)), Reserved: mem.Some(int64(41 << 29)), Used: mem.Some(int64(43 << 29))}}}
	verdicts, next := walk(group, known)
	if len(verdicts) != 2 || verdicts[1].Verdict != mem.VerdictFits || next == nil || next.Slug != "close" {
		t.Fatalf("%+v, then %v", verdicts, next)
	}
	known["close"] = &Result{Imagined: &report.Imagined{GPUVerdict: mem.GPUVerdict{GPU: "close",
		Verdict: mem.VerdictTight, Label: mem.Imagined, Context: 1 << 30,
		Allocated: mem.Some(int64(18 << 30)), Used: mem.Some(int64(19 << 30))}}}
	verdicts, next = walk(group, known)
	if next != nil || len(verdicts) != 4 || verdicts[3].Verdict != mem.VerdictOOM || verdicts[3].Label != mem.Estimated {
		t.Errorf("less memory than the tensors take: %+v, then %v", verdicts, next)
	}
}
