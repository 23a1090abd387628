package analyze

import (
	"cmp"
	"fmt"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// alerts reports the limits that somebody set and that were passed: the first time of each.
func alerts(in *Input, r *report.Report) {
	index, times := map[string]int{}, map[string]int{}
	for _, e := range in.Run.Events {
		if e.Kind != "alert" {
			continue
		}
		name := cmp.Or(e.Facts["alert"], e.Text)
		times[name]++
		if _, ok := index[name]; ok {
			continue
		}
		index[name] = len(r.Findings)
		step := ""
		if n, ok := e.Step.Get(); ok {
			step = fmt.Sprintf(" at step %d", n)
		}
		r.Findings = append(r.Findings, report.Finding{
			Kind: report.KindAlert, Severity: report.Warning, Process: e.Process, Bytes: e.Bytes, Label: mem.Measured, Title: report.FirstLine(e.Text, 120),
			Text: fmt.Sprintf("%s (measured)%s, %s after the start.", report.FirstLine(e.Text, 200), step, report.Duration(in.since(e.Time))),
		})
	}
	for name, i := range index {
		if n := times[name]; n > 1 {
			r.Findings[i].Text += fmt.Sprintf(" It was passed %d times.", n)
		}
	}
}

// drops says what was lost on the way, what could not be observed, and where the recording is
// damaged, so that nobody takes a gap for a zero.
func drops(in *Input, r *report.Report) {
	byPlace := map[string]uint64{}
	var order []string
	for _, d := range in.Run.Drops {
		if d.Records == 0 {
			continue
		}
		if byPlace[d.Place] == 0 {
			order = append(order, d.Place)
		}
		byPlace[d.Place] += d.Records
		r.Dropped += d.Records
	}
	for _, place := range order {
		r.AddNote(fmt.Sprintf("%d records were lost (%s): figures that count allocations can be low by what they held.", byPlace[place], place))
	}
	if r.Dropped > 0 {
		r.Findings = append(r.Findings, report.Finding{
			Kind: report.KindDrop, Severity: report.Info, Label: mem.Measured, Title: fmt.Sprintf("%d records were lost", r.Dropped),
			Text: fmt.Sprintf("%d records were lost on the way (%s). Host and device samples are not touched by it; sampled heap figures can be low.", r.Dropped, strings.Join(order, ", ")),
		})
	}
	said := map[string]bool{}
	for _, e := range in.Run.Events {
		if (e.Kind == "unobserved" || e.Kind == "gap") && e.Text != "" && !said[e.Text] && len(said) < 20 {
			said[e.Text] = true
			r.AddNote("Not observed: " + report.FirstLine(e.Text, 300) + ".")
		}
	}
	for _, d := range in.Run.Damage {
		r.AddNote(fmt.Sprintf("The recording is damaged at byte %d (%d bytes): %s. What stood there is missing here.", d.Offset, d.Bytes, d.Text))
	}
	if in.Run.End == nil {
		r.AddNote("The recording has no end: the run was still going on, or the recorder was killed. Everything up to then is here.")
	}
	in.samplingNote(r)
}

// samplingNote says how the heap was sampled and how wide its error is.
func (in *Input) samplingNote(r *report.Report) {
	h := in.Run.Heap[in.leader]
	if h == nil || h.Peak == nil {
		return
	}
	r.AddNote(fmt.Sprintf("The heap was sampled by bytes (mean distance %v; blocks of 4 MiB and more all): %v ± %v at its peak (95 %%).",
		mem.Bytes(usage.SamplingOf(in.Run, in.leader).Mean), h.Peak.Live, usage.Half95(h.Peak.Variance, h.Peak.Live)))
}
