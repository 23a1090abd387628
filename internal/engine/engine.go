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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"hightide/agent"
	"hightide/device"
	"hightide/heap"
	"hightide/internal/fail"
	"hightide/internal/imagine"
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

// What rides along in observed processes is embedded in this program, and unpacked where it can be read from.

var (
	agentBundle  = sync.OnceValues(func() (*launch.Bundle, error) { return launch.NewBundle(agentFiles) })
	deviceBundle = sync.OnceValues(func() (*launch.Bundle, error) { return launch.NewBundle(deviceFiles) })
)

// unpack writes files to the first place that can hold them: the cache, which later runs find filled,
// else hightide's own folder, else shared memory.
func (e *Engine) unpack(b *launch.Bundle) (dir string, err error) {
	var parents []string
	if cache, err := os.UserCacheDir(); err == nil {
		parents = append(parents, filepath.Join(cache, "hightide", "helpers"))
	}
	parents = append(parents, filepath.Join(e.Folder(), "helpers"))
	if shared := e.Runtime.SharedDir(); launch.MakePrivate(shared) == nil {
		parents = append(parents, filepath.Join(shared, "helpers"))
	}
	return launch.Extract(b, parents...)
}

// UnpackAgent unpacks the agent and, in a build that has one, the heap sampler; heapLibrary is "" in one
// that has not.
func (e *Engine) UnpackAgent() (agentDir, heapLibrary string, err error) {
	bundle, err := agentBundle()
	if err != nil {
		return "", "", fmt.Errorf("no agent in this build: %w", err)
	}
	dir, err := e.unpack(bundle)
	if err == nil && bundle.Has("heap/"+heap.LibraryName) {
		heapLibrary = filepath.Join(dir, "heap", heap.LibraryName)
	}
	return filepath.Join(dir, "agent"), heapLibrary, err
}

// helpers are what rides along in any run: the agent first, and with stacks the heap sampler. What cannot
// be had is left out, with a note: the run goes on with what is there.
func (e *Engine) helpers(stacks bool) (list []launch.Helper, notes []string) {
	dir, library, err := e.UnpackAgent()
	if err != nil {
		return nil, []string{fmt.Sprintf("programs are watched from outside only: %v", err)}
	}
	hook := filepath.Join(dir, "hook")
	list = append(list, launch.Helper{Name: "agent", PythonPath: hook,
		Env: map[string]string{"HIGHTIDE_AGENT_PATH": hook}})
	switch {
	case stacks && !system.Procfs:
		notes = append(notes, "allocations are not blamed on lines: the heap sampler is for Linux, and this is "+system.Name+
			"; hightide run --tracemalloc has Python tell the lines of its own memory")
	case stacks && library == "":
		notes = append(notes, "no heap library in this build: allocations are not blamed on lines")
	case stacks && !launch.Runs(library):
		notes = append(notes, fmt.Sprintf("allocations are not seen: no library can be loaded from %s, which is mounted "+
			"noexec, and no other place was found; XDG_CACHE_HOME can name one", filepath.Dir(library)))
	case stacks:
		list = append(list, launch.Helper{Name: "heap", Preload: library, Env: map[string]string{"HIGHTIDE_HEAP": library}})
	}
	return list, notes
}

// agentFiles are the agent and, in a build that has one, the heap sampler.
func agentFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	tree := agent.Source()
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "__pycache__":
			return fs.SkipDir
		case d.IsDir():
			return nil
		}
		files["agent/"+path], err = fs.ReadFile(tree, path)
		return err
	})
	if library, ok := heap.Library(); ok {
		files["heap/"+heap.LibraryName+launch.Packed] = library
	}
	return files, err
}

// imagineHelpers are what rides along in an imagined run: the device too.
func (e *Engine) imagineHelpers() (*imagine.Helpers, error) {
	const hint = "is there a folder that hightide can write to?"
	list, notes := e.helpers(true)
	if len(list) == 0 {
		return nil, fail.Environment(hint, "%s", notes[0])
	}
	h := &imagine.Helpers{Agent: list[0]}
	if len(list) > 1 {
		h.Heap = &list[1]
	}
	bundle, err := deviceBundle()
	if err != nil {
		return nil, err
	}
	dir, err := e.unpack(bundle)
	if err != nil {
		return nil, fail.Environment(hint, "%w", err)
	}
	libraries := filepath.Join(dir, "device")
	h.Device = launch.Helper{Name: "device", Preload: filepath.Join(libraries, device.LibraryName), Libraries: libraries,
		Programs: filepath.Join(libraries, "bin")}
	return h, nil
}

// deviceFiles are the libraries of the imaginary GPUs, by their path in the helpers' folder. The driver's
// own names stand beside the one that is preloaded: Triton links against libcuda.so, and pynvml opens
// libnvidia-ml.so.1 in processes of its own.
func deviceFiles() (map[string][]byte, error) {
	libraries, ok := device.Libraries()
	if !ok {
		return nil, fail.Environment("build it with make", "this hightide was built without its device library")
	}
	files := map[string][]byte{}
	for name, image := range libraries {
		files["device/"+name+launch.Packed] = image
	}
	for name, text := range device.Programs() {
		files["device/bin/"+name] = text
	}
	for _, name := range []string{"libcuda.so.1", "libcuda.so"} {
		files["device/"+name+launch.Packed] = libraries[device.LibraryName]
	}
	return files, nil
}

// CanImagine says whether this build has the imaginary GPU.
func CanImagine() bool {
	_, ok := device.Libraries()
	return ok
}
