package bench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hightide/internal/engine"
	"hightide/internal/executor"
	"hightide/internal/fail"
	"hightide/internal/matrix"
	"hightide/internal/mem"
)

// schedulers are those that can be handed the trials of a matrix, by name. Add yours here.
var schedulers = map[string]func(b *bench, dir string) (executor.Executor, error){
	"slurm": func(b *bench, dir string) (executor.Executor, error) {
		return &executor.Slurm{JobName: "hightide-" + b.spec.Name, Dir: dir, Env: b.options.Env,
			Resources: b.options.Resources}, nil
	},
	"ray": func(b *bench, _ string) (executor.Executor, error) {
		agent, _, err := b.engine.UnpackAgent()
		if err != nil {
			return nil, fail.Environment("is there room, and can it be written to?", "unpack what speaks to Ray: %w", err)
		}
		return &executor.Ray{Script: filepath.Join(agent, "hightide", "_executors", "ray_tasks.py"), Env: b.options.Env,
			Resources: b.options.Resources}, nil
	},
}

const executorLocal = "local"

// Executors are where trials can run: on this machine, or as jobs of a scheduler.
func Executors() []string {
	return append([]string{executorLocal}, slices.Sorted(maps.Keys(schedulers))...)
}

// clusterJobs are in a scheduler's queue at most, where nobody said otherwise: it decides what runs.
const clusterJobs = 200

// cluster runs the trials of a matrix as jobs. Each has a folder that the nodes see too, with all that is known of it:
//
//	job.json   which trial, and the scheduler's handle once it was submitted
//	job.sh     what the node runs: this program's trial command
//	data/      the node's data directory, with the recording
//	trial.json what the trial came to; log, exit: what the node's hightide said, and how it ended
//
// A collector that was killed finds these folders again, and what was submitted is not submitted twice.
type cluster struct {
	bench    *bench
	executor executor.Executor
	dir      string // of the folders
	binary   string
	spec     string // the matrix's file as the nodes read it
	where    string // the folder that commands are run in

	mu      sync.Mutex
	polled  time.Time
	waiting []*clusterJob // to be submitted
	active  map[string]*clusterJob
	found   map[trialKey]*clusterJob // of a collector before this one
}

type trialKey struct {
	Cell   string `json:"cell"`
	Repeat int    `json:"repeat"`
}

// clusterJob is one trial's job.
type clusterJob struct {
	trialKey
	Handle string `json:"handle,omitempty"`

	dir   string
	over  chan executor.Status // once it is over, or could not be submitted
	fault error                // why it could not
	since time.Time            // when it was first seen to be over without a result
}

// clusterResult is trial.json.
type clusterResult struct {
	Trial   matrix.Trial   `json:"trial"`
	Machine matrix.Machine `json:"machine"`
}

const (
	jobFile     = "job.json"
	jobScript   = "job.sh"
	jobResult   = "trial.json"
	jobLog      = "log"
	jobExit     = "exit"
	jobData     = "data"
	spoolFolder = "jobs"
)

// How often a scheduler is asked, how long submissions are gathered into one array. And how long a file of a job that
// has ended may take to be seen here. Network file systems show it late.
const (
	clusterPoll   = time.Second
	clusterGather = 200 * time.Millisecond
	clusterLate   = 20 * time.Second
)

// newCluster prepares the matrix's folder. again: what another collector submitted is of no use any more.
func newCluster(ctx context.Context, b *bench, journal *matrix.Journal, again bool) (*cluster, error) {
	dir, err := filepath.Abs(filepath.Join(journal.Dir, spoolFolder))
	if err != nil {
		return nil, err
	}
	binary, err1 := os.Executable()
	where, err2 := os.Getwd()
	if err := errors.Join(err1, err2, os.MkdirAll(dir, 0o700)); err != nil {
		return nil, fail.Environment("", "prepare jobs: %w", err)
	}
	spec, err := filepath.Abs(filepath.Join(journal.Dir, matrix.SpecFile))
	if err != nil {
		return nil, err
	}
	c := &cluster{bench: b, dir: dir, binary: binary, spec: spec, where: where, active: map[string]*clusterJob{},
		found: map[trialKey]*clusterJob{}}
	if c.executor, err = schedulers[b.options.Executor](b, dir); err != nil {
		return nil, err
	}
	if err = c.executor.Check(ctx); err == nil {
		err = c.recall(ctx, again)
	}
	if err != nil {
		c.executor.Close()
		return nil, err
	}
	return c, nil
}

