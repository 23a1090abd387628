package observe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"hightide/internal/launch"
)

// leaderFile in a folder of channels says whose tree is recorded: pid and start.
const leaderFile = "leader"

// leads notes the process at the top of the tree.
func (s *Shared) leads(pid int) {
	if start, _, ok := launch.Identity(pid); ok {
		_ = os.WriteFile(filepath.Join(s.Dir, leaderFile), fmt.Appendf(nil, "%d %d", pid, start), 0o600)
	}
}

// RecordedAs finds the run that records a process, which is one of its tree or has told it something. live: its engine
// is there. Else it was killed, and what the process's helpers tell still goes to that run.
func RecordedAs(r *launch.Runtime, pid int) (run string, live bool) {
	root := r.SharedDir()
	if launch.Private(root) != nil {
		return "", false
	}
	line := ancestry(pid)
	if len(line) == 0 {
		return "", false
	}
	entries, _ := os.ReadDir(root)
	for _, entry := range entries {
		dir := filepath.Join(root, entry.Name())
		owner, err := os.ReadFile(filepath.Join(dir, ownerFile))
		if err != nil || !holds(dir, line) {
			continue
		}
		words := strings.Split(string(owner), "\n")
		if len(words) != 4 || words[2] != namespace("pid") {
			continue // a container's, where pids mean other processes
		}
		run = words[0]
		lock, err := lockFolder(dir)
		if err == nil {
			lock.Close()
		}
		if errors.Is(err, errHeld) {
			return run, true
		}
	}
	return run, false
}

// holds says whether a folder is of a recording of the first process of a line: it, or one above it, leads it, or it
// has a channel there.
func holds(dir string, line []string) bool {
	leader, _ := os.ReadFile(filepath.Join(dir, leaderFile))
	if slices.Contains(line, string(leader)) {
		return true
	}
	entries, _ := os.ReadDir(dir)
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		pid, start, ok := channelOwner(e.Name())
		return ok && fmt.Sprintf("%d %d", pid, start) == line[0]
	})
}

// deepest is how far up is looked: on Windows a parent may be a number that was given again.
const deepest = 100

// ancestry names a process and those above it, each as "PID START".
func ancestry(pid int) (line []string) {
	for pid > 0 {
		start, parent, ok := launch.Identity(pid)
		if !ok || len(line) > deepest {
			break
		}
		line = append(line, fmt.Sprintf("%d %d", pid, start))
		pid = parent
	}
	return line
}
