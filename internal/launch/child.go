package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"hightide/internal/system"
)

// Error says that a command could not be started, with the code a shell would end with: 127 not
// found, 126 found but not runnable.
type Error struct {
	Code int
	Err  error
	Hint string // what to do; "": nothing is known
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Child is a command that runs. It stays in our process group, so the terminal and the shell see it as
// they would without us; nothing ties its life to ours. Or it is a stranger's process: see Target.Attach.
type Child struct {
	PID      int
	Stranger bool          // it was not started by us: it is sent no signal
	Changes  <-chan Change // closed after its end

	// What this process was sent, where the runtime passes that on; hand it to Pass. Ending are the
	// signals that end a process, Stopping those that stop a job, Others the rest.
	Ending, Stopping, Others chan os.Signal

	// Members are the processes that the system counts to the command, whoever their parents are; nil: it counts none.
	Members func() []int

	group       bool // it leads a process group of its own
	hadTerminal bool
	begun       *begun         // nil: of a stranger
	witness     *witness       // nil: there can be none
	deciding    sync.WaitGroup // whether to pass a signal on
	done        chan struct{}  // of a stranger: closed when nobody waits for its end any more
}

// Change is one of a command's state: stopped by a signal, or ended.
type Change struct {
	Status syscall.WaitStatus
	Usage  syscall.Rusage
	peak   int64 // of its memory, where that is no part of Usage
}

// MaxRSS is the most that the command had resident, in bytes.
func (c *Change) MaxRSS() int64 { return max(c.peak, maxRSS(c)) }

// Start runs the program with a command's words and environment, which is complete. Errors are an
// *Error, or that it cannot have the runtime's streams.
func (p Program) Start(argv, env []string, r *Runtime) (*Child, error) {
	files, done, err := streams(r)
	if err != nil {
		return nil, err
	}
	defer done()
	c := &Child{group: r.Own}
	if r.PassSignals {
		c.catchSignals()
		c.hadTerminal = hasTerminal()
	}
	attr := &syscall.ProcAttr{Env: env, Files: files}
	if r.Own {
		attr.Sys = ownAndLast()
	}
	begun, err := startIn(r.Group, p.Path, argv, attr)
	if errors.Is(err, syscall.ENOEXEC) { // a script without #!: what a shell would do
		begun, err = startIn(r.Group, "/bin/sh", append([]string{"sh", p.Path}, argv[1:]...), attr)
	}
	if err != nil {
		c.Close()
		if errors.Is(err, syscall.ENOENT) { // of the interpreter that the script names
			return nil, &Error{Code: 127, Err: fmt.Errorf("%s: its interpreter does not exist", p.Path)}
		}
		return nil, &Error{Code: 126, Err: fmt.Errorf("%s: %w", p.Path, err)}
	}
	c.PID, c.begun, c.Members = begun.pid, begun, begun.members()
	if r.PassSignals {
		c.witness = startWitness()
	}
	changes := make(chan Change, 8)
	c.Changes = changes
	go c.watch(changes)
	return c, nil
}

// Signal sends a signal to the command; to all of its group, where it leads one of its own.
func (c *Child) Signal(s syscall.Signal) {
	c.begun.signal(s, c.group)
}

// watch reports every stop, and at last the end. It waits for this child alone: others of this process
// are not ours.
func (c *Child) watch(changes chan<- Change) {
	defer close(changes)
	for {
		var change Change
		if err := c.begun.wait(&change); err != nil { // somebody else took the status: as good as an end without one
			return
		}
		changes <- change
		if !change.Status.Stopped() {
			return
		}
	}
}

// Ended gives back the signals that end a process: they are meant for us now. A terminal that hangs up
// still leaves us time to complete a recording.
func (c *Child) Ended() {
	if c.Ending != nil {
		signal.Stop(c.Ending)
	}
}

// Close gives back all signals. What is left of a group of its own ends.
func (c *Child) Close() {
	if c.group {
		c.Signal(syscall.SIGKILL)
	}
	c.witness.end()
	if c.begun != nil {
		c.begun.close()
	}
	if c.done != nil {
		close(c.done)
	}
	if c.Ending != nil {
		signal.Stop(c.Ending)
		signal.Stop(c.Stopping)
		signal.Stop(c.Others)
	}
}

// streams are a command's descriptors; done closes what was opened for it.
func streams(r *Runtime) (files []uintptr, done func(), err error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, nil, err
	}
	for _, f := range []*os.File{r.Stdin, r.Stdout, r.Stderr} {
		fd, err := system.Descriptor(cmp.Or(f, null))
		if err != nil {
			null.Close()
			return nil, nil, fmt.Errorf("a stream of the command: %w", err)
		}
		files = append(files, fd)
	}
	return files, func() { null.Close() }, nil
}
