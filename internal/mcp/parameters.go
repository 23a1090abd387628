package mcp

import (
	"reflect"
	"regexp"
	"strings"

	"hightide/internal/fail"
)

// parameters are the names of a tool's inputs.
type parameters map[string]bool

func parametersOf[In any]() parameters {
	names := parameters{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[In]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		names[name] = true
	}
	return names
}

// flag is one of the command line; in a whole command, which an assistant may pass on, it stays as it is.
var flag = regexp.MustCompile(`\bhightide [a-z]+ [^;,()]*|--([a-z][a-z-]*)`)

// inWords is an error's text and hint with the tool's parameters in place of the flags of the same name. A flag that is no
// parameter is said to be of the command line. Only the text of an error of usage is known to be ours, and not the program's.
func (p parameters) inWords(err error) (text, hint string) {
	text, hint = err.Error(), fail.Hint(err)
	if fail.Code(err) == fail.ExitUsage {
		text = flag.ReplaceAllStringFunc(text, p.word)
	}
	return text, flag.ReplaceAllStringFunc(hint, p.word)
}

func (p parameters) word(found string) string {
	name, is := strings.CutPrefix(found, "--")
	if !is {
		return found
	}
	if name = strings.ReplaceAll(name, "-", "_"); p[name] {
		return name
	}
	return found + " of the command line"
}
