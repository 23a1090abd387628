package diagnose

import (
	"errors"
	"io/fs"

	"hightide/internal/system"
)

// Ability is something hightide observes, and whether it can here.
type Ability struct {
	Name string `json:"name"`
	Can  Can    `json:"can"`
	Text string `json:"text"`           // how, or why not
	Hint string `json:"hint,omitempty"` // what would change that
}

// Can is yes, partly or no.
type Can string

const (
	Yes    Can = "yes"
	Partly Can = "partly"
	No     Can = "no"
)

func yes(text string) Ability          { return Ability{Can: Yes, Text: text} }
func partly(text, hint string) Ability { return Ability{Can: Partly, Text: text, Hint: hint} }
func no(text, hint string) Ability     { return Ability{Can: No, Text: text, Hint: hint} }

// linuxHint is what to do for what is there on Linux alone.
const linuxHint = "record on Linux: a virtual machine, a container, WSL 2"

// elsewhere is the ability of what is read on Linux alone.
func elsewhere(what string) Ability { return no(what+" on "+system.Name, linuxHint) }

// reason is an error without its path.
func reason(err error) string {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err.Error()
	}
	return err.Error()
}
