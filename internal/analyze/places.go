package analyze

import (
	"regexp"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// place is where a person would look: a line of their own program, else the innermost line of a
// library, else a native library.
type place struct {
	mem.Location
	user bool
}

// places finds the place of each stack, once.
type places struct {
	stacks *mem.StackTable
	known  map[uint32]place
	files  map[string]fileKind
}

func newPlaces(stacks *mem.StackTable) *places {
	return &places{stacks: stacks, known: map[uint32]place{}, files: map[string]fileKind{}}
}

type fileKind uint8

const (
	userFile fileKind = iota + 1
	libraryFile
	ownFile // hightide's agent
	nowhere // no file: generated code, interpreter start-up
)

// installed matches the folders where Python keeps what is not the user's own, and what torch.compile
// generated, wherever its cache is.
var installed = regexp.MustCompile(`(^|/)(site-packages|dist-packages)/|(^|/)lib(64)?/python\d(\.\d+)?t?/|(^|/)python\d+\.zip/|(^|/)c[a-z2-7]{51}\.py$`)

func (p *places) kind(file string) fileKind {
	if k, ok := p.files[file]; ok {
		return k
	}
	k := userFile
	switch {
	case strings.Contains(file, "/hightide_agent/"), strings.HasSuffix(file, "/hook/sitecustomize.py"):
		k = ownFile
	case file == "<stdin>", strings.HasPrefix(file, "<ipython"), strings.HasPrefix(file, "/tmp/ipykernel"):
		k = userFile
	case file == "", strings.HasPrefix(file, "<"):
		k = nowhere
	case installed.MatchString(file):
		k = libraryFile
	}
	p.files[file] = k
	return k
}

// of is the place of a stack.
func (p *places) of(stack uint32) place {
	if found, ok := p.known[stack]; ok {
		return found
	}
	found := p.search(p.stacks.Frames(stack))
	p.known[stack] = found
	return found
}

func (p *places) search(stack []mem.Location) place {
	var library, native *mem.Location
	for i := range stack {
		l := &stack[i]
		if l.Native {
			if native == nil {
				native = l
			}
			continue
		}
		if l.File == "<string>" && i == len(stack)-1 { // python -c; elsewhere it is generated code
			return place{*l, true}
		}
		switch p.kind(l.File) {
		case userFile:
			return place{*l, true}
		case libraryFile:
			if library == nil && !passedOn(l) {
				library = l
			}
		}
	}
	switch {
	case library != nil:
		return place{*library, false}
	case native != nil: // one line a library, not one an address
		return place{mem.Location{File: native.File, Native: true}, false}
	}
	return place{mem.Location{File: report.UnknownPlace, Native: true}, false}
}

// passedOn says whether a frame is PyTorch's way back from an operator that the agent watches.
func passedOn(l *mem.Location) bool {
	return l.Function == "redispatch" && strings.HasSuffix(l.File, "/torch/_ops.py")
}

// source is the text of a line, cut to what fits a sentence; "" where it is not known.
func (in *Input) source(l mem.Location) string {
	if in.Options.Source == nil || l.Native || l.Line == 0 {
		return ""
	}
	text := strings.TrimSpace(in.Options.Source(l.File, l.Line))
	if at := strings.Index(text, "  #"); at > 0 {
		text = strings.TrimSpace(text[:at])
	}
	if runes := []rune(text); len(runes) > 60 {
		text = string(runes[:59]) + "…"
	}
	return strings.ReplaceAll(text, "`", "'")
}
