package analyze

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// outOfMemory reports every time memory ran out: raised by a framework, by Python, or the kernel's
// own killing.
func outOfMemory(in *Input, r *report.Report) {
	seen := 0
	for _, e := range in.Run.Events {
		if e.Kind == "oom" && seen < 8 {
			seen++
			r.Findings = append(r.Findings, in.oomFinding(e))
		}
	}
	kills := in.lastOf(0, mem.SeriesCgroupOOMKill).Or(0)
	if s := in.find(0, mem.SeriesCgroupOOMKill); s != nil {
		kills -= s.Values[0]
	}
	for _, e := range in.Run.Events {
		if e.Kind == "kill" {
			r.Findings = append(r.Findings, in.killFinding(e.Text, e.Process, e.Where))
			return
		}
	}
	if kills > 0 {
		r.Findings = append(r.Findings, in.killFinding(fmt.Sprintf("the kernel killed %d process(es) of the control group for memory", kills), 0, nil))
	}
}

func (in *Input) oomFinding(e mem.Event) report.Finding {
	f := report.Finding{Kind: report.KindOOM, Severity: report.Critical, Process: e.Process, Bytes: e.Bytes, Label: in.label()}
	source := e.Facts["source"]
	if source == "" {
		source = "the program"
	}
	f.Title = "Out of memory: " + source
	if bytes, ok := e.Bytes.Get(); ok {
		f.Title = fmt.Sprintf("Out of memory: %s could not get %v", source, mem.Bytes(bytes))
	}
	if source == "malloc" {
		f.Severity = report.Warning // the program went on
	}
	if stack, err := strconv.ParseUint(e.Facts["stack"], 10, 32); err == nil && e.Where == nil {
		at := in.names.Of(uint32(stack)).Location
		e.Where = &at
	}
	var text strings.Builder
	text.WriteString(f.Title)
	if e.Where != nil && e.Where.File != "" {
		f.File, f.Line, f.SiteFile, f.SiteLine, f.SiteFunction = e.Where.File, e.Where.Line, e.Where.File, e.Where.Line, e.Where.Function
		fmt.Fprintf(&text, " at %s", mem.LineName(*e.Where))
		if quoted := in.source(*e.Where); quoted != "" {
			fmt.Fprintf(&text, " (`%s`)", quoted)
		}
	}
	if step, ok := e.Step.Get(); ok {
		fmt.Fprintf(&text, ", step %d", step)
	}
	f.Phase, _ = in.phaseAt(e.Process, e.Time)
	if f.Phase != "" {
		fmt.Fprintf(&text, ", in %s", f.Phase)
	}
	fmt.Fprintf(&text, ", %s after the start.", report.Duration(in.since(e.Time)))
	switch {
	case source == "malloc":
		text.WriteString(" The program went on: it caught the error, or asked for less.")
	case e.Text != "":
		fmt.Fprintf(&text, " It said: %s", report.FirstLine(e.Text, 240))
	}
	f.Text = text.String()
	f.Advice = "What held the memory then is in the tables below; a smaller batch, gradient checkpointing or a lower precision takes less."
	return f
}

func (in *Input) killFinding(what string, process uint32, where *mem.Location) report.Finding {
	f := report.Finding{Kind: report.KindOOM, Severity: report.Critical, Process: process, Label: mem.Measured, Title: "Killed for memory", Text: report.FirstLine(what, 240) + "."}
	if where != nil {
		f.File, f.Line = where.File, where.Line
	}
	if limit, ok := in.hostLimit().Get(); ok {
		f.Text += fmt.Sprintf(" The limit is %v (measured).", mem.Bytes(limit))
		f.Bytes = mem.Some(limit)
	}
	f.Advice = "Raise the limit, or take less: the lines that held the memory are in the tables below."
	return f
}

// hostLimit is how much the job may take: the control group's limit, else the machine's memory.
func (in *Input) hostLimit() mem.Optional {
	limit := in.lastOf(0, mem.SeriesCgroupLimit)
	if !limit.Known() {
		limit = in.Run.Info.Host.Limit
	}
	total := in.Run.Info.Host.Memory
	if v, ok := total.Get(); ok && (!limit.Known() || v < limit.Or(0)) {
		return mem.Some(v)
	}
	return limit
}

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
