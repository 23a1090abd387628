package trace

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// Explaining puts into a report what snapshots of allocators say of devices: figures, who holds the memory, flame
// graphs, and what stands in the way. Add each file, then Finish.
type Explaining struct {
	Report  *report.Report
	Options Options
	devices []*explanation
	without []error // a NoEventError of each device that was left out
	files   int
	notes   mem.Tally[string, fileNote]
	told    map[toldOnce]bool
	first   []*mem.AllocatorSnapshot // of each process whose number is not known, a snapshot
}

// File is a snapshot, and what is known of it beside what it says.
type File struct {
	*mem.AllocatorSnapshot
	Name     string
	StepEnds []int64 // as recorded, ns of the wall clock
	Process  uint32  // that wrote it, by its id in the run; 0: not known
}

// fileNote is what there is to know of some files: what is so of all of them is said once.
type fileNote struct {
	text string
	of   []string
}

// Add explains the devices of a file that the options choose.
func (x *Explaining) Add(f File) error {
	r, o, found := x.Report, &x.Options, false
	s, file, process := f.AllocatorSnapshot, f.Name, x.process(&f)
	parts := partsOf(s)
	for _, part := range parts {
		if want, ok := o.Device.Get(); ok && int(want) != part.device {
			continue
		}
		found = true
		a, err := explainDevice(part.of, part.device, file, f.StepEnds, o)
		if errors.As(err, new(NoEventError)) {
			x.without = append(x.without, err)
			r.AddNote(fmt.Sprintf("Left out: %v.", err))
			continue
		}
		if err != nil {
			return err
		}
		if !o.Several && (o.Device.Known() || len(parts) == 1) {
			a.Title = a.Name
		}
		x.devices = append(x.devices, a)
		before := len(r.Findings)
		a.addTo(r, o)
		r.Findings = append(r.Findings[:before], x.once(r.Findings[before:], process, a.Device)...)
	}
	if want, ok := o.Device.Get(); ok && !found && int(want) == mem.HostDevice {
		return fmt.Errorf("%s says nothing about pinned host memory, which PyTorch records from 2.14 on where it is asked "+
			"to, as hightide does", file)
	} else if ok && !found {
		return fmt.Errorf("%s has devices %v, and no device %d", file, s.AllDevices(), want)
	}
	x.noteFile(s, file)
	return nil
}

// toldOnce is what a finding is about. Two of them about one thing are one.
type toldOnce struct {
	process, device int
	kind            string
	at              mem.Location
	bytes, perStep  mem.Optional
}

// once leaves out what an earlier snapshot of the same process has told: a trace goes on to have its beginning.
func (x *Explaining) once(found []report.Finding, process, device int) []report.Finding {
	if x.told == nil {
		x.told = map[toldOnce]bool{}
	}
	return slices.DeleteFunc(slices.Clone(found), func(f report.Finding) bool {
		about := toldOnce{process, device, f.Kind, mem.Location{File: f.File, Line: f.Line}, f.Bytes, f.BytesPerStep}
		twice := x.told[about]
		x.told[about] = true
		return twice
	})
}

// process is a number for whoever wrote a snapshot. Files that were named alone are of one process where a trace of
// the one has the last event of a trace of the other: no two processes have an event of one time in common.
func (x *Explaining) process(f *File) int {
	if f.Process != 0 {
		return int(f.Process)
	}
	i := slices.IndexFunc(x.first, func(s *mem.AllocatorSnapshot) bool { return goesOn(s, f.AllocatorSnapshot) })
	if i < 0 {
		i = len(x.first)
		x.first = append(x.first, f.AllocatorSnapshot)
	}
	return -1 - i
}

// goesOn says whether one of two snapshots has what the other ends with.
func goesOn(a, b *mem.AllocatorSnapshot) bool {
	for i := range a.Traces {
		for j := range b.Traces {
			p, q := &a.Traces[i], &b.Traces[j]
			if p.Device == q.Device && (has(p, q) || has(q, p)) {
				return true
			}
		}
	}
	return false
}

// has says whether a trace has the last event of another.
func has(t, other *mem.Trace) bool {
	last := len(other.Time) - 1
	if last < 0 {
		return false
	}
	i, _ := slices.BinarySearch(t.Time, other.Time[last])
	for ; i < len(t.Time) && t.Time[i] == other.Time[last]; i++ {
		if t.Action[i] == other.Action[last] && t.Address[i] == other.Address[last] && t.Size[i] == other.Size[last] {
			return true
		}
	}
	return false
}

