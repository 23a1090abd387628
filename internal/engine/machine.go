package engine

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"syscall"
	"time"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/sampler"

	"golang.org/x/sys/unix"
)

// What runs on this machine, recorded or not.

// Machine gives a picture of the machine at once and then at every interval, until the context ends. One that is taken late
// is not made up for.
func (e *Engine) Machine(ctx context.Context, every time.Duration) iter.Seq[sampler.Picture] {
	return func(yield func(sampler.Picture) bool) {
		machine := sampler.OpenMachine("/")
		defer machine.Close()
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			if !yield(machine.Read(sinceBoot())) {
				return
			}
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
		}
	}
}

// sinceBoot is CLOCK_MONOTONIC in ns, the clock of recordings.
func sinceBoot() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}

// Environ is the environment that a process began with, secrets masked.
func (e *Engine) Environ(pid int, startTicks uint64) ([]mem.Variable, error) {
	variables, err := sampler.Environ("/", pid, startTicks)
	return variables, processError(err, pid, "read the environment of")
}

// Details is what is read of one process when somebody asks for it.
func (e *Engine) Details(pid int, startTicks uint64) (*sampler.Details, error) {
	d, err := sampler.ReadDetails("/", pid, startTicks)
	return d, processError(err, pid, "look at")
}

// Signal sends a signal to the process that began at startTicks, and to no other that has its number by now.
func (e *Engine) Signal(pid int, startTicks uint64, signal syscall.Signal) error {
	return processError(sampler.Signal(pid, startTicks, signal), pid, "signal")
}

func processError(err error, pid int, what string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sampler.ErrGone):
		return fail.Input("hightide top shows what runs", "cannot %s process %d: %w", what, pid, err)
	}
	return fail.Environment("a process is its owner's: run hightide as that user", "cannot %s process %d: %w", what, pid, err)
}

// Source is a Python file in lines, secrets masked, for someone who reads a report of what began then. Nil where it is not here, has
// changed since, or is not a source.
func (e *Engine) Source(file string, began time.Time) []string {
	q := quotes{map[string][][]byte{}, began}
	if !q.quotable(file) {
		return nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var lines []string
	for line := range bytes.Lines(text) {
		lines = append(lines, mem.MaskText(string(bytes.TrimRight(line, "\r\n"))))
	}
	return lines
}
