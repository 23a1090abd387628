package imagine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTakeApart(t *testing.T) {
	dir := t.TempDir()
	for name, first := range map[string]string{"python": "\x7fELF", "torchrun": "#!" + dir + "/python\n",
		"accelerate": "#!/usr/bin/env python\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(first), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	python := dir + "/python"
	for command, want := range map[string]string{
		"torchrun --nproc-per-node 8 train.py --lr 1":                                    python + " train.py --lr 1",
		"torchrun --standalone --nnodes=16 --nproc_per_node=8 -m pkg.train --nnodes 3":   python + " -m pkg.train --nnodes 3",
		"torchrun --rdzv_backend c10d --no-python ./run.sh x":                            "./run.sh x",
		"accelerate launch --multi_gpu --num_processes 4 --mixed_precision bf16 t.py -b": python + " t.py -b",
		"python -m torch.distributed.run --nproc-per-node=2 t.py":                        "python t.py",
		"python -u train.py --batch_size=32":                                             "python -u train.py --batch_size=32",
	} {
		l, ok := takeApart(strings.Fields(command))
		if got := strings.Join(l.rank, " "); !ok || got != want {
			t.Errorf("%s: %q %v, want %q", command, got, ok, want)
		}
	}
	if l, _ := takeApart(strings.Fields("torchrun --nnodes=16 --nproc_per_node=8 t.py")); l.perNode != 8 {
		t.Errorf("%+v", l)
	}
	if _, ok := takeApart(strings.Fields("torchrun --nproc-per-node 8")); ok {
		t.Error("a launcher without a script was taken apart")
	}
}

func TestFindBatch(t *testing.T) {
	for command, want := range map[string]string{
		"python t.py --batch-size 32":        "python t.py --batch-size 16",
		"python t.py --batch_size=32 --lr 1": "python t.py --batch_size=16 --lr 1",
		"python t.py -b 32":                  "python t.py -b 16",
		"python t.py --eval_batch_size 64 --per_device_train_batch_size 32": "python t.py --eval_batch_size 64 " +
			"--per_device_train_batch_size 16",
		"python t.py data.batch_size=32":             "python t.py data.batch_size=16",
		"python t.py --training.local_batch_size 32": "python t.py --training.local_batch_size 16",
	} {
		b, ok := findBatch(strings.Fields(command))
		if !ok || b.size != 32 {
			t.Errorf("%s: %+v %v", command, b, ok)
			continue
		}
		if got := strings.Join(b.with(strings.Fields(command), 16), " "); got != want {
			t.Errorf("%s: %s", command, got)
		}
	}
	for _, command := range []string{"python t.py", "python t.py --batch-size auto", "python t.py --val.batch_size 3",
		"python t.py --gpu-batch", "python -b 32x"} {
		if b, ok := findBatch(strings.Fields(command)); ok {
			t.Errorf("%s: %+v", command, b)
		}
	}
}
