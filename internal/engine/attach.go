package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/observe"
)

// AttachOptions of Attach; only PID is needed. Command and Env are the process's own.
type AttachOptions struct {
	RunOptions
	PID int

	// Inject has the agent brought into the process, and refuses to record where that cannot be. Else MayInject is asked,
	// where it can be, with the version of Python; nil: no.
	Inject    bool
	MayInject func(python string) bool
}

// Attached says that a process is recorded, and what its own code needs to tell more than is seen from outside.
type Attached struct {
	RunID    string            `json:"run"`
	Folder   string            `json:"folder"`     // of the recording; "": it is in none
	Channels string            `json:"channels"`   // a file named stop in it ends the recording
	Agent    string            `json:"agent"`      // folder of the agent's package; "": it could not be unpacked
	Heap     string            `json:"heap"`       // the heap library; "": this build has none, or it is not wanted
	Engine   int               `json:"engine_pid"` // which ends when the recording is complete
	Env      map[string]string `json:"env"`        // variables; PYTHONPATH and LD_PRELOAD go in front of what is there
}

// EventName implements event.Event.
func (Attached) EventName() string { return "attached" }

// Attach records a process that runs already, with its children, until it ends, the context does, or after
// o.Duration. The process is sent no signal. An error means that nothing was recorded.
func (e *Engine) Attach(ctx context.Context, o AttachOptions) (*RunResult, error) {
	if o.PID <= 0 {
		return nil, fail.Usage("as in hightide attach 4711", "%d is not a process ID", o.PID)
	}
	target, err := launch.Look(o.PID)
	if err != nil {
		return nil, targetError(err)
	}
	defer target.Close()
	o.Command, o.Env, o.Target = target.Command, target.Env, target
	if err := o.check(); err != nil {
		return nil, err
	}
	run, live := observe.RecordedAs(&e.Runtime, o.PID)
	if live {
		return nil, fail.Input("hightide show "+run, "process %d is already recorded as %s", o.PID, run)
	}
	if o.guest, err = e.bringer(&o); err != nil {
		return nil, err
	}
	result := &RunResult{}
	if run != "" && o.guest == nil {
		result.Notes = append(result.Notes, fmt.Sprintf("process %d was recorded as %s, whose hightide was killed; what "+
			"the process itself reports still goes there, and this recording sees it from outside", o.PID, run))
	}
	return e.record(ctx, o.RunOptions, "attach", result)
}

// targetError gives a process that cannot be recorded its exit code.
func targetError(err error) error {
	var refused *launch.NoTarget
	switch {
	case !errors.As(err, &refused):
		return err
	case refused.Denied:
		return fail.Environment(refused.Hint, "%w", err)
	}
	return fail.Input(refused.Hint, "%w", err)
}

// announcing tells, once the recording has begun, what the recorder does not know: the run, and where helpers lie.
// Then it has the agent brought in, if that is wanted.
func announcing(to event.Sink, options *observe.Options, p *place, g *guest) func(observe.Recording) error {
	return func(recording observe.Recording) error {
		told := Attached{RunID: options.ID, Folder: p.writer.Run().Dir, Channels: recording.Channels, Engine: os.Getpid(),
			Env: recording.Env}
		for _, h := range options.Helpers {
			switch h.Name {
			case "agent":
				told.Agent = filepath.Dir(h.PythonPath) // the hook stands beside the package
			case "heap":
				told.Heap = h.Preload
			}
		}
		to.Tell(told)
		if g == nil {
			return nil
		}
		return g.loadAgent(told)
	}
}

// CPython from 3.14 on lets another process of the same user have it run a file, between two lines of its main thread
// (sys.remote_exec, PEP 768). The asking is done by the very interpreter that the process runs.

// guest is a process that the agent can be brought into.
type guest struct {
	target *launch.Target
	python string // its version, as 3.14
	shared string // this user's folder in shared memory
}

var pythonProgram = regexp.MustCompile(`^python[0-9.]*[a-z]*$`)

