package usage

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/words"
)

// Names of what has no stack of its own.
const (
	BeforeTrace = "before the trace"
	OwnAgent    = "hightide's own agent" // what it allocates for itself, in the program
	NoFrames    = mem.NoFrames
	NoModule    = "outside of modules"
)

// Site is where a person would look for what a stack allocates: a line of their own program, else the innermost line
// of a library, else native code.
type Site struct {
	mem.Location        // of native code: the library, and File alone; UnknownPlace: no frame is known
	User         bool   // the program's own
	Name         string // for people: "train.py:61", "torch/nn/modules/conv.py:543", "AddmmBackward0 (autograd)"
	Innermost    string // the function as "train.py:forward", or the native name
	Module       string // the innermost forward method, by its line: a class has no name on a stack
}

// Names gives the stacks of a table their sites, each once.
type Names struct {
	// A library that owns a model comes before the program's lines: a program that starts a server does nothing else.
	LibraryFirst bool

	stacks *mem.StackTable
	known  []*Site // by stack
	files  map[string]FileKind
	short  map[string]string // names of a library's files
	facts  []*nativeFacts    // by location
}

// NewNames names the stacks of a table, which may still grow.
func NewNames(stacks *mem.StackTable) *Names {
	return &Names{stacks: stacks, files: map[string]FileKind{}, short: map[string]string{}}
}

// FileKind is whose a file is.
type FileKind uint8

// Kinds of files.
const (
	UserFile FileKind = iota + 1
	LibraryFile
	OwnFile // hightide's agent
	Nowhere // no file: generated code, interpreter start-up
)

// installed matches the folders where Python keeps what is not the user's own, and what torch.compile and
// TensorFlow's autograph generated, wherever that is.
var installed = words.Lazy(`(^|/)(site-packages|dist-packages)/|(^|/)lib(64)?/python\d(\.\d+)?t?/|(^|/)python\d+\.zip/|^[A-Za-z]:/.*(?i:python\d*|conda\d*|envs/[^/]+|venv)/Lib/(site-packages/)?|(^|/)c[a-z2-7]{51}\.py$|(^|/)__autograph_generated_file[^/]*$`)

// Kind says whose a file is.
func (t *Names) Kind(file string) FileKind {
	k, ok := t.files[file]
	if !ok {
		k = KindOf(file)
		t.files[file] = k
	}
	return k
}

// KindOf says whose a file is.
func KindOf(file string) FileKind {
	switch {
	case strings.Contains(file, "/hightide_agent/"), strings.HasSuffix(file, "/hook/sitecustomize.py"), file == OwnAgent,
		ofPackage(file):
		return OwnFile
	case file == "<stdin>", strings.HasPrefix(file, "cell ["), strings.HasPrefix(file, "<ipython"),
		strings.HasPrefix(file, "/tmp/ipykernel"):
		return UserFile
	case file == "", strings.HasPrefix(file, "<"):
		return Nowhere
	case strings.Contains(file, "/site-packages/"), installed.MatchString(file): // most are there, and need no pattern
		return LibraryFile
	}
	return UserFile
}

// ofPackage says whether a file is of the Python package hightide, but for the programs that it brings for others to
// run.
func ofPackage(file string) bool {
	before, within, found := strings.Cut(file, "/hightide/")
	if !found || strings.HasPrefix(within, "_workload/") || strings.HasPrefix(within, "_fit/") {
		return false
	}
	return strings.HasSuffix(before, "-packages") || strings.HasSuffix(before, "/agent/python/src")
}

