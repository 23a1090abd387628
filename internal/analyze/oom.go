package analyze

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// outOfMemory reports every time memory ran out: raised by a framework, by Python, recorded by an allocator, or the
// kernel's own killing. A framework's error and the record of its allocator are one finding.
func outOfMemory(in *Input, r *report.Report) {
	more, seen := map[mem.Location]*again{}, 0
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
		told := in.failed[e.Process]
		if told == nil || e.Facts["source"] == "malloc" {
			r.Findings = append(r.Findings, in.raised(e).finding())
			continue
		}
		delete(in.failed, e.Process)
		if e.Bytes = told.Bytes; told.at.File != "" {
			e.Where = &told.at
		}
		s := in.raised(e)
		s.record, s.held, s.by, s.Stack = told.record, told.held, told.by, told.Stack
		r.Findings = append(r.Findings, s.finding())
	}
	for _, a := range more {
		if a.count > 0 {
			r.Findings[a.finding].Text += a.text()
		}
	}
	for _, process := range slices.Sorted(maps.Keys(in.failed)) {
		r.Findings = append(r.Findings, in.failed[process].finding())
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
		r.Findings = append(r.Findings,
			in.killFinding(fmt.Sprintf("the kernel killed %d process(es) of the control group for memory", kills), 0, nil))
	}
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
func (in *Input) raised(e mem.Event) *shortage {
	source, s := cmp.Or(e.Facts["source"], "the program"), &shortage{}
	s.Severity, s.Process, s.Bytes, s.Label, s.Title = report.Critical, e.Process, e.Bytes, in.label(),
		"Out of memory: "+source
	if bytes, ok := e.Bytes.Get(); ok {
		s.Title = fmt.Sprintf("Out of memory: %s could not get %v", source, mem.Bytes(bytes))
	}
	if stack, err := strconv.ParseUint(e.Facts["stack"], 10, 32); err == nil && e.Where == nil {
		e.Where = &in.names.Of(uint32(stack)).Location
	}
	s.Advice = in.lessMemory(&e)
	s.told = s.Title
	if e.Where != nil && e.Where.File != "" {
		s.at = *e.Where
		s.told += " at " + mem.LineName(s.at)
		if quoted := in.source(s.at); quoted != "" {
			s.told += fmt.Sprintf(" (`%s`)", quoted)
		}
	}
	if step, ok := e.Step.Get(); ok {
		s.told += fmt.Sprintf(", in step %d", step+1)
	}
	if s.Phase, _ = in.phaseAt(e.Process, e.Time); s.Phase != "" {
		s.told += ", in " + string(s.Phase)
	}
	s.told += fmt.Sprintf(", %s after %s", report.Duration(in.since(e.Time)), in.beginning())
	switch {
	case source == "malloc":
		s.Severity, s.after = report.Warning, " The program went on: it caught the error, or asked for less."
	case e.Text != "":
		s.after = " It said: " + report.FirstLine(e.Text, 240)
		if limited := addressSpace(&e); limited != "" {
			s.after = strings.TrimSuffix(s.after, ".") + "." + limited
			s.Advice = "Raise that limit (ulimit -v, RLIMIT_AS). " + s.Advice
		}
		if alive := in.alive[e.Process]; alive != "" && source == "jax" {
			s.after = strings.TrimSuffix(s.after, ".") + "." + alive
		}
	}
	return s
}

// lessMemory is what helps whatever failed, and a training besides.
func (in *Input) lessMemory(e *mem.Event) string {
	advice := "What held the memory then is in the tables below"
	switch {
	case !slices.ContainsFunc(in.Run.Processes, func(p *mem.Process) bool { return len(p.Frameworks) > 0 }):
		return advice + "."
	case e.Step.Known() || len(in.Run.Steps) > 0:
		return advice + "; a smaller batch, gradient checkpointing or a lower precision takes less."
	}
	return advice + "; smaller inputs or a lower precision take less, in a training also gradient checkpointing."
}

