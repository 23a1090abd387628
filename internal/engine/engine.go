// Package engine is the product as Go methods, so that the command line and any later front door only
// translate.
//
//	cmd/hightide ──▶ Run, Attach          (run.go, attach.go)           ──▶ observe ──▶ store
//	             ──▶ Imagine, Fit         (imagine.go)                  ──▶ observe, imagine, fit ──▶ store
//	             ──▶ Runs, Tag, Prune …   (runs.go)                     ──▶ store
//	             ──▶ Explain, Check …     (reading.go, sources.go)      ──▶ format, analyze, replay, budget
//	             ──▶ Export, Push         (export.go)                   ──▶ format, store
//	             ──▶ Follow, Sparks …     (following.go)                ──▶ store
//
// A use case of more than a page of logic has a room of its own. It is below this one (imagine, fit, replay, explore)
// where it needs no recordings. It is above (bench) where it is made of whole use cases. What is left are many small
// ones, a file each.
//
// An Engine holds what every use case needs to know and nothing else; its zero value works. Every use
// case takes a context and owns nothing of the process. Errors that a person can do something about are
// *fail.Error: they carry the exit code and a hint. Start reading at run.go.
package engine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/quote"
	"hightide/internal/sampler"
	"hightide/internal/store"
	"hightide/internal/system"
)

// Version of hightide, set by the build with -ldflags "-X hightide/internal/engine.Version=…".
var Version = "0.1.0-dev"

// Engine is where hightide keeps its recordings and what it may use of its process.
type Engine struct {
	// DataDir holds the recordings and their index, and what running programs need for a time. Empty:
	// that of defaultDataDir.
	DataDir string

	// Team is the address of the store that keeps the recordings instead of DataDir, and Objects that of their files.
	// Empty: $HIGHTIDE_STORE and $HIGHTIDE_OBJECTS, else DataDir keeps them.
	Team    string
	Objects string

	// Store keeps the recordings instead of DataDir; nil: it does not.
	Store store.Store

	// Visitors are recordings outside DataDir that are shown with those in it; nil: there are none.
	Visitors *store.Visitors

	// Seen remembers the data directory of a process that goes on; nil: it is not remembered.
	Seen *Seen

	// NoPrograms keeps the engine from starting another program in order to read a file: a capture of memray is refused.
	NoPrograms bool

	// MayRead says why a file may not be read that another file names: a baseline, a source to quote; nil: any may.
	MayRead func(path string) error

	// Namesakes is told of a run that was found by a name which older ones have, too; nil: nobody is.
	Namesakes func(taken store.Run)

	// Runtime is what the use cases may use of this process. The zero value touches nothing.
	Runtime launch.Runtime
}

// Dir is the data directory in use.
func (e *Engine) Dir() string {
	if e.DataDir != "" {
		return e.DataDir
	}
	return defaultDataDir()
}

// defaultDataDir is $HIGHTIDE_DATA, else hightide under the XDG data home, else a folder of this
// user's under the temporary directory where there is no home.
func defaultDataDir() string {
	if dir := os.Getenv("HIGHTIDE_DATA"); dir != "" {
		return dir
	}
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "hightide")
	}
	if home, err := os.UserHomeDir(); err == nil && home != "" {
		return filepath.Join(home, ".local", "share", "hightide")
	}
	return temporaryDir()
}

// Shared is the address of the store of a team that is in use; empty: DataDir is.
func (e *Engine) Shared() string { return cmp.Or(e.Team, os.Getenv("HIGHTIDE_STORE")) }

// Place is where the recordings are, for people: without the names and passwords of an address.
func (e *Engine) Place() string {
	if shared := e.Shared(); shared != "" {
		return store.Shown(shared)
	}
	return e.Dir()
}

// Folder is the data directory, or where recordings are kept in none, one of this user's for what only
// lasts for a time.
func (e *Engine) Folder() string {
	if store.IsFolder(e.Dir()) {
		return e.Dir()
	}
	return temporaryDir()
}

func temporaryDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("hightide-%d", os.Getuid()))
}

