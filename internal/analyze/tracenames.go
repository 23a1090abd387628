package analyze

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/words"
)

// Names of what has no stack of its own.
const (
	beforeTrace = "before the trace"
	noModule    = "outside of modules"
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
	known  []*traceName   // by stack
	facts  []*nativeFacts // by location
}

// nativeFacts is what a location tells of native code.
type nativeFacts struct {
	beneath  bool   // no one looks for it in a picture
	node     string // of the autograd graph
	operator string
	function string // "": the interpreter's or the allocator's
}

func newTraceNames(stacks *mem.StackTable) *traceNames {
	return &traceNames{stacks, newPlaces(nil), make([]*traceName, stacks.Len()), make([]*nativeFacts, len(stacks.Locations))}
}

func (t *traceNames) of(stack uint32) *traceName {
	if n := t.known[stack]; n != nil {
		return n
	}
	frames, numbers := t.stacks.Frames(stack), t.stacks.Numbers(stack)
	if bareStack(t.stacks, stack) {
		frames, numbers = nil, nil
	}
	n := t.name(frames, numbers)
	t.known[stack] = n
	return n
}

func (t *traceNames) name(frames []mem.Location, numbers []uint32) *traceName {
	at := t.places.search(frames)
	n := &traceName{site: report.LineName(at.Location), file: at.File, function: path.Base(at.File) + ":" + at.Function, module: moduleOf(frames), location: at.Location}
	if !at.Native {
		return n
	}
	name := t.nativeName(numbers)
	n.site, n.function = name, name
	if n.file = at.File; len(frames) == 0 || n.file == "" || n.file == "??" {
		n.file = name
	}
	n.location = mem.Location{Function: name, Native: true}
	return n
}

var (
	backwardNode = words.Lazy(`(\w+Backward\d*)::apply|(AccumulateGrad)`)
	innards      = words.Lazy(`CachingAllocator|^at::detail::empty|empty_(strided_)?generic|empty_(strided_)?cuda|^pthread_|^start_thread|^clone|^__`)
)

// plumbing are native frames of the interpreter and the unwinder, which every stack has: what they begin with.
var plumbing = []string{"torch::unwind::unwind", "torch::CapturedTraceback::gather", "_start", "__libc_", "Py", "_Py", "pymain_", "pyrun_", "run_mod", "run_eval",
	"method_vectorcall", "cfunction_", "slot_tp_", "partial_"}

func machinery(l mem.Location) bool {
	return l.File == "" && l.Function == "" || l.Native && (l.Function == "??" || strings.Contains(l.Function, "gather_with_cpp") ||
		slices.ContainsFunc(plumbing, func(begin string) bool { return strings.HasPrefix(l.Function, begin) }))
}

// nativeName is how people know native code: by the node of the autograd graph, else by the operator, else by
// the innermost function that is not the allocator's.
func (t *traceNames) nativeName(numbers []uint32) string {
	op, function := "", ""
	for _, n := range numbers {
		f := t.fact(n)
		if f.node != "" {
			return f.node
		}
		op, function = cmp.Or(op, f.operator), cmp.Or(function, f.function)
	}
	return cmp.Or(op, function, report.NoFrames)
}

// fact looks at a location once.
func (t *traceNames) fact(n uint32) *nativeFacts {
	if t.facts[n] != nil {
		return t.facts[n]
	}
	l, f := t.stacks.Locations[n], &nativeFacts{}
	if m := backwardNode.FindStringSubmatch(l.Function); m != nil {
		f.node = m[1] + m[2] + " (autograd)"
	}
	if op, ok := strings.CutPrefix(l.Function, "at::_ops::"); ok {
		op, _, _ = strings.Cut(op, "::")
		f.operator = "at::" + op
	}
	inner := innards.MatchString(l.Function)
	if plumber := machinery(l); l.Function != "" && !plumber && !inner {
		f.function, _, _ = strings.Cut(l.Function, "(")
		f.function = strings.TrimSpace(f.function)
	} else {
		f.beneath = plumber || l.Native && inner
	}
	t.facts[n] = f
	return f
}

// pictured is a stack without the frames that no one looks for in a picture.
func (t *traceNames) pictured(stack uint32) []mem.Location {
	var frames []mem.Location
	for _, n := range t.stacks.Numbers(stack) {
		if !t.fact(n).beneath {
			frames = append(frames, t.stacks.Locations[n])
		}
	}
	return frames
}

// moduleOf is the innermost forward method on a stack, by its line: a class has no name there.
func moduleOf(frames []mem.Location) string {
	for _, f := range frames {
		if f.Function == "forward" && !f.Native {
			return report.LineName(mem.Location{File: f.File}) + ":forward:" + strconv.Itoa(f.Line)
		}
	}
	return noModule
}