// looked says what growth was looked for, and where it was not, and why.
func (x *Explaining) looked() (did, not string) {
	var yes, no mem.Tally[string, lookedOn]
	for _, a := range x.devices {
		said, text := &no, a.unlooked
		if a.looked != "" {
			said, text = &yes, "Looked for growth: "+a.looked+"."
		}
		on := said.At(text)
		on.text, on.of = text, append(on.of, a.Title)
	}
	several := len(yes.All)+len(no.All) > 1
	return sentences(yes.All, several), sentences(no.All, several)
}

// sentences is what is said of devices, by name where it is not the same of all.
func sentences(said []lookedOn, byName bool) string {
	var all []string
	for _, on := range said {
		if !byName {
			return on.text
		}
		all = append(all, report.UpperFirst(strings.Join(on.of, ", "))+": "+report.LowerFirst(on.text))
	}
	return strings.Join(all, " ")
}

// lookedOn is what is said of devices.
type lookedOn struct {
	text string
	of   []string
}

// addTo puts what was found of a device into a report.
func (a *explanation) addTo(r *report.Report, o *Options) {
	a.tables(r, o)
	r.Allocators = append(r.Allocators, a.Allocator)
	if a.tree != nil {
		r.Stacks = append(r.Stacks, a.tree.Set)
	}
	a.findings(r)
	if a.Accuracy != nil {
		r.AddNote(report.UpperFirst(a.Title) + ": " + a.categoryNote())
	}
	for _, note := range a.larger {
		r.AddNote(report.UpperFirst(a.Title) + ": " + note)
	}
	if odd := a.oddText(); odd != "" {
		r.AddNote(report.UpperFirst(a.Title) + ": " + odd)
	}
}

// noteFile keeps what there is to know of a file until all are there.
func (x *Explaining) noteFile(s *mem.AllocatorSnapshot, file string) {
	if s.Filter != "" {
		x.Report.AddNote(fmt.Sprintf("%s holds only blocks that match %q, as hightide export --filter wrote it: other "+
			"memory in use counts as cached.", file, s.Filter))
	}
	notes := s.Notes
	if len(s.Unknown) > 0 {
		notes = append(slices.Clone(notes), fmt.Sprintf("%s unknown to hightide and left out: %s.",
			report.Counted(int64(len(s.Unknown)), "key"), strings.Join(s.Unknown, ", ")))
	}
	x.files++
	for _, text := range notes {
		note := x.notes.At(text)
		if note.text = text; !slices.Contains(note.of, file) {
			note.of = append(note.of, file)
		}
	}
}

// Finish says what the files come to. A report that is none of a run's gets the device that holds most as its
// headline. The error is a NoEventError of each device, where none has the events asked for.
func (x *Explaining) Finish() error {
	r := x.Report
	if len(x.devices) == 0 && len(x.without) > 0 {
		return errors.Join(x.without...)
	}
	for _, note := range x.notes.All {
		if len(note.of) < x.files {
			note.text = strings.Join(note.of, ", ") + ": " + note.text
		}
		r.AddNote(note.text)
	}
	if p := r.Headline.Peak; r.Headline.Verdict == "" ||
		len(x.devices) > 0 && !p.HostRSS.Known() && !p.Allocated.Known() && !p.Reserved.Known() {
		x.lead() // a replay's recording has nothing but its snapshot
	} else if did, _ := x.looked(); did != "" && r.Headline.NotLooked != "" {
		r.Headline.NotLooked = "Outside the traces of devices, " + report.LowerFirst(r.Headline.NotLooked)
		r.Headline.Looked = strings.TrimSpace(did + " " + r.Headline.Looked)
	}
	r.SayNothing()
	return nil
}

// lead makes the device that holds most the headline: pinned host memory only where there is no other.
func (x *Explaining) lead() {
	r := x.Report
	slices.SortStableFunc(r.Findings, compareFindings)
	defer r.SayNothing()
	r.Headline.Looked, r.Headline.NotLooked = x.looked()
	if len(x.devices) == 0 {
		r.Headline.Say("The files hold no device memory")
		return
	}
	lead := x.devices[0]
	for _, a := range x.devices {
		if host := lead.Device == mem.HostDevice; host && a.Device != mem.HostDevice ||
			host == (a.Device == mem.HostDevice) && a.Peak.Allocated > lead.Peak.Allocated {
			lead = a
		}
	}
	r.Run.Label = lead.Label
	p := lead.Peak
	r.Headline.Peak = report.Peak{Allocated: mem.Some(int64(p.Allocated)), Reserved: p.Reserved, Label: lead.Label}
	when := "at the beginning"
	if p.Event >= 0 {
		when = fmt.Sprintf("after event %s of %s", report.Count(int64(p.Event)), report.Count(int64(lead.Events)))
	}
	among := lead.among
	if among == "" && lead.began > 0 { // as a ring does that has lost what came before: it may have been more
		among = fmt.Sprintf(" in a trace that begins with %v in use", lead.began)
	}
	if lead.counts != "" {
		among = " of " + lead.counts + strings.TrimSuffix(","+among, ",")
	}
	subject, ended := report.UpperFirst(lead.InFile()), x.outOfMemory(lead)
	if lead.OOM != nil {
		subject, when = "It", report.AfterEvent(p.Event)
	}
	verdict := fmt.Sprintf("%s%s held at most %v%s, %s", ended, subject, p.Allocated, among, when)
	if lead.Events == 0 { // one moment is all there is
		verdict = fmt.Sprintf("%s holds %v in the one state that the file records", report.UpperFirst(lead.InFile()),
			p.Allocated)
	}
	if lead.At != p {
		verdict += fmt.Sprintf(". %s, which is explained here, it held %v",
			report.UpperFirst(report.AfterEvent(lead.At.Event)), lead.At.Allocated)
	}
	largest := ""
	if len(lead.Blame) > 0 {
		largest = largestPart(lead)
	}
	if lead.Filter != "" {
		of := fmt.Sprintf("of that, %s match `%s`", bytesInBlocks(lead.Matching, lead.MatchingBlocks), lead.Filter)
		if largest != "" {
			of += ": " + largest
		}
		largest = of
	}
	r.Headline.Say(verdict, largest)
}

