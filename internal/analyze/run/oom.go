package run

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"hightide/internal/analyze/imagined"
	"hightide/internal/analyze/trace"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// outOfMemory reports every time memory ran out: raised by a framework, by Python, recorded by an allocator, or the
// kernel's own killing. A framework's error and the record of its allocator are one finding.
func outOfMemory(in *Input) (r report.Part) {
	more, seen := map[mem.Location]*again{}, 0
	failed := maps.Clone(in.taken.failed) // those that no error of the program tells of
	for _, e := range in.Run.Events {
		if e.Kind != "oom" {
			continue
		}
		var at mem.Location
		if e.Where != nil {
			at = *e.Where
		}
		if a := more[at]; a != nil && at.File != "" {
			a.count++
			a.least, a.most = min(a.least, e.Bytes.Or(a.least)), max(a.most, e.Bytes.Or(a.most))
			continue
		}
		if seen == 8 {
			continue
		}
		seen++
		more[at] = &again{len(r.Findings), 0, math.MaxInt64, 0}
		told := failed[e.Process]
		if told == nil || e.Facts["source"] == "malloc" {
			r.Findings = append(r.Findings, in.raised(e).Tell())
			continue
		}
		delete(failed, e.Process)
		if e.Bytes = told.Bytes; told.At.File != "" {
			e.Where = &told.At
		}
		s := in.raised(e)
		s.Record, s.Held, s.By, s.Names, s.Stack = told.Record, told.Held, told.By, told.Names, told.Stack
		s.Record.OwnLimit = e.Number(mem.NumberOwnLimit)
		r.Findings = append(r.Findings, s.Tell())
	}
	for _, a := range more {
		if a.count > 0 {
			r.Findings[a.finding].Text += a.text()
		}
	}
	for _, process := range slices.Sorted(maps.Keys(failed)) {
		r.Findings = append(r.Findings, failed[process].Tell())
	}
	r.Findings = append(r.Findings, in.kills()...)
	imagined.Tried(in.Verdict, r.Findings)
	return r
}

// kills are what the kernel ended for lack of memory.
func (in *Input) kills() []report.Finding {
	for _, e := range in.Run.Events {
		if e.Kind == "kill" {
			return []report.Finding{in.killFinding(e.Text, e.Process, e.Where)}
		}
	}
	kills := in.LastOf(0, mem.SeriesCgroupOOMKill).Or(0)
	if s := in.Find(0, mem.SeriesCgroupOOMKill); s != nil {
		kills -= s.Values[0]
	}
	if kills <= 0 {
		return nil
	}
	return []report.Finding{in.killFinding(fmt.Sprintf("the kernel killed %d process(es) of the control group for memory",
		kills), 0, nil)}
}

// again is what a line asked for in vain after its first time, as where a program tries smaller batches.
type again struct {
	finding     int // of the first time
	count       int64
	least, most int64
}

func (a *again) text() string {
	switch {
	case a.least > a.most: // no size is known
		return fmt.Sprintf(" It ran out there %s more.", report.Times(a.count))
	case a.least == a.most:
		return fmt.Sprintf(" It ran out there %s more, for %v.", report.Times(a.count), mem.Bytes(a.most))
	}
	return fmt.Sprintf(" It ran out there %s more, for %v to %v.", report.Times(a.count), mem.Bytes(a.least),
		mem.Bytes(a.most))
}

// raised is a shortage as the program's own error told of it.
func (in *Input) raised(e mem.Event) *trace.Shortage {
	source, s := cmp.Or(e.Facts["source"], "the program"), &trace.Shortage{}
	s.Severity, s.Process, s.Bytes, s.Label, s.Title = report.Critical, e.Process, e.Bytes, in.Label(),
		"Out of memory: "+source
	if bytes, ok := e.Bytes.Get(); ok {
		s.Title = fmt.Sprintf("Out of memory: %s could not get %v", source, mem.Bytes(bytes))
	}
	if stack, ok := e.Number("stack").Get(); ok && e.Where == nil {
		e.Where = &in.Names.Of(uint32(stack)).Location
	}
	s.Advice = in.lessMemory(&e)
	s.Told = s.Title
	if e.Where != nil && e.Where.File != "" {
		s.At = *e.Where
		s.Told += " at " + mem.LineName(s.At)
		if quoted := in.Source(s.At); quoted != "" {
			s.Told += fmt.Sprintf(" (`%s`)", quoted)
		}
	}
	if step, ok := e.Step.Get(); ok {
		s.Told += fmt.Sprintf(", in step %d", step+1)
	}
	if s.Phase, _ = in.PhaseAt(e.Process, e.Time); s.Phase != "" {
		s.Told += ", in " + string(s.Phase)
	}
	s.Told += fmt.Sprintf(", %s after %s", report.Duration(in.Since(e.Time)), in.Beginning())
	switch {
	case source == "malloc":
		s.Severity, s.After = report.Warning, " The program went on: it caught the error, or asked for less."
	case e.Text != "":
		s.After = " It said: " + report.FirstLine(e.Text, 240)
		if ran := programText(&e); ran != "" {
			s.After = strings.TrimSuffix(s.After, ".") + "." + ran
		}
		if limited := spaceReached(&e); limited != "" {
			s.After = strings.TrimSuffix(s.After, ".") + "." + limited
			s.Advice = "Raise that limit (ulimit -v, RLIMIT_AS). " + s.Advice
		}
		if alive := in.profiled.alive[e.Process]; alive != "" && source == frameworks.JAX {
			s.After = strings.TrimSuffix(s.After, ".") + "." + alive
		}
	}
	return s
}

