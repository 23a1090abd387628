package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// heldCells say each time that they run, and wait while a file "hold" is there.
const heldCells = `
axes: {n: [1, 2, 3]}
repeats: 2
seed: 7
command: [sh, -c, 'echo {n} {repeat} >> ran; while [ -e hold ]; do sleep 0.1; done']
`

// slurmCluster is one of two nodes on this machine, for the test alone.
func slurmCluster(t *testing.T) (env []string, do func(args ...string)) {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	for _, need := range []string{"slurmctld", "slurmd", "munged", "sbatch"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("%v: scripts/setup slurm installs it", err)
		}
	}
	folder, err := os.MkdirTemp("/tmp", "slurm") // a short path: it holds a socket
	if err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../scripts/slurm-cluster")
	if err != nil {
		t.Fatal(err)
	}
	do = func(args ...string) {
		t.Helper()
		if out, err := exec.Command(script, slices.Insert(args, 1, folder)...).CombinedOutput(); err != nil {
			t.Fatalf("slurm-cluster %v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() {
		do("stop")
		os.RemoveAll(folder)
	})
	do("start")
	return append(os.Environ(), "SLURM_CONF="+filepath.Join(folder, "slurm.conf")), do
}

// TestBenchOnSlurm: the collector is killed while two nodes run trials, one node is lost, and the matrix goes on: the same
// table as on one machine, only the lost trial run twice, and elsewhere.
func TestBenchOnSlurm(t *testing.T) {
	env, cluster := slurmCluster(t)
	s := newSession(t)
	write(t, s.dir, "m.yaml", heldCells)
	write(t, s.dir, "hold", "")
	bench := func() *exec.Cmd {
		c := s.command("bench", "m.yaml", "--executor", "slurm", "--json", "--quiet")
		c.Env = append(env, "HIGHTIDE_DATA="+filepath.Join(s.dir, "data"))
		return c
	}
	ran := func() []string {
		text, _ := os.ReadFile(filepath.Join(s.dir, "ran"))
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
	killed := bench()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(ran()) == 2 }) // one on each node
	_ = killed.Process.Kill()
	_ = killed.Wait()
	cluster("fail", "node1")
	if err := os.Remove(filepath.Join(s.dir, "hold")); err != nil {
		t.Fatal(err)
	}
	c := bench()
	var said strings.Builder
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	table, runs := benchTable(t, out)
	want := []string{"n=1 #1: done ", "n=1 #2: done ", "n=2 #1: done ", "n=2 #2: done ", "n=3 #1: done ", "n=3 #2: done "}
	if !slices.Equal(table, want) {
		t.Errorf("%q", table)
	}
	lines := ran()
	slices.Sort(lines)
	if once := slices.Compact(slices.Clone(lines)); len(lines) != 7 || len(once) != 6 {
		t.Errorf("ran %q, want each once and the lost one twice", lines)
	}
	journal, err := os.ReadFile(filepath.Join(s.dir, "data", "matrices", "m", "journal.jsonl"))
	if err != nil || strings.Count(string(journal), "slurm: node node1 is gone (NODE_FAIL)") != 1 || strings.Count(string(journal), `"machine":{"name":"node2"`) != 1 {
		t.Errorf("%v, the journal says\n%s", err, journal)
	}
	for _, run := range runs {
		if _, _, err := s.engine().Load(t.Context(), run); err != nil {
			t.Errorf("%s: %v", run, err)
		}
	}
	left, _ := filepath.Glob(filepath.Join(s.dir, "data", "matrices", "m", "jobs", "*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
