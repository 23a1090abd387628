package imagine

import (
	"strings"
	"testing"

	"hightide/internal/levers"
)

func TestParted(t *testing.T) {
	for command, want := range map[string]string{
		"python t.py --batch-size 32 --accumulation-steps 1":                                 "python t.py --batch-size 16 --accumulation-steps 2",
		"python t.py --batch_size=12 --gradient_accumulation_steps=5":                        "python t.py --batch_size=6 --gradient_accumulation_steps=10",
		"python t.py --per_device_train_batch_size 8 --gradient_accumulation_steps 4 --fp16": "python t.py --per_device_train_batch_size 4 --gradient_accumulation_steps 8 --fp16",
		"python t.py --grad-accum 4 --micro-batch-size 2":                                    "python t.py --grad-accum 8 --micro-batch-size 1",
		"python t.py --batch-size 64 --micro-batch-size 4 --grad-accum-steps=16":             "python t.py --batch-size 64 --micro-batch-size 2 --grad-accum-steps=32",
		"python t.py train.batch_size=8 train.accumulate_grad_batches=2":                     "python t.py train.batch_size=4 train.accumulate_grad_batches=4",
		"torchrun --nproc-per-node 2 t.py -b 4 --accum_iter 1":                               "torchrun --nproc-per-node 2 t.py -b 2 --accum_iter 2",
		"python t.py --micro-batch-size 4 --global-batch-size 64":                            "python t.py --micro-batch-size 2 --global-batch-size 64",
		"python t.py --batch-size 8":                                                         "!the command names no count of batches that are accumulated",
		"python t.py --accum 8":                                                              "!the command names no size of a batch",
		"python t.py --eval-batch-size 8 --accum 8":                                          "!the command names no size of a batch",
		"python t.py --batch-size 7 --accum 8":                                               "!the command's batch of 7 is not cut into 2 parts",
		"python t.py --batch-size 8 --accumulate":                                            "!the command names no count of batches that are accumulated",
		"python t.py --batch-size 8 --accumulation-steps ${N}":                               "!the command names no count of batches that are accumulated",
	} {
		changed, why := Parted(strings.Fields(command), 2)
		if why != "" {
			why = "!" + why
		}
		if got := strings.Join(changed, " ") + why; got != want {
			t.Errorf("%s\n  became %s\n  want   %s", command, got, want)
		}
	}
}

// TestAccumulated: a command is changed once, and another than the plan's is refused.
func TestAccumulated(t *testing.T) {
	plan := &levers.Plan{Version: 1, Levers: map[string]levers.Settings{
		levers.Words: {Parts: 2, Command: "python t.py -b 4 --accum 2"}}}
	changed, err := Accumulated(plan, []string{"python", "t.py", "-b", "8", "--accum", "1"})
	if got := strings.Join(changed, " "); err != nil || got != plan.Levers[levers.Words].Command {
		t.Errorf("%q, %v", got, err)
	}
	for _, command := range [][]string{changed, {"python", "t.py"}} {
		if got, err := Accumulated(plan, command); err == nil {
			t.Errorf("%v became %v", command, got)
		}
	}
}
