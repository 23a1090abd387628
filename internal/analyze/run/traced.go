package run

import (
	"fmt"
	"strings"

	"hightide/internal/analyze/facts"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const tracedRows = 20

// traced tells which functions were traced again and again, each time keeping another graph or program.
func traced(in *Input) (r report.Part) {
	all := in.Tracings()
	t := report.Table{
		Name: "tracings", Title: "Functions traced more than once",
		Columns: []report.Column{report.TextColumn("function", "function"), report.TextColumn("line", "line"),
			report.TextColumn("framework", "framework"),
			report.CountColumn("count", "times"), report.TextColumn("changed", "what changed last")},
	}
	for _, f := range all {
		if f.Count > 1 && len(t.Rows) < tracedRows {
			function := f.Function
			if f.Library { // they are told together
				function = "the framework's, as " + function
			}
			t.Add(function, in.Names.Search([]mem.Location{f.Where}).Name, f.Framework, f.Count, changedIn(f))
		}
		own := !f.Library || in.Names.Kind(f.Where.File) == usage.UserFile // otherwise no line of the program's is known
		if f.GoesOn() && own {
			r.Findings = append(r.Findings, in.tracedFinding(f))
		}
	}
	r.AddTable(t)
	return r
}

// changedIn is what made the function be traced again.
func changedIn(f *facts.Tracing) string {
	switch {
	case f.Library:
		return "not looked at"
	case f.Argument == "" && f.Eager:
		return "a shape"
	case f.Argument == "":
		return "no argument"
	}
	return fmt.Sprintf("%s: %s to %s", f.Argument, f.Before, f.After)
}

func (in *Input) tracedFinding(f *facts.Tracing) report.Finding {
	if f.Library {
		return in.libraryTraced(f)
	}
	if f.Imagined && f.Shapes > 1 {
		return in.manyShapes(f)
	}
	text := fmt.Sprintf("%s was traced %d times, %d or more of them %s. %s keeps a graph or program of each. ",
		f.Function, f.Count, f.Late, lately(f), frameworks.Of(f.Framework).Title)
	switch {
	case f.Eager:
		text += "It is an operation that this line runs outside of any jitted function, so it is compiled for each shape " +
			"by itself."
	case f.Argument == "":
		text += "Its arguments were of the same types each time, so it is likely to be made again before each call."
	default:
		text += fmt.Sprintf("The last time, its argument %s changed from %s to %s.", f.Argument, f.Before, f.After)
	}
	finding := report.Finding{
		Kind: report.KindTracing, Severity: report.Info, Title: fmt.Sprintf("%s is traced again and again", f.Function),
		Text: text, Advice: retracedAdvice(f, false),
		Process: f.Process, File: f.Where.File, Line: f.Where.Line, Label: mem.Measured,
	}
	in.roseMeanwhile(f, &finding)
	return finding
}

// lately is when those were that make it go on.
func lately(f *facts.Tracing) string {
	if f.Imagined {
		return "after the first step"
	}
	return "in the second half of the run"
}

// manyShapes tells of an imagined run in which a function met many shapes: how often it was compiled for them, what of
// the run's need rests on which of them came, and to which of them the others can be padded.
func (in *Input) manyShapes(f *facts.Tracing) report.Finding {
	made, count := "traced", f.Count
	for _, p := range in.programs() {
		if p.where == f.Where && p.count > 1 {
			made, count = "compiled", p.count
		}
	}
	text := fmt.Sprintf("%s was %s %d times in %s, for %d shapes of its argument %s: %s. %s keeps a graph or program of each.",
		f.Function, made, count, report.Counted(int64(in.Run.StepCount()), "step"), f.Shapes, f.Shaped, f.Shape,
		frameworks.Of(f.Framework).Title)
	need := in.needed()
	if need != "" {
		text += fmt.Sprintf(" The run needs %s, the highest over the shapes that came: a larger one may need more.", need)
	}
	padded := f.Padded()
	advice := retracedAdvice(f, len(padded) > 0 && need != "")
	if len(padded) > 0 && need != "" {
		lengths := make([]string, len(padded))
		for i, length := range padded {
			lengths[i] = fmt.Sprint(length)
		}
		advice = fmt.Sprintf("Pad %s to %s: %s in place of %d. All of them ran here and none is larger, so the run still "+
			"needs %s, unless it holds more of the largest at once. ", f.Shaped, listed(lengths),
			report.Counted(int64(len(padded)), "shape"), f.Shapes, need) + advice
		advice = strings.TrimSpace(advice)
	}
	return report.Finding{
		Kind: report.KindTracing, Severity: report.Info, Title: fmt.Sprintf("%s is %s for many shapes", f.Function, made),
		Text: text, Advice: advice, Process: f.Process, File: f.Where.File, Line: f.Where.Line, Label: mem.Measured,
	}
}

// needed is what the verdict of an imagined run says of its need; "" where it says none.
func (in *Input) needed() string {
	if in.Verdict == nil {
		return ""
	}
	need, ok := in.Verdict.Needed.Get()
	if !ok {
		need, ok = in.Verdict.Used.Get()
	}
	if !ok {
		return ""
	}
	return mem.Bytes(need).String()
}

// roseMeanwhile adds what RSS rose by between the first tracing and the last.
func (in *Input) roseMeanwhile(f *facts.Tracing, finding *report.Finding) {
	rss := in.Find(f.Process, mem.SeriesRSS)
	if rss == nil {
		return
	}
	first, ok1 := rss.At(f.First).Get()
	last, ok2 := rss.At(f.Last).Get()
	if rose := last - first; ok1 && ok2 && rose > 16<<20 {
		finding.Severity = report.Warning
		finding.Text += fmt.Sprintf(" RSS rose by %v between the first tracing and the last, for this or other reasons "+
			"(measured).", mem.Bytes(rose))
	}
}

// libraryTraced tells of functions that the program did not write: what it may change is the line that runs them.
func (in *Input) libraryTraced(f *facts.Tracing) report.Finding {
	line := in.Names.Search([]mem.Location{f.Where}).Name
	finding := report.Finding{
		Kind: report.KindTracing, Severity: report.Info, Process: f.Process, File: f.Where.File, Line: f.Where.Line,
		Label: mem.Measured,
		Title: fmt.Sprintf("%s makes %s trace functions of its own again and again", line, frameworks.Of(f.Framework).Title),
		Text: fmt.Sprintf("%s traced functions of its own, as %s, %d times at %s, %d or more of them %s. Each takes "+
			"time; whether their graphs are kept was not seen.",
			frameworks.Of(f.Framework).Title, f.Function, f.Count, line, f.Late, lately(f)),
		Advice: "If this line makes a model, a dataset or a function anew each time, make it once, before the loop.",
	}
	if source := in.Source(f.Where); strings.Contains(source, ".predict(") || strings.Contains(source, ".evaluate(") {
		finding.Advice = "Each call of predict or evaluate makes a dataset, and traces its functions. For few inputs call " +
			"the model itself, as model(x, training=False), or pass all inputs in one call."
	}
	in.roseMeanwhile(f, &finding)
	return finding
}

// retracedAdvice is what to change; `padded`: beside the shapes to which inputs can be padded.
func retracedAdvice(f *facts.Tracing, padded bool) string {
	if retraced := frameworks.Of(f.Framework).Retraced; retraced != nil {
		return retraced(frameworks.Retracing{Eager: f.Eager, Anew: f.Argument == "", Padded: padded, After: f.After})
	}
	return ""
}