// onCluster has trials run as jobs from now on, until the function that it returns is called.
func (b *bench) onCluster(ctx context.Context, journal *matrix.Journal, host *matrix.Host) (end func(), err error) {
	c, err := newCluster(ctx, b, journal, journal.New)
	if err != nil {
		return nil, err
	}
	b.options.Jobs = cmp.Or(b.options.Jobs, clusterJobs)
	host.Trial, host.Elsewhere = c.trial, true
	ctx, cancel := context.WithCancel(ctx)
	var serving sync.WaitGroup
	serving.Go(func() { c.serve(ctx) })
	return func() {
		cancel()
		serving.Wait()
	}, nil
}

// recall finds the jobs of a collector that was killed. One that was prepared and not submitted is removed: should the
// scheduler know it all the same, it finds its folder gone and does nothing.
func (c *cluster) recall(ctx context.Context, again bool) error {
	folders, err := filepath.Glob(filepath.Join(c.dir, "*", jobFile))
	if err != nil {
		return err
	}
	var useless []string
	for _, file := range folders {
		job := &clusterJob{dir: filepath.Dir(file)}
		text, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(text, job)
		}
		switch {
		case err != nil || job.Handle == "":
			_ = os.RemoveAll(job.dir)
		case again:
			useless = append(useless, job.Handle)
			_ = os.RemoveAll(job.dir)
		default:
			c.found[job.trialKey] = job
		}
	}
	return c.executor.Cancel(ctx, useless)
}

// serve submits what is waiting and asks how the rest stands, until ctx ends; then it cancels what is left.
func (c *cluster) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			c.cancel(context.WithoutCancel(ctx))
			c.executor.Close()
			return
		case <-time.After(clusterGather):
		}
		c.submit(ctx)
		c.poll(ctx)
	}
}

// submit hands over all that waits, in one go.
func (c *cluster) submit(ctx context.Context) {
	c.mu.Lock()
	jobs := c.waiting
	c.waiting = nil
	c.mu.Unlock()
	if len(jobs) == 0 {
		return
	}
	scripts := make([]executor.Job, len(jobs))
	for i, job := range jobs {
		scripts[i].Script = filepath.Join(job.dir, jobScript)
	}
	handles, err := c.executor.Submit(ctx, scripts)
	for i, job := range jobs {
		if err == nil {
			job.Handle = handles[i]
			err = job.writeState()
		}
		if job.fault = err; err != nil {
			job.over <- executor.Status{}
			continue
		}
		c.watch(job)
	}
}

// watch has a job be asked for.
func (c *cluster) watch(job *clusterJob) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active[job.Handle] = job
}

// poll asks how jobs stand and tells those that wait for one.
func (c *cluster) poll(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.bench.engine.Runtime.Time()
	if len(c.active) == 0 || now.Sub(c.polled) < clusterPoll {
		return
	}
	c.polled = now
	handles := make([]string, 0, len(c.active))
	for handle := range c.active {
		handles = append(handles, handle)
	}
	told, err := c.executor.Poll(ctx, handles)
	for handle, job := range c.active {
		status := told[handle]
		switch {
		case err != nil:
			job.fault = err
		case !status.State.Over() || !job.settled(status.State, now):
			continue
		}
		job.over <- status
		delete(c.active, handle)
	}
}

