package analyze

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// Explain adds what a snapshot says to a report: figures, who holds the memory, a flame graph, and what
// stands in the way. file is how the snapshot is called. Devices without the events asked for are left out, in a note;
// a NoEventError says that all are.
func Explain(r *report.Report, s *mem.AllocatorSnapshot, file string, o ExplainOptions) error {
	found := false
	var without []NoEventError
	before := len(r.Allocators)
	for _, device := range s.AllDevices() {
		if want, ok := o.Device.Get(); ok && int(want) != device {
			continue
		}
		found = true
		a, err := explainDevice(s, device, file, o)
		var none NoEventError
		if errors.As(err, &none) {
			without = append(without, none)
			continue
		}
		if err != nil {
			return err
		}
		a.Alone = !o.Several && (o.Device.Known() || len(s.AllDevices()) == 1)
		a.filtered = s.Filter != ""
		a.tables(r, &o)
		r.Allocators = append(r.Allocators, a.Allocator)
		if a.tree != nil {
			r.Stacks = append(r.Stacks, a.tree.set)
		}
		a.findings(r)
		if a.Accuracy != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %s", report.UpperFirst(a.Where()), a.categoryNote()))
		}
		if odd := a.oddText(); odd != "" {
			r.Notes = append(r.Notes, fmt.Sprintf("%s: %s", report.UpperFirst(a.Where()), odd))
		}
	}
	if want, ok := o.Device.Get(); ok && !found {
		return fmt.Errorf("%s has devices %v, and no device %d", file, s.AllDevices(), want)
	}
	if len(without) > 0 && len(r.Allocators) == before {
		return without[0]
	}
	for _, none := range without {
		r.Notes = append(r.Notes, fmt.Sprintf("Left out: %s.", none))
	}
	o.Notes.add(s, file)
	if s.Filter != "" {
		r.Notes = append(r.Notes, fmt.Sprintf("%s holds only blocks that match %q, as hightide export --filter wrote it: other memory in use counts as cached.", file, s.Filter))
	}
	return nil
}

// FileNotes gathers what there is to know of several files, so that what is so of all of them is said once.
type FileNotes struct {
	files int
	texts []string
	of    map[string][]string // the files of a text
}

func (n *FileNotes) add(s *mem.AllocatorSnapshot, file string) {
	if n == nil {
		return
	}
	notes := s.Notes
	if len(s.Unknown) > 0 {
		notes = append(slices.Clone(notes), fmt.Sprintf("%s unknown to hightide and left out: %s.", report.Counted(int64(len(s.Unknown)), "key"), strings.Join(s.Unknown, ", ")))
	}
	n.files++
	for _, note := range notes {
		if n.of == nil {
			n.of = map[string][]string{}
		}
		if n.of[note] == nil {
			n.texts = append(n.texts, note)
		}
		if !slices.Contains(n.of[note], file) {
			n.of[note] = append(n.of[note], file)
		}
	}
}

// AddTo puts the notes into a report, each with the files that it is of unless that is all of them.
func (n *FileNotes) AddTo(r *report.Report) {
	for _, text := range n.texts {
		if of := n.of[text]; len(of) < n.files {
			text = strings.Join(of, ", ") + ": " + text
		}
		r.AddNote(text)
	}
}

