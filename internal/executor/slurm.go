package executor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"hightide/internal/fail"
)

// Slurm submits job arrays by sbatch, and asks squeue how they stand. That needs no accounting database, but it
// forgets a job some minutes after its end (MinJobAge). Of one that it has forgotten the cluster's database is asked
// by sacct, where it has one.
//
// Where jobs run and on whose account is told as to sbatch itself: SBATCH_PARTITION, SBATCH_ACCOUNT, SBATCH_EXCLUSIVE
// and the others of its manual.
type Slurm struct {
	JobName   string // of all its jobs
	Resources Resources
	Dir       string // for the script of an array, until sbatch has read it
	Env       []string

	unaccounted bool // sacct has nothing to tell here
}

// mostInArray stays below MaxArraySize as Slurm has it where nobody set it, which is 1001.
const mostInArray = 1000

// Name implements Executor.
func (s *Slurm) Name() string { return "slurm" }

// NodeName implements Executor.
func (s *Slurm) NodeName() string { return "${SLURMD_NODENAME:-$(hostname)}" }

// Check implements Executor.
func (s *Slurm) Check(ctx context.Context) error {
	if _, err := exec.LookPath("sbatch"); err != nil {
		return fail.Environment("run this where jobs are submitted, on a login node",
			"--executor slurm: there is no sbatch on PATH")
	}
	_, err := s.ask(ctx, "sinfo", "--noheader", "--format=%R")
	return err
}

// Submit implements Executor.
func (s *Slurm) Submit(ctx context.Context, jobs []Job) ([]string, error) {
	var handles []string
	for first := 0; first < len(jobs); first += mostInArray {
		some, err := s.array(ctx, jobs[first:min(first+mostInArray, len(jobs))])
		if err != nil {
			_ = s.Cancel(context.WithoutCancel(ctx), handles)
			return nil, err
		}
		handles = append(handles, some...)
	}
	return handles, nil
}

// array submits one: its script runs the one of its task.
func (s *Slurm) array(ctx context.Context, jobs []Job) ([]string, error) {
	var script strings.Builder
	script.WriteString("#!/bin/sh\ncase $SLURM_ARRAY_TASK_ID in\n")
	for i, job := range jobs {
		fmt.Fprintf(&script, "%d) exec /bin/sh %s ;;\n", i, quoted(job.Script))
	}
	script.WriteString("esac\n")
	file, err := s.writeScript(script.String())
	if err != nil {
		return nil, err
	}
	defer os.Remove(file) // sbatch has read it
	args := []string{"--parsable", "--no-requeue", "--job-name=" + s.JobName, "--output=/dev/null", "--array=0-" +
		strconv.Itoa(len(jobs)-1)}
	out, err := s.ask(ctx, "sbatch", append(append(args, s.resources()...), file)...)
	if err != nil {
		return nil, err
	}
	id, _, _ := strings.Cut(strings.TrimSpace(out), ";") // a cluster's name may follow
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return nil, fail.Environment("", "sbatch gave no number of a job: %q", out)
	}
	handles := make([]string, len(jobs))
	for i := range jobs {
		handles[i] = id + "_" + strconv.Itoa(i)
	}
	return handles, nil
}

// resources are sbatch's options for what a job asks for.
func (s *Slurm) resources() (options []string) {
	if n := s.Resources.CPUs; n > 0 {
		options = append(options, "--cpus-per-task="+strconv.Itoa(n))
	}
	if n := s.Resources.GPUs; n > 0 {
		options = append(options, "--gpus="+strconv.Itoa(n))
	}
	if n := s.Resources.Memory; n > 0 {
		options = append(options, fmt.Sprintf("--mem=%dK", (n+1023)/1024))
	}
	return options
}

// Close implements Executor.
func (s *Slurm) Close() {}

func (s *Slurm) writeScript(script string) (string, error) {
	file, err := os.CreateTemp(s.Dir, "array-*.sh")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(script)
	return file.Name(), errors.Join(err, file.Close())
}