// guestOf looks whether the process runs a Python that lets somebody in; the error says why not, for people.
func (e *Engine) guestOf(t *launch.Target) (*guest, error) {
	program := strings.TrimSuffix(t.Exe, " (deleted)")
	switch {
	case t.Foreign != "":
		return nil, errors.New(t.Foreign)
	case !pythonProgram.MatchString(filepath.Base(program)):
		return nil, fmt.Errorf("it runs %s, which is not Python", filepath.Base(program))
	}
	g := &guest{target: t, shared: e.Runtime.SharedDir()}
	out, err := g.interpreter("import sys; print('%d.%d' % sys.version_info[:2], hasattr(sys, 'remote_exec'))")
	version, able, _ := strings.Cut(strings.TrimSpace(out), " ")
	switch {
	case err != nil:
		return nil, fmt.Errorf("its interpreter cannot be asked: %w", err)
	case able != "True":
		return nil, fmt.Errorf("it runs Python %s, and only from 3.14 on an interpreter takes in code from outside", version)
	}
	g.python = version
	return g, launch.MakePrivate(g.shared)
}

// interpreter runs a few lines in a new process of the same interpreter, as bare as it can be.
func (g *guest) interpreter(code string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c := exec.CommandContext(ctx, fmt.Sprintf("/proc/%d/exe", g.target.PID),
		append([]string{"-I", "-S", "-c", code}, args...)...)
	c.Args[0] = g.target.Exe // by which it finds its library
	c.Env = []string{"LC_ALL=C.UTF-8", "LD_LIBRARY_PATH=" + launch.Lookup(g.target.Env, "LD_LIBRARY_PATH")}
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		if last := lines[len(lines)-1]; last != "" {
			err = errors.New(last)
		}
	}
	return string(out), err
}

// loadAgent has the process take the agent in. It does so when its main thread runs its next line of Python.
func (g *guest) loadAgent(told Attached) error {
	script := filepath.Join(g.shared, fmt.Sprintf("bring-%s.py", told.RunID))
	text, err := bringing(told, script)
	if err != nil {
		return err
	}
	if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
		return err
	}
	_, err = g.interpreter("import sys; sys.remote_exec(int(sys.argv[1]), sys.argv[2])", fmt.Sprint(g.target.PID), script)
	if err != nil {
		_ = os.Remove(script)
	}
	return err
}

// bringing is what the process runs. It leaves no name behind in the program, and does nothing once the recording has
// ended.
func bringing(told Attached, script string) (string, error) {
	values, err := json.Marshal(map[string]any{"agent": told.Agent, "env": told.Env, "heap": told.Heap, "script": script})
	if err != nil {
		return "", err
	}
	code, err := json.Marshal(`
import json, os, sys
told = json.loads(told)
os.unlink(told["script"])
if os.path.isdir(told["env"]["HIGHTIDE_CHANNELS"]):
    sys.path.insert(0, told["agent"])
    try:
        from hightide_agent import late
    finally:
        sys.path.remove(told["agent"])
    late.begin(told["env"], told["heap"], "sys.remote_exec")
`)
	if err != nil {
		return "", err
	}
	quoted, err := json.Marshal(string(values)) // a string of JSON is one of Python, too
	return fmt.Sprintf("exec(%s, {\"__name__\": \"hightide_bringing\", \"told\": %s})\n", code, quoted), err
}

// bringer says how the agent comes into the process; nil: it does not.
func (e *Engine) bringer(o *AttachOptions) (*guest, error) {
	if !o.Inject && o.MayInject == nil {
		return nil, nil
	}
	g, err := e.guestOf(o.Target)
	switch {
	case err != nil && o.Inject:
		return nil, fail.Environment("call hightide.init() in the program, or start it with hightide run; without "+
			"--inject it is recorded from outside",
			"the agent cannot be loaded into process %d: %w", o.PID, err)
	case err != nil || !o.Inject && !o.MayInject(g.python):
		return nil, nil
	}
	return g, nil
}