// Of is the site of a stack.
func (t *Names) Of(stack uint32) *Site {
	for int(stack) >= len(t.known) {
		t.known = append(t.known, make([]*Site, t.stacks.Len()-len(t.known)+1)...)
		if int(stack) > t.stacks.Len() { // of no table: like the empty one
			stack = 0
		}
	}
	if s := t.known[stack]; s != nil {
		return s
	}
	frames := t.stacks.Frames(stack)
	if bareStack(t.stacks, stack) {
		frames = nil
	}
	s := t.Search(frames)
	if s.File == mem.TensorFlowArena {
		beneath := t.Search(frames[1:])
		s.Name = mem.TensorFlowArena + ", grown at " + beneath.Name
		s.Innermost = s.Name
	} else if s.Native {
		s.Name = t.nativeName(t.stacks.Numbers(stack), len(frames) == 0, s)
		s.Innermost = s.Name
	}
	t.known[stack] = &s
	return &s
}

// Search finds the site of frames that are in no table.
func (t *Names) Search(frames []mem.Location) Site {
	at, user := t.place(frames)
	s := Site{Location: at, User: user, Name: t.lineName(at, user), Innermost: path.Base(at.File) + ":" + at.Function,
		Module: moduleOf(frames)}
	if at.Native && at.File != mem.UnknownPlace {
		s.Name = mem.LineName(at) + " (native)"
	}
	return s
}

func (t *Names) place(frames []mem.Location) (at mem.Location, user bool) {
	if len(frames) > 0 && frames[0].File == mem.TensorFlowArena {
		return frames[0], false
	}
	if t.IsOwn(frames) {
		return mem.Location{File: OwnAgent}, false
	}
	if library, owner := t.library(frames); t.LibraryFirst && owner != "" {
		return *library, false
	}
	var native, started *mem.Location
	withoutFile := len(frames) > 0 && frames[len(frames)-1].File == commandText && !spawned(frames)
	for i := range frames {
		l := &frames[i]
		if l.Native {
			native = cmp.Or(native, l)
			continue
		}
		if l.File == commandText && withoutFile { // else it is generated code
			return *l, true
		}
		switch t.Kind(l.File) {
		case UserFile:
			if i != len(frames)-1 || !launcher(l) {
				return *l, true
			}
			started = l
		}
	}
	library, owner := t.library(frames)
	switch {
	case started != nil && owner == "":
		return *started, true
	case library != nil:
		return *library, false
	case native != nil: // one line a library, not one an address
		return mem.Location{File: native.File, Native: true}, false
	}
	return mem.Location{File: mem.UnknownPlace, Native: true}, false
}

// spawned says whether a stack begins with the command by which multiprocessing starts an interpreter.
func spawned(frames []mem.Location) bool {
	return len(frames) > 1 && strings.Contains(frames[len(frames)-2].File, "/multiprocessing/")
}

// launcher says whether a frame is of a program that was installed with a library: its script does nothing but call
// that.
func launcher(l *mem.Location) bool {
	folder := path.Base(path.Dir(l.File))
	return l.Function == "<module>" && l.Line <= 20 && path.Ext(l.File) == "" &&
		(folder == "bin" || folder == "Scripts") || strings.HasSuffix(l.File, ".exe/__main__.py")
}

// carriers are libraries that run the modules and loops of others: whose memory it is, those say.
var carriers = append(frameworks.Carriers(), "numpy", "peft", "bitsandbytes", "jsonargparse", "click", "typer",
	"fire", "hydra", "docstring_parser")

// library is the line of a stack without a frame of the user's. Of the outermost library that owns a model (it has a
// forward method there), else of the outermost one: its innermost line. Where only frameworks are there it is the
// innermost line at all, and owner is "".
func (t *Names) library(frames []mem.Location) (at *mem.Location, owner string) {
	forward := false
	for i := range frames {
		l := &frames[i]
		if l.Native || t.Kind(l.File) != LibraryFile || passedOn(l) {
			continue
		}
		at = cmp.Or(at, l)
		// From the inside out: the last one to be seen is the outermost.
		if name := packageOf(l.File); name != "" && !slices.Contains(carriers, name) &&
			(l.Function == "forward" || !forward) {
			owner, forward = name, forward || l.Function == "forward"
		}
	}
	if owner == "" {
		return at, ""
	}
	n := slices.IndexFunc(frames, func(l mem.Location) bool { return !l.Native && packageOf(l.File) == owner })
	return &frames[n], owner
}

