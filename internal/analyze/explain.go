package analyze

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// ExplainOptions choose what of a snapshot is explained. The zero value: every device, at its peak, by line.
type ExplainOptions struct {
	Device mem.Optional
	Range  *EventRange // nil: the whole trace
	At     string      // "", "peak", "end", "event N" or ns of the wall clock
	By     string      // one of Groupings; "": site
	Top    int         // groups listed; 0: all
	Filter *regexp.Regexp
	Rules  []CategoryRule

	// Pictures adds what only pictures and programs need: the course of the memory by category and site, and
	// every block of the segment map. Columns is how many parts that course has, at most; 0: 600.
	Pictures bool
	Columns  int

	// Brief stops at the peak and who holds it: no steps, growth, turnover and fragmentation, which together
	// take longer than the file does to read.
	Brief bool

	Several  bool       // other files are in the report
	Notes    *FileNotes // gets what is known of each file; nil: nobody asks
	Flame    string     // of Flames: also as a table; "": none
	StepEnds []int64    // as recorded, ns of the wall clock

	// Advise says which settings would have avoided the failed request of a device, in words and for programs.
	Advise func(s *mem.AllocatorSnapshot, device int) (words string, all any)
}

// EventRange is a stretch of a trace, both ends in it. From is -1 where the state before the first event
// belongs to it.
type EventRange struct{ From, To int }

var wholeTrace = EventRange{-1, never}

// ParseRange reads "a:b", "a:" or ":b".
func ParseRange(text string) (EventRange, error) {
	r := wholeTrace
	from, to, ok := strings.Cut(text, ":")
	for _, end := range []struct {
		text string
		to   *int
	}{{from, &r.From}, {to, &r.To}} {
		if end.text == "" {
			continue
		}
		n, err := strconv.ParseInt(end.text, 10, 32)
		if err != nil || n < 0 {
			return r, fmt.Errorf("%q is no range of events such as 1000:2000", text)
		}
		*end.to = int(n)
	}
	if !ok || r.From > r.To {
		return r, fmt.Errorf("%q is no range of events such as 1000:2000", text)
	}
	return r, nil
}

// words is " among events 1,000 to 2,000", "" for the whole trace.
func (r EventRange) words() string {
	switch {
	case r == wholeTrace:
		return ""
	case r.From < 0:
		return fmt.Sprintf(" up to event %s", report.Count(int64(r.To)))
	case r.To == never:
		return fmt.Sprintf(" from event %s on", report.Count(int64(r.From)))
	}
	return fmt.Sprintf(" among events %s to %s", report.Count(int64(r.From)), report.Count(int64(r.To)))
}

// Groupings are what blocks can be grouped by.
var Groupings = []string{"site", "module", "category", "file", "function", "size", "stream", "pool", "annotation", "age"}

// explanation is an Allocator in the making.
type explanation struct {
	*report.Allocator
	tree     *stackTree       // the flame graph's
	nodes    map[uint32]int64 // see mapNode
	bare     bool             // its file knows nothing of segments
	filtered bool             // its file holds only some blocks, as export left them
}

// ExplainDevice plays the trace of one device and says who holds its memory.
func ExplainDevice(s *mem.AllocatorSnapshot, device int, file string, o ExplainOptions) (*report.Allocator, error) {
	a, err := explainDevice(s, device, file, o)
	if err != nil {
		return nil, err
	}
	return a.Allocator, nil
}

