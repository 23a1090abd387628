package imagine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/levers"
	"hightide/internal/pythons"
)

// Ranked is a command of one process as torchrun starts it on so many GPUs of this machine: `python train.py` becomes
// `python -m torch.distributed.run --standalone --nproc-per-node 2 train.py`. why: it cannot be; a sentence without a
// full stop.
func Ranked(command []string, ranks int) (changed []string, why string) {
	program := filepath.Base(command[0])
	if name, _ := launcherOf(command); pythons.Named(program) && name != "" {
		return nil, "the command begins with " + program + ", and starts ranks already"
	}
	if !pythons.Named(program) {
		return nil, "the command begins with " + program + ", and not with a python that starts a script"
	}
	at := 1
	for at < len(command) && command[at] == "-u" { // as torchrun starts its ranks
		at++
	}
	if at == len(command) || strings.HasPrefix(command[at], "-") && command[at] != "-m" {
		return nil, "no script stands behind " + strings.Join(command[:at], " ")
	}
	return slices.Concat(command[:1], frameworks.RanksHere(ranks), command[at:]), ""
}

// Changed is a command as a plan changes it: its batch by its words, and how many processes it is. An error is of a
// plan that does not go with the command.
func Changed(plan *levers.Plan, command []string) ([]string, error) {
	command, err := Accumulated(plan, command)
	ranks := plan.Ranks()
	if err != nil || ranks == 0 {
		return command, err
	}
	changed, why := Ranked(command, ranks)
	if why != "" {
		return nil, fail.Input("the plan was made for: "+strings.TrimSpace(plan.Command),
			"%s cannot be applied: %s: %s", plan.Name(), levers.Spread, why)
	}
	return changed, nil
}

// enough refuses a machine that has fewer GPUs than a plan has processes.
func enough(plan *levers.Plan, have int) error {
	if ranks := plan.Ranks(); ranks > have {
		return fail.Usage(fmt.Sprintf("--gpus %d", ranks), "%s is for %d GPUs", plan.Name(), ranks)
	}
	return nil
}
