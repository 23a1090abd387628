package executor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"hightide/internal/fail"
	"hightide/internal/system"
)

// Ray submits tasks with requests of resources, by a Python program that speaks to the cluster that RAY_ADDRESS names.
type Ray struct {
	Script    string // that program: hightide/_executors/ray_tasks.py of the agent
	Env       []string
	Resources Resources

	mu      sync.Mutex
	command *exec.Cmd
	in      io.WriteCloser
	answers chan []byte
	said    *bytes.Buffer
}

// rayPatience is how long Ray may take to answer; the first answer waits for the connection.
const rayPatience = 2 * time.Minute

// Name implements Executor.
func (r *Ray) Name() string { return "ray" }

// NodeName implements Executor.
func (r *Ray) NodeName() string { return "${TRIAL_NODE:-$(hostname)}" }

// Check implements Executor.
func (r *Ray) Check(ctx context.Context) error {
	var nodes int
	return r.ask(ctx, map[string]any{"op": "check"}, &nodes)
}

// Submit implements Executor.
func (r *Ray) Submit(ctx context.Context, jobs []Job) (handles []string, err error) {
	scripts := make([]string, len(jobs))
	for i, job := range jobs {
		scripts[i] = job.Script
	}
	options := map[string]any{"num_cpus": max(1, r.Resources.CPUs)}
	if r.Resources.GPUs > 0 {
		options["num_gpus"] = r.Resources.GPUs
	}
	if r.Resources.Memory > 0 {
		options["memory"] = r.Resources.Memory
	}
	err = r.ask(ctx, map[string]any{"op": "submit", "scripts": scripts, "options": options}, &handles)
	if err == nil && len(handles) != len(jobs) {
		err = fmt.Errorf("ray took %d of %d jobs", len(handles), len(jobs))
	}
	return handles, err
}

var rayStates = map[string]State{"waiting": Waiting, "running": Running, "ended": Ended, "killed": Killed, "lost": Lost}

// Poll implements Executor.
func (r *Ray) Poll(ctx context.Context, handles []string) (map[string]Status, error) {
	var told map[string][3]string
	if err := r.ask(ctx, map[string]any{"op": "poll", "handles": handles}, &told); err != nil {
		return nil, err
	}
	found := make(map[string]Status, len(handles))
	for _, handle := range handles {
		status := Status{State: Gone}
		if t, ok := told[handle]; ok {
			status = Status{State: rayStates[t[0]], Word: t[1], Node: t[2]}
		}
		found[handle] = status
	}
	return found, nil
}

// Cancel implements Executor.
func (r *Ray) Cancel(ctx context.Context, handles []string) error {
	if len(handles) == 0 {
		return nil
	}
	return r.ask(ctx, map[string]any{"op": "cancel", "handles": handles}, nil)
}

// Close implements Executor.
func (r *Ray) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.command == nil {
		return
	}
	r.in.Close()
	stop := time.AfterFunc(rayPatience, func() { _ = r.command.Process.Kill() })
	_ = r.command.Wait()
	stop.Stop()
	r.command = nil
}

// start begins the program, in a group of its own: Ctrl-C is for us, who then cancel by it.
func (r *Ray) start() error {
	r.command = exec.Command("python3", r.Script)
	r.command.Env = append(r.Env, "RAY_USAGE_STATS_ENABLED=0", "PYTHONDONTWRITEBYTECODE=1")
	r.command.SysProcAttr = system.OwnGroup()
	r.said = &bytes.Buffer{}
	r.command.Stderr = r.said
	in, err1 := r.command.StdinPipe()
	out, err2 := r.command.StdoutPipe()
	if err1 != nil || err2 != nil {
		return fmt.Errorf("start python3: %w %w", err1, err2)
	}
	if err := r.command.Start(); err != nil {
		r.command = nil
		return fail.Environment("put the Python that has ray first on PATH", "--executor ray: %w", err)
	}
	r.in, r.answers = in, make(chan []byte)
	go func(answers chan<- []byte) {
		defer close(answers)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			answers <- bytes.Clone(lines.Bytes())
		}
	}(r.answers)
	return nil
}

// ask sends a question and reads its answer.
func (r *Ray) ask(ctx context.Context, question map[string]any, into any) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.command == nil {
		if err := r.start(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(question)
	if err != nil {
		return err
	}
	if _, err := r.in.Write(append(text, '\n')); err != nil {
		return r.gone()
	}
	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  string          `json:"error"`
	}
	select {
	case line, ok := <-r.answers:
		if !ok {
			return r.gone()
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return fmt.Errorf("ray's answer: %w", err)
		}
	case <-ctx.Done():
		return r.interrupted(ctx.Err())
	case <-time.After(rayPatience):
		return r.interrupted(fail.Environment("does `ray status` work here?", "ray does not answer for %v", rayPatience))
	}
	if answer.Error != "" {
		return fail.Environment("does `ray status` work here? RAY_ADDRESS names the cluster", "ray: %s", answer.Error)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer.Result, into)
}

// interrupted drops a connection whose answer was not waited for; the next question makes another.
func (r *Ray) interrupted(why error) error {
	_ = r.command.Process.Kill()
	go func(answers <-chan []byte) {
		for range answers {
		}
	}(r.answers)
	_ = r.command.Wait()
	r.command = nil
	return why
}

// gone says why the program has ended.
func (r *Ray) gone() error {
	_ = r.command.Wait()
	r.command = nil
	last := strings.TrimSpace(r.said.String())
	return fail.Environment("put the Python that has ray first on PATH", "--executor ray: python3 ended: %s",
		last[strings.LastIndexByte(last, '\n')+1:])
}
