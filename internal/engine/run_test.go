package engine

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"hightide/internal/event"
	"hightide/internal/launch"
	"hightide/internal/observe"
)

// settingsNow are those of Go's runtime that a run may change.
func settingsNow() [2]int {
	percent := debug.SetGCPercent(100)
	debug.SetGCPercent(percent)
	return [2]int{percent, runtime.GOMAXPROCS(0)}
}

// TestRunTouchesNothingOfTheProcess: an engine that was handed nothing catches no signal and changes no
// setting, whether the run comes to its end or fails at the start.
func TestRunTouchesNothingOfTheProcess(t *testing.T) {
	before := settingsNow()
	for _, command := range [][]string{{"/nonexistent/program"}, {"/bin/sh", "-c", "read line; echo $line"}} {
		e := &Engine{DataDir: t.TempDir()}
		result, err := e.Run(t.Context(), RunOptions{Options: observe.Options{Command: command, Env: os.Environ(),
			Events: func(event.Event) {
				if settingsNow() != before {
					t.Errorf("settings %v while it runs, %v before", settingsNow(), before)
				}
			}}})
		if err == nil && result.Outcome.ExitCode.Or(-1) != 0 {
			t.Errorf("%+v", result.Outcome)
		}
		if after := settingsNow(); after != before {
			t.Errorf("%q: settings %v after it, %v before", command, after, before)
		}
	}
}

// TestTuningEndsWithTheWork: what was tuned for is told to be over also where the command does not start.
func TestTuningEndsWithTheWork(t *testing.T) {
	for _, command := range [][]string{{"/nonexistent/program"}, {"/bin/true"}} {
		depth, begun := 0, 0
		e := &Engine{DataDir: t.TempDir(), Runtime: launch.Runtime{Tune: func(launch.Work) func() {
			depth, begun = depth+1, begun+1
			return func() { depth-- }
		}}}
		_, _ = e.Run(t.Context(), RunOptions{Options: observe.Options{Command: command, Env: os.Environ()}})
		if depth != 0 || begun == 0 {
			t.Errorf("%q: tuned %d times, of which %d did not end", command, begun, depth)
		}
	}
}
