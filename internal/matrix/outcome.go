package matrix

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Ended is how a trial's program ended, as far as it was seen.
type Ended struct {
	ExitCode mem.Optional
	Signal   mem.Optional
	Stopped  bool          // by us, at the timeout
	Timeout  time.Duration // of the trial
	Said     string        // its last line
	Run      *mem.Run      // nil: the recording cannot be read
	Imagined *report.Imagined
}

// SaysWhy begins the line in which a program that ends with CannotRunHere says why. What libraries write as they end may
// follow it.
const SaysWhy = "hightide: "

// Became says what a trial came to, and in one sentence why where it is not done.
func (e *Ended) Became() (State, string) {
	code, _ := e.ExitCode.Get()
	why, told := strings.CutPrefix(e.Said, SaysWhy)
	memory, short := e.outOfMemory()
	switch v := e.Imagined; {
	case code == CannotRunHere && told:
		return Unavailable, why
	case e.Stopped:
		return TimedOut, fmt.Sprintf("stopped after %v", e.Timeout)
	case e.Run == nil:
		return Failed, "its recording cannot be read"
	case v != nil && v.Verdict == mem.VerdictUnused:
		return Unavailable, "the program used no GPU"
	case v != nil && v.Verdict == mem.VerdictNone:
		return Unavailable, cmp.Or(v.Note, "the program cannot use this GPU")
	case v != nil && v.Verdict == mem.VerdictOOM:
		return OutOfMemory, cmp.Or(v.Note, "out of memory on "+v.GPUName)
	case v != nil && v.Fits():
		return Done, ""
	case e.ExitCode == mem.Some(0):
		return Done, ""
	case short:
		return OutOfMemory, memory
	case e.Signal.Known():
		return Failed, with("ended by "+report.SignalName(e.Signal.Or(0)), e.Said)
	}
	return Failed, with(fmt.Sprintf("exit code %d", code), e.Said)
}

// with adds a program's last words.
func with(what, said string) string {
	if said == "" {
		return what
	}
	return what + ": " + said
}

// outOfMemory says whether a program that failed did so for lack of memory. One that met it and went on has not failed.
func (e *Ended) outOfMemory() (string, bool) {
	if e.Run == nil {
		return "", false
	}
	for _, event := range e.Run.Events {
		switch {
		case event.Kind == "kill":
			return event.Text, true
		case event.Kind == "oom" && event.Facts["source"] != "malloc":
			return cmp.Or(event.Text, e.Said, "out of memory"), true
		}
	}
	return e.Said, strings.HasPrefix(e.Said, "MemoryError")
}
