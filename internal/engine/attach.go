package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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

// Attach records a process that runs already, with its children, until it ends, the context does, or after o.Duration. The
// process is sent no signal. An error means that nothing was recorded.
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
		result.Notes = append(result.Notes, fmt.Sprintf("process %d was recorded as %s, whose hightide was killed; what the process itself reports still goes there, and this recording sees it from outside", o.PID, run))
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

// announcing tells, once the recording has begun, what the recorder does not know: the run, and where helpers lie. Then it
// has the agent brought in, if that is wanted.
func announcing(to event.Sink, options *observe.Options, p *place, g *guest) func(observe.Recording) error {
	return func(recording observe.Recording) error {
		told := Attached{RunID: options.ID, Folder: p.writer.Run().Dir, Channels: recording.Channels, Engine: os.Getpid(), Env: recording.Env}
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
		return g.bring(told)
	}
}
