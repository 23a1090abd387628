package record

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"hightide/internal/mem"

	"golang.org/x/sys/unix"
)

// identify says which run this is, on which machine. The state of git comes later (readGit): it
// can take long.
func identify(o *Options) mem.RunInfo {
	cwd, _ := os.Getwd()
	info := mem.RunInfo{
		ID: o.ID, Name: o.Name, Tags: o.Tags, Verb: o.Verb, Label: o.Label, Command: MaskArgs(o.Command), Cwd: cwd,
		Env: allowedEnv(o.Env), Version: o.Version, Host: DescribeHost(), Options: o.Settings,
		StartMono: monotonic(), StartWall: wallClock(),
	}
	return info
}

// DescribeHost reads what the machine says of itself; what it does not say is absent.
func DescribeHost() mem.Host {
	host := mem.Host{OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), PageSize: os.Getpagesize()}
	host.Name, _ = os.Hostname()
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		host.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	host.CPU = valueOf("/proc/cpuinfo", "model name")
	if kib, err := strconv.ParseInt(strings.TrimSuffix(valueOf("/proc/meminfo", "MemTotal"), " kB"), 10, 64); err == nil {
		host.Memory = mem.Some(kib << 10)
	}
	return host
}

// valueOf returns the first "name : value" of a file in proc.
func valueOf(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// readGit asks git about the working copy that dir is in; nil where it is in none, or git is not
// there, or takes longer than the context allows. Untracked files do not make it dirty.
func readGit(ctx context.Context, dir string) *mem.Git {
	if !inWorkingCopy(dir) {
		return nil
	}
	git := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "--no-optional-locks"}, args...)...)
		cmd.WaitDelay = 100 * time.Millisecond
		out, err := cmd.Output()
		return string(bytes.TrimSpace(out)), err
	}
	commit, err := git("rev-parse", "HEAD")
	if err != nil {
		return nil
	}
	branch, _ := git("symbolic-ref", "--short", "-q", "HEAD")
	status, err := git("status", "--porcelain", "--untracked-files=no")
	if err != nil {
		return nil
	}
	return &mem.Git{Commit: commit, Branch: branch, Dirty: status != ""}
}

func inWorkingCopy(dir string) bool {
	for dir != "" {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
	return false
}

// blind notes what cannot be seen of a process from inside, going by its command line: Python that
// was told to leave out the hook.
func (p *process) blind(command []string) {
	if len(command) < 2 || !strings.HasPrefix(filepath.Base(command[0]), "python") {
		return
	}
	for _, arg := range command[1:] {
		if !strings.HasPrefix(arg, "-") || arg == "-" || strings.HasPrefix(arg, "--") {
			return
		}
		for i, flag := range arg[1:] {
			if strings.ContainsRune("cmWX", flag) {
				return // the rest is its argument, or the program's
			}
			if strings.ContainsRune("ISE", flag) {
				p.fact("unobserved", "python -"+string(arg[i+1])+": it leaves out start-up hooks or PYTHONPATH, so there are no steps, phases and frameworks of this process")
			}
		}
	}
}

// sortBy sorts by a number, keeping the order of equals.
func sortBy[T any](items []T, key func(T) int64) {
	slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(key(a), key(b)) })
}

// sortedKeys of a map, so that output does not depend on the map's order.
func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