// addressSpace says that a limit of the process's own was reached, as ulimit -v sets it; "" where it was not.
func addressSpace(e *mem.Event) string {
	limit, err := strconv.ParseInt(e.Facts["limit"], 10, 64)
	mapped, wrong := strconv.ParseInt(e.Facts["mapped"], 10, 64)
	asked, known := e.Bytes.Get()
	if err != nil || wrong != nil || !known || mapped+asked <= limit {
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

// oomBlamed is how many groups an out-of-memory names.
const oomBlamed = 5

// outOfDeviceMemory is the last request that failed, and what was held then, largest first; nil: none did.
func outOfDeviceMemory(d *usage.Device, g *grouper) (*report.TraceOOM, []group) {
	i, t := d.FailedAt, d.Trace
	if i < 0 {
		return nil, nil
	}
	l := d.LevelsAt(i)
	held, _, err := g.blame(i)
	if err != nil { // no such grouping, of which blame told already
		return nil, nil
	}
	oom := &report.TraceOOM{
		Event: i, Asked: t.Size[i], Allocated: l.Allocated, Reserved: d.ReservedAt(i, l),
		Blame: blames(held[:min(oomBlamed, len(held))]), Frames: d.Snapshot.Stacks.Frames(t.Stack[i]),
	}
	if t.Address[i] != mem.FreeUnknown {
		oom.DeviceFree = mem.Some(int64(t.Address[i]))
	}
	if total, ok := d.Snapshot.DeviceMemory[d.Number]; ok {
		oom.DeviceTotal = mem.Some(int64(total))
	}
	for _, action := range t.Action {
		if action == mem.ActionOOM {
			oom.Failures++
		}
	}
	judge(oom, d)
	if g.o.Advise != nil {
		oom.Advice, oom.Replayed = g.o.Advise(d.Snapshot, d.Number)
	}
	return oom, held
}

// judge says what was cached, and whether it would have been enough, as far as the file tells.
func judge(o *report.TraceOOM, d *usage.Device) {
	cached, free := d.FreeAtThat.Bytes, mem.Bytes(o.DeviceFree.Or(0))
	o.Segment, o.Limited = o.Asked, d.Settings.Fraction > 0 && d.Settings.Fraction < 1
	if !d.Settings.Expandable { // an expandable one grows by what is missing, which the file does not tell
		o.Segment = d.Settings.SegmentSize(d.Settings.Round(o.Asked))
	}
	if d.KnowsSegments() {
		o.Pieces, o.LargestFree = mem.Some(int64(d.FreeAtThat.Count)), mem.Some(int64(d.FreeAtThat.Largest))
		contiguous := free >= o.Segment || d.FreeAtThat.Largest >= o.Asked
		o.Contiguous = &contiguous
	} else if reserved, ok := o.Reserved.Get(); ok {
		cached = mem.Bytes(reserved) - o.Allocated
	} else {
		return
	}
	o.Cached = mem.Some(int64(cached))
	total, hasTotal := o.DeviceTotal.Get()
	fits := free+cached >= o.Asked
	if fits || o.DeviceFree.Known() || hasTotal && o.Allocated+o.Asked > mem.Bytes(total) {
		o.WouldFit = &fits
	}
}

// shortage is a request that found no memory: as the program's error told of it, as the allocator recorded it, or both.
type shortage struct {
	report.Finding                  // what is set of it stays
	told           string           // who asked, for how much, when
	after          string           // what else the program said
	at             mem.Location     // the line that asked
	record         *report.TraceOOM // nil: no allocator told
	held           []group          // of the record, largest first
	by             string           // how they are grouped
}

// finding puts a shortage into words.
func (s *shortage) finding() report.Finding {
	f, o := s.Finding, s.record
	f.Kind = report.KindOOM
	if s.at.File != "" && !s.at.Native {
		f.File, f.Line = s.at.File, s.at.Line
		f.SiteFile, f.SiteLine, f.SiteFunction = s.at.File, s.at.Line, s.at.Function
	}
	if o == nil {
		f.Text = s.told + "." + s.after
		return f
	}
	f.Text = fmt.Sprintf("%s, when %v were allocated", s.told, o.Allocated) + roomText(o)
	if line, _ := largestOf(s.held, ""); line.Bytes > 0 {
		f.Text += heldText(s.held, s.by)
		if holder := usage.NewNames(new(mem.StackTable)).Search(line.Frames); !holder.Native && holder.File != "" {
			f.File, f.Line = holder.File, holder.Line
		}
	}
	why, advice := cause(o)
	f.Text += why
	f.Advice = cmp.Or(o.Advice, advice, f.Advice)
	return f
}

// heldText says what held most when memory ran out: a line, or blocks of one kind and the line of most of them.
func heldText(held []group, by string) string {
	most, kind := largestOf(held, by)
	text := bytesInBlocks(most.Bytes, most.Blocks)
	if kind {
		return fmt.Sprintf(" The largest part was %s, %s: %v of it was held by %s.", most.Category, text, most.line.Bytes,
			who(most.line))
	}
	return fmt.Sprintf(" The largest part was held by %s: %s.", who(&most.group), text)
}

// cause says why a request failed that an allocator recorded, as far as it tells, and what may help.
func cause(o *report.TraceOOM) (why, advice string) {
	if !o.Pieces.Known() && o.Reserved.Known() {
		advice = "A snapshot of the allocator (`torch.cuda.memory._dump_snapshot`) says more: in which pieces memory was " +
			"free, and which setting avoids this."
	}
	free := mem.Bytes(o.DeviceFree.Or(-1))
	switch {
	case o.WouldFit == nil:
	case free >= o.Segment && o.Limited:
		why = " The device had enough, so the limit of per_process_memory_fraction was reached."
	case free >= o.Segment:
		why = " The device had enough. A limit below its memory (`set_per_process_memory_fraction`) is one cause, memory " +
			"that came free meanwhile another: the file does not say."
	case free >= o.Asked && (o.Contiguous == nil || !*o.Contiguous):
		why = fmt.Sprintf(" That is less than the segment of %v that PyTorch takes for a request of this size.", o.Segment)
	case o.Contiguous != nil && *o.Contiguous:
		why = " One cached piece alone was large enough, so it belonged to another pool or stream."
	case *o.WouldFit:
		return " Together that is enough, but no piece alone was: fragmentation.",
			"Try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, which joins free memory of different sizes (not verified)."
	default:
		why = " All of it together was not enough."
	}
	return why, advice
}

// recorded is a request that failed as the allocator of a device tells of it.
func recorded(o *report.TraceOOM, held []group, by string, label mem.Label, device, of string) *shortage {
	s := &shortage{record: o, held: held, by: by, told: fmt.Sprintf("%v were asked for at event %s", o.Asked,
		report.Count(int64(o.Event)))}
	s.Severity, s.Label, s.Stack, s.Bytes = report.Critical, label, o.Frames, mem.Some(int64(o.Asked))
	s.Title = fmt.Sprintf("%s ran out of memory", report.UpperFirst(device))
	if site := usage.NewNames(new(mem.StackTable)).Search(o.Frames); !site.Native && site.File != "" {
		s.at, s.told = site.Location, fmt.Sprintf("%s asked for %v at event %s", site.Name, o.Asked,
			report.Count(int64(o.Event)))
	}
	if of != device {
		s.told += " of " + of
	}
	if o.Failures > 1 {
		s.told += fmt.Sprintf(" (the last of %d requests that failed)", o.Failures)
	}
	return s
}

// roomText says what was left besides what was allocated.
func roomText(o *report.TraceOOM) string {
	free, knowsFree := o.DeviceFree.Get()
	cached, knowsCached := o.Cached.Get()
	pieces := ""
	if n := o.Pieces.Or(0); n > 0 {
		pieces = fmt.Sprintf(" in %s, the largest of %v", report.Counted(n, "piece"), mem.Bytes(o.LargestFree.Or(0)))
	}
	switch {
	case knowsFree && knowsCached:
		return fmt.Sprintf(". The device had %v free and the allocator %v cached%s.", mem.Bytes(free), mem.Bytes(cached),
			pieces)
	case knowsFree:
		return fmt.Sprintf(". The device had %v free.", mem.Bytes(free))
	}
	text := ""
	if total, ok := o.DeviceTotal.Get(); ok {
		text = fmt.Sprintf(" of the %v that the device has", mem.Bytes(total))
	}
	if knowsCached {
		text += fmt.Sprintf(". The allocator had %v cached; what the device had free is not recorded", mem.Bytes(cached))
	}
	return text + "."
}
