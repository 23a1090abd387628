package facts

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

const (
	tracedOften    = 8 // tracings of one function that make a finding, if they do not stop
	imaginedShapes = 5 // shapes that make one in an imagined run, which has few steps
)

// Tracing is what a run tells of one function that a framework traced or compiled.
type Tracing struct {
	Process             uint32
	Framework, Function string
	Where               mem.Location
	Count               int64 // in all
	Late                int64 // of these, at least so many in the second half of the run, and after the first step
	Imagined            bool  // Late counts those after the first step, then: an imagined run's times tell nothing
	First, Last         int64 // times
	Argument            string
	Before, After       string
	Eager               bool    // an operation of the framework's own, outside of any compiled function
	Library             bool    // functions of a library's own, by the line that ran them
	Shaped, Shape       string  // an argument that had arrays of several shapes, and from which to which
	Shapes              int64   // how many
	Lengths             []int64 // of the one dimension in which they differ; nil: of several, or too many
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
	late, imagined := max(in.Start+(in.End-in.Start)/2, in.firstStep()), false
	if in.Label() == mem.Imagined && in.firstStep() > 0 {
		late, imagined = in.firstStep(), true
	}
	for _, e := range in.Run.Events {
		if e.Kind != "traced" || e.Where == nil {
			continue
		}
		k := key{e.Process, e.Facts["framework"], e.Where.Function, e.Where.File, e.Where.Line}
		f := known[k]
		if f == nil {
			f = &Tracing{Process: e.Process, Framework: k.framework, Function: k.function, Where: *e.Where, First: e.Time,
				Imagined: imagined}
			known[k] = f
			all = append(all, f)
		}
		f.add(e.Numbers["count"], cmp.Or(e.Numbers["last_ns"], e.Time), late)
		f.Argument, f.Before, f.After = e.Facts["argument"], e.Facts["before"], e.Facts["after"]
		f.Shaped, f.Shape, f.Shapes, f.Lengths = e.Facts["shaped"], e.Facts["shape"], e.Numbers["shapes"],
			lengths(e.Facts["lengths"])
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
func (f *Tracing) GoesOn() bool {
	if f.Imagined && f.Shapes >= imaginedShapes && f.Late > 0 && len(f.Padded()) > 0 {
		return true
	}
	return f.Count >= tracedOften && f.Late >= f.Count/4
}

// Padded are lengths of those that came to which all others can be padded, none to twice its length or more. nil: that
// makes no fewer shapes, or it is not one dimension in which they differ.
func (f *Tracing) Padded() (chosen []int64) {
	for _, length := range slices.Backward(f.Lengths) {
		if len(chosen) == 0 || 2*length <= chosen[len(chosen)-1] {
			chosen = append(chosen, length)
		}
	}
	slices.Reverse(chosen)
	if len(chosen) >= len(f.Lengths) {
		return nil
	}
	return chosen
}

// lengths reads what a record lists, in ascending order; nil: it lists none.
func lengths(text string) (found []int64) {
	for _, word := range strings.Split(text, ",") {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 0 || len(found) > 0 && n <= found[len(found)-1] {
			return nil
		}
		found = append(found, n)
	}
	return found
}
