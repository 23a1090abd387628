package analyze

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const (
	tracedOften = 8 // tracings of one function that make a finding, if they do not stop
	tracedRows  = 20
)

// tracing is what a run tells of one function that a framework traced or compiled.
type tracing struct {
	process             uint32
	framework, function string
	where               mem.Location
	count, early        int64 // in all, and up to the middle of the run
	first, last         int64 // times
	argument            string
	before, after       string
	eager               bool // an operation of the framework's own, outside of any compiled function
	library             bool // functions of a library's own, by the line that ran them
}

// traced tells which functions were traced again and again, each time keeping another graph or program.
func traced(in *Input) (r report.Part) {
	all := in.tracings()
	t := report.Table{
		Name: "tracings", Title: "Functions traced more than once",
		Columns: []report.Column{report.TextColumn("function", "function"), report.TextColumn("line", "line"),
			report.TextColumn("framework", "framework"),
			report.CountColumn("count", "times"), report.TextColumn("changed", "what changed last")},
	}
	for _, f := range all {
		if f.count > 1 && len(t.Rows) < tracedRows {
			t.Add(f.function, in.Names.Search([]mem.Location{f.where}).Name, f.framework, f.count, f.change())
		}
		own := !f.library || in.Names.Kind(f.where.File) == usage.UserFile // otherwise no line of the program's is known
		if f.goesOn() && own {
			r.Findings = append(r.Findings, in.tracedFinding(f))
		}
	}
	r.AddTable(t)
	return r
}

// tracings are the functions of the run, the most often traced first.
func (in *Input) tracings() []*tracing {
	type key struct {
		process             uint32
		framework, function string
		file                string
		line                int
	}
	known := map[key]*tracing{}
	var all []*tracing
	middle := in.Start + (in.End-in.Start)/2
	for _, e := range in.Run.Events {
		if e.Kind != "traced" || e.Where == nil {
			continue
		}
		k := key{e.Process, e.Facts["framework"], e.Where.Function, e.Where.File, e.Where.Line}
		f := known[k]
		if f == nil {
			f = &tracing{process: e.Process, framework: k.framework, function: k.function, where: *e.Where, first: e.Time}
			known[k] = f
			all = append(all, f)
		}
		f.count, f.last = max(f.count, e.Numbers["count"]), e.Time
		if e.Time <= middle {
			f.early = f.count
		}
		f.argument, f.before, f.after = e.Facts["argument"], e.Facts["before"], e.Facts["after"]
		f.eager, f.library = e.Facts["eager"] != "", e.Facts["library"] != ""
	}
	slices.SortStableFunc(all, func(a, b *tracing) int {
		if a.eager != b.eager && a.count == b.count {
			return map[bool]int{true: 1, false: -1}[a.eager] // the program's own functions first
		}
		return cmp.Compare(b.count, a.count)
	})
	return all
}

// goesOn says whether it was traced often, and not only as the program warmed up.
func (f *tracing) goesOn() bool { return f.count >= tracedOften && f.count-f.early >= f.count/4 }

// change is what made the function be traced again.
func (f *tracing) change() string {
	switch {
	case f.argument == "" && f.eager:
		return "a shape"
	case f.argument == "":
		return "no argument"
	}
	return fmt.Sprintf("%s: %s to %s", f.argument, f.before, f.after)
}

func (in *Input) tracedFinding(f *tracing) report.Finding {
	if f.library {
		return in.libraryTraced(f)
	}
	text := fmt.Sprintf("%s was traced %d times, %d of them in the second half of the run. %s keeps a graph or program "+
		"of each. ",
		f.function, f.count, f.count-f.early, frameworks.Of(f.framework).Title)
	switch {
	case f.eager:
		text += "It is an operation that this line runs outside of any jitted function, so it is compiled for each shape " +
			"by itself."
	case f.argument == "":
		text += "Its arguments were of the same types each time, so it is likely to be made again before each call."
	default:
		text += fmt.Sprintf("The last time, its argument %s changed from %s to %s.", f.argument, f.before, f.after)
	}
	finding := report.Finding{
		Kind: report.KindTracing, Severity: report.Info, Title: fmt.Sprintf("%s is traced again and again", f.function),
		Text: text, Advice: f.advice(),
		Process: f.process, File: f.where.File, Line: f.where.Line, Label: mem.Measured,
	}
	in.roseMeanwhile(f, &finding)
	return finding
}

// roseMeanwhile adds what RSS rose by between the first tracing and the last.
func (in *Input) roseMeanwhile(f *tracing, finding *report.Finding) {
	rss := in.Find(f.process, mem.SeriesRSS)
	if rss == nil {
		return
	}
	first, ok1 := rss.At(f.first).Get()
	last, ok2 := rss.At(f.last).Get()
	if rose := last - first; ok1 && ok2 && rose > 16<<20 {
		finding.Severity = report.Warning
		finding.Text += fmt.Sprintf(" RSS rose by %v between the first tracing and the last, for this or other reasons "+
			"(measured).", mem.Bytes(rose))
	}
}

// libraryTraced tells of functions that the program did not write: what it may change is the line that runs them.
func (in *Input) libraryTraced(f *tracing) report.Finding {
	line := in.Names.Search([]mem.Location{f.where}).Name
	finding := report.Finding{
		Kind: report.KindTracing, Severity: report.Info, Process: f.process, File: f.where.File, Line: f.where.Line,
		Label: mem.Measured,
		Title: fmt.Sprintf("%s makes %s trace functions of its own again and again", line, frameworks.Of(f.framework).Title),
		Text: fmt.Sprintf("%s traced functions of its own, as %s, %d times at %s, %d of them in the second half of the "+
			"run. Each takes time; whether their graphs are kept was not seen.",
			frameworks.Of(f.framework).Title, f.function, f.count, line, f.count-f.early),
		Advice: "If this line makes a model, a dataset or a function anew each time, make it once, before the loop.",
	}
	if source := in.Source(f.where); strings.Contains(source, ".predict(") || strings.Contains(source, ".evaluate(") {
		finding.Advice = "Each call of predict or evaluate makes a dataset, and traces its functions. For few inputs call " +
			"the model itself, as model(x, training=False), or pass all inputs in one call."
	}
	in.roseMeanwhile(f, &finding)
	return finding
}

func (f *tracing) advice() string {
	if retraced := frameworks.Of(f.framework).Retraced; retraced != nil {
		return retraced(frameworks.Retracing{Eager: f.eager, Anew: f.argument == "", After: f.after})
	}
	return ""
}
