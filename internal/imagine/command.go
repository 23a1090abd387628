package imagine

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/pythons"
)

// rankCommand is a command taken apart: what starts the ranks, and what each rank runs.
type rankCommand struct {
	rank    []string // the command of one rank
	perNode int      // ranks a node, as the launcher was told; 0: it was not, or there is no launcher
}

// Flags of launchers that take no value; every other flag takes one, as --flag value or --flag=value.
var (
	torchrunSwitches   = []string{"standalone", "module", "m", "no-python", "run-path", "virtual-local-rank"}
	accelerateSwitches = []string{"cpu", "multi-gpu", "tpu", "use-deepspeed", "use-fsdp", "use-megatron-lm",
		"use-parallelism-config", "use-xpu", "ipex",
		"quiet", "q", "module", "m", "no-python", "same-network", "enable-cpu-affinity", "debug", "standalone"}
)

// takeApart finds the script behind torchrun, python -m torch.distributed.run, accelerate launch. A
// command without a launcher is its own rank. ok is false where a launcher's words make no sense.
func takeApart(command []string) (l rankCommand, ok bool) {
	name, python := filepath.Base(command[0]), pythons.OfCommand(command)
	switch {
	case name == "torchrun":
		return unwrap(python, command[1:], torchrunSwitches)
	case name == "accelerate" && len(command) > 1 && command[1] == "launch":
		return unwrap(python, command[2:], accelerateSwitches)
	case pythons.Named(name):
		for i, word := range command[1:] {
			if word == "-m" && i+2 < len(command) {
				switch command[i+2] {
				case "torch.distributed.run", "torch.distributed.launch":
					return unwrap(command[0], command[i+3:], torchrunSwitches)
				case "accelerate.commands.launch":
					return unwrap(command[0], command[i+3:], accelerateSwitches)
				}
			}
			if !strings.HasPrefix(word, "-") {
				break
			}
		}
	}
	return rankCommand{rank: command}, true
}

func unwrap(python string, words, switches []string) (l rankCommand, ok bool) {
	var module, noPython bool
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "-") || word == "-" {
			switch {
			case noPython:
				l.rank = words[i:]
			case module:
				l.rank = append([]string{python, "-m"}, words[i:]...)
			default:
				l.rank = append([]string{python}, words[i:]...)
			}
			return l, noPython || python != ""
		}
		flag, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		flag = strings.ReplaceAll(flag, "_", "-")
		switch {
		case flag == "m" || flag == "module":
			module = true
		case flag == "no-python":
			noPython = true
		}
		if !joined && !slices.Contains(switches, flag) {
			if i++; i < len(words) {
				value = words[i]
			}
		}
		if flag == "nproc-per-node" || flag == "num-processes" {
			l.perNode, _ = strconv.Atoi(value)
		}
	}
	return l, false
}

// batchFlag is where a command says its batch size.
type batchFlag struct {
	word int // index in the command
	head string
	size int
}

var (
	batchName  = `(?:[\w.-]*[._-])?(?:batch[_-]?size|batch|bs|mbs)`
	batchWord  = regexp.MustCompile(`^(?:-{1,2}` + batchName + `|-b|-B)$`)
	batchEqual = regexp.MustCompile(`^((?:-{1,2}|\+{0,2})` + batchName + `=)(\d+)$`)
	notTrain   = regexp.MustCompile(`(?i)(eval|val|valid|test|log|print|global|total)[._-]`)
)

// findBatch finds the batch size in a command: --batch-size 32, -b 32, --train.batch_size=32,
// data.batch_size=32. The first one that is not for evaluation counts.
func findBatch(command []string) (batchFlag, bool) {
	for i := 1; i < len(command); i++ {
		word := command[i]
		if notTrain.MatchString(word) {
			continue
		}
		if m := batchEqual.FindStringSubmatch(word); m != nil {
			if size, err := strconv.Atoi(m[2]); err == nil && size > 0 {
				return batchFlag{i, m[1], size}, true
			}
		}
		if batchWord.MatchString(word) && i+1 < len(command) {
			if size, err := strconv.Atoi(command[i+1]); err == nil && size > 0 {
				return batchFlag{i + 1, "", size}, true
			}
		}
	}
	return batchFlag{}, false
}

// with is the command with another batch size.
func (b batchFlag) with(command []string, size int) []string {
	changed := slices.Clone(command)
	changed[b.word] = b.head + strconv.Itoa(size)
	return changed
}

// allocatorSetting is what the environment says already.
func allocatorSetting(env []string) string {
	for _, name := range []string{"PYTORCH_ALLOC_CONF", allocator.Variable} {
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, name+"="); ok && value != "" {
				return value
			}
		}
	}
	return ""
}
