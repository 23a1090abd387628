package analyze

import (
	"fmt"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// oomBlamed is how many groups an out-of-memory names.
const oomBlamed = 5

// outOfDeviceMemory is the last request that failed; nil: none did.
func outOfDeviceMemory(d *usage.Device, g *grouper) *report.TraceOOM {
	i, t := d.FailedAt, d.Trace
	if i < 0 {
		return nil
	}
	l := d.LevelsAt(i)
	held, _, err := g.blame(i)
	if err != nil { // no such grouping, of which blame told already
		return nil
	}
	oom := &report.TraceOOM{
		Event: i, Asked: t.Size[i], Allocated: l.Allocated, Reserved: d.ReservedAt(i, l), Most: mostOf(held),
		Blame: held[:min(oomBlamed, len(held))], Frames: d.Snapshot.Stacks.Frames(t.Stack[i]),
	}
	if t.Address[i] != mem.FreeUnknown {
		oom.DeviceFree = mem.Some(int64(t.Address[i]))
	}
	if total, ok := d.Snapshot.DeviceMemory[d.Number]; ok {
		oom.DeviceTotal = mem.Some(int64(total))
	}
	judge(oom, d)
	if g.o.Advise != nil {
		oom.Advice, oom.Replayed = g.o.Advise(d.Snapshot, d.Number)
	}
	return oom
}

// judge says what was cached, and whether it would have been enough, as far as the file tells.
func judge(o *report.TraceOOM, d *usage.Device) {
	cached, free := d.FreeAtThat.Bytes, mem.Bytes(o.DeviceFree.Or(0))
	if d.KnowsSegments() {
		o.Pieces, o.LargestFree = mem.Some(int64(d.FreeAtThat.Count)), mem.Some(int64(d.FreeAtThat.Largest))
		contiguous := max(free, d.FreeAtThat.Largest) >= o.Asked
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

func oomFinding(o *report.TraceOOM, a *report.Allocator) report.Finding {
	f := report.Finding{Kind: report.KindOOM, Severity: report.Critical, Label: a.Label, Title: fmt.Sprintf("%s ran out of memory", report.UpperFirst(a.Name)), Stack: o.Frames,
		Bytes: mem.Some(int64(o.Asked))}
	names := usage.NewNames(new(mem.StackTable))
	f.Text = fmt.Sprintf("%v were asked for at event %s", o.Asked, report.Count(int64(o.Event)))
	if asking := names.Search(o.Frames); !asking.Native && asking.File != "" {
		f.File, f.Line = asking.File, asking.Line
		f.SiteFile, f.SiteLine, f.SiteFunction = asking.File, asking.Line, asking.Function
		f.Text = fmt.Sprintf("%s asked for %v at event %s", asking.Name, o.Asked, report.Count(int64(o.Event)))
	}
	if !a.Alone {
		f.Text += " of " + a.Where()
	}
	f.Text += fmt.Sprintf(", when %v were allocated", o.Allocated) + roomText(o)
	if o.Most.Bytes > 0 {
		f.Text += fmt.Sprintf(" Most was held by %s: %s.", who(&o.Most), bytesInBlocks(o.Most.Bytes, o.Most.Blocks))
		if holder := names.Search(o.Most.Frames); !holder.Native && holder.File != "" {
			f.File, f.Line = holder.File, holder.Line
		}
	}
	switch {
	case o.WouldFit == nil:
	case mem.Bytes(o.DeviceFree.Or(-1)) >= o.Asked:
		f.Text += " The device had enough, so a limit below its memory was reached, as `set_per_process_memory_fraction` sets one."
	case o.Contiguous != nil && *o.Contiguous:
		f.Text += " One cached piece alone was large enough, so it belonged to another pool or stream."
	case *o.WouldFit:
		f.Text += " Together that is enough, but no piece alone was: fragmentation."
		f.Advice = "Try `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, which joins free memory of different sizes (not verified)."
	default:
		f.Text += " All of it together was not enough."
	}
	if !o.Pieces.Known() && o.Reserved.Known() && f.Advice == "" {
		f.Advice = "A snapshot of the allocator (`torch.cuda.memory._dump_snapshot`) says more: in which pieces memory was free, and which setting avoids this."
	}
	if o.Advice != "" {
		f.Advice = o.Advice
	}
	return f
}

// room says what was left besides what was allocated.
func roomText(o *report.TraceOOM) string {
	free, knowsFree := o.DeviceFree.Get()
	cached, knowsCached := o.Cached.Get()
	pieces := ""
	if n := o.Pieces.Or(0); n > 0 {
		pieces = fmt.Sprintf(" in %s, the largest of %v", report.Counted(n, "piece"), mem.Bytes(o.LargestFree.Or(0)))
	}
	switch {
	case knowsFree && knowsCached:
		return fmt.Sprintf(". The device had %v free and the allocator %v cached%s.", mem.Bytes(free), mem.Bytes(cached), pieces)
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
