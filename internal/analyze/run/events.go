package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// alerts reports the limits that somebody set and that were passed: the first time of each.
func alerts(in *Input) (r report.Part) {
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
			step = fmt.Sprintf(" in step %d", n+1)
		}
		r.Findings = append(r.Findings, report.Finding{
			Kind: report.KindAlert, Severity: report.Warning, Process: e.Process, Bytes: e.Bytes, Label: mem.Measured,
			Title: report.FirstLine(e.Text, report.TitleLength),
			Text: fmt.Sprintf("%s (measured)%s, %s after %s.", report.FirstLine(e.Text, 200), step,
				report.Duration(in.Since(e.Time)), in.Beginning()),
		})
	}
	for name, i := range index {
		if n := times[name]; n > 1 {
			r.Findings[i].Text += fmt.Sprintf(" It was passed %d times.", n)
		}
	}
	return r
}

// drops says what was lost on the way, what could not be observed, and where the recording is
// damaged, so that nobody takes a gap for a zero.
func drops(in *Input) (r report.Part) {
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
		r.AddNote(fmt.Sprintf("%s lost (%s): %s.", records(byPlace[place]), place, lostAt(place)))
	}
	if r.Dropped > 0 {
		r.Findings = append(r.Findings, report.Finding{
			Kind: report.KindDrop, Severity: report.Info, Label: mem.Measured, Title: records(r.Dropped) + " lost",
			Text: fmt.Sprintf("%s lost on the way (%s): %s.", records(r.Dropped), strings.Join(order, ", "), lostAt(order...)),
		})
	}
	in.unobserved(&r)
	for _, d := range in.Run.Damage {
		r.AddNote(fmt.Sprintf("The recording is damaged at byte %d (%d bytes): %s. What stood there is missing here.",
			d.Offset, d.Bytes, d.Text))
	}
	if in.Run.End != nil && in.Run.End.Reason == "recovered" {
		r.AddNote(fmt.Sprintf("The recorder was killed: samples of memory end %s after %s. What the processes told "+
			"themselves goes on, as does the "+
			"kernel's mark of each that ended in order; what others took after that is not known.",
			report.Duration(in.Since(in.lastSampled())), in.Beginning()))
	}
	if in.Run.End == nil {
		r.AddNote("The recording has no end: the run was still going on, or the recorder was killed. Everything up to " +
			"then is here.")
	}
	in.samplingNote(&r)
	return r
}

// unobserved notes what could not be seen, each reason once: of processes that share one, the first is named.
func (in *Input) unobserved(r *report.Part) {
	const most = 20
	var reasons []string
	first, times := map[string]string{}, map[string]int{}
	for _, e := range in.Run.Events {
		if (e.Kind != "unobserved" && e.Kind != "gap") || e.Text == "" {
			continue
		}
		reason := e.Text
		if p := in.Run.Process(e.Process); p != nil {
			reason = strings.TrimPrefix(reason, fmt.Sprintf("process %d, ", p.PID))
		}
		if times[reason]++; times[reason] == 1 {
			reasons, first[reason] = append(reasons, reason), e.Text
		}
	}
	for _, reason := range reasons[:min(len(reasons), most)] {
		note := "Not observed: " + report.FirstLine(first[reason], 300)
		if more := times[reason] - 1; more > 0 && reason != first[reason] {
			note += "; the same in " + report.Counted(int64(more), "more process")
		}
		r.AddNote(note + ".")
	}
	if more := len(reasons) - most; more > 0 {
		r.AddNote(fmt.Sprintf("%d more reasons why something was not observed are in the table of events (hightide export "+
			"--csv).", more))
	}
}

func records(n uint64) string {
	if n == 1 {
		return "1 record was"
	}
	return report.Count(int64(n)) + " records were"
}

// lostAt says what records may be missing from that were lost at some places.
func lostAt(places ...string) string {
	if slices.Contains(places, "disk") {
		return "they could not be written; of that time nothing may be here, and curves stop or have gaps"
	}
	if !slices.ContainsFunc(places, func(place string) bool { return place != "message" }) {
		return "they could not be read; names, marks and events in them may be missing"
	}
	return "samples of host and devices are not among them, and figures that count allocations can be low by what they " +
		"held"
}

// lastSampled is when the host's memory was read last.
func (in *Input) lastSampled() int64 {
	if s := in.Find(0, mem.SeriesTreeRSS); s != nil {
		return s.Times[len(s.Times)-1]
	}
	return in.Start
}

// samplingNote says how the heap was sampled and how wide its error is.
func (in *Input) samplingNote(r *report.Part) {
	h := in.Run.Heap[in.Leader]
	if h == nil || h.Peak == nil {
		return
	}
	if in.HeapTraced() {
		in.tracedNote(r, h)
		return
	}
	mean := mem.Bytes(usage.SamplingOf(in.Run, in.Leader).Mean)
	distance := fmt.Sprintf("mean distance %v", mean)
	if at := coarsest(h.Peak.Sites); at > 2*mean {
		distance += fmt.Sprintf(", at times %v or more, to cost the program little", at)
	}
	r.AddNote(fmt.Sprintf("The heap was sampled by bytes (%s; blocks of 4 MiB and more all): %v ± %v at its peak "+
		"(95 %%).", distance, h.Peak.Live, usage.Half95(h.Peak.Variance, h.Peak.Live)))
}

// coarsest is what one sample stood for, beyond its own size, where that was most.
func coarsest(sites []mem.SiteUse) (most mem.Bytes) {
	for _, site := range sites {
		most = max(most, site.Excess)
	}
	return most
}
