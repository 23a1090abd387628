// Package launch starts the programs that hightide observes, and says what of its own process they
// and the use cases may use.
//
//	command ──▶ Find ──▶ Program ──┐
//	Helper… ──▶ Extract, Environment ──▶ Start ──▶ Child: signals and job control (signals.go, witness.go), its end
//	a PID   ──▶ Look ──▶ Target ───────▶ Attach ──▲
//	its output ──▶ Capture (kept here) or Keep (by processes that outlive this one)
//
// Runtime is what all of these may take of this process: clock, streams, signals, tuning. Start reading at child.go.
package launch

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"hightide/internal/system"
)

// Runtime is what hightide may use of the process it runs in. A front door that owns its process, as
// the command line does, hands in what it has. The zero value touches nothing: programs have no input
// and their output is dropped, no signal is caught, and the settings of Go's runtime stay as they are.
type Runtime struct {
	// Now is the clock; nil: time.Now.
	Now func() time.Time

	// Stdin, Stdout and Stderr are the streams of a program that is run; nil: /dev/null. A use case
	// that reads "-" reads Stdin.
	Stdin, Stdout, Stderr *os.File

	// PassSignals passes what this process is sent on to the program that runs, and stops and
	// continues with it as one job of a shell.
	PassSignals bool

	// Own has a program lead a process group of its own, which ends as a whole where it is told to. And it has it end
	// when this process does: it runs for this process alone.
	Own bool

	// Group is the control group in which a program begins; its zero value: ours.
	Group Group

	// Cores is how many threads may search at once; 0: one.
	Cores int

	// Shared is this user's folder in shared memory; "": /dev/shm/hightide-UID, elsewhere among temporary files.
	Shared string

	// Tune adapts this process to a kind of work until done is called; nil: nothing is adapted.
	Tune func(Work) (done func())
}

// Work is what a process can adapt its collector and threads to.
type Work int

// Kinds of work.
const (
	Recording  Work = iota // beside the program that is measured, for hours: small, on one thread
	Reading                // of a large file: what is outgrown on the way is collected early
	Explaining             // a snapshot that was read: its analyses hold as much as it does
	Reporting              // on a recording that was just closed: give back what recording took
	Trials                 // several programs beside each other
	Matrix                 // many programs, recorded and reported one after the other or beside each other
	Forgetting             // something large that was held for long is held no more: give it back
)

// Time is the time by the runtime's clock.
func (r *Runtime) Time() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

// SharedDir is Shared, or its default.
func (r *Runtime) SharedDir() string {
	if r.Shared != "" {
		return r.Shared
	}
	if !system.HasOwners {
		return filepath.Join(system.SharedMemory(), "hightide") // of this user alone: so is the folder above
	}
	return filepath.Join(system.SharedMemory(), fmt.Sprintf("hightide-%d", os.Getuid()))
}

// TuneTo is Tune where there is one.
func (r *Runtime) TuneTo(w Work) (done func()) {
	if r.Tune == nil {
		return func() {}
	}
	return r.Tune(w)
}
