package analyze

import (
	"fmt"

	"hightide/internal/mem"
)

// Explain adds what a snapshot says to a report: figures, who holds the memory, a flame graph, and what
// stands in the way. file is how the snapshot is called.
func Explain(r *Report, s *mem.AllocatorSnapshot, file string, o ExplainOptions) error {
	found := false
	for _, device := range s.AllDevices() {
		if want, ok := o.Device.Get(); ok && int(want) != device {
			continue
		}
		found = true
		a, err := ExplainDevice(s, device, file, o)
		if err != nil {
			return err
		}
		r.Allocators = append(r.Allocators, a)
		r.table(a.levelTable())
		r.table(a.blameTable())
		a.tree.set.Process, a.tree.set.Device = uint32(len(r.Stacks)), fmt.Sprint(device)
		r.Stacks = append(r.Stacks, a.tree.set)
		a.findings(r)
		if a.Accuracy != nil {
			r.Notes = append(r.Notes, fmt.Sprintf("Device %d: %s", device, a.categoryNote()))
		}
	}
	if want, ok := o.Device.Get(); ok && !found {
		return fmt.Errorf("%s has devices %v, and no device %d", file, s.AllDevices(), want)
	}
	r.Notes = append(r.Notes, s.Notes...)
	return nil
}

// NewReport is a report of files alone.
func NewReport() *Report {
	return &Report{
		Version: ReportVersion, Run: mem.RunInfo{Command: []string{}, Verb: "explain", Label: mem.Measured}, Processes: []mem.Process{},
		Findings: []Finding{}, Tables: []Table{}, Series: []Series{}, Phases: []PhaseBar{}, Steps: []StepPoint{}, Marks: []Mark{},
		Stacks: []StackSet{}, Notes: []string{}, Headline: Headline{Complete: true},
	}
}

// Lead makes the device that holds most the headline of a report of files.
func (r *Report) Lead() {
	var lead *Allocator
	for _, a := range r.Allocators {
		if lead == nil || a.Peak.Allocated > lead.Peak.Allocated {
			lead = a
		}
	}
	if lead == nil {
		r.Headline.Verdict = "The files hold no device memory."
		return
	}
	p := lead.Peak
	r.Headline.Peak = Peak{Allocated: mem.Some(int64(p.Allocated)), Reserved: mem.Some(int64(p.Reserved)), Label: lead.Label}
	when := fmt.Sprintf("after event %s of %s", Count(int64(p.Event)), Count(int64(lead.Events)))
	if p.Event < 0 {
		when = "at the beginning"
	}
	r.Headline.Verdict = fmt.Sprintf("Device %d of %s held at most %v, %s", lead.Device, lead.File, p.Allocated, when)
	if len(lead.Blame) > 0 && lead.At == p {
		top := lead.Blame[0]
		r.Headline.Verdict += fmt.Sprintf("; %s held most of it: %v in %s blocks (%s)", top.Name, top.Bytes, Count(int64(top.Blocks)), top.Category)
	}
	r.Headline.Verdict += "."
}

func (a *Allocator) levelTable() Table {
	t := Table{Name: fmt.Sprintf("levels-%d", a.Device), Title: fmt.Sprintf("Device %d of %s", a.Device, a.File),
		Note: fmt.Sprintf("%s events, %s call stacks, %s segments. Rounding costs %v at the moment explained; %v are cached in segments that are in use at the end.",
			Count(int64(a.Events)), Count(int64(a.Stacks)), Count(int64(a.Segments)), a.Rounding, a.InactiveSplit),
		Columns: []Column{text("when", "When"), countColumn("event", "After event"), bytesColumn("allocated", "Allocated", a.Label),
			bytesColumn("active", "Active", a.Label), bytesColumn("reserved", "Reserved", a.Label), bytesColumn("requested", "Requested", a.Label)}}
	row := func(when string, p TracePeak) {
		t.Rows = append(t.Rows, []Cell{when, int64(p.Event), int64(p.Allocated), int64(p.Active), int64(p.Reserved), int64(p.Requested)})
	}
	row("peak", a.Peak)
	if a.At != a.Peak {
		row("explained", a.At)
	}
	if a.Unplaced+a.Strange > 0 {
		t.Note += fmt.Sprintf(" %d blocks could not be placed in known memory and count with their rounded size; %d events do not fit the ones before.", a.Unplaced, a.Strange)
	}
	return t
}

func (a *Allocator) blameTable() Table {
	t := Table{Name: fmt.Sprintf("blame-%d", a.Device), Title: fmt.Sprintf("Who holds device %d, by %s", a.Device, a.By),
		Note:    a.categoryNote(),
		Columns: []Column{text(a.By, a.By), bytesColumn("bytes", "Holds", a.Label), {"share", "Share", mem.UnitMilli, a.Label}, countColumn("blocks", "Blocks"), text("category", "Category")}}
	for _, g := range a.Blame {
		t.Rows = append(t.Rows, []Cell{g.Name, int64(g.Bytes), int64(g.Bytes) * 1000 / max(1, int64(a.At.Allocated)), int64(g.Blocks), g.Category})
	}
	return t
}

func (a *Allocator) categoryNote() string {
	c := a.Accuracy
	if c == nil || c.OwnedBlocks == 0 {
		return "Categories come from rules over stacks and life-spans; they are inferred."
	}
	return fmt.Sprintf("The program itself said what %s blocks of %v are for, beside buffers; the rest is inferred by rules over stacks and life-spans, which alone are right for %d %% of those bytes.",
		Count(int64(c.OwnedBlocks)), c.Owned, int64(c.Agreed)*100/max(1, int64(c.Owned)))
}

func deviceTitle(a *Allocator) string { return fmt.Sprintf("Device %d of %s", a.Device, a.File) }

func (a *Allocator) findings(r *Report) {
	if o := a.OOM; o != nil {
		r.Findings = append(r.Findings, o.finding(a.Device, a.Label))
	}
	if a.InactiveSplit > a.At.Reserved/10 && a.InactiveSplit >= 64*mem.MiB {
		r.Findings = append(r.Findings, Finding{Kind: KindFragmentation, Severity: Warning, Label: a.Label, Bytes: mem.Some(int64(a.InactiveSplit)),
			Title: fmt.Sprintf("%v of device %d are cached in segments that are in use", a.InactiveSplit, a.Device),
			Text:  a.pinText()})
	}
}

func (a *Allocator) pinText() string {
	said := "empty_cache cannot give this memory back while blocks beside it live."
	if len(a.Pins) > 0 {
		p := a.Pins[0]
		said += fmt.Sprintf(" Mostly empty segments are kept above all by %s blocks of %s: %v in use keep %v.", Count(int64(p.Blocks)), p.Name, p.Bytes, p.Pinned)
	}
	return said
}
