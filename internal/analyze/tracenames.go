package analyze

import (
	"path"
	"regexp"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// Names of what has no stack of its own.
const (
	beforeTrace = "before the trace"
	noFrames    = "no frames (autograd, or a native thread)"
)

// traceName is what a stack of a trace is called, by each grouping that goes by stacks.
type traceName struct {
	site, file, function, module string
	location                     mem.Location
}

// traceNames names the stacks of a trace, each once.
type traceNames struct {
	stacks *mem.StackTable
	places *places
	known  []*traceName // by stack
}

func newTraceNames(stacks *mem.StackTable) *traceNames {
	return &traceNames{stacks, newPlaces(nil), make([]*traceName, stacks.Len())}
}

func (t *traceNames) of(stack uint32) *traceName {
	if n := t.known[stack]; n != nil {
		return n
	}
	frames := t.stacks.Frames(stack)
	if bareStack(t.stacks, stack) {
		frames = nil
	}
	n := t.name(frames)
	t.known[stack] = n
	return n
}

func (t *traceNames) name(frames []mem.Location) *traceName {
	at := t.places.search(frames)
	n := &traceName{site: lineName(at.Location), file: at.File, function: path.Base(at.File) + ":" + at.Function, module: moduleOf(frames), location: at.Location}
	if !at.Native {
		return n
	}
	name := nativeName(frames)
	n.site, n.function = name, name
	if n.file = at.File; len(frames) == 0 || n.file == "" || n.file == "??" {
		n.file = name
	}
	n.location = mem.Location{Function: name, Native: true}
	return n
}

var (
	backwardNode = regexp.MustCompile(`(\w+Backward\d*)::apply|(AccumulateGrad)`)
	operator     = regexp.MustCompile(`^at::_ops::(\w+)::`)
	// plumbing are native frames of the interpreter, the unwinder and the allocator, which every stack has.
	plumbing = regexp.MustCompile(`unwind::unwind|CapturedTraceback::gather|gather_with_cpp|^_start$|__libc_|^_?Py[A-Z]|^_Py|pymain_|^pyrun_|^run_(mod|eval)|^method_vectorcall|^cfunction_|^slot_tp_|^partial_`)
	innards  = regexp.MustCompile(`CachingAllocator|^at::detail::empty|empty_(strided_)?generic|empty_(strided_)?cuda|^pthread_|^start_thread|^clone|^__`)
)

// nativeName is how people know native code: by the node of the autograd graph, else by the operator, else by
// the innermost function that is not the allocator's.
func nativeName(frames []mem.Location) string {
	op, function := "", ""
	for _, f := range frames {
		if m := backwardNode.FindStringSubmatch(f.Function); m != nil {
			return m[1] + m[2] + " (autograd)"
		}
		if m := operator.FindStringSubmatch(f.Function); m != nil && op == "" {
			op = "at::" + m[1]
		}
		if function == "" && f.Function != "" && !machinery(f) && !innards.MatchString(f.Function) {
			function, _, _ = strings.Cut(f.Function, "(")
		}
	}
	switch {
	case op != "":
		return op
	case function != "":
		return function
	}
	return noFrames
}

func machinery(l mem.Location) bool {
	return l.File == "" && l.Function == "" || plumbing.MatchString(l.Function)
}

// beneath says of a frame that no one looks for it in a picture.
func beneath(l mem.Location) bool {
	return machinery(l) || l.Native && innards.MatchString(l.Function)
}

// moduleOf is the innermost forward method on a stack, by its line: a class has no name there.
func moduleOf(frames []mem.Location) string {
	for _, f := range frames {
		if f.Function == "forward" && !f.Native {
			return lineName(mem.Location{File: f.File}) + ":forward:" + strconv.Itoa(f.Line)
		}
	}
	return "outside of modules"
}
