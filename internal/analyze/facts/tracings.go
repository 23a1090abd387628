package facts

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

const tracedOften = 8 // tracings of one function that make a finding, if they do not stop

// Tracing is what a run tells of one function that a framework traced or compiled.
type Tracing struct {
	Process             uint32
	Framework, Function string
	Where               mem.Location
	Count, Early        int64 // in all, and up to the middle of the run
	First, Last         int64 // times
	Argument            string
	Before, After       string
	Eager               bool // an operation of the framework's own, outside of any compiled function
	Library             bool // functions of a library's own, by the line that ran them
}

// Tracings are the functions of the run, the most often traced first.
func (in *Facts) Tracings() []*Tracing {
	type key struct {
		process             uint32
		framework, function string
		file                string
		line                int
	}
	known := map[key]*Tracing{}
	var all []*Tracing
	middle := in.Start + (in.End-in.Start)/2
	for _, e := range in.Run.Events {
		if e.Kind != "traced" || e.Where == nil {
			continue
		}
		k := key{e.Process, e.Facts["framework"], e.Where.Function, e.Where.File, e.Where.Line}
		f := known[k]
		if f == nil {
			f = &Tracing{Process: e.Process, Framework: k.framework, Function: k.function, Where: *e.Where, First: e.Time}
			known[k] = f
			all = append(all, f)
		}
		f.Count, f.Last = max(f.Count, e.Numbers["count"]), e.Time
		if e.Time <= middle {
			f.Early = f.Count
		}
		f.Argument, f.Before, f.After = e.Facts["argument"], e.Facts["before"], e.Facts["after"]
		f.Eager, f.Library = e.Facts["eager"] != "", e.Facts["library"] != ""
	}
	slices.SortStableFunc(all, func(a, b *Tracing) int {
		if a.Eager != b.Eager && a.Count == b.Count {
			return map[bool]int{true: 1, false: -1}[a.Eager] // the program's own functions first
		}
		return cmp.Compare(b.Count, a.Count)
	})
	return all
}

// GoesOn says whether it was traced often, and not only as the program warmed up.
func (f *Tracing) GoesOn() bool { return f.Count >= tracedOften && f.Count-f.Early >= f.Count/4 }
