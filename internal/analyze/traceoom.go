package analyze

import (
	"fmt"

	"hightide/internal/mem"
)

// TraceOOM is a request that failed, and what the allocator held at that event. Cached memory counts
// whatever pool or stream it belongs to.
type TraceOOM struct {
	Event       int            `json:"event"`
	Asked       mem.Bytes      `json:"asked_bytes"`
	DeviceFree  mem.Bytes      `json:"device_free_bytes"` // as the device said
	Allocated   mem.Bytes      `json:"allocated_bytes"`
	Reserved    mem.Bytes      `json:"reserved_bytes"`
	Cached      mem.Bytes      `json:"cached_bytes"`
	Pieces      int            `json:"cached_pieces"`
	LargestFree mem.Bytes      `json:"largest_cached_bytes"`
	WouldFit    bool           `json:"fits_without_fragmentation"` // what is free and cached, if it lay in one piece
	Contiguous  bool           `json:"contiguous"`                 // one piece alone was large enough
	Blame       []Blame        `json:"blame"`                      // the largest groups alive then
	Frames      []mem.Location `json:"frames"`
	Advice      string         `json:"advice,omitempty"`   // verified by replay
	Replayed    any            `json:"replayed,omitempty"` // the settings tried, and what became of them
}

// oomBlamed is how many groups an out-of-memory names.
const oomBlamed = 5

// pieces is the free memory that an allocator held.
type pieces struct {
	bytes, largest mem.Bytes
	count          int
}

func (b *traceBooks) pieces() pieces {
	var p pieces
	for _, n := range b.nodes {
		if n.free && n.size > 0 {
			p.bytes += n.size
			p.largest = max(p.largest, n.size)
			p.count++
		}
	}
	return p
}

// oom is the last request that failed; nil: none did.
func (b *traceBooks) oom(g *grouper) (*TraceOOM, error) {
	if b.failedAt < 0 {
		return nil, nil
	}
	i, t, l := b.failedAt, b.trace, b.levelsAt(b.failedAt)
	held, _, err := g.blame(i)
	if err != nil {
		return nil, err
	}
	free, asked := mem.Bytes(t.Address[i]), t.Size[i]
	oom := &TraceOOM{
		Event: i, Asked: asked, DeviceFree: free, Allocated: l.allocated, Reserved: l.reserved,
		Cached: b.atFailure.bytes, Pieces: b.atFailure.count, LargestFree: b.atFailure.largest,
		WouldFit: free+b.atFailure.bytes >= asked, Contiguous: max(free, b.atFailure.largest) >= asked,
		Blame: held[:min(oomBlamed, len(held))], Frames: b.snapshot.Stacks.Frames(t.Stack[i]),
	}
	if g.o.Advise != nil {
		oom.Advice, oom.Replayed = g.o.Advise(b.snapshot, b.device)
	}
	return oom, nil
}

func (o *TraceOOM) finding(device int, label mem.Label) Finding {
	f := Finding{Kind: KindOOM, Severity: Critical, Label: label, Title: fmt.Sprintf("Device %d ran out of memory", device), Stack: o.Frames, Bytes: mem.Some(int64(o.Asked)),
		Text: fmt.Sprintf("%v were asked for at event %s, when %v were allocated. The device had %v free and the allocator %v cached",
			o.Asked, Count(int64(o.Event)), o.Allocated, o.DeviceFree, o.Cached)}
	if o.Pieces > 0 {
		f.Text += fmt.Sprintf(" in %s pieces, the largest of %v", Count(int64(o.Pieces)), o.LargestFree)
	}
	f.Text += "."
	if len(o.Blame) > 0 {
		f.Text += fmt.Sprintf(" Most was held by %s: %v.", o.Blame[0].Name, o.Blame[0].Bytes)
	}
	if at := newPlaces(nil).search(o.Frames); !at.Native && at.File != "" {
		f.File, f.Line, f.SiteFunction = at.File, at.Line, at.Function
	}
	switch {
	case o.Contiguous:
		f.Text += " One piece alone was large enough: it belonged to another pool or stream, or a limit below the device's memory was set."
	case o.WouldFit:
		f.Text += " Together that is enough, but no piece alone was: fragmentation."
		f.Advice = "Try `PYTORCH_ALLOC_CONF=expandable_segments:True`, which joins free memory of different sizes (not verified)."
	default:
		f.Text += " All of it together was not enough."
	}
	if o.Advice != "" {
		f.Advice = o.Advice
	}
	return f
}