// packageOf is the installed library that a file is of; "" for Python's own and for files that are of none.
func packageOf(file string) string {
	for _, folder := range []string{"/site-packages/", "/dist-packages/"} {
		if at := strings.LastIndex(file, folder); at >= 0 {
			name, _, _ := strings.Cut(file[at+len(folder):], "/")
			return strings.TrimSuffix(name, ".py")
		}
	}
	return ""
}

// commandText is the file of python -c, where it is that of the outermost frame.
const commandText = "<string>"

// passedOn says whether a frame is PyTorch's way back from an operator that the agent watches.
func passedOn(l *mem.Location) bool {
	return l.Function == "redispatch" && strings.HasSuffix(l.File, "/torch/_ops.py")
}

// lineName is a line in a few words: base.py says little, sklearn/base.py does.
func (t *Names) lineName(l mem.Location, user bool) string {
	if !user && !l.Native {
		if name := t.shortName(l.File); name != "" {
			return name + ":" + strconv.Itoa(l.Line)
		}
	}
	return mem.LineName(l)
}

// shortName is a library's file below the folder where libraries are; "" where it is in none.
func (t *Names) shortName(file string) string {
	name, ok := t.short[file]
	if !ok {
		if at := installed.Regexp().FindAllStringIndex(file, -1); len(at) > 0 && at[len(at)-1][1] < len(file) {
			name = strings.TrimPrefix(strings.TrimPrefix(file[at[len(at)-1][1]:], "site-packages/"), "dist-packages/")
		}
		t.short[file] = name
	}
	return name
}

// moduleOf is the innermost forward method of frames.
func moduleOf(frames []mem.Location) string {
	for _, f := range frames {
		if f.Function == "forward" && !f.Native {
			return mem.LineName(mem.Location{File: f.File}) + ":forward:" + strconv.Itoa(f.Line)
		}
	}
	return NoModule
}

// nativeFacts is what a location tells of native code.
type nativeFacts struct {
	beneath  bool   // no one looks for it in a picture
	node     string // of the autograd graph
	operator string
	function string // "": the interpreter's or the allocator's, or not known
}

var (
	backwardNode = words.Lazy(`(\w+Backward\d*)::apply|(AccumulateGrad)`)
	innards      = words.Lazy(`CachingAllocator|^at::detail::empty|empty_(strided_)?generic|empty_(strided_)?cuda|^pthread_|^start_thread|^clone|^__`)
)

// plumbing are native frames of the interpreter and the unwinder, which every stack has: what they begin with.
var plumbing = append(frameworks.Unwinders(), "_start", "__libc_", "Py", "_Py", "pymain_", "pyrun_", "run_mod", "run_eval",
	"method_vectorcall", "cfunction_", "slot_tp_", "partial_")

func machinery(l mem.Location) bool {
	return l.File == "" && l.Function == "" || l.Native &&
		(l.Function == "??" || strings.Contains(l.Function, "gather_with_cpp") ||
			slices.ContainsFunc(plumbing, func(begin string) bool { return strings.HasPrefix(l.Function, begin) }))
}

// nativeName is how people know native code. It is by the node of the autograd graph, else by the operator, else by
// the innermost function that is not the allocator's, else by its library.
func (t *Names) nativeName(numbers []uint32, bare bool, at Site) string {
	if bare {
		return NoFrames
	}
	op, function := "", ""
	for _, n := range numbers {
		f := t.fact(n)
		if f.node != "" {
			return f.node
		}
		op, function = cmp.Or(op, f.operator), cmp.Or(function, f.function)
	}
	library := NoFrames
	if at.File != "" && at.File != "??" && at.File != mem.UnknownPlace {
		library = at.Name
	}
	return cmp.Or(op, function, library)
}