// settled says whether all that a job leaves is there, or will not come.
func (j *clusterJob) settled(state executor.State, now time.Time) bool {
	if state == executor.Lost || state == executor.Killed || exists(filepath.Join(j.dir, jobExit)) {
		return true
	}
	if j.since.IsZero() {
		j.since = now
	}
	return now.Sub(j.since) > clusterLate
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// cancel ends what this collector waits for.
func (c *cluster) cancel(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var handles []string
	for handle, job := range c.active {
		handles = append(handles, handle)
		_ = os.RemoveAll(job.dir)
	}
	for _, job := range slices.Concat(c.waiting, slices.Collect(maps.Values(c.found))) {
		if job.Handle != "" {
			handles = append(handles, job.Handle)
		}
		_ = os.RemoveAll(job.dir)
	}
	_ = c.executor.Cancel(ctx, handles)
}

// trial runs one as a job, to its end.
func (c *cluster) trial(ctx context.Context, cell *matrix.Cell, repeat int, seed uint64,
	_ func(mem.Bytes)) (matrix.Trial, matrix.Machine, error) {
	key := trialKey{cell.Key, repeat}
	trial := matrix.Trial{Cell: cell.Key, Repeat: repeat, StartWall: c.bench.engine.Runtime.Time().UnixNano()}
	job, err := c.job(key, seed)
	if err != nil {
		return trial, matrix.Machine{}, err
	}
	select {
	case <-ctx.Done():
		return trial, matrix.Machine{}, ctx.Err()
	case status := <-job.over:
		if job.fault != nil {
			return trial, matrix.Machine{}, job.fault
		}
		return c.collect(job, status, trial)
	}
}

// job is the one that a collector before this one submitted for a trial, or a new one.
func (c *cluster) job(key trialKey, seed uint64) (*clusterJob, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if job := c.found[key]; job != nil {
		delete(c.found, key)
		job.over = make(chan executor.Status, 1)
		c.active[job.Handle] = job
		return job, nil
	}
	sum := sha256.Sum256([]byte(key.Cell))
	dir, err := os.MkdirTemp(c.dir, hex.EncodeToString(sum[:6])+"-"+strconv.Itoa(key.Repeat)+"-")
	if err != nil {
		return nil, err
	}
	job := &clusterJob{trialKey: key, dir: dir, over: make(chan executor.Status, 1)}
	if err := errors.Join(job.writeState(), os.WriteFile(filepath.Join(dir, jobScript), []byte(c.script(job, seed)), 0o600)); err != nil {
		return nil, err
	}
	c.waiting = append(c.waiting, job)
	return job, nil
}

// writeState writes what is known of a job; a reader sees the old text or the new.
func (j *clusterJob) writeState() error {
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	return writeWhole(filepath.Join(j.dir, jobFile), text)
}

// writeWhole writes a file so that who reads it sees all of it or nothing.
func writeWhole(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// script is what a node runs. Where the folder is gone nobody waits for it.
func (c *cluster) script(job *clusterJob, seed uint64) string {
	words := []string{c.binary, "bench-trial", c.spec, "--name", c.bench.spec.Name, "--timeout",
		c.bench.spec.Timeout.String(),
		"--data-dir", filepath.Join(job.dir, jobData), "--cell", job.Cell, "--repeat", strconv.Itoa(job.Repeat),
		"--seed", strconv.FormatUint(seed, 10), "--into", filepath.Join(job.dir, jobResult)}
	for _, more := range c.bench.options.Catalogue {
		words = append(words, "--catalogue", more)
	}
	dir := mem.CommandLine([]string{job.dir})
	return fmt.Sprintf("cd %s && [ -d %s ] || exit 0\nexec >%s/%s 2>&1\n%s --machine \"%s\" &\ntrap 'kill $!' TERM "+
		"INT\nwait $! || wait $!\ncode=$?\n[ -d %s ] && echo $code >%s/%s\n",
		mem.CommandLine([]string{c.where}), dir, dir, jobLog, mem.CommandLine(words), c.executor.NodeName(), dir, dir,
		jobExit)
}

// collect takes over what a job left, and removes its folder.
func (c *cluster) collect(job *clusterJob, status executor.Status, trial matrix.Trial) (matrix.Trial, matrix.Machine,
	error) {
	machine := matrix.Machine{Name: cmp.Or(status.Node, "unknown")}
	trial.Machine = machine.Name
	defer os.RemoveAll(job.dir)
	text, err := os.ReadFile(filepath.Join(job.dir, jobResult))
	if err == nil {
		var result clusterResult
		if err := json.Unmarshal(text, &result); err != nil {
			return trial, machine, fmt.Errorf("%s: %w", job.Handle, err)
		}
		return c.moveRecording(job, &result)
	}
	trial.State, trial.Reason = c.without(job, status)
	return trial, machine, nil
}

// moveRecording moves a recording into the collector's data directory.
func (c *cluster) moveRecording(job *clusterJob, result *clusterResult) (matrix.Trial, matrix.Machine, error) {
	trial := result.Trial
	if trial.Run == "" {
		return trial, result.Machine, nil
	}
	runs := filepath.Join(c.bench.engine.Folder(), "runs")
	err := errors.Join(os.MkdirAll(runs, 0o700), os.Rename(filepath.Join(job.dir, jobData, "runs", trial.Run),
		filepath.Join(runs, trial.Run)))
	if errors.Is(err, os.ErrNotExist) { // a collector that was killed here has it, and forgets it: to be made again
		trial = matrix.Trial{Cell: trial.Cell, Repeat: trial.Repeat, Machine: trial.Machine, StartWall: trial.StartWall,
			State: matrix.Lost, Reason: "its recording is gone"}
		return trial, result.Machine, nil
	}
	return trial, result.Machine, err
}

// without says what became of a job that left no result.
func (c *cluster) without(job *clusterJob, status executor.Status) (matrix.State, string) {
	scheduler := c.executor.Name()
	switch {
	case status.State == executor.Lost:
		return matrix.Lost, fmt.Sprintf("%s: node %s is gone (%s)", scheduler, status.Node, status.Word)
	case status.State == executor.Gone:
		return matrix.Lost, scheduler + " knows nothing of its job any more"
	case status.Word == "TIMEOUT" || status.Word == "DEADLINE":
		return matrix.TimedOut, scheduler + " ended it at its own limit of time"
	case status.Word == "OUT_OF_MEMORY":
		return matrix.OutOfMemory, scheduler + " ended it at its own limit of memory"
	case status.State == executor.Killed:
		return matrix.Lost, fmt.Sprintf("somebody ended its job (%s)", status.Word)
	}
	log, _ := os.ReadFile(filepath.Join(job.dir, jobLog))
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	return matrix.Failed, fmt.Sprintf("hightide failed on %s: %s", cmp.Or(status.Node, "its node"),
		cmp.Or(lines[len(lines)-1], status.Word))
}

// Trial is one trial, as a node runs it.
type Trial struct {
	Cell    string // its key
	Repeat  int
	Seed    uint64
	Into    string // the file for what it came to
	Machine string // what the machine is called, where that is not its host name
}

// RunTrial runs one trial here, and writes what it came to. Its recording is in this engine's data directory.
func RunTrial(ctx context.Context, e *engine.Engine, o Options, one Trial) error {
	spec, all, err := o.spec()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(cell matrix.Cell) bool { return cell.Key == one.Cell })
	if i < 0 {
		return fail.Input("", "%s has no cell %s", o.File, one.Cell)
	}
	b := newBench(e, &o, spec)
	trial, machine, err := b.trial(ctx, &all[i], one.Repeat, one.Seed, func(mem.Bytes) {})
	if err != nil {
		return err
	}
	if one.Machine != "" {
		trial.Machine, machine.Name = one.Machine, one.Machine
	}
	text, err := json.Marshal(clusterResult{trial, machine})
	if err != nil {
		return err
	}
	return writeWhole(one.Into, text)
}