// Poll implements Executor.
func (s *Slurm) Poll(ctx context.Context, handles []string) (map[string]Status, error) {
	out, err := s.ask(ctx, "squeue", "--me", "--states=all", "--array", "--noheader", "--name="+s.JobName,
		"--format=%F_%K|%T|%N")
	if err != nil {
		return nil, err
	}
	told := map[string]Status{}
	for line := range strings.Lines(out) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		if len(parts) == 3 {
			told[parts[0]] = Status{State: slurmState(parts[1]), Node: parts[2], Word: parts[1]}
		}
	}
	found := make(map[string]Status, len(handles))
	var forgotten []string
	for _, handle := range handles {
		status, ok := told[handle]
		if !ok {
			status.State = Gone
			forgotten = append(forgotten, handle)
		}
		found[handle] = status
	}
	maps.Copy(found, s.accounted(ctx, forgotten))
	return found, nil
}

// sacctPatience is how long a database may take to answer: all jobs wait for it.
const sacctPatience = 10 * time.Second

// accounted is how jobs ended that squeue knows no more, of those that the database knows. It may learn of an end
// later than the controller forgets it, or never, and calls such a job running.
func (s *Slurm) accounted(ctx context.Context, handles []string) map[string]Status {
	ended := map[string]Status{}
	if len(handles) == 0 || s.unaccounted {
		return ended
	}
	ctx, cancel := context.WithTimeout(ctx, sacctPatience)
	defer cancel()
	c := exec.CommandContext(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State,NodeList",
		"--jobs="+strings.Join(handles, ","))
	c.Env = s.Env
	out, err := c.Output()
	if err != nil { // there is no database, or it does not answer: what squeue says has to do
		s.unaccounted = true
		return ended
	}
	for line := range strings.Lines(string(out)) {
		parts := strings.Split(strings.TrimSpace(line), "|")
		if len(parts) != 3 {
			continue
		}
		word, _, _ := strings.Cut(parts[1], " ") // CANCELLED by 1000
		if state := slurmState(word); state.Over() {
			ended[parts[0]] = Status{State: state, Node: strings.TrimPrefix(parts[2], "None assigned"), Word: word}
		}
	}
	return ended
}

// slurmState reads squeue's words. One that is not known here is of a job that still runs, or will.
func slurmState(word string) State {
	switch word {
	case "PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT":
		return Waiting
	case "COMPLETED", "FAILED":
		return Ended
	case "TIMEOUT", "OUT_OF_MEMORY", "CANCELLED", "DEADLINE", "REVOKED":
		return Killed
	case "NODE_FAIL", "BOOT_FAIL", "PREEMPTED":
		return Lost
	}
	return Running
}

// Cancel implements Executor.
func (s *Slurm) Cancel(ctx context.Context, handles []string) error {
	if len(handles) == 0 {
		return nil
	}
	_, err := s.ask(ctx, "scancel", append([]string{"--quiet"}, handles...)...)
	return err
}

// A controller that restarts, or is busy, answers later.
const (
	attempts = 5
	pause    = 2 * time.Second
)

// ask runs one of Slurm's commands and returns what it printed. Asking and cancelling are tried again; submitting is
// not, since nobody would know whether it was done.
func (s *Slurm) ask(ctx context.Context, name string, args ...string) (string, error) {
	for n := 1; ; n++ {
		c := exec.CommandContext(ctx, name, args...)
		c.Env = s.Env
		var out, said bytes.Buffer
		c.Stdout, c.Stderr = &out, &said
		err := c.Run()
		if err == nil {
			return out.String(), nil
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if n == attempts || name == "sbatch" {
			last := strings.TrimSpace(said.String())
			return "", fail.Environment("does sinfo work here?", "%s: %w: %s", filepath.Base(name), err,
				last[strings.LastIndexByte(last, '\n')+1:])
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// quoted is one word of a shell.
func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
