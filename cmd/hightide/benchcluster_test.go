package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/executor"
)

// heldCells say each time that they run, and wait while a file "hold" is there.
const heldCells = `
axes: {n: [1, 2, 3]}
repeats: 2
seed: 7
command: [sh, -c, 'echo {n}#{repeat}@$SLURMD_NODENAME$TRIAL_NODE@$$ >> ran; while [ -e hold ]; do sleep 0.1; done']
`

// slurmCluster is one of two nodes on this machine, for the test alone.
func slurmCluster(t *testing.T) (env []string, do func(args ...string)) {
	t.Helper()
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	for _, need := range []string{"slurmctld", "slurmd", "munged", "sbatch", "slurmdbd", "mariadbd"} {
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
	do("start", "2", "accounting")
	return append(os.Environ(), "SLURM_CONF="+filepath.Join(folder, "slurm.conf")), do
}

func TestBenchOnSlurm(t *testing.T) {
	env, cluster := slurmCluster(t)
	onCluster(t, "slurm", env, func(node string) { cluster("fail", node) })
	// Of jobs by another name squeue tells nothing, as of those that it has forgotten: the first two were on the node
	// that was lost and on the other one.
	slurm := &executor.Slurm{JobName: "forgotten", Env: env}
	var told map[string]executor.Status
	waitFor(t, func() bool { // the database learns of an end later
		var err error
		told, err = slurm.Poll(t.Context(), []string{"1_0", "1_1", "1_99"})
		return err == nil && told["1_0"].State != executor.Gone && told["1_1"].State != executor.Gone
	})
	states := []executor.State{told["1_0"].State, told["1_1"].State}
	slices.Sort(states)
	if !slices.Equal(states, []executor.State{executor.Ended, executor.Lost}) || told["1_0"].Node == "" ||
		told["1_99"].State != executor.Gone {
		t.Errorf("sacct told %+v", told)
	}
}

// rayCluster is one of two nodes on this machine beside its head.
func rayCluster(t *testing.T) (env []string, fail func(node string)) {
	t.Helper()
	cache := os.Getenv("HIGHTIDE_CACHE")
	if cache == "" {
		home, _ := os.UserHomeDir()
		cache = filepath.Join(home, ".cache", "hightide")
	}
	bin := filepath.Join(cache, "ray", "bin")
	if _, err := os.Stat(filepath.Join(bin, "ray")); err != nil {
		t.Skipf("%v: scripts/setup ray installs it", err)
	}
	env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "RAY_USAGE_STATS_ENABLED=0", "PYTHONDONTWRITEBYTECODE=1")
	c := exec.Command(filepath.Join(bin, "python3"), "testdata/ray_cluster.py")
	c.Env = env
	var said strings.Builder
	c.Stderr = &said
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = c.Wait()
	})
	lines := bufio.NewScanner(out)
	next := func() string {
		t.Helper()
		if !lines.Scan() {
			t.Fatalf("the cluster ended: %s", said.String())
		}
		return lines.Text()
	}
	return append(env, "RAY_ADDRESS="+next()), func(node string) {
		_, id, _ := strings.Cut(node, ":")
		fmt.Fprintln(in, id)
		next()
	}
}

func TestBenchOnRay(t *testing.T) {
	env, fail := rayCluster(t)
	onCluster(t, "ray", env, fail)
}

// onCluster kills the collector while two nodes run trials, and then one of the nodes. The matrix goes on: the same
// table as on one machine, only the lost trial run twice, and elsewhere.
func onCluster(t *testing.T, scheduler string, env []string, fail func(node string)) {
	s := newSession(t)
	write(t, s.dir, "m.yaml", heldCells)
	write(t, s.dir, "hold", "")
	bench := func() *exec.Cmd {
		c := s.command("bench", "m.yaml", "--executor", scheduler, "--json", "--quiet")
		c.Env = append(env, "HIGHTIDE_DATA="+filepath.Join(s.dir, "data"))
		return c
	}
	ran := func() []string {
		text, _ := os.ReadFile(filepath.Join(s.dir, "ran"))
		return strings.Fields(string(text))
	}
	killed := bench()
	if err := killed.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(ran()) == 2 }) // one on each node
	_ = killed.Process.Kill()
	_ = killed.Wait()
	first := strings.Split(ran()[0], "@")
	lost := first[1]
	fail(lost)
	pid, _ := strconv.Atoi(first[2])
	waitFor(t, func() bool { return !runs(pid) })
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
	var trials []string
	nodes := map[string]int{}
	for _, line := range ran() {
		parts := strings.Split(line, "@")
		trials = append(trials, parts[0])
		nodes[parts[1]]++
	}
	slices.Sort(trials)
	if len(trials) != 7 || len(slices.Compact(trials)) != 6 || nodes[lost] != 1 || len(nodes) != 2 {
		t.Errorf("ran %q on %v, want each once and the one that was lost with %s twice", trials, nodes, lost)
	}
	journal, err := os.ReadFile(filepath.Join(s.dir, "data", "matrices", "m", "journal.jsonl"))
	if err != nil || strings.Count(string(journal), scheduler+": node "+lost+" is gone (") != 1 {
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

// runs says whether a process does.
func runs(pid int) bool {
	_, err := os.Stat(fmt.Sprintf("/proc/%d", pid))
	return err == nil && !gone(pid)
}
