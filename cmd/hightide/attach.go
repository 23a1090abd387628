package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/system"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// attachOptions of attach.
type attachOptions struct {
	engine.RunOptions
	shown
	inject, outside, detach bool
	readyFD                 int

	// What monitor and track add.
	live   bool
	also   event.Sink // told of everything besides
	chosen []string   // the PID, where the command line has none
}

func attachCommand(a *app) *cobra.Command {
	return a.command(&cobra.Command{
		Use:   "attach PID [flags]",
		Short: "Record a process that already runs, with its children",
		Long: `Record a process that already runs, with its children, until it ends. Then report.

The process is watched from outside and is sent no signal. Ctrl-C, and --duration, end the recording:
the process goes on. What happened before the recording is not known. Only the kernel's mark of the
highest resident memory remains. The exit code is reported where the kernel gives it.

Into Python 3.14 and newer the agent can be loaded while the process runs; then steps, phases and lines
are recorded too. On a terminal you are asked first; --inject allows it, --no-inject refuses it. The agent
stays in the process until that ends. An older Python is recorded from outside, or from within by
hightide.init().

Exit codes: 0 recorded, however the process ended; 2 wrong usage; 3 there is no such process, it has
ended, or it is recorded already; 4 it may not be looked at, or there is no place to record to;
125 hightide itself failed.`,
		Example: `  hightide attach 4711
  hightide attach 4711 --duration 90s --name serving
  hightide attach 4711 --inject
  hightide attach $(pgrep -f train.py) --detach`,
		Args: cobra.ExactArgs(1),
	}, &attachOptions{})
}

func (o *attachOptions) AddFlags(flags *pflag.FlagSet) {
	o.shown.AddFlags(flags)
	flags.SetInterspersed(true)
	addSettings(flags, o.Shared()...)
	hiddenFile(flags, &o.Out, "out")
	for _, name := range []string{"interval", "alert", "no-stacks"} {
		addSettings(flags, *o.Settings().Find(name))
	}
	flags.Lookup("duration").Usage = "end the recording after that time, as in 90s or 2h"
	flags.Lookup("json").Usage = "print the result as JSON; with =`FILE` into a file"
	flags.Lookup("no-stacks").Usage = "with the agent: do not sample the host heap"
	flags.BoolVar(&o.inject, "inject", false, "load the agent into the process (Python 3.14 and later)")
	flags.BoolVar(&o.outside, "no-inject", false, "watch from outside only, and do not ask")
	flags.BoolVar(&o.detach, "detach", false, "record in the background, and return once the recording has begun")
	flags.IntVar(&o.readyFD, "ready-fd", -1,
		"for programs: write a line of JSON to this descriptor `N` once the recording has begun; -1: to none")
}

func (o *attachOptions) run(a *app, c *cobra.Command, args []string) error {
	result, err := o.record(a, c, args)
	if err != nil || result == nil {
		return err
	}
	return o.print(a, result, result.Summary())
}

// record records the process; nil where that goes on in the background.
func (o *attachOptions) record(a *app, c *cobra.Command, args []string) (*engine.RunResult, error) {
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return nil, fail.Usage("as in hightide attach 4711; pgrep -f train.py tells the number", "%q is not a process ID",
			args[0])
	}
	if o.inject && o.outside {
		return nil, fail.Usage("choose one", "--inject and --no-inject contradict each other")
	}
	if err := o.checkReady(); err != nil {
		return nil, err
	}
	if o.detach {
		return nil, o.inBackground(a)
	}
	o.leave(&o.RunOptions)
	view := newView(a.stderr, o.quiet, o.live)
	o.Events = func(e event.Event) {
		o.also.Tell(e)
		if begun, ok := e.(engine.Attached); ok {
			o.begun(view, pid, begun)
			return
		}
		view.showEvent(e)
	}
	attach := engine.AttachOptions{RunOptions: o.RunOptions, PID: pid, Inject: o.inject}
	if !o.outside && !o.quiet && o.readyFD < 0 && a.canAsk() {
		attach.MayInject = func(python string) bool {
			return a.agreed(fmt.Sprintf("Process %d runs Python %s, which can take the agent in: then steps, phases and "+
				"lines are recorded too. Bring it in?", pid, python))
		}
	}
	result, err := a.engine().Attach(c.Context(), attach)
	view.hide()
	if err != nil {
		o.ready(failure{err.Error(), fail.Hint(err), fail.Code(err)})
		return nil, err
	}
	return result, nil
}

// begun says that the recording has begun: to the program that waits for it, else to a person.
func (o *attachOptions) begun(view *view, pid int, told engine.Attached) {
	if o.readyFD >= 0 {
		o.ready(told)
	} else if !o.quiet {
		view.printAbove(fmt.Sprintf("recording process %d as %s; Ctrl-C ends the recording, the process goes on", pid,
			told.RunID))
	}
}

// failure is what a program that waits is told where nothing is recorded.
type failure struct {
	Error string `json:"error"`
	Hint  string `json:"hint,omitempty"`
	Code  int    `json:"code"`
}

// checkReady looks at the descriptor, and keeps it from programs that we start.
func (o *attachOptions) checkReady() error {
	if o.readyFD == -1 {
		return nil
	}
	if o.readyFD < 3 || !system.CanOpen(o.readyFD) {
		return fail.Usage("pass the writing end of a pipe, of a number above 2",
			"--ready-fd %d is not a descriptor that can be written to", o.readyFD)
	}
	return nil
}

// ready writes the one line, and closes the descriptor. Who has stopped waiting is not our business.
func (o *attachOptions) ready(line any) {
	if o.readyFD < 0 {
		return
	}
	file := os.NewFile(uintptr(o.readyFD), "ready")
	_ = json.NewEncoder(file).Encode(line)
	_ = file.Close()
	o.readyFD = -1
}
