package sampler

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"hightide/internal/mem"
)

// Host describes the machine under root; what it does not say is absent. The GPUs are those of
// the vendors given, the limit that of a process's control group; pid 0: ours.
func Host(root string, pid int, vendors []Vendor) mem.Host {
	host := mem.Host{OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(), PageSize: os.Getpagesize()}
	host.Name, _ = os.Hostname()
	host.Kernel = word(filepath.Join(root, "proc/sys/kernel/osrelease"))
	host.CPU = cpuModel(filepath.Join(root, "proc/cpuinfo"))
	if text, err := os.ReadFile(filepath.Join(root, "proc/meminfo")); err == nil {
		host.Memory = optional(field(text, "MemTotal"))
	}
	group := OpenCgroup(root, pid)
	defer group.Close()
	host.Limit = group.Limit()
	for _, v := range vendors {
		host.GPUs = append(host.GPUs, v.Devices()...)
	}
	return host
}

func cpuModel(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// ReadGit asks git about the working copy around dir. nil: there is none, or no git, or git took
// longer than the context (at most 3 s). Files that git does not track do not make it dirty. It runs
// no hook and no file-system monitor, takes no lock and asks nobody for a password.
func ReadGit(ctx context.Context, dir string) *mem.Git {
	if !insideWorkingCopy(dir) {
		return nil // cheaper than git, and no process on a machine without it
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "--no-optional-locks",
		"status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=dirty")
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is meant for the training
	c.WaitDelay = 100 * time.Millisecond
	for _, entry := range os.Environ() {
		// A hook that starts a training hands down the repository it belongs to, and the preloads
		// of an outer run are none of git's business.
		if !strings.HasPrefix(entry, "GIT_") && !strings.HasPrefix(entry, "LD_PRELOAD=") {
			c.Env = append(c.Env, entry)
		}
	}
	c.Env = append(c.Env, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
	out, err := c.Output()
	if err != nil {
		return nil
	}
	return parseGitStatus(out)
}

// parseGitStatus reads "git status --porcelain=v2 --branch".
func parseGitStatus(out []byte) *mem.Git {
	var git mem.Git
	for line := range bytes.Lines(out) {
		text := strings.TrimSpace(string(line))
		if commit, ok := strings.CutPrefix(text, "# branch.oid "); ok {
			git.Commit = commit
		} else if branch, ok := strings.CutPrefix(text, "# branch.head "); ok && branch != "(detached)" {
			git.Branch = branch
		} else if text != "" && text[0] != '#' {
			git.Dirty = true
		}
	}
	if git.Commit == "" || git.Commit == "(initial)" {
		return nil
	}
	return &git
}

func insideWorkingCopy(dir string) bool {
	for {
		if exists(filepath.Join(dir, ".git")) {
			return true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return false
		}
		dir = parent
	}
}
