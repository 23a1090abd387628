// Package frameworks says what hightide knows of each framework, in one file each.
//
//	list ──▶ the views of hightide top, the axis of bench, what interpreters are asked for
//	     ──▶ whose code a line is, and what to change where a framework keeps memory
//	     ──▶ whether its programs can be imagined
//
// A framework that only the agent has an adapter for needs nothing here: its figures appear everywhere by the name that
// the adapter gives. To say more of one: a file, and a line in list.go.
package frameworks

import (
	"cmp"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// Framework is what is known of one. Of the fields beside Name any may be zero.
type Framework struct {
	Name  string // of its package of Python, as recordings have it
	Title string // as people write it
	Short string // likewise where there is little room; "": hightide top has no view of it
	Bench string // what bench calls it; "": none of its models is built in

	Runtime string // what bench calls it as what runs a file of a model; "": it runs none
	Package string // of the registry, where it is called otherwise than what is imported

	Code     []string // parts of the paths of its own code, Python's and native
	Carriers []string // packages that run the modules and loops of others: whose memory it is, those say
	Unwinder []string // what the names of its native functions begin with that every stack has

	Retraced     func(Retracing) string               // what to change about a function that is traced again and again
	Freed        map[string]Cache                     // its caches of graphs and programs, by what the agent calls them
	AgainstGaps  func(facts map[string]string) string // what lets its allocator use what it has cached
	Preallocates string                               // what it does where it takes most of a device as it starts

	Changes  func(Situation) []Change // what may make a program fit
	Vary     []Change                 // conditions that change the answer; nil: those of PyTorch (internal/imagine)
	AsNeeded map[string]string        // variables with which it takes no more of a device than it needs, however large that is

	Launcher *Launcher // the program that starts its ranks

	// Imagined refuses an interpreter whose programs cannot use an imaginary GPU, or notes what of them cannot. nil: no
	// program of the framework can be imagined.
	Imagined func(version string, b Build, path string) (note string, err error)
}

// Retracing is why a function was traced again.
type Retracing struct {
	Eager  bool   // it is an operation of the framework's own, outside of any compiled function
	Anew   bool   // no argument changed: the function itself was made anew
	Padded bool   // it is told to which shapes inputs can be padded
	After  string // what the argument changed to
}

// Value says whether the argument is a plain value, without a shape.
func (r Retracing) Value() bool { return !strings.ContainsAny(r.After, "([") }

// Cache is one that keeps a graph or program of each call that differed.
type Cache struct {
	Code   []string // parts of the paths of the code that allocates what it keeps
	Advice string   // with %s for the function
}

// Distribution is what the registry calls it.
func (f *Framework) Distribution() string { return cmp.Or(f.Package, f.Name) }

// Owns says whether a place is in the framework's own code.
func (f *Framework) Owns(at mem.Location) bool { return within(f.Code, at) }

// Allocates says whether a place is in code that allocates what the cache keeps.
func (c *Cache) Allocates(at mem.Location) bool { return within(c.Code, at) }

func within(code []string, at mem.Location) bool {
	return slices.ContainsFunc(code, func(part string) bool { return strings.Contains(at.File, part) })
}
