// Package fail has the errors that a person can act on: what happened, what to do about it, and the
// exit code that the program ends with.
package fail

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"hightide/internal/words"
)

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

// Usage says that the command line makes no sense (exit code 2).
func Usage(hint, format string, args ...any) error {
	return &Error{ExitUsage, fmt.Errorf(format, args...), hint}
}

// Input says that a file, run or value given to us cannot be used (exit code 3).
func Input(hint, format string, args ...any) error {
	return &Error{ExitBadInput, fmt.Errorf(format, args...), hint}
}

// Environment says that the machine lacks something (exit code 4).
func Environment(hint, format string, args ...any) error {
	return &Error{ExitEnvironment, fmt.Errorf(format, args...), hint}
}

// Unread is an Input error of a file that cannot be opened or read: which file, and why, without the name of a system
// call.
func Unread(hint string, err error) error {
	var of *fs.PathError
	switch {
	case !errors.As(err, &of):
		return Input(hint, "%w", err)
	case errors.Is(err, fs.ErrNotExist):
		return Input(hint, "there is no file %s", of.Path)
	}
	return Input(hint, "cannot read %s: %w", of.Path, of.Err)
}

// Choice is a Usage error of a flag whose value is none of its choices.
func Choice(flag, value string, choices []string) error {
	said := fmt.Errorf("%s %s is not known", flag, value)
	if near := words.Near(value, choices); near != "" {
		said = fmt.Errorf("%w; did you mean %s?", said, near)
	}
	return Usage("one of "+strings.Join(choices, ", "), "%w", said)
}

// Code maps an error to the exit code of the program: 0 for nil, ExitOwn for one that nobody gave a code.
func Code(err error) int {
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
