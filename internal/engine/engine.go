// Package engine is the product as Go methods: one file per use case, so that the command line and
// any later front door only translate.
//
//	cmd/hightide ──▶ Engine.Run, List, Report … ──▶ record, store, analyze, export
//
// An Engine holds what every use case needs to know and nothing else; its zero value works. Errors
// that a person can do something about are an *Error: they carry the exit code and a hint.
// Start reading at run.go.
package engine

import (
	"os"
	"path/filepath"

	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/store"
)

// Version of hightide, set by the build with -ldflags "-X hightide/internal/engine.Version=…".
var Version = "0.1.0-dev"

// Engine is where hightide keeps its recordings and how it calls itself.
type Engine struct {
	// DataDir holds the recordings and their index, and what running programs need for a time. Empty:
	// DefaultDataDir().
	DataDir string

	// Store keeps the recordings instead of DataDir; nil: it does not.
	Store store.Store

	// Runtime is what the use cases may use of this process. The zero value touches nothing.
	Runtime Runtime
}

// What a front door hands in, so that it needs only this package.
type (
	Runtime = launch.Runtime
	Work    = launch.Work
)

// Kinds of work that Runtime.Tune is told of.
const (
	Recording = launch.Recording
	Reading   = launch.Reading
	Reporting = launch.Reporting
	Trials    = launch.Trials
)

// Exit codes and errors are those of package fail.
const (
	ExitUsage       = fail.ExitUsage
	ExitBadInput    = fail.ExitBadInput
	ExitEnvironment = fail.ExitEnvironment
	ExitOwn         = fail.ExitOwn
)

// Error is a failure that a person can act on.
type Error = fail.Error

var (
	Near             = fail.Near
	UsageError       = fail.Usage
	InputError       = fail.Input
	EnvironmentError = fail.Environment
	ChoiceError      = fail.Choice
	ExitCode         = fail.Code
	Hint             = fail.Hint
)

// Dir is the data directory in use.
func (e *Engine) Dir() string {
	if e.DataDir != "" {
		return e.DataDir
	}
	return DefaultDataDir()
}

// DefaultDataDir is $HIGHTIDE_DATA, else hightide under the XDG data home, else a folder of this
// user's under the temporary directory where there is no home.
func DefaultDataDir() string {
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