// stdin is what "-" reads.
func (e *Engine) stdin() io.Reader {
	if e.Runtime.Stdin == nil {
		return strings.NewReader("")
	}
	return e.Runtime.Stdin
}

// CheckImagines says what to do where there are no imaginary GPUs.
func CheckImagines(what string) error {
	if system.Imagines {
		return nil
	}
	return fail.Environment("imagine on such a machine (a virtual one, a container, WSL 2); hightide show FILE reads the "+
		"recording here",
		"%s takes Linux on x86-64 or arm64: on %s there are no imaginary GPUs", what, system.Name)
}

// CheckLinux refuses what reads /proc alone.
func CheckLinux(what string) error {
	if system.Procfs {
		return nil
	}
	return fail.Environment("hightide top looks at this machine", "%s takes Linux: this is %s", what, system.Name)
}

// What runs on this machine, recorded or not.

// Machine gives a picture of the machine at once and then at every interval, until the context ends. One that is
// taken late is not made up for.
func (e *Engine) Machine(ctx context.Context, every time.Duration) iter.Seq[sampler.Picture] {
	return func(yield func(sampler.Picture) bool) {
		machine := sampler.OpenMachine("/")
		defer machine.Close()
		ticks := time.NewTicker(every)
		defer ticks.Stop()
		for {
			if !yield(machine.Read(system.Monotonic())) {
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
	return fail.Environment("a process is its owner's: run hightide as that user", "cannot %s process %d: %w", what, pid,
		err)
}

// Source is a Python file in lines, secrets masked, for someone who reads a report of what began then. Nil where it
// is not here, has changed since, or is not a source.
func (e *Engine) Source(file string, began time.Time) []string {
	q := quote.New(began, e.MayRead)
	if !q.Quotable(file) {
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

// Seen remembers that a data directory was there. Without it a folder that was deleted or unmounted looks like one in
// which nothing was recorded yet. The zero value works.
type Seen struct{ runs atomic.Bool }

// Unread says why the data directory cannot be read: it was there and is no more, or may not be opened. Nil: it can,
// or nothing was recorded in it yet.
func (e *Engine) Unread() error {
	if e.Seen == nil || e.Store != nil || e.Shared() != "" || !store.IsFolder(e.Dir()) {
		return nil
	}
	switch folder, err := os.Open(filepath.Join(e.Dir(), "runs")); {
	case err == nil:
		folder.Close()
		e.Seen.runs.Store(true)
	case errors.Is(err, fs.ErrPermission):
		return fail.Environment("let it be read, or start again with another: --data-dir FOLDER",
			"the data directory %s may not be read: permission denied", e.Dir())
	case errors.Is(err, fs.ErrNotExist) && e.Seen.runs.Load():
		return fail.Environment("bring it back, or start again with another: --data-dir FOLDER",
			"the data directory %s is gone: it was deleted or unmounted", e.Dir())
	}
	return nil
}

// Aside is this engine for programs that run for a caller alone. They have no terminal and no input, end when this
// process does, and get no signals of it. Calling said ends the taking of what they write and gives its beginning and
// end, with secrets masked.
func (e *Engine) Aside() (apart *Engine, said func() string, err error) {
	output, err := launch.NewCapture()
	if err != nil {
		return nil, nil, fail.Environment("are there too many open files?", "keep what a program writes: %w", err)
	}
	own := *e
	own.Runtime.Stdin, own.Runtime.PassSignals, own.Runtime.Own, own.Runtime.Tune = nil, false, true, nil
	own.Runtime.Stdout, own.Runtime.Stderr = output.File, output.File
	return &own, func() string {
		output.Close()
		return mem.MaskText(string(output.Text()))
	}, nil
}

// HasGPUs says whether this machine has a GPU whose driver reports its memory.
func (e *Engine) HasGPUs() bool { return len(e.GPUs()) > 0 }

// GPUs are those of this machine whose drivers tell of their memory.
func (e *Engine) GPUs() (all []mem.GPU) {
	for _, v := range sampler.OpenVendors("/") {
		all = append(all, v.Devices()...)
		v.Close()
	}
	return all
}