// Lead makes the device that holds most the headline of a report of files.
func Lead(r *report.Report) {
	slices.SortStableFunc(r.Findings, compareFindings)
	var lead *report.Allocator
	for _, a := range r.Allocators {
		if lead == nil || a.Peak.Allocated > lead.Peak.Allocated {
			lead = a
		}
	}
	if lead == nil {
		r.Headline.Say("The files hold no device memory")
		return
	}
	p := lead.Peak
	r.Headline.Peak = report.Peak{Allocated: mem.Some(int64(p.Allocated)), Reserved: p.Reserved, Label: lead.Label}
	when := "at the beginning"
	if p.Event >= 0 {
		when = fmt.Sprintf("after event %s of %s", report.Count(int64(p.Event)), report.Count(int64(lead.Events)))
	}
	verdict := fmt.Sprintf("%s held at most %v%s, %s", report.UpperFirst(lead.InFile()), p.Allocated, lead.Among, when)
	if lead.At != p {
		verdict += fmt.Sprintf(". %s, which is explained here, it held %v", report.UpperFirst(report.AfterEvent(lead.At.Event)), lead.At.Allocated)
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

// largestPart names the group that holds most.
func largestPart(a *report.Allocator) string {
	top := &a.Most
	largest := "the largest part, " + bytesInBlocks(top.Bytes, top.Blocks)
	if a.By == "category" {
		if top.Name == "unknown" {
			return largest + ", is of no known category"
		}
		return largest + ", is " + top.Name
	}
	category := top.Category
	if top.Mixed {
		category = "mostly " + category
	}
	part := fmt.Sprintf("%s (%s), ", largest, category)
	switch {
	case top.Name == mem.NoFrames:
		return part + "has " + mem.NoFrames
	case top.Name == usage.BeforeTrace:
		return part + "was there before the trace"
	case a.By == "site":
		return part + "was allocated by `" + top.Name + "`"
	}
	return part + "is " + groupWords(a.By, top.Name)
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
	if o := a.OOM; o != nil {
		r.Findings = append(r.Findings, oomFinding(o, a.Allocator))
	}
	for _, g := range a.Growth[:min(len(a.Growth), growthFindings)] {
		r.Findings = append(r.Findings, growthFinding(&g, a.Allocator))
	}
	if split := a.InactiveSplit.Or(0); split > a.At.Reserved.Or(0)/10 && split >= int64(64*mem.MiB) {
		r.Findings = append(r.Findings, report.Finding{Kind: report.KindFragmentation, Severity: report.Warning, Label: a.Label, Bytes: a.InactiveSplit,
			Title: fmt.Sprintf("%v of device %d are cached in segments that are in use", mem.Bytes(split), a.Device),
			Text:  a.pinText()})
	}
}

func (a *explanation) pinText() string {
	said := "empty_cache cannot give this memory back while blocks beside it live."
	if len(a.Pins) > 0 {
		p := a.Pins[0]
		said += fmt.Sprintf(" Mostly empty segments are kept above all by %s blocks of %s: %v in use keep %v.", report.Count(int64(p.Blocks)), p.Name, p.Bytes, p.Pinned)
	}
	return said
}

// compareFindings orders findings of files, the worst first: what stopped the program, then what will, then the rest.
func compareFindings(a, b report.Finding) int {
	order := func(f *report.Finding) int {
		if f.Kind == report.KindOOM {
			return -1
		}
		return severityRank(f.Severity)
	}
	return cmp.Compare(order(&a), order(&b))
}

// growthFindings is how many lines that grow are findings of their own.
const growthFindings = 5

func growthFinding(g *report.TraceGrowth, a *report.Allocator) report.Finding {
	f := report.Finding{Kind: report.KindGrowth, Severity: report.Warning, Label: a.Label, Stack: g.Frames, Bytes: mem.Some(int64(g.Grown)), Confidence: g.Confidence,
		Title: fmt.Sprintf("`%s` holds more of %s after each step", g.Name, a.Where())}
	if g.Source == usage.Stretches {
		f.Title = fmt.Sprintf("`%s` holds more and more of %s", g.Name, a.Where())
		f.Text = fmt.Sprintf("%v more over the trace, in equal parts of it: no steps are known.", g.Grown)
	} else {
		f.BytesPerStep = mem.Some(int64(g.PerStep))
		f.Text = fmt.Sprintf("%v more in each of %d steps, which are %s; confidence %d %%.", g.PerStep, g.Steps, map[string]string{"inferred": "inferred from what repeats"}[g.Source]+map[string]string{"annotations": "as annotated", "recorded": "as recorded"}[g.Source], int(g.Confidence*100))
	}
	if g.Confidence >= leakConfidence && g.Source != usage.Stretches {
		f.Kind, f.Severity = report.KindLeak, report.Critical
	}
	f.Advice = "Look for what gains an item in each step and never loses one: a list, a dictionary, an attribute."
	if slices.ContainsFunc(g.Frames, func(l mem.Location) bool { return !l.Native && (l.Function == "forward" || l.Function == "_call_impl") }) {
		f.Advice = "A forward call allocated it, so something keeps the graph of each step, most often a list of losses or outputs: keep `loss.item()`, or `.detach()` what must stay a tensor."
	}
	at := usage.NewNames(new(mem.StackTable)).Search(g.Frames)
	if !at.Native {
		f.File, f.Line, f.SiteFunction = at.File, at.Line, at.Function
	}
	return f
}

// leakConfidence is from where on growth is called a leak.
const leakConfidence = 0.9
