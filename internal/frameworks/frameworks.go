// Package frameworks says what hightide knows of each framework, in one file each.
//
//	list ──▶ the views of hightide top, the axis of bench, what interpreters are asked for
//	     ──▶ whose code a line is, and what to change where a framework keeps memory
//	     ──▶ whether its programs can be imagined
//
// A framework that only the agent has an adapter for needs nothing here: its figures appear everywhere by the name that
// the adapter gives. To say more of one: a file, and a line in list.
package frameworks

import (
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/mem"
)

// Framework is what is known of one. Of the fields beside Name any may be zero.
type Framework struct {
	Name  string // of its package of Python, as recordings have it
	Title string // as people write it
	Short string // likewise where there is little room; "": hightide top has no view of it
	Bench string // what bench calls it; "": none of its models is built in

	Code     []string // parts of the paths of its own code, Python's and native
	Carriers []string // packages that run the modules and loops of others: whose memory it is, those say
	Unwinder []string // what the names of its native functions begin with that every stack has

	Retraced     func(Retracing) string               // what to change about a function that is traced again and again
	Freed        map[string]Cache                     // its caches of graphs and programs, by what the agent calls them
	AgainstGaps  func(facts map[string]string) string // what lets its allocator use what it has cached
	Preallocates string                               // what it does where it takes most of a device as it starts

	Launcher *Launcher // the program that starts its ranks

	// Imagined refuses an interpreter whose programs cannot use an imaginary GPU, or notes what of them cannot. nil: no
	// program of the framework can be imagined.
	Imagined func(version string, b Build, path string) (note string, err error)
}

// Retracing is why a function was traced again.
type Retracing struct {
	Eager bool   // it is an operation of the framework's own, outside of any compiled function
	Anew  bool   // no argument changed: the function itself was made anew
	After string // what the argument changed to
}

// Value says whether the argument is a plain value, without a shape.
func (r Retracing) Value() bool { return !strings.ContainsAny(r.After, "([") }

// Cache is one that keeps a graph or program of each call that differed.
type Cache struct {
	Code   []string // parts of the paths of the code that allocates what it keeps
	Advice string   // with %s for the function
}

// list is in the order in which people see them.
var list = []*Framework{&torch, &tensorflow, &keras, &jax, &lightning, &pytorchLightning, &transformers, &accelerate,
	&deepspeed}

// All are the frameworks that something is known of.
func All() []*Framework { return list }

// Of is the framework of a name. Of one that nothing is known of it has the name alone.
func Of(name string) *Framework {
	if f := find(func(f *Framework) bool { return f.Name == name }); f != nil {
		return f
	}
	return &Framework{Name: name, Title: name}
}

// OfBench is the framework that bench calls so, else Of that name.
func OfBench(name string) *Framework {
	if f := find(func(f *Framework) bool { return f.Bench == name && name != "" }); f != nil {
		return f
	}
	return Of(name)
}

// Benched are the names of those that bench has models for; the first is its default.
func Benched() (names []string) {
	for _, f := range list {
		if f.Bench != "" {
			names = append(names, f.Bench)
		}
	}
	return names
}

// Rank is where a framework stands among those that something is known of; behind them all if nothing is.
func Rank(name string) int {
	if i := slices.IndexFunc(list, func(f *Framework) bool { return f.Name == name }); i >= 0 {
		return i
	}
	return len(list)
}

// Carriers are the packages of all frameworks that run the modules and loops of others.
func Carriers() []string { return joined(func(f *Framework) []string { return f.Carriers }) }

// Unwinders are what the names of native functions begin with that every stack has.
func Unwinders() []string { return joined(func(f *Framework) []string { return f.Unwinder }) }

func joined(of func(*Framework) []string) (all []string) {
	for _, f := range list {
		all = append(all, of(f)...)
	}
	return all
}

// Owns says whether a place is in the framework's own code.
func (f *Framework) Owns(at mem.Location) bool { return within(f.Code, at) }

// Allocates says whether a place is in code that allocates what the cache keeps.
func (c *Cache) Allocates(at mem.Location) bool { return within(c.Code, at) }

func within(code []string, at mem.Location) bool {
	return slices.ContainsFunc(code, func(part string) bool { return strings.Contains(at.File, part) })
}

// CacheOf is the cache of graphs or programs that the agent calls so; nil: no framework's.
func CacheOf(kind string) *Cache {
	for _, f := range list {
		if c, ok := f.Freed[kind]; ok {
			return &c
		}
	}
	return nil
}

// Imaginable says why an interpreter's programs cannot use an imaginary GPU, or what of them cannot, by the versions of
// the frameworks that it has.
func Imaginable(versions map[string]string, b Build, path string) (note string, err error) {
	has := func(f *Framework) bool { return versions[f.Name] != "" }
	if f := find(func(f *Framework) bool { return has(f) && f.Imagined != nil }); f != nil {
		return f.Imagined(versions[f.Name], b, path)
	}
	if f := find(func(f *Framework) bool { return has(f) && f.Short != "" }); f != nil {
		return "", fail.Environment("the host's memory: hightide run -- ...",
			"imaginary GPUs serve %s; %s has %s %s, which cannot be imagined", Served(), path, f.Title, versions[f.Name])
	}
	return "", fail.Environment("name the interpreter of the environment you train in, or install torch into it",
		"%s has no %s", path, Served())
}

// Served names the frameworks whose programs can be imagined.
func Served() string {
	var titles []string
	for _, f := range list {
		if f.Imagined != nil {
			titles = append(titles, f.Title)
		}
	}
	return strings.Join(titles, " and ")
}

func find(is func(*Framework) bool) *Framework {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}
	return nil
}
