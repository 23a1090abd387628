package sampler

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestJobGroup: processes are put down to jobs, pods and containers by their control groups, whose figures are those of
// the job and not of a step.
func TestJobGroup(t *testing.T) {
	const hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for path, want := range map[string][3]string{
		"0::/system.slice/slurmstepd.scope/job_42/step_0/user/task_0": {
			"/system.slice/slurmstepd.scope/job_42", "slurm", "42"},
		"4:memory:/slurm/uid_1000/job_7/step_batch\n0::/": {"/slurm/uid_1000/job_7", "slurm", "7"},
		"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef.slice/" +
			"cri-containerd-" + hex + ".scope": {"/kubepods.slice/kubepods-burstable.slice/" +
			"kubepods-burstable-pod01234567_89ab_cdef_0123_456789abcdef.slice/cri-containerd-" + hex + ".scope", "kubernetes",
			"01234567-89ab-cdef-0123-456789abcdef"},
		"0::/system.slice/docker-" + hex + ".scope": {"/system.slice/docker-" + hex + ".scope", "container", hex[:12]},
		"0::/user.slice/user-1000.slice":            {"/user.slice/user-1000.slice", "", ""},
		"0::/job_x/podx":                            {"/job_x/podx", "", ""},
	} {
		root := t.TempDir()
		put(t, root, "proc/77/cgroup", path+"\n")
		group, kind, job := JobGroupPath(root, 77)
		if got := [3]string{group, kind, job}; got != want {
			t.Errorf("%q: %q; want %q", path, got, want)
		}
	}
}

// TestReadJobGroup: version 2 and 1, of a step's process.
func TestReadJobGroup(t *testing.T) {
	root := t.TempDir()
	put(t, root, "proc/self/cgroup", "0::/other\n")
	put(t, root, "proc/77/cgroup", "0::/slurm/job_42/step_0\n")
	for dir, files := range map[string]string{
		"slurm/job_42/step_0": "memory.current=1\nmemory.max=max\nmemory.peak=1",
		"slurm/job_42":        "memory.current=6442450944\nmemory.max=64424509440\nmemory.peak=8589934592",
		"slurm":               "memory.current=7\nmemory.max=max\nmemory.peak=9",
	} {
		for _, line := range strings.Split(files, "\n") {
			name, value, _ := strings.Cut(line, "=")
			put(t, root, "sys/fs/cgroup/"+dir+"/"+name, value+"\n")
		}
	}
	put(t, root, "sys/fs/cgroup/slurm/job_42/memory.stat", "active_file 1024\ninactive_file 4096\n")
	g, ok := ReadJobGroup(root, 77, "/slurm/job_42")
	want := JobGroup{Path: "/slurm/job_42", Limit: mem.Some(60 << 30), Used: mem.Some(6 << 30), Cache: mem.Some(5120),
		Peak: mem.Some(8 << 30)}
	if !ok || g != want {
		t.Errorf("%+v %v; want %+v", g, ok, want)
	}
	if _, ok := ReadJobGroup(root, 78, "/slurm/job_42"); ok {
		t.Error("a process that is not there has a group")
	}
}

// TestRequested: what the kubelet says of a request by the OOM score, with the error of its rounding.
func TestRequested(t *testing.T) {
	const mib = 1 << 20
	limit := mem.Some(8000 * mib)
	for score, want := range map[string][2]mem.Optional{
		"-997": {limit, limit}, // request and limit are the same
		"750":  {mem.Some(16_000 * mib), mem.Some(16_064 * mib)},
		"3":    {mem.Some(63_808 * mib), mem.Some(64_000 * mib)},
		"999":  {}, "1000": {}, "0": {}, "2": {}, "-998": {}, "": {},
	} {
		root := t.TempDir()
		put(t, root, "proc/77/oom_score_adj", score+"\n")
		put(t, root, "proc/meminfo", "MemTotal:       65536000 kB\nMemFree: 1 kB\n") // 64,000 MiB
		if least, most := Requested(root, 77, limit); least != want[0] || most != want[1] {
			t.Errorf("%s: %v to %v; want %v", score, least, most, want)
		}
	}
	if least, most := Requested(t.TempDir(), 77, limit); least.Known() || most.Known() {
		t.Errorf("of nothing: %v, %v", least, most)
	}
}

func put(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