// fact looks at a location once.
func (t *Names) fact(n uint32) *nativeFacts {
	for int(n) >= len(t.facts) {
		t.facts = append(t.facts, make([]*nativeFacts, len(t.stacks.Locations)-len(t.facts))...)
	}
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
	offset := strings.HasPrefix(l.Function, "+0x") // the heap library knows no more of most native code
	inner := innards.MatchString(l.Function)
	if plumber := machinery(l); l.Function != "" && !plumber && !inner {
		if f.function, _, _ = strings.Cut(l.Function, "("); offset {
			f.function = ""
		}
		f.function = strings.TrimSpace(f.function)
	} else {
		f.beneath = plumber || l.Native && inner
	}
	t.facts[n] = f
	return f
}

// Pictured is a stack without the frames that no one looks for in a picture, innermost first.
func (t *Names) Pictured(stack uint32) []mem.Location {
	var frames []mem.Location
	for _, n := range t.stacks.Numbers(stack) {
		if !t.fact(n).beneath {
			frames = append(frames, t.stacks.Locations[n])
		}
	}
	return frames
}

// ownFrame matches what stands in for a kernel that no GPU runs.
var ownFrame = words.Lazy(`/hightide_agent/imagine/|/torch/_ops\.py$`)

// bareStack says whether a stack has no frames of the program or the framework.
func bareStack(stacks *mem.StackTable, n uint32) bool {
	return !slices.ContainsFunc(stacks.Numbers(n),
		func(l uint32) bool { return !ownFrame.MatchString(stacks.Locations[l].File) })
}

// aroundOthers are the agent's files that call the program's or a library's code: what is allocated beneath may be
// that code's.
var aroundOthers = words.Lazy(`/hightide_agent/(adapters|imagine|pytorch|xla)/|/hightide_agent/(imports|late|sdk|spans|training)\.py$|/hook/sitecustomize\.py$`)

// IsOwn says whether the agent allocated something for itself: of the frames, innermost first, that are neither the
// interpreter's nor of Python's own library, its is the first.
func (t *Names) IsOwn(frames []mem.Location) bool {
	for i := range frames {
		l := &frames[i]
		if l.Native {
			continue
		}
		switch t.Kind(l.File) {
		case OwnFile:
			return !aroundOthers.MatchString(l.File)
		case LibraryFile:
			if l.Function == "<module>" || packageOf(l.File) != "" {
				return false
			}
		case Nowhere:
			if !strings.HasPrefix(l.File, "<frozen ") {
				return false
			}
		default:
			return false
		}
	}
	return false
}

// IsImport says that a frame is of what imports modules, or of what runs one as a program.
func IsImport(l *mem.Location) bool {
	return strings.HasPrefix(l.File, "<frozen importlib.") || l.File == "<frozen runpy>"
}

// Group is what the stacks of one site held at a moment.
type Group struct {
	Site     *Site
	Bytes    mem.Bytes
	Blocks   uint64
	Variance float64
	Stack    uint32 // the one that held most
	Largest  mem.Bytes
	Phase    mem.Phase // of that stack's first allocation, where it is known
	Absent   mem.Bytes // as in Use
}

// siteKey tells sites apart: lines of different files may have one name, and native code has no lines.
type siteKey struct {
	mem.Location
	name string
}

func (s *Site) key() siteKey { return siteKey{s.Location, s.Name} }

// Groups sums uses by site, most bytes first.
func Groups(names *Names, uses []Use) []Group {
	var groups mem.Tally[siteKey, Group]
	for _, u := range uses {
		site := names.Of(u.Stack)
		g := groups.At(site.key())
		g.Site = cmp.Or(g.Site, site)
		g.Bytes += u.Bytes
		g.Blocks += u.Blocks
		g.Absent += u.Absent
		g.Variance += u.Variance
		if u.Bytes > g.Largest {
			g.Stack, g.Largest, g.Phase = u.Stack, u.Bytes, u.Phase
		}
	}
	slices.SortStableFunc(groups.All, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Site.File, b.Site.File),
			cmp.Compare(a.Site.Line, b.Site.Line), cmp.Compare(a.Site.Name, b.Site.Name))
	})
	return groups.All
}
