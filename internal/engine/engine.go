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
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"hightide/internal/words"
)

// Version of hightide, set by the build with -ldflags "-X hightide/internal/engine.Version=…".
var Version = "0.1.0-dev"

// Engine is where hightide keeps its recordings and how it calls itself.
type Engine struct {
	// DataDir holds the recordings and their index. Empty: DefaultDataDir().
	DataDir string
}

// Exit codes of hightide itself. The code of an observed command passes through unchanged.
const (
	ExitUsage       = 2   // the command line makes no sense
	ExitBadInput    = 3   // a file or name given to us cannot be used
	ExitEnvironment = 4   // the machine lacks something we need
	ExitOwn         = 125 // our own failure
	ExitNotRunnable = 126 // the command was found but cannot be run, as a shell says it
	ExitNotFound    = 127 // the command was not found, as a shell says it
)

// Error is a failure that a person can act on.
type Error struct {
	Code int    // one of the exit codes above
	Err  error  // what happened
	Hint string // what to do about it; may be empty
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// UsageError says that the command line makes no sense (exit code 2).
func UsageError(hint, format string, args ...any) error {
	return &Error{ExitUsage, fmt.Errorf(format, args...), hint}
}

// Near is the choice that a word most likely meant; false: it is near to none.
func Near(word string, choices []string) (string, bool) {
	near := words.Nearest(word, choices)
	return near, near != "" && words.Distance(word, near) <= 2
}

// ChoiceError is a UsageError of a flag whose value is none of its choices.
func ChoiceError(flag, value string, choices []string) error {
	said := fmt.Errorf("%s %s is not known", flag, value)
	if near, ok := Near(value, choices); ok {
		said = fmt.Errorf("%w; did you mean %s?", said, near)
	}
	return UsageError("one of "+strings.Join(choices, ", "), "%w", said)
}

// InputError says that a file, run or value given to us cannot be used (exit code 3).
func InputError(hint, format string, args ...any) error {
	return &Error{ExitBadInput, fmt.Errorf(format, args...), hint}
}

// EnvironmentError says that the machine lacks something (exit code 4).
func EnvironmentError(hint, format string, args ...any) error {
	return &Error{ExitEnvironment, fmt.Errorf(format, args...), hint}
}

// ExitCode maps an error to the exit code of the program: 0 for nil, ExitOwn for one that nobody
// gave a code.
func ExitCode(err error) int {
	var typed *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &typed):
		return typed.Code
	}
	return ExitOwn
}

// Hint is the advice that an error carries, or "".
func Hint(err error) string {
	var typed *Error
	if errors.As(err, &typed) {
		return typed.Hint
	}
	return ""
}

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
	return filepath.Join(os.TempDir(), fmt.Sprintf("hightide-%d", os.Getuid()))
}
