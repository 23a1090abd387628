package sampler

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/system"
)

// OwnedGroup is a control group that was made for one program and all that it starts. The kernel lets them have no
// more memory than its limit: it takes back pages of files first, and then ends one of them.
type OwnedGroup struct{ Group }

// groupName begins the names of such folders; the pid of who made one follows.
const groupName = "hightide-"

// fileNames are those of a control group, by version.
var fileNames = map[int]struct{ limit, swap string }{
	1: {"memory.limit_in_bytes", "memory.memsw.limit_in_bytes"},
	2: {"memory.max", "memory.swap.max"},
}

// NewOwnedGroup makes one below this process's own, or where version 2 lets no processes be beside groups, next to it:
// but only where its own has no limit, which a neighbour would escape. Nothing in it may be swapped out. The error says
// why there can be none.
func NewOwnedGroup(root string, limit int64) (*OwnedGroup, error) {
	used := map[int]string{1: "memory.usage_in_bytes", 2: "cgroup.procs"}
	dirs, version := cgroupDirs(root, 0, "memory", used)
	if len(dirs) == 0 {
		return nil, errors.New("no control group of memory is seen here")
	}
	if version == 2 {
		if dirs = dirs[:min(2, len(dirs))]; limited2(dirs[0]) {
			dirs = dirs[:1]
		}
		dirs = slices.DeleteFunc(dirs, func(dir string) bool { return !hands(dir) })
		if len(dirs) == 0 {
			return nil, errors.New("the control group of this process hands on no control of memory")
		}
	}
	sweepGroups(dirs[0])
	g := &OwnedGroup{Group{version, filepath.Join(dirs[0], fmt.Sprintf("%s%d-%d", groupName, os.Getpid(), limit))}}
	err := os.Mkdir(g.Folder, 0o755)
	if err == nil {
		err = g.write(fileNames[version].limit, limit)
	}
	if err == nil {
		swap := map[int]int64{1: limit, 2: 0}[version] // version 1 counts memory and swap together
		if err = g.write(fileNames[version].swap, swap); errors.Is(err, fs.ErrNotExist) {
			err = nil // the kernel has no swap, or does not count it
		}
	}
	if err != nil {
		_ = os.Remove(g.Folder)
		return nil, fmt.Errorf("a control group cannot be made: %w", err)
	}
	return g, nil
}

// limited2 says whether a group of version 2 has a limit of its own.
func limited2(dir string) bool {
	_, limited := quantityIn(dir, "memory.max")
	return limited
}

// hands says whether groups below one of version 2 can limit memory.
func hands(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
	return err == nil && slices.Contains(strings.Fields(string(text)), "memory")
}

func (g *OwnedGroup) write(name string, value int64) error {
	f, err := os.OpenFile(filepath.Join(g.Folder, name), os.O_WRONLY, 0) // these are never made
	if err != nil {
		return err
	}
	_, err = f.WriteString(strconv.FormatInt(value, 10))
	return errors.Join(err, f.Close())
}

// sweepGroups removes groups in which nobody is and whose maker is gone.
func sweepGroups(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, groupName+"*"))
	for _, folder := range left {
		maker, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), groupName), "-")
		if pid, err := strconv.Atoi(maker); err == nil && system.Kill(pid, 0) != nil {
			_ = os.Remove(folder)
		}
	}
}

// Reached counts how often the limit was reached. Each time the kernel took back pages of files, or ended a process.
func (g *OwnedGroup) Reached() mem.Optional {
	if g.Version == 1 { // which of two equal limits counts is the kernel's choice
		memory := optional(quantityIn(g.Folder, "memory.failcnt"))
		return memory.Plus(optional(quantityIn(g.Folder, "memory.memsw.failcnt")))
	}
	text, err := os.ReadFile(filepath.Join(g.Folder, "memory.events"))
	if err != nil {
		return mem.Optional{}
	}
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == "max" {
			return optional(quantity([]byte(value)))
		}
	}
	return mem.Optional{}
}

// Close removes the group; an error: somebody is still in it.
func (g *OwnedGroup) Close() error { return os.Remove(g.Folder) }
