package analyze

import (
	"fmt"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// oomBlamed is how many groups an out-of-memory names.
const oomBlamed = 5

// pieces is the free memory that an allocator held.
type pieces struct {
	bytes, largest mem.Bytes
	count          int
}

// oom is the last request that failed; nil: none did.
func (b *traceBooks) oom(g *grouper) (*report.TraceOOM, error) {
	if b.failedAt < 0 {
		return nil, nil
	}
	i, t, l := b.failedAt, b.trace, b.levelsAt(b.failedAt)
	held, _, err := g.blame(i)
	if err != nil {
		return nil, err
	}
	oom := &report.TraceOOM{
		Event: i, Asked: t.Size[i], Allocated: l.allocated, Reserved: b.reservedAt(i, l), Most: mostOf(held),
		Blame: held[:min(oomBlamed, len(held))], Frames: b.snapshot.Stacks.Frames(t.Stack[i]),
	}
	if t.Address[i] != mem.FreeUnknown {
		oom.DeviceFree = mem.Some(int64(t.Address[i]))
	}
	if total, ok := b.snapshot.DeviceMemory[b.device]; ok {
		oom.DeviceTotal = mem.Some(int64(total))
	}
	b.judge(oom)
	if g.o.Advise != nil {
		oom.Advice, oom.Replayed = g.o.Advise(b.snapshot, b.device)
	}
	return oom, nil
}

// judge says what was cached, and whether it would have been enough, as far as the file tells.
func (b *traceBooks) judge(o *report.TraceOOM) {
	cached, free := b.atFailure.bytes, mem.Bytes(o.DeviceFree.Or(0))
	if b.knowsSegments() {
		o.Pieces, o.LargestFree = mem.Some(int64(b.atFailure.count)), mem.Some(int64(b.atFailure.largest))
		contiguous := max(free, b.atFailure.largest) >= o.Asked
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
		Bytes: mem.Some(int64(o.Asked)), Text: fmt.Sprintf("%v were asked for at event %s", o.Asked, report.Count(int64(o.Event)))}
	if !a.Alone {
		f.Text += " of " + a.Where()
	}
	f.Text += fmt.Sprintf(", when %v were allocated", o.Allocated) + roomText(o)
	if o.Most.Bytes > 0 {
		f.Text += fmt.Sprintf(" Most was held by %s: %v.", who(&o.Most), o.Most.Bytes)
	}
	if at := newPlaces(nil).search(o.Frames); !at.Native && at.File != "" {
		f.File, f.Line, f.SiteFunction = at.File, at.Line, at.Function
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
