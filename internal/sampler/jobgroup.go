package sampler

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// JobGroup is the control group of the job, pod or container that a process is in, or one that has a limit.
type JobGroup struct {
	Path string // in the hierarchy: the same for all processes of the group
	Kind string // slurm, kubernetes, container; "": not known
	Job  string // the job's number, or the pod's or container's

	Limit, Used, Cache, Peak mem.Optional // bytes; what Cgroup says of them
}

var (
	slurmJob  = regexp.MustCompile(`^job_(\d+)$`)
	pod       = regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
	container = regexp.MustCompile(`(?:^|-)([0-9a-f]{64})(?:\.scope)?$`)
)

// JobGroupPath is where the group of a process lies, what made it, and what it is called there. A step of Slurm is a
// part of its job, and a process of a pod is in one of its containers, which has the limit.
func JobGroupPath(root string, pid int) (path, kind, job string) {
	whole, _ := cgroupPath(filepath.Join(root, "proc", strconv.Itoa(pid), "cgroup"), "memory")
	parts := strings.Split(strings.Trim(whole, "/"), "/")
	for i, part := range parts {
		upTo := func(n int) string { return "/" + strings.Join(parts[:min(n, len(parts))], "/") }
		if found := slurmJob.FindStringSubmatch(part); found != nil {
			return upTo(i + 1), "slurm", found[1]
		}
		if found := pod.FindStringSubmatch(part); found != nil {
			return upTo(i + 2), "kubernetes", strings.ReplaceAll(found[1], "_", "-")
		}
		if found := container.FindStringSubmatch(part); found != nil {
			return upTo(i + 1), "container", found[1][:12]
		}
	}
	return whole, "", ""
}

// ReadJobGroup reads a group by the path that JobGroupPath gave; false: it cannot be seen from here.
func ReadJobGroup(root string, pid int, path string) (g JobGroup, ok bool) {
	dirs, version := cgroupDirs(root, pid, "memory", usedFile)
	for len(dirs) > 0 && path != "" && path != "/" && !strings.HasSuffix(dirs[0], path) {
		dirs = dirs[1:] // of a step to its job
	}
	if len(dirs) == 0 {
		return g, false
	}
	c := openCgroup(version, dirs)
	defer c.Close()
	return JobGroup{Path: path, Limit: c.Limit(), Used: c.Used(), Cache: c.File(), Peak: c.Peak()}, true
}

// Peak is the most that the group was charged with since it was made, page cache included; absent before Linux 5.19 in
// version 2.
func (c *Cgroup) Peak() mem.Optional {
	if len(c.dirs) == 0 {
		return mem.Optional{}
	}
	name := map[int]string{1: "memory.max_usage_in_bytes", 2: "memory.peak"}[c.Version]
	return optional(quantityIn(c.dirs[0], name))
}

// requestedAll is the OOM score that the kubelet gives a container whose request is its limit. From nothingRequested on
// it says nothing. Source: GetContainerOOMScoreAdjust in Kubernetes' pkg/kubelet/qos/policy.go.
const (
	requestedAll     = -997
	leastScore       = 1000 + requestedAll // a larger request has the same
	nothingRequested = 999
)

// Requested is how much memory was requested of Kubernetes for the container that a process is in, between two figures in
// bytes. The kubelet gives a container 1000 less a thousandth for each thousandth of the machine that was requested. A
// process may raise its own score, so of several the largest request is true. Absent: not known, or nothing.
func Requested(root string, pid int, limit mem.Optional) (least, most mem.Optional) {
	text, err := os.ReadFile(filepath.Join(root, "proc", strconv.Itoa(pid), "oom_score_adj"))
	score, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil || bad != nil || score >= nothingRequested {
		return mem.Optional{}, mem.Optional{}
	}
	if score == requestedAll {
		return limit, limit
	}
	machine, _ := os.ReadFile(filepath.Join(root, "proc/meminfo"))
	total, known := field(machine, "MemTotal")
	if !known || score < leastScore {
		return mem.Optional{}, mem.Optional{}
	}
	if least, most = mem.Some(total/1000*(1000-score)), mem.Some(total/1000*(1001-score)); score == leastScore {
		most = mem.Some(total)
	}
	return least, most
}
