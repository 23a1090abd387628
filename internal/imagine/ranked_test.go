package imagine

import (
	"strings"
	"testing"

	"hightide/internal/levers"
)

func TestRanked(t *testing.T) {
	for command, want := range map[string]string{
		"python train.py --lr 1":      "python -m torch.distributed.run --standalone --nproc-per-node 2 train.py --lr 1",
		"/opt/bin/python3.12 -u t.py": "/opt/bin/python3.12 -m torch.distributed.run --standalone --nproc-per-node 2 t.py",
		"python -m app.train -x":      "python -m torch.distributed.run --standalone --nproc-per-node 2 -m app.train -x",
		"python -O t.py":              "!no script stands behind python",
		"python":                      "!no script stands behind python",
		"./train.py":                  "!the command begins with train.py, and not with a python that starts a script",
		"torchrun --nproc-per-node 2 t.py": "!the command begins with torchrun, " +
			"and not with a python that starts a script",
		"python -m torch.distributed.run t.py": "!the command begins with python, and starts ranks already",
	} {
		changed, why := Ranked(strings.Fields(command), 2)
		if why != "" {
			why = "!" + why
		}
		if got := strings.Join(changed, " ") + why; got != want {
			t.Errorf("%s\n  became %s\n  want   %s", command, got, want)
		}
	}
}

// TestChanged: a plan for several processes changes a command that is one, and refuses another and too few GPUs.
func TestChanged(t *testing.T) {
	plan := &levers.Plan{Version: 1, Levers: map[string]levers.Settings{levers.Spread: {Ranks: 2}}}
	if got, err := Changed(plan, []string{"python", "t.py"}); err != nil || len(got) != 7 {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Changed(plan, []string{"torchrun", "t.py"}); err == nil {
		t.Errorf("torchrun became %v", got)
	}
	if enough(plan, 2) != nil || enough(plan, 1) == nil || enough(&levers.Plan{}, 1) != nil {
		t.Error("GPUs are not counted")
	}
}
