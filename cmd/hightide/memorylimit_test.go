package main

import (
	"encoding/json"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/fail"
	"hightide/internal/report"
)

// sharing has four children use the 96 MiB of their parent, and maps a file of 64 MiB: neither is memory that five
// processes have five times, or that the kernel could not take back.
const sharing = `
import mmap, os, sys, time

held = bytearray(int(sys.argv[1]) << 20)
held[::4096] = b"x" * len(held[::4096])
with open("weights", "wb") as file:
    file.truncate(64 << 20)
with open("weights", "r+b") as file:
    mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
sum(mapped[::4096])
pids = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        sum(held[::4096])
        time.sleep(1)
        os._exit(0)
    pids.append(pid)
for pid in pids:
    os.waitpid(pid, 0)
print("done")
`

// TestMemoryLimit: whoever holds a program to --memory, one that needs less runs to its end and one that needs more
// does not.
func TestMemoryLimit(t *testing.T) {
	script := write(t, t.TempDir(), "sharing.py", sharing)
	for _, by := range []string{"kernel", "watching"} {
		for _, test := range []struct{ takes, verdict string }{{"96", "ran"}, {"400", "killed"}} {
			t.Run(by+" "+test.verdict, func(t *testing.T) {
				s := newSession(t)
				c := s.command("run", "--memory", "256MiB", "--json=o.json", "--", pythonPath(t), script, test.takes)
				if by == "watching" {
					inside := []string{"--mount", "sh", "-c", `mount -t tmpfs none /sys/fs/cgroup && exec "$@"`, "sh"}
					if err := exec.Command("unshare", append(inside, "true")...).Run(); err != nil {
						t.Skipf("no folder can be mounted here: %v", err)
					}
					other := exec.Command("unshare", append(inside, c.Args...)...)
					other.Dir, other.Env = c.Dir, c.Env
					c = other
				}
				out, err := c.CombinedOutput()
				if (err == nil) != (test.verdict == "ran") {
					t.Errorf("ended with %v:\n%s", err, out)
				}
				limit := memoryLimit(t, s)
				if limit.By != by && by == "kernel" {
					t.Skipf("the kernel cannot hold a program here: %s", limit.Why)
				}
				if limit.Verdict != test.verdict || limit.By != by || limit.Limit != 256<<20 {
					t.Errorf("%+v:\n%s", limit, out)
				}
				if held := limit.Highest.Or(0) >> 20; by == "watching" && test.verdict == "ran" && (held < 48 || held > 160) {
					t.Errorf("%d MiB were seen of 96 that the processes share once:\n%s", held, out)
				}
				if left, _ := filepath.Glob("/sys/fs/cgroup/memory/**/hightide-[0-9]*-268435456"); len(left) > 0 {
					t.Errorf("groups are left: %v", left)
				}
			})
		}
	}
}

// memoryLimit is what the report of the last run says of it.
func memoryLimit(t *testing.T, s *session) (l report.MemoryLimit) {
	t.Helper()
	text, err := s.command("show", "--json", "last").Output()
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Headline struct {
			Verdict string `json:"verdict"`
		} `json:"headline"`
		Findings    []report.Finding
		MemoryLimit *report.MemoryLimit `json:"memory_limit"`
	}
	if err := json.Unmarshal(text, &r); err != nil || r.MemoryLimit == nil {
		t.Fatalf("%v: no memory_limit:\n%s", err, text)
	}
	for _, f := range r.Findings {
		if f.Kind == report.KindOOM && f.Bytes.Or(0) != 256<<20 {
			t.Errorf("the finding is of another limit: %+v", f)
		}
	}
	if !strings.Contains(r.Headline.Verdict, "the 256 MiB that it was allowed") {
		t.Errorf("the first sentence does not say: %s", r.Headline.Verdict)
	}
	return *r.MemoryLimit
}

// TestMemoryLimitUsage: a size that is none is refused before anything starts.
func TestMemoryLimitUsage(t *testing.T) {
	s := newSession(t)
	for _, size := range []string{"0", "-1GiB", "lots", "10KiB"} {
		out, err := s.command("run", "--memory="+size, "--", "true").CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != fail.ExitUsage {
			t.Errorf("--memory %s: %v:\n%s", size, err, out)
		}
	}
}
