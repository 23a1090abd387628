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
	Count               int64 // in all
	Late                int64 // of these, at least so many in the second half of the run, and after the first step
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
	late := max(in.Start+(in.End-in.Start)/2, in.firstStep())
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
		f.add(e.Numbers["count"], cmp.Or(e.Numbers["last_ns"], e.Time), late)
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

// firstStep is when a process ended a step first: until then a model may have been made, layer by layer of other sizes.
// 0: there are no steps.
func (in *Facts) firstStep() (first int64) {
	for _, steps := range in.Steps {
		if len(steps) > 0 && (first == 0 || steps[0].Time < first) {
			first = steps[0].Time
		}
	}
	return first
}

// add takes in that a function has been traced so many times, lastly at a time. Of those since it was told before, only
// the last one's time is known.
func (f *Tracing) add(count, last, late int64) {
	switch more := count - f.Count; {
	case more <= 0:
		return
	case f.Count > 0 && f.Last > late:
		f.Late += more
	case last > late:
		f.Late++
	}
	f.Count, f.Last = count, last
}

// GoesOn says whether it was traced often, and not only as the program made its model or warmed up.
func (f *Tracing) GoesOn() bool { return f.Count >= tracedOften && f.Late >= f.Count/4 }
