package imagine

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/pythons"
	"hightide/internal/words"
)

// rankCommand is a command taken apart: what each rank runs, and how many ranks its launcher was to start on a node.
type rankCommand struct {
	rank    []string
	perNode int // 0: it was not said, or there is no launcher
}

// starters start the processes of a cluster, and nothing of ours is in them.
var starters = []string{"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "srun", "jsrun", "aprun",
	"horovodrun"}

// takeApart finds the script behind a launcher. A command without a launcher is its own rank, and so is one whose
// launcher stays or does not say its interpreter. An error is of usage.
func takeApart(command []string) (rankCommand, error) {
	name, words := launcherOf(command)
	l := frameworks.LauncherOf(name)
	switch {
	case slices.Contains(starters, name):
		return rankCommand{}, fail.Usage("give what each rank runs, as in --world-size 128 -- python train.py",
			"--world-size starts the ranks itself, and so does %s", name)
	case l == nil:
		return rankCommand{rank: command}, nil
	}
	apart, ok := unwrap(l, pythons.OfCommand(command), words)
	if !ok {
		return apart, fail.Usage("give the command as "+name+" takes it: "+name+" [flags] train.py", "no script in %s",
			strings.Join(command, " "))
	}
	if l.Stays || apart.rank[0] == "" {
		apart.rank = command
	}
	return apart, nil
}

// launcherOf names the launcher that a command starts with, and the words after it.
func launcherOf(command []string) (name string, words []string) {
	name = filepath.Base(command[0])
	if len(command) > 1 && name == "accelerate" {
		return name + " " + command[1], command[2:]
	}
	if !pythons.Named(name) {
		return name, command[1:]
	}
	for i := 1; i+1 < len(command) && strings.HasPrefix(command[i], "-"); i++ {
		switch command[i] {
		case "-m":
			return frameworks.LauncherModule(command[i+1]), command[i+2:]
		case "-W", "-X":
			i++
		}
	}
	return "", nil
}

// unwrap is the command of a rank by the words after its launcher; ok is false where there is no script. Of a python
// that is not known the first word is "".
func unwrap(l *frameworks.Launcher, python string, words []string) (apart rankCommand, ok bool) {
	var module, noPython bool
	nodes := 1
	for i := 0; i < len(words); i++ {
		word := words[i]
		if !strings.HasPrefix(word, "-") || word == "-" {
			apart.perNode /= max(1, nodes)
			switch {
			case noPython:
				apart.rank = words[i:]
			case module:
				apart.rank = append([]string{python, "-m"}, words[i:]...)
			default:
				apart.rank = append([]string{python}, words[i:]...)
			}
			return apart, true
		}
		flag, value, joined := strings.Cut(strings.TrimLeft(word, "-"), "=")
		flag = strings.ReplaceAll(flag, "_", "-")
		module = module || flag == "m" || flag == "module"
		noPython = noPython || flag == "no-python"
		if !joined && !slices.Contains(l.Switches, flag) {
			if i++; i < len(words) {
				value = words[i]
			}
		}
		switch {
		case slices.Contains(l.PerNode, flag):
			apart.perNode, _ = strconv.Atoi(value)
		case flag == l.Nodes:
			nodes, _ = strconv.Atoi(value)
		}
	}
	return apart, false
}

// batchFlag is where a command says its batch size.
type batchFlag struct {
	word int // index in the command
	head string
	size int
}

var (
	batchName  = `(?:[\w.-]*[._-])?(?:batch[_-]?size|batch|bs|mbs)`
	batchWord  = words.Lazy(`^(?:-{1,2}` + batchName + `|-b|-B)$`)
	batchEqual = words.Lazy(`^((?:-{1,2}|\+{0,2})` + batchName + `=)(\d+)$`)
	notTrain   = words.Lazy(`(?i)(eval|val|valid|test|log|print|global|total)[._-]`)
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

// BatchOf is the batch size that a command says, and the command with another one; ok: it says one.
func BatchOf(command []string) (size int, with func(int) []string, ok bool) {
	flag, ok := findBatch(command)
	return flag.size, func(size int) []string { return flag.with(command, size) }, ok
}

// with is the command with another batch size.
func (b batchFlag) with(command []string, size int) []string {
	changed := slices.Clone(command)
	changed[b.word] = b.head + strconv.Itoa(size)
	return changed
}

// AllocatorSetting is what the environment says already.
func AllocatorSetting(env []string) string {
	for _, name := range []string{"PYTORCH_ALLOC_CONF", allocator.Variable} {
		for _, entry := range env {
			if value, ok := strings.CutPrefix(entry, name+"="); ok && value != "" {
				return value
			}
		}
	}
	return ""
}
