package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKernelKill: a command that the kernel kills for its control group's memory is told from one
// that somebody killed, and its bytes are counted.
func TestKernelKill(t *testing.T) {
	const limit = 160 << 20 // the script takes 256 MiB
	group := memoryGroup(t, limit)
	s := newSession(t)
	enter := fmt.Sprintf("echo $$ > %s/cgroup.procs && exec hightide run --data-dir %s/data --json=%s/o.json -- %s %s "+
		"none",
		group, s.dir, s.dir, pythonPath(t), s.script)
	c := s.command("version") // for its environment and folder
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", enter}
	out, err := c.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "Killed for memory") {
		t.Errorf("%v: the report does not speak of a kill for memory:\n%s", err, out)
	}
	if strings.Count(string(out), "■") != 1 {
		t.Errorf("want one finding:\n%s", out)
	}
	run := s.last()
	for _, heap := range run.Heap {
		if heap.Peak != nil && (heap.Peak.Live < limit*8/10 || heap.Peak.Live > limit*12/10) {
			t.Errorf("%d bytes of heap recorded at a limit of %d", heap.Peak.Live, limit)
		}
	}
}

// memoryGroup makes a control group of either version with a limit, or skips.
func memoryGroup(t *testing.T, limit int) string {
	for _, form := range []struct{ dir, file string }{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
		{"/sys/fs/cgroup", "memory.max"}} {
		path := filepath.Join(form.dir, fmt.Sprintf("hightide-test-%d", os.Getpid()))
		if os.Mkdir(path, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(path) })
		if os.WriteFile(filepath.Join(path, form.file), fmt.Appendf(nil, "%d", limit), 0o644) == nil {
			return path
		}
	}
	t.Skip("a control group with a memory limit cannot be made here: it takes root and a writable /sys/fs/cgroup")
	return ""
}
