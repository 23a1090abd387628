// Package engine is the product as Go methods, so that the command line and any later front door only
// translate.
//
//	cmd/hightide ──▶ Run, Attach          (run.go, attach.go)           ──▶ observe ──▶ store
//	             ──▶ Imagine, Fit         (imagine.go)                  ──▶ observe, imagine, fit ──▶ store
//	             ──▶ Runs, Tag, Prune …   (runs.go)                     ──▶ store
//	             ──▶ Explain, Export …    (reading.go, sources.go)      ──▶ format, analyze, replay
//	             ──▶ Check, Info          (check.go, info.go)
//
// A use case of more than a page of logic has a room of its own. It is below this one (imagine, fit, replay, explore) where it needs no
// recordings. It is above (bench) where it is made of whole use cases. What is left are many small ones, a file each.
//
// An Engine holds what every use case needs to know and nothing else; its zero value works. Every use
// case takes a context and owns nothing of the process. Errors that a person can do something about are
// *fail.Error: they carry the exit code and a hint. Start reading at run.go.
package engine

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/launch"
	"hightide/internal/store"
)

// Version of hightide, set by the build with -ldflags "-X hightide/internal/engine.Version=…".
var Version = "0.1.0-dev"

// Engine is where hightide keeps its recordings and what it may use of its process.
type Engine struct {
	// DataDir holds the recordings and their index, and what running programs need for a time. Empty:
	// that of defaultDataDir.
	DataDir string

	// Store keeps the recordings instead of DataDir; nil: it does not.
	Store store.Store

	// Visitors are recordings outside DataDir that are shown with those in it; nil: there are none.
	Visitors *store.Visitors

	// Seen remembers the data directory of a process that goes on; nil: it is not remembered.
	Seen *Seen

	// NoPrograms keeps the engine from starting another program in order to read a file: a capture of memray is refused.
	NoPrograms bool

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