// outOfMemory is the sentence that a device ran out of memory, of the leading one if it did; "" where none did.
func (x *Explaining) outOfMemory(lead *explanation) string {
	if lead.OOM == nil {
		i := slices.IndexFunc(x.devices, func(a *explanation) bool { return a.OOM != nil })
		if i < 0 {
			return ""
		}
		lead = x.devices[i]
	}
	o, times := lead.OOM, ""
	if o.Failures > 1 {
		times = fmt.Sprintf("; so did %s before", report.Counted(int64(o.Failures-1), "request"))
	}
	return fmt.Sprintf("%s ran out of memory at event %s of %s, asked for %v%s. ", report.UpperFirst(lead.InFile()),
		report.Count(int64(o.Event)), report.Count(int64(lead.Events)), o.Asked, times)
}

// largestPart names the part that holds most. Of a kind it names a line, too.
func largestPart(a *explanation) string {
	top := &a.most
	largest := "the largest part, " + bytesInBlocks(top.Bytes, top.Blocks)
	if a.By == "category" {
		switch top.Name {
		case usage.UnknownCategory:
			return largest + ", is of no known category"
		case usage.BeforeTrace:
			return largest + ", was there before the trace"
		}
		return largest + ", is " + top.Name
	}
	if a.kind {
		return fmt.Sprintf("%s, is %s: %v of it %s", largest, top.Category, top.line.Bytes, a.origin(top.line))
	}
	category := top.Category
	if top.mixed {
		category = "mostly " + category
	}
	part := fmt.Sprintf("%s (%s), ", largest, category)
	if top.Name == usage.BeforeTrace && top.Category == usage.BeforeTrace {
		part = largest + ", "
	}
	return part + a.origin(&top.group)
}

// origin is the predicate of a group: where its blocks are from.
func (a *explanation) origin(of *group) string {
	switch {
	case of.Name == mem.NoFrames && a.noStacks:
		return "has no frames, as the file has none"
	case of.Name == mem.NoFrames:
		return "has " + mem.NoFrames
	case of.Name == usage.BeforeTrace && a.Events == 0:
		return "has no line, as no memory history was recorded"
	case of.Name == usage.BeforeTrace:
		return "was there before the trace"
	case a.By == "site":
		return "was allocated by `" + of.Name + "`"
	}
	return "is " + groupWords(a.By, of.Name)
}

// groupWords names a group of blocks as what they are.
func groupWords(by, name string) string {
	switch {
	case name == noRegion, name == usage.NoModule, by == "age":
		return name
	case by == "stream", by == "pool":
		return "of " + name
	case by == "size":
		return "of sizes " + name + " on"
	}
	return "of " + by + " " + name
}

func (a *explanation) findings(r *report.Report) {
	r.AddOnce(a.notRecorded())
	if o := a.OOM; o != nil {
		r.Findings = append(r.Findings, recorded(Shortage{Record: o, Held: a.failed, By: a.By}, a.Label, a.Name, a.Title).Tell())
	}
	for _, g := range a.Growth[:min(len(a.Growth), growthFindings)] {
		r.Findings = append(r.Findings, growthFinding(&g, a.Allocator))
	}
	if f := a.Fragmentation; f != nil && f.Stuck > f.Reserved/10 && f.Stuck >= 64*mem.MiB {
		r.Findings = append(r.Findings, report.Finding{Kind: report.KindFragmentation, Severity: report.Warning,
			Label: a.Label, Bytes: mem.Some(int64(f.Stuck)),
			Title: fmt.Sprintf("%v of %s are cached beside blocks in use, %s", f.Stuck, a.Name, a.when()),
			Text:  a.pinText()})
	}
	r.AddOnce(a.pinned)
}

