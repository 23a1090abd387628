package run

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/analyze/facts"
	"hightide/internal/analyze/imagined"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// headline gives the answer in one breath. It runs last: the verdict is made of what the others
// found.
func headline(in *Input, r *report.Report) {
	h := &r.Headline
	h.MainSource, h.Figure, h.Peak, h.Efficiency = in.Lead.Name, in.Figure, in.Peak, in.scored.milli
	h.Looked, h.NotLooked, h.Larger = in.grown.Looked, in.grown.NotLooked, in.grown.Larger
	h.Growth, h.GrowthLabel, h.GrowthLeast = in.grown.Rate, in.grown.RateLabel, in.grown.LeastTold
	h.GrowthError, h.Fragmentation = in.grown.RateError, in.fragments()
	h.Duration = in.End - in.Start
	h.Steps = in.Run.StepCount()
	h.Complete = in.Run.End != nil
	if in.Run.End != nil {
		h.ExitCode, h.Signal, h.Stopped = in.Run.End.ExitCode, in.Run.End.Signal, in.Run.End.Reason == "stopped"
		h.Left = in.Run.End.Reason == "left"
	}
	h.Ended = in.Ending()
	h.Exception = in.exception(r)
	if in.Label() != mem.Imagined { // where no kernel ran, a step's time is that of the host alone
		h.StepTime = in.StepTime(in.Leader)
	}
	if in.Verdict != nil {
		h.Say(imagined.Sentence(in.Verdict)...)
		return
	}
	var b strings.Builder
	in.verdictOOM(&b, r)
	in.verdictPeak(&b)
	h.Say(b.String(), confinedClause(r.MemoryLimit), in.firstClause(), in.beforeClause(),
		in.grown.Clause(!oomed(r) && (in.first == nil || in.first.memory)), in.grown.FilesClause())
}

// fragments is what the allocator that leads had and nobody used when its curve was highest. Of an imagined device the
// two peaks are known alone.
func (in *Input) fragments() (f mem.Figure) {
	if v := in.Verdict; v != nil {
		reserved, allocated := v.Reserved.Or(0), v.Allocated.Or(v.Reserved.Or(0))
		if v.Allocated.Known() && reserved >= allocated {
			f = mem.Figure{Bytes: reserved - allocated, What: "what was reserved beyond the peak allocated",
				Source: mem.SeriesReserved, Label: mem.Imagined}
		}
		return f
	}
	idle, _, ok := in.idleAtPeak(in.Lead)
	if !ok || idle < 0 {
		return f
	}
	f = mem.Figure{Bytes: idle, What: "what was free in malloc at the peak", Source: mem.SeriesMallocFree,
		Label: in.Lead.Series.Label}
	if in.Lead.Name == mem.SeriesReserved {
		f.What, f.Source = "what was reserved, not allocated, at the peak", mem.SeriesReserved
	}
	return f
}

// exception is one that nobody caught in a program that failed; nil where there was none.
func (in *Input) exception(r *report.Report) *report.Exception {
	end := in.Run.End
	if end == nil || !end.Signal.Known() && end.ExitCode.Or(0) == 0 {
		return nil
	}
	e, ok := in.Run.Uncaught()
	if !ok {
		return nil
	}
	found := &report.Exception{Class: e.Facts["class"], Text: e.Text, From: e.Facts["from"], Time: e.Time - in.Start,
		Process: e.Process, Serves: in.Run.Serves() && in.Run.ServesIn(e.Process)}
	if e.Where != nil {
		found.File, found.Line, found.Function = e.Where.File, e.Where.Line, e.Where.Function
	}
	told := e.Shortage() && slices.ContainsFunc(r.Findings,
		func(f report.Finding) bool { return f.Kind == report.KindOOM })
	if !told && in.Verdict == nil {
		found.Sentence = in.exceptionText(found)
	}
	return found
}

// exceptionText: "ValueError at train.py:12 in rank 1: expected 3 columns (after KeyError: 'x')".
func (in *Input) exceptionText(e *report.Exception) string {
	text := e.Class
	if e.File != "" {
		text += " at " + mem.LineName(mem.Location{File: e.File, Line: e.Line})
	}
	if who := in.ProcessName(e.Process); who != "main" {
		text += " in " + who
	}
	if said := report.FirstLine(e.Text, 200); said != "" {
		text += ": " + said
	}
	if e.From != "" {
		text += " (after " + report.FirstLine(e.From, 120) + ")"
	}
	return text
}

func (in *Input) verdictOOM(b *strings.Builder, r *report.Report) {
	for _, f := range r.Findings {
		if f.Kind == report.KindOOM {
			b.WriteString(f.Title)
			if f.File != "" {
				fmt.Fprintf(b, " at %s", mem.LineName(mem.Location{File: f.File, Line: f.Line}))
			}
			if r.Headline.Ended.Kind == mem.EndDone {
				b.WriteString("; the program went on to its end")
			}
			b.WriteString(". ")
			return
		}
	}
}

