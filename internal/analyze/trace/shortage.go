package trace

import (
	"cmp"
	"fmt"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

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
	if g.o.Replayer != nil {
		if oom.Replayed = g.o.Replayer.Advise(d.Snapshot, d.Number); oom.Replayed != nil {
			oom.Advice = oom.Replayed.Text()
		}
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

// Shortage is a request that found no memory: as the program's error told of it, as the allocator recorded it, or both.
type Shortage struct {
	report.Finding                  // what is set of it stays
	Told           string           // who asked, for how much, when
	After          string           // what else the program said
	At             mem.Location     // the line that asked
	Record         *report.TraceOOM // nil: no allocator told
	Held           []group          // of the record, largest first
	By             string           // how they are grouped
	Names          *usage.Names     // which line of a stack is told; nil: as of any program
}

// Tell puts a shortage into words.
func (s *Shortage) Tell() report.Finding {
	f, o := s.Finding, s.Record
	f.Kind = report.KindOOM
	if s.At.File != "" && !s.At.Native {
		f.File, f.Line = s.At.File, s.At.Line
		f.SiteFile, f.SiteLine, f.SiteFunction = s.At.File, s.At.Line, s.At.Function
	}
	if o == nil {
		f.Text = s.Told + "." + s.After
		return f
	}
	f.Text = fmt.Sprintf("%s, when %v were allocated", s.Told, o.Allocated) + roomText(o)
	if line, _ := largestOf(s.Held, ""); line.Bytes > 0 {
		f.Text += heldText(s.Held, s.By)
		if holder := s.names().Search(line.Frames); !holder.Native && holder.File != "" {
			f.File, f.Line = holder.File, holder.Line
		}
	}
	why, advice := cause(o)
	f.Text += why
	f.Advice = cmp.Or(o.Advice, advice, f.Advice)
	return f
}

func (s *Shortage) names() *usage.Names {
	return cmp.Or(s.Names, usage.NewNames(new(mem.StackTable)))
}

// heldText says what held most when memory ran out: a line, or blocks of one kind and the line of most of them.
func heldText(held []group, by string) string {
	most, kind := largestOf(held, by)
	text := bytesInBlocks(most.Bytes, most.Blocks)
	if kind {
		if unclassified(held) >= leastUnclassified*float64(most.Bytes) {
			text = "at least " + text
		}
		return fmt.Sprintf(" The largest part was %s, %s: %v of it was held by %s.", most.Category, text, most.line.Bytes,
			who(most.line))
	}
	return fmt.Sprintf(" The largest part was held by %s: %s.", who(&most.group), text)
}

// leastUnclassified is how much must be of no known kind, beside the largest kind, for it to be told as the least.
const leastUnclassified = 0.01

// unclassified is what nothing tells the use of.
func unclassified(held []group) (bytes float64) {
	for _, g := range held {
		if g.Category == usage.UnknownCategory || g.Category == usage.BeforeTrace {
			bytes += float64(g.Bytes)
		}
	}
	return bytes
}

// cause says why a request failed that an allocator recorded, as far as it tells, and what may help.
func cause(o *report.TraceOOM) (why, advice string) {
	if !o.Pieces.Known() && o.Reserved.Known() {
		advice = "A snapshot of the allocator (`" + frameworks.DumpSnapshot + "`) says more: in which pieces memory was " +
			"free, and which setting avoids this."
	}
	free := mem.Bytes(o.DeviceFree.Or(-1))
	switch {
	case o.WouldFit == nil:
	case free >= o.Segment && o.OwnLimit.Known():
		why = fmt.Sprintf(" The device had enough: the program limits itself to %v (`%s`).", mem.Bytes(o.OwnLimit.Or(0)),
			frameworks.OwnLimit)
		advice = "Raise that limit (" + frameworks.OwnLimit + "), or take less."
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
			"Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, which joins free memory of different sizes. Whether it " +
				"is enough was not tried."
	default:
		why = " All of it together was not enough."
	}
	return why, advice
}

// recorded is a request that failed as the allocator of a device tells of it.
func recorded(s Shortage, label mem.Label, device, of string) *Shortage {
	o := s.Record
	s.Told = fmt.Sprintf("%v were asked for at event %s", o.Asked, report.Count(int64(o.Event)))
	s.Severity, s.Label, s.Stack, s.Bytes = report.Critical, label, o.Frames, mem.Some(int64(o.Asked))
	s.Title = fmt.Sprintf("%s ran out of memory", report.UpperFirst(device))
	if site := s.names().Search(o.Frames); !site.Native && site.File != "" {
		s.At, s.Told = site.Location, fmt.Sprintf("%s asked for %v at event %s", site.Name, o.Asked,
			report.Count(int64(o.Event)))
	}
	if of != device {
		s.Told += " of " + of
	}
	if o.Failures > 1 {
		s.Told += fmt.Sprintf(" (the last of %d requests that failed)", o.Failures)
	}
	return &s
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

// Scattered says so where a request failed though there was enough memory, in pieces; nil: it was not so.
func (s *Shortage) Scattered() *report.Finding {
	o := s.Record
	if o.WouldFit == nil || !*o.WouldFit || o.Contiguous == nil || *o.Contiguous ||
		mem.Bytes(o.DeviceFree.Or(0)) >= o.Asked {
		return nil
	}
	return &report.Finding{Kind: report.KindFragmentation, Severity: report.Warning,
		Process: s.Process, Label: s.Label,
		Title: "Enough memory was free, but not in one piece", Bytes: o.Cached,
		Text: fmt.Sprintf("%v were cached and unused and %v free on the device, together more than the %v asked for; "+
			"the largest piece was %v.",
			mem.Bytes(o.Cached.Or(0)), mem.Bytes(o.DeviceFree.Or(0)), o.Asked, mem.Bytes(o.LargestFree.Or(0))),
		Advice: "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."}
}
