package sampler

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// Cgroup reads the memory control group of a process: ours, and so that of the processes we start, or another's.
// Version 1 and 2 differ in file names only. The zero value is not a group: everything is absent.
type Cgroup struct {
	Version int
	dirs    []string // the process's first, then those around it, up to the root of the hierarchy
	used    int      // open file, or -1
}

// OpenCgroup finds the group of a process; pid 0: the calling one. One that cannot be seen from here, as of another
// container's, is absent.
func OpenCgroup(root string, pid int) Cgroup {
	dirs, version := cgroupDirs(root, pid, "memory", usedFile)
	return openCgroup(version, dirs)
}

// usedFile is what a group is charged with, by version.
var usedFile = map[int]string{1: "memory.usage_in_bytes", 2: "memory.current"}

func openCgroup(version int, dirs []string) Cgroup {
	c := Cgroup{Version: version, dirs: dirs, used: -1}
	if len(dirs) > 0 {
		c.used, _ = openFile(filepath.Join(dirs[0], usedFile[version]), 0)
	}
	return c
}

// Group names a control group by its folder.
type Group struct {
	Version int
	Folder  string
}

// open reads it, with the groups around it.
func (g *Group) open() Cgroup {
	var dirs []string
	for dir := g.Folder; exists(filepath.Join(dir, "cgroup.procs")); dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	return openCgroup(g.Version, dirs)
}

// cgroupDirs are the folders of a process's group of a controller and those around it, up to the root of the
// hierarchy. The file of a name, by version, is in the first of them.
func cgroupDirs(root string, pid int, controller string, file map[int]string) (dirs []string, version int) {
	path, version := cgroupPath(filepath.Join(root, "proc/self/cgroup"), controller)
	ours := path
	if pid > 0 {
		path, version = cgroupPath(filepath.Join(root, "proc", strconv.Itoa(pid), "cgroup"), controller)
	}
	if path != ours && strings.HasPrefix(path, "/..") {
		return nil, 0 // outside what is mounted here
	}
	for _, mount := range cgroupMounts(root, controller, version) {
		dir := filepath.Join(mount, path)
		if !exists(filepath.Join(dir, file[version])) {
			// In a container the path names a group that is not mounted there; the mount itself is ours.
			if dir = mount; version == 0 || path != ours || !exists(filepath.Join(dir, file[version])) {
				continue
			}
		}
		for ; len(dir) >= len(mount); dir = filepath.Dir(dir) {
			dirs = append(dirs, dir)
		}
		return dirs, version
	}
	return nil, 0
}

// cgroupPath finds a path: the line of the v1 controller if there is one, else "0::".
func cgroupPath(file, of string) (path string, version int) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", 0
	}
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[0] == "0" && parts[1] == "" && version == 0 {
			path, version = parts[2], 2
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			if controller == of {
				path, version = parts[2], 1
			}
		}
	}
	return path, version
}

// cgroupMounts lists where a hierarchy may be mounted.
func cgroupMounts(root, controller string, version int) []string {
	base := filepath.Join(root, "sys/fs/cgroup")
	if version == 1 {
		return []string{filepath.Join(base, controller)}
	}
	return []string{base, filepath.Join(base, "unified")}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Used is what the group is charged with in bytes, page cache included.
func (c *Cgroup) Used() mem.Optional {
	if c.Version == 0 || c.used < 0 {
		return mem.Optional{}
	}
	var buffer [64]byte
	n, err := pread(c.used, buffer[:])
	if err != nil {
		return mem.Optional{}
	}
	return optional(quantity(buffer[:n]))
}

// File is what of Used are pages of files that the kernel can take back: page cache but for what is locked, of
// /dev/shm or of a tmpfs, in bytes.
func (c *Cgroup) File() (file mem.Optional) {
	if len(c.dirs) == 0 {
		return file
	}
	var buffer [8192]byte
	n, err := readFile(filepath.Join(c.dirs[0], "memory.stat"), buffer[:])
	if err != nil {
		return file
	}
	prefix := map[int]string{1: "total_"}[c.Version] // with the groups below it
	for _, list := range []string{"active_file", "inactive_file"} {
		for line := range bytes.Lines(buffer[:n]) {
			if key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" ")); string(key) == prefix+list {
				file = file.Plus(optional(quantity(value)))
			}
		}
	}
	return file
}

// Limit is the smallest limit of the group and those around it; absent where there is none.
func (c *Cgroup) Limit() mem.Optional {
	name := map[int]string{1: "memory.limit_in_bytes", 2: "memory.max"}[c.Version]
	var least mem.Optional
	for _, dir := range c.dirs {
		value, ok := quantityIn(dir, name)
		// Version 1 writes "no limit" as the largest multiple of a page, version 2 as "max".
		if ok && value < 1<<62 && value < least.Or(1<<62) {
			least = mem.Some(value)
		}
	}
	return least
}

// Events counts how often the limit was hit with nothing left to reclaim, and the processes that
// the kernel killed for it. Version 1 has no count of the former.
func (c *Cgroup) Events() (oom, kill mem.Optional) {
	if len(c.dirs) == 0 {
		return oom, kill
	}
	name := map[int]string{1: "memory.oom_control", 2: "memory.events"}[c.Version]
	var buffer [512]byte
	n, err := readFile(filepath.Join(c.dirs[0], name), buffer[:])
	if err != nil {
		return oom, kill
	}
	for line := range bytes.Lines(buffer[:n]) {
		key, value, _ := bytes.Cut(bytes.TrimSpace(line), []byte(" "))
		switch string(key) {
		case "oom":
			oom = optional(quantity(value))
		case "oom_kill":
			kill = optional(quantity(value))
		}
	}
	return oom, kill
}

func quantityIn(dir, name string) (int64, bool) {
	var buffer [64]byte
	n, err := readFile(filepath.Join(dir, name), buffer[:])
	if err != nil {
		return 0, false
	}
	return quantity(buffer[:n])
}

// Close gives back the descriptor.
func (c *Cgroup) Close() {
	if c.Version != 0 && c.used >= 0 {
		closeFile(c.used)
		c.used = -1
	}
}

func optional(value int64, ok bool) mem.Optional {
	if !ok {
		return mem.Optional{}
	}
	return mem.Some(value)
}
