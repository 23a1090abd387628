package imagine

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
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
	for command, want := range map[string]struct {
		rank    string // "": the launcher stays
		perNode int
	}{
		"torchrun --nproc-per-node 8 train.py --lr 1": {python + " train.py --lr 1", 8},
		"torchrun --standalone --nnodes=16 --nproc_per_node=8 -m pkg.train --nnodes 3": {
			python + " -m pkg.train --nnodes 3", 8},
		"torchrun --rdzv_backend c10d --no-python ./run.sh x":     {"./run.sh x", 0},
		"python -m torch.distributed.run --nproc-per-node=2 t.py": {python + " t.py", 2},
		"python -X dev -u -m torch.distributed.launch t.py":       {python + " t.py", 0},
		// What accelerate and DeepSpeed tell a rank beside its number is in their own hands: precision, FSDP, --local_rank.
		"accelerate launch --multi_gpu --num_processes 4 --mixed_precision bf16 t.py -b": {"", 4},
		"accelerate launch --num_machines 2 --num_processes=16 t.py":                     {"", 8},
		"python -m accelerate.commands.launch --num_processes 4 t.py":                    {"", 4},
		"deepspeed --num_gpus 2 --no_local_rank t.py --deepspeed ds.json":                {"", 2},
		"python -m deepspeed.launcher.runner --num_gpus=4 t.py":                          {"", 4},
		"python -u train.py --batch_size=32":                                             {"", 0},
		"python -m pkg.train":                                                            {"", 0},
		"uv run torchrun --nproc-per-node 2 t.py":                                        {"", 0},
		"poetry run python t.py":                                                         {"", 0},
		"accelerate test":                                                                {"", 0},
		"./start.sh":                                                                     {"", 0},
	} {
		l, err := takeApart(strings.Fields(command))
		want.rank = cmp.Or(want.rank, command)
		if got := strings.Join(l.rank, " "); err != nil || got != want.rank || l.perNode != want.perNode {
			t.Errorf("%s: %q %d %v, want %+v", command, got, l.perNode, err, want)
		}
	}
	for command, want := range map[string]string{
		"torchrun --nproc-per-node 8":                  "no script in torchrun",
		"deepspeed --num_gpus 8":                       "no script in deepspeed",
		"accelerate launch --num_processes 8":          "no script in accelerate launch",
		"python -m torch.distributed.run --standalone": "no script in python -m torch.distributed.run",
		"mpirun -np 8 python t.py":                     "so does mpirun",
		"/usr/bin/srun --ntasks=8 python t.py":         "so does srun",
	} {
		if l, err := takeApart(strings.Fields(command)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v %v, want %q", command, l, err, want)
		}
	}
}

// TestLauncherWithoutItsPython: a launcher that is not here, or is a shell script as pyenv's are, has a script all the
// same. It stays in front, and takes itself off where it runs.
func TestLauncherWithoutItsPython(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "torchrun"), []byte("#!/usr/bin/env bash\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"a script of the shell": dir, "none": t.TempDir()} {
		t.Setenv("PATH", path)
		command := strings.Fields("torchrun --nproc-per-node 4 t.py")
		if l, err := takeApart(command); err != nil || !slices.Equal(l.rank, command) || l.perNode != 4 {
			t.Errorf("%s: %+v %v", name, l, err)
		}
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