// programText is the compiled function whose call found no memory, and what it needs; "" where none is told.
func programText(e *mem.Event) string {
	if e.Facts["program"] == "" {
		return ""
	}
	size := func(name string) mem.Bytes { return mem.Bytes(e.Numbers[name]) }
	text := fmt.Sprintf(" It called %s (%s), which needs %v at once: %v of arguments, %v of outputs, %v of temporaries",
		e.Facts["program"], mem.LineName(mem.Location{File: e.Facts["program_file"], Line: int(e.Numbers["program_line"])}),
		size("argument_bytes")+size("output_bytes")-size("alias_bytes")+size("temp_bytes"), size("argument_bytes"),
		size("output_bytes"), size("temp_bytes"))
	if donated := size("alias_bytes"); donated > 0 {
		text += fmt.Sprintf("; %v of the outputs lie in donated arguments", donated)
	}
	return text + "."
}

// lessMemory is what helps whatever failed, and a training besides.
func (in *Input) lessMemory(e *mem.Event) string {
	advice := "What held the memory then is in the tables below"
	onGPU := e.Facts["source"] == frameworks.TensorFlow().Name && e.Facts["device"] != "cpu"
	if onGPU && (in.Verdict == nil || len(in.Verdict.Lines) == 0) { // on a real GPU it tells nothing of that
		advice = "What held the memory then is not known"
	}
	switch {
	case !slices.ContainsFunc(in.Run.Processes, func(p *mem.Process) bool { return len(p.Frameworks) > 0 }):
		return advice + "."
	case in.Run.Serves() && in.Verdict != nil && in.Verdict.Serving != nil:
		return advice + "; " + in.lessOfServer() + "."
	case e.Step.Known() || len(in.Run.Steps) > 0:
		return advice + "; a smaller batch, gradient checkpointing or a lower precision takes less."
	}
	return advice + "; smaller inputs or a lower precision take less, in a training also gradient checkpointing."
}

// lessOfServer is what helps an LLM server, by the step that lacked memory.
func (in *Input) lessOfServer() string {
	s := in.Verdict.Serving
	share, graphs, batch, split := "--gpu-memory-utilization", "--enforce-eager", "--max-num-batched-tokens",
		"--tensor-parallel-size"
	if s.Engine == "SGLang" {
		share, graphs, batch, split = "--mem-fraction-static", "--disable-cuda-graph", "--chunked-prefill-size", "--tp-size"
	}
	switch {
	case s.Engine != "SGLang" && s.Engine != "vLLM":
		return "weights of fewer bits take less"
	case s.Step == mem.ServingProfiling:
		return "a smaller " + batch + " takes less"
	case s.Step == mem.ServingGraphs:
		return "a smaller " + share + " leaves more for CUDA graphs, and " + graphs + " captures none"
	case s.Step == mem.ServingWarmUp, s.Step == mem.ServingReady:
		return "a smaller " + share + " leaves more beside the KV cache"
	}
	return "weights of fewer bits take less, and " + split + " divides them"
}

// spaceReached says that a limit of the process's own was reached, as ulimit -v sets it; "" where it was not.
func spaceReached(e *mem.Event) string {
	limit, limited := e.Number("limit").Get()
	mapped, counted := e.Number("mapped").Get()
	asked, known := e.Bytes.Get()
	if !limited || !counted || !known || mapped+asked <= limit {
		return ""
	}
	return fmt.Sprintf(" The process may map %v of address space and had mapped %v: that limit was reached, whatever "+
		"the machine has left.", mem.Bytes(limit), mem.Bytes(mapped))
}

func (in *Input) killFinding(what string, process uint32, where *mem.Location) report.Finding {
	f := report.Finding{Kind: report.KindOOM, Severity: report.Critical, Process: process, Label: mem.Measured,
		Title: "Killed for memory", Text: report.FirstLine(what, 240) + "."}
	if where != nil {
		f.File, f.Line = where.File, where.Line
	}
	if limit, watched := in.watchedLimit().Get(); watched {
		f.Bytes = mem.Some(limit) // what ended it says so
	} else if limit, ok := in.hostLimit().Get(); ok {
		f.Text += fmt.Sprintf(" The limit is %v (measured).", mem.Bytes(limit))
		f.Bytes = mem.Some(limit)
	}
	f.Advice = "Raise the limit, or take less: the lines that held the memory are in the tables below."
	return f
}

// watchedLimit is what a program was allowed that hightide ended for more; absent: the kernel did, or nobody.
func (in *Input) watchedLimit() (limit mem.Optional) {
	ended := false
	for _, e := range in.Run.Events {
		switch {
		case e.Kind == "kill":
			ended = ended || e.Facts["source"] == "hightide"
		case e.Kind == mem.EventConfined:
			limit = e.Bytes
		}
	}
	if !ended {
		return mem.Optional{}
	}
	return limit
}

// hostLimit is how much the job may take: the control group's limit, else the machine's memory.
func (in *Input) hostLimit() mem.Optional {
	limit := in.LastOf(0, mem.SeriesCgroupLimit)
	if !limit.Known() {
		limit = in.Run.Info.Host.Limit
	}
	total := in.Run.Info.Host.Memory
	if v, ok := total.Get(); ok && (!limit.Known() || v < limit.Or(0)) {
		return mem.Some(v)
	}
	return limit
}