// verdictPeak: "Peak 1.34 GiB RSS (measured) in backward of step 212".
func (in *Input) verdictPeak(b *strings.Builder) {
	p, f := in.Peak, in.Figure
	if !f.Known() {
		b.WriteString("No memory was observed")
		return
	}
	value, what := f.Bytes, f.What
	switch f.Source {
	case mem.SeriesReserved, mem.SeriesAllocated:
		what += " on the device"
	case mem.SeriesDeviceUsed:
		what += ", by all programs together"
		if all, ok := in.MemoryOf(in.FullestDevice().Device).Get(); ok && int64(value) <= all {
			what = fmt.Sprintf("of %v %s", mem.Bytes(all), what)
		}
	}
	processes := fmt.Sprintf("%d processes", len(in.Run.Processes))
	b.WriteString("Peak ")
	if p.AtLeast {
		b.WriteString("at least ")
	}
	switch n := len(in.Run.Processes); {
	case what == "PSS":
		half := f.Error
		if p.AtLeast {
			value, half = value-half, 0
		}
		rss, shared := p.HostRSS.Get()
		alive := in.aliveAt(p.Time)
		fmt.Fprintf(b, "%s of %s (%s", pssText(value, half), report.Counted(int64(alive), "process"), mem.Estimated)
		switch {
		case shared && alive < n: // the RSS may have been highest while others were there
			fmt.Fprintf(b, "; the highest RSS of the run is %v, where pages that other processes use too count in full",
				mem.Bytes(rss))
		case shared:
			fmt.Fprintf(b, "; %v RSS, where shared pages count in each", mem.Bytes(rss))
		}
		b.WriteString(")")
	case what == "RSS" && n > 1:
		fmt.Fprintf(b, "%v RSS of %s (%s; how much of it they share is not known here)", mem.Bytes(value), processes, p.Label)
	default:
		fmt.Fprintf(b, "%v %s (%s)", mem.Bytes(value), what, p.Label)
	}
	in.peakMoment(b, &p)
	if p.AtLeast {
		fmt.Fprintf(b, "; %d of the processes lived less than %s or were read less than three times: between two readings "+
			"they may have taken more", in.ShortLived, report.Duration(facts.ShortLife))
	}
}

// aliveAt is how many processes there were at a moment since the begin; all of the run where it is not known.
func (in *Input) aliveAt(moment mem.Optional) (n int) {
	since, known := moment.Get()
	for _, p := range in.Run.Processes {
		if at := in.Start + since; !known || p.Start <= at && p.End.Or(at) >= at {
			n++
		}
	}
	return n
}

// Of a PSS, an error up to tellError is not told, one above asRange is told as the range that it means.
const (
	tellError = 0.005
	asRange   = 0.075
)

// pssText: "1.21 GiB PSS ± 14.0 MiB".
func pssText(value, half int64) string {
	share := float64(half) / float64(max(value, 1))
	switch {
	case share > asRange:
		return fmt.Sprintf("between %v and %v PSS", mem.Bytes(value-half), mem.Bytes(value+half))
	case share > tellError:
		return fmt.Sprintf("%v PSS ± %v", mem.Bytes(value), mem.Bytes(half))
	}
	return fmt.Sprintf("%v PSS", mem.Bytes(value))
}

// peakMoment: " in backward of step 212".
func (in *Input) peakMoment(b *strings.Builder, p *report.Peak) {
	moment := mem.MomentText(p.Phase, p.Step, int64(in.Run.StepCount()))
	switch {
	case moment != "":
		b.WriteString(" " + moment)
	case p.Time.Known():
		fmt.Fprintf(b, ", %s after %s", report.Duration(p.Time.Or(0)), in.Beginning())
		in.afterSteps(b, in.Start+p.Time.Or(0))
	case p.HostRSS.Known() && len(in.Run.Series) > 0:
		b.WriteString(", by the kernel's mark; when is not recorded")
	}
	if p.Step.Known() && in.Attached() { // how many there were before it nobody knows
		b.WriteString(" of the recording")
	}
}

// afterSteps tells a peak that came when the training was over, as where a program gathers its results or its
// libraries are unloaded, and the highest until then, where that was clearly less: " and 6.6 s after the last step".
func (in *Input) afterSteps(b *strings.Builder, peak int64) {
	steps, rss := in.Steps[in.Leader], in.Find(in.Leader, mem.SeriesRSS)
	if len(steps) == 0 || rss == nil || in.Figure.What != "RSS" || len(in.Run.Processes) > 1 {
		return
	}
	last := steps[len(steps)-1].Time
	top, ok := highestBefore(rss, last)
	if ok && peak > last && float64(rss.Values[top]) < clearlyLess*float64(in.Figure.Bytes) {
		fmt.Fprintf(b, " and %s after the last step (%v until then)", report.Duration(peak-last), mem.Bytes(rss.Values[top]))
	}
}

// clearlyLess is the part of the peak below which what came before it is told.
const clearlyLess = 0.95

func oomed(r *report.Report) bool {
	return slices.ContainsFunc(r.Findings, func(f report.Finding) bool { return f.Kind == report.KindOOM })
}