func explainDevice(s *mem.AllocatorSnapshot, device int, file string, o ExplainOptions) (*explanation, error) {
	among := wholeTrace
	if o.Range != nil {
		among = *o.Range
	}
	b := newBooksOf(s, device, among)
	if n := b.trace.Len(); n > 0 && among.From >= n {
		return nil, b.without(file, fmt.Sprintf("event from %s on", report.Count(int64(among.From))))
	}
	at, err := b.moment(o.At, file)
	if err != nil {
		return nil, err
	}
	a := &explanation{Allocator: &report.Allocator{Device: device, File: file, Events: b.trace.Len(), Stacks: s.Stacks.Len() - 1, By: cmp.Or(o.By, "site"), Label: s.Label,
		Peak: b.tracePeak(b.peakAt, b.peak), Unplaced: b.unplaced, Strange: b.strange}}
	if totals := s.Totals(device); b.knowsSegments() {
		a.Segments, a.InactiveSplit = mem.Some(int64(totals.Segments)), mem.Some(int64(totals.InactiveSplit))
	}
	a.Among, a.bare, a.Name = among.words(), !b.knowsSegments(), fmt.Sprintf("device %d", device)
	if name, ok := s.DeviceNames[device]; ok {
		a.Name = fmt.Sprintf("the %s (device %d)", strings.Replace(name, "cpu", "CPU", 1), device)
	}
	a.At, a.Highest = a.Peak, report.Levels{Allocated: b.maximum.allocated, Active: b.maximum.active, Reserved: b.reservedAt(b.trace.Len()-1, b.maximum), Requested: b.ofRequests(b.maximum.requested)}
	if at != b.peakAt {
		a.At = b.tracePeak(at, b.levelsAt(at))
	}
	g := newGrouper(b, at, a.By, &o)
	var rounding mem.Bytes
	if a.Blame, rounding, err = g.blame(at); err != nil {
		return nil, err
	}
	a.Rounding, a.Most = b.ofRequests(rounding), mostOf(a.Blame)
	if o.Filter != nil {
		a.Filter = o.Filter.String()
		for i := range a.Blame {
			a.Matching += a.Blame[i].Bytes
			a.MatchingBlocks += a.Blame[i].Blocks
		}
	}
	a.First, a.Last = max(b.from, 0), min(b.to, b.trace.Len()-1)
	a.Accuracy = b.accuracy(at, g.sorter)
	if o.Top > 0 {
		a.Blame = a.Blame[:min(o.Top, len(a.Blame))]
	}
	for _, point := range b.curve {
		a.Curve = append(a.Curve, report.CurvePoint{Event: point.event, Time: b.time(point.event), Allocated: point.allocated, Reserved: b.reservedAt(point.event, point.levels), Releasable: b.ofSegments(point.releasable)})
	}
	if o.Brief {
		return a, nil
	}
	uses := g.uses(at)
	if o.Pictures || o.Flame != "" {
		uses.flames(a)
	}
	a.Turnover, a.Longest = uses.turnover(), uses.longest
	if b.knowsSegments() {
		a.fragments(b, at, g, o.Pictures)
	}
	a.Steps = b.steps(o.StepEnds)
	a.Growth = g.growth(a.Steps)
	if o.Pictures {
		a.Timeline = g.timeline(cmp.Or(o.Columns, 600))
	}
	if a.OOM, err = b.oom(g); err != nil {
		return nil, err
	}
	if a.OOM != nil {
		a.OOMEvent = &a.OOM.Event
	}
	return a, nil
}

func (b *traceBooks) tracePeak(event int, l levels) report.TracePeak {
	return report.TracePeak{Event: event, Time: b.time(event), Allocated: l.allocated, Active: l.active, Reserved: b.reservedAt(event, l), Requested: b.ofRequests(l.requested)}
}

// reservedAt is what was reserved after an event, absent where the file does not tell.
func (b *traceBooks) reservedAt(event int, l levels) mem.Optional {
	if b.knowsSegments() || b.trace.Reserved != nil && event >= 0 {
		return mem.Some(int64(l.reserved))
	}
	return mem.Optional{}
}

// knowsSegments says whether the file tells of segments: a profiler's trace does not, nor one that was cut down to
// its events.
func (b *traceBooks) knowsSegments() bool {
	return !b.snapshot.Bare && (b.maximum.reserved > 0 || b.peak.allocated == 0)
}

func (b *traceBooks) ofSegments(n mem.Bytes) mem.Optional {
	if !b.knowsSegments() {
		return mem.Optional{}
	}
	return mem.Some(int64(n))
}

// ofRequests is a figure that only a file can give which knows what was asked for.
func (b *traceBooks) ofRequests(n mem.Bytes) mem.Optional {
	if b.snapshot.Bare {
		return mem.Optional{}
	}
	return mem.Some(int64(n))
}

// NoEventError says that a device has none of the events asked for; others may have.
type NoEventError string

func (e NoEventError) Error() string { return string(e) }

func (b *traceBooks) without(file, what string) NoEventError {
	has := "no trace"
	if n := b.trace.Len(); n > 0 {
		has = "events 0 to " + report.Count(int64(n-1))
	}
	return NoEventError(fmt.Sprintf("device %d of %s has %s, and no %s", b.device, file, has, what))
}

// CheckMoment says whether a moment is written as ExplainOptions.At is.
func CheckMoment(at string) error {
	if _, err := strconv.ParseInt(strings.TrimPrefix(at, "event "), 10, 64); err != nil && at != "" && at != "peak" && at != "end" {
		return fmt.Errorf("%q is none of peak, end, event N, and no time in ns", at)
	}
	return nil
}

// moment is the event after which the memory is looked at.
func (b *traceBooks) moment(at, file string) (int, error) {
	switch {
	case at == "" || at == "peak":
		return b.peakAt, nil
	case at == "end":
		return min(b.trace.Len()-1, b.to), nil
	case strings.HasPrefix(at, "event "):
		n, err := strconv.ParseInt(at[6:], 10, 32)
		if err != nil || n < -1 || int(n) >= b.trace.Len() {
			return 0, b.without(file, at)
		}
		return int(n), nil
	}
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is none of peak, end, event N, and no time in ns", at)
	}
	switch t := b.trace.Time; {
	case len(t) == 0:
		return 0, fmt.Errorf("device %d has no times: name an event, as in --at \"event 12\"", b.device)
	case n < t[0]/2: // a number of an event, most likely
		return 0, fmt.Errorf("%d ns is long before device %d's trace, which has the times %d to %d; an event is meant by --at \"event %d\"", n, b.device, t[0], t[len(t)-1], n)
	}
	return b.eventAt(n), nil
}