// notRecorded says how to record what a file lacks that was written without a memory history; nil where there is one.
func (a *explanation) notRecorded() *report.Finding {
	if a.Events > 0 || a.Device == mem.HostDevice || a.Filter != "" || len(a.Blame) == 0 ||
		slices.ContainsFunc(a.Blame, func(b report.Blame) bool { return b.Name != noHistory }) {
		return nil
	}
	return &report.Finding{Kind: report.KindGap, Severity: report.Info, Label: a.Label,
		Title: "no memory history was recorded",
		Text: "The file says how large each block is, and not which line allocated it, when, or what was there before: " +
			"PyTorch keeps that only while its memory history is on.",
		Advice: "Call " + frameworks.RecordHistory + "(max_entries=100000) before the model is built, and " +
			frameworks.DumpSnapshot + "(\"snapshot.pickle\") " +
			"after some steps, or where the out-of-memory error is caught. hightide run --snapshot-on exit,oom -- python " +
			"train.py does both without a change to the program."}
}

// when is the moment that is explained, in words.
func (a *explanation) when() string {
	switch {
	case a.Events == 0:
		return "in the state that the file records"
	case a.At == a.Peak:
		return "at the peak"
	case a.At.Event == a.Last:
		return "at the end"
	}
	return report.AfterEvent(a.At.Event)
}

func (a *explanation) pinText() string {
	said := fmt.Sprintf("Of the %v reserved then, empty_cache could not give this memory back, as blocks beside it "+
		"were in use.", a.Fragmentation.Reserved)
	if len(a.Pins) > 0 {
		p := a.Pins[0]
		said += fmt.Sprintf(" Mostly empty segments were kept above all by %s of %s: %v in use kept %v.",
			report.Counted(int64(p.Blocks), "block"), p.Name, p.Bytes, p.Pinned)
	}
	return said
}

// compareFindings orders findings of files, the worst first: what stopped the program, then what will, then the rest.
func compareFindings(a, b report.Finding) int {
	order := func(f *report.Finding) int {
		if f.Kind == report.KindOOM {
			return -1
		}
		return f.Rank()
	}
	return cmp.Compare(order(&a), order(&b))
}

func growthFinding(g *report.TraceGrowth, a *report.Allocator) report.Finding {
	f := report.Finding{Kind: report.KindGrowth, Severity: report.Warning, Label: a.Label, Stack: g.Frames,
		Bytes: mem.Some(int64(g.Grown)), Confidence: g.Confidence,
		Title: fmt.Sprintf("`%s` keeps more of %s from step to step", g.Name, a.Title)}
	if g.Source == usage.Stretches {
		f.Title = fmt.Sprintf("`%s` holds more and more of %s", g.Name, a.Title)
		f.Text = fmt.Sprintf("%v more over the trace, in equal parts of it: no steps are known.", g.Grown)
	} else {
		f.BytesPerStep = mem.Some(int64(g.PerStep))
		f.Text = fmt.Sprintf("%v more per step on average, over %d steps%s, which are %s; confidence %.1f %%.", g.PerStep,
			g.Steps, fromStep(g), stepSources[g.Source], math.Floor(g.Confidence*1000)/10)
	}
	if g.Confidence >= leakConfidence && g.Source != usage.Stretches {
		f.Kind, f.Severity = report.KindLeak, report.Critical
	}
	if g.Grown < leastGrowth(a.Peak.Allocated) {
		f.Severity = report.Info
	}
	f.Advice = "Look for what gains items and never loses one: a list, a dictionary, an attribute. A cache or a buffer " +
		"with a bound looks the same until it is full: a longer trace would show."
	if slices.ContainsFunc(g.Frames, func(l mem.Location) bool {
		return !l.Native &&
			(l.Function == "forward" || l.Function == "_call_impl")
	}) {
		f.Advice = "A forward call allocated it, and something keeps it: most often a list of losses or outputs, or the " +
			"graph behind one. Keep `loss.item()`; `.detach()` lets the graph go, and the tensor itself stays."
	}
	if at := usage.NewNames(new(mem.StackTable)).Search(g.Frames); at.Native {
		f.Text = fmt.Sprintf("`%s`: %s", g.Name, f.Text)
	} else {
		f.File, f.Line, f.SiteFunction = at.File, at.Line, at.Function
	}
	return f
}

// fromStep says from which step on something grew that did not before; "": all along.
func fromStep(g *report.TraceGrowth) string {
	if step, ok := g.Since.Get(); ok {
		return fmt.Sprintf(" from step %s on", report.Count(step))
	}
	return ""
}

// leakConfidence is from where on growth is called a leak.
const leakConfidence = 0.9
