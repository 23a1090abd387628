package run

import (
	"fmt"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// leastUnused is how many forward passes of a line are told: a few may be a look at a model before its training.
const leastUnused = 4

// graphs tells of forward passes that saved tensors for a backward pass that never came.
func graphs(in *Input) (r report.Part) {
	type line struct {
		process uint32
		where   mem.Location
	}
	last := map[line]mem.Event{}
	var order []line
	for _, e := range in.Run.Events {
		if e.Kind != mem.EventUnusedGraphs || e.Where == nil {
			continue
		}
		at := line{e.Process, *e.Where}
		if _, known := last[at]; !known {
			order = append(order, at)
		}
		last[at] = e
	}
	for _, at := range order {
		e := last[at]
		// Of a line that trains, a step that was broken off leaves some: what evaluates leaves many more.
		if count := e.Numbers["count"]; count >= leastUnused && count > 2*e.Numbers["used"] {
			r.Findings = append(r.Findings, in.unusedGraphs(e))
		}
	}
	return r
}

func (in *Input) unusedGraphs(e mem.Event) report.Finding {
	count, most := e.Numbers["count"], e.Numbers["at_once"]
	name, alone := in.Names.Search([]mem.Location{*e.Where}).Name, e.Numbers["used"] == 0
	f := report.Finding{Kind: report.KindGraphs, Severity: report.Info, Process: e.Process, File: e.Where.File,
		Line: e.Where.Line, Label: mem.Measured,
		Title: fmt.Sprintf("%s forward passes saved for a backward pass that never came", report.Count(count)),
		Text: fmt.Sprintf("%s forward passes of %s at %s ran with gradients enabled, and no backward pass used what they "+
			"saved for it (counted; there may be more). ", report.Count(count), e.Facts["class"], name)}
	switch {
	case alone && most > 1:
		f.Severity = report.Warning
		f.Text += fmt.Sprintf("Up to %s such graphs were held at once: what each saved lives as long as its result.",
			report.Count(most))
	case alone:
		f.Text += "Each was freed before the next one, so at most one was held at once."
	default:
		f.Text += "Other passes of this line were used, so it matters from where the line is called."
	}
	f.Advice = fmt.Sprintf("Where no gradient is wanted, as in an evaluation, make the call under `%s`: it then saves "+
		"nothing for a backward pass.", frameworks.NoGrad)
	if e.Facts["mode"] == "eval" {
		f.Advice += " eval() alone does not do that."
	}
	return f
}
