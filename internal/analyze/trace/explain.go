// Package trace says who holds the memory of a device, by the trace and the state that its allocator left, and what
// else a file tells that is no recording.
//
//	mem.AllocatorSnapshot ──▶ usage.FromTrace ──▶ grouper (groups.go) ──┬──▶ explanation (explain.go) ──▶ Explaining ──▶ report.Report
//	                                                                    ├──▶ Parts: of a run's snapshots
//	                                                                    └──▶ Diff: of two peaks
//	mem.Profile ──▶ OfProfile, mem.Mappings ──▶ OfMappings ──▶ report.Report
//
// An explanation is figures, which fragments.go, growth.go, shortage.go and uses.go fill in; explaintables.go and
// explainreport.go put them into tables and words. Nothing here knows of a run. Read explain.go first.
package trace

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"hightide/internal/analyze/graph"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// Options choose what of a snapshot is explained. The zero value: every device, at its peak, by line.
type Options struct {
	Device mem.Optional
	Range  *usage.Stretch // of events; nil: the whole trace
	At     string         // "", "peak", "end", "event N" or ns of the wall clock
	By     string         // one of Groupings; "": site
	Top    int            // groups listed; 0: all
	Filter *regexp.Regexp
	Rules  []usage.CategoryRule

	// Pictures adds what only pictures and programs need: the course of the memory by category and site, and
	// every block of the segment map. Columns is how many parts that course has, at most; 0: 600.
	Pictures bool
	Columns  int

	// Brief stops at the peak and who holds it: no steps, growth, turnover and fragmentation, which together
	// take longer than the file does to read.
	Brief bool

	Several bool // other files are in the report
	// of Top, Device and so on those that were asked for, by the names of their flags: what no file answers is an error
	Asked []string
	Flame string // of Flames: also as a table; "": none

	Replayer mem.Replayer // says which settings would have avoided a request that failed; nil: nobody is asked
}

// ParseRange reads "a:b", "a:" or ":b".
func ParseRange(text string) (usage.Stretch, error) {
	r := usage.Whole
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
			return r, fmt.Errorf("%q is not a range of events such as 1000:2000", text)
		}
		*end.to = int(n)
	}
	if !ok {
		return r, fmt.Errorf("%q is not a range of events such as 1000:2000", text)
	}
	if r.From > r.To {
		return r, fmt.Errorf("%q ends before it begins", text)
	}
	return r, nil
}

// rangeWords is " among events 1,000 to 2,000", "" for the whole trace.
func rangeWords(r usage.Stretch) string {
	switch {
	case r == usage.Whole:
		return ""
	case r.From < 0:
		return fmt.Sprintf(" up to event %s", report.Count(int64(r.To)))
	case r.To == usage.Never:
		return fmt.Sprintf(" from event %s on", report.Count(int64(r.From)))
	}
	return fmt.Sprintf(" among events %s to %s", report.Count(int64(r.From)), report.Count(int64(r.To)))
}

// Groupings are what blocks can be grouped by.
var Groupings = []string{"site", "module", "category", "file", "function", "size", "stream", "pool", "annotation",
	"age"}

// explanation is an Allocator in the making.
type explanation struct {
	*report.Allocator
	tree     *graph.Tree      // the flame graph's
	nodes    map[uint32]int64 // see mapNode
	among    string           // the range of events that the peak was looked for in, in words
	began    mem.Bytes        // in use when the trace began
	most     bulk             // what holds most
	kind     bool             // that is blocks of one kind, from several lines
	failed   []group          // what was held when memory ran out, largest first
	bare     bool             // its file knows nothing of segments
	unlooked string           // that growth was not looked for, and why; "": it was
	counts   string           // what of the device's memory the file tells of, in words; "": all
	looked   string           // what growth would have been told; "": it was not looked for
	pinned   *report.Finding  // what rounding may take of pinned host memory; nil: nothing to tell
	larger   []string         // notes on lines whose blocks are replaced by larger ones
	noStacks bool             // no allocation has frames
	rounds   bool             // blocks are rounded as the settings say that were in force when the file was written
	filtered bool             // its file holds only some blocks, as export left them

	before usage.FromBefore // of no bytes where --filter leaves that out
}

// noHistory is what blocks are called of a file that was written without a memory history.
const noHistory = "not recorded"

// OfDevice plays the trace of one device and says who holds its memory.
func OfDevice(s *mem.AllocatorSnapshot, device int, file string, o Options) (*report.Allocator, error) {
	a, err := explainDevice(s, device, file, nil, &o)
	if err != nil {
		return nil, err
	}
	return a.Allocator, nil
}

func explainDevice(s *mem.AllocatorSnapshot, device int, file string, stepEnds []int64,
	o *Options) (*explanation, error) {
	among := usage.Whole
	if o.Range != nil {
		among = *o.Range
	}
	d := usage.FromTrace(s, device, among)
	if n := d.Moments; n > 0 && among.From >= n {
		return nil, without(d, file, fmt.Sprintf("event from %s on", report.Count(int64(among.From))))
	}
	at, err := momentOf(d, o.At, file)
	if err != nil {
		return nil, err
	}
	a := newExplanation(d, file, at, o)
	g := newGrouper(d, at, a.By, o)
	groups, rounding, err := g.blame(at)
	if err != nil {
		return nil, err
	}
	a.Blame, a.Rounding = blames(groups), ofRequests(d, rounding)
	if d.Moments == 0 { // there is no trace that it was before
		for i := range a.Blame {
			if a.Blame[i].Name == usage.BeforeTrace {
				a.Blame[i].Name = noHistory
			}
		}
	}
	a.most, a.kind = largestOf(groups, a.By)
	if o.Filter != nil {
		a.Filter = o.Filter.String()
		for i := range a.Blame {
			a.Matching += a.Blame[i].Bytes
			a.MatchingBlocks += a.Blame[i].Blocks
		}
	}
	if a.Accuracy = g.accuracy(at); o.Filter == nil {
		a.before = g.sorter.FromBefore()
	}
	if o.Top > 0 {
		a.Blame = a.Blame[:min(o.Top, len(a.Blame))]
	}
	if o.Brief {
		a.unlooked = "Growth, fragmentation and failed requests were not looked for: the brief look leaves them out."
		return a, nil
	}
	uses := g.uses(at)
	if o.Pictures || o.Flame != "" {
		uses.flames(a)
	}
	a.Turnover, a.Longest = uses.turnover(), uses.longest
	if d.KnowsSegments() {
		a.fragments(d, at, g, o.Pictures)
	}
	steps := d.Steps(stepEnds)
	a.Steps, a.Growth = steps, g.growth(steps)
	a.larger, a.pinned = g.largerNotes(steps, a.Label), pinnedRounding(d, at)
	if a.unlooked = unlooked(d, steps); a.unlooked == "" {
		if a.looked = lookedFor(d, steps); o.Filter != nil {
			a.looked = fmt.Sprintf("of what matches `%s`, %s", o.Filter, a.looked)
		}
	}
	if o.Pictures {
		a.Timeline = g.timeline(cmp.Or(o.Columns, 600))
	}
	if a.OOM, a.failed = outOfDeviceMemory(d, g); a.OOM != nil {
		a.OOMEvent = &a.OOM.Event
	}
	return a, nil
}

// newExplanation is what a history itself says.
func newExplanation(d *usage.Device, file string, at usage.Moment, o *Options) *explanation {
	s := d.Snapshot
	a := &explanation{Allocator: &report.Allocator{Device: d.Number, File: file, Events: d.Moments,
		Stacks: s.Stacks.Len() - 1, By: cmp.Or(o.By, "site"), Label: s.Label, Settings: s.Settings,
		Peak: tracePeak(d, d.Peak.Moment, d.PeakLevels), Unplaced: d.Unplaced, Strange: d.Contradictions}}
	if totals := s.Totals(d.Number); d.KnowsSegments() {
		a.Segments, a.InactiveSplit = mem.Some(int64(totals.Segments)), mem.Some(int64(totals.InactiveSplit))
	}
	a.among, a.bare, a.filtered, a.Name = rangeWords(d.Among), !d.KnowsSegments(), s.Filter != "",
		fmt.Sprintf("device %d", d.Number)
	a.counts = s.CountsOnly[d.Number]
	a.began, a.noStacks = d.Begin.Allocated, d.Frameless()
	a.rounds = d.Moments > 0 && !s.Bare && d.Settings.Divisions != [16]int{}
	if d.Number == mem.HostDevice {
		a.Name = hostName
	} else if name, ok := s.DeviceNames[d.Number]; ok {
		a.Name = fmt.Sprintf("the %s (device %d)", strings.Replace(name, "cpu", "CPU", 1), d.Number)
	}
	a.Title, a.At, a.Highest = a.InFile(), a.Peak, report.Levels{Allocated: d.Most.Allocated, Active: d.Most.Active,
		Reserved: d.ReservedAt(d.Moments-1, d.Most), Requested: ofRequests(d, d.Most.Requested)}
	if at != d.Peak.Moment {
		a.At = tracePeak(d, at, d.LevelsAt(at))
	}
	a.First, a.Last = max(d.Among.From, 0), min(d.Among.To, d.Moments-1)
	for _, p := range d.Curve {
		point := report.CurvePoint{Event: p.Moment, Time: d.TimeOf(p.Moment), Allocated: p.Allocated,
			Reserved: d.ReservedAt(p.Moment, p.Levels)}
		if d.KnowsSegments() {
			point.Releasable = mem.Some(int64(p.Releasable))
		}
		a.Curve = append(a.Curve, point)
	}
	return a
}

// hostName is what pinned host memory is called among devices.
const hostName = "host (pinned)"

func tracePeak(d *usage.Device, event usage.Moment, l usage.Levels) report.TracePeak {
	return report.TracePeak{Event: event, Time: d.TimeOf(event), Allocated: l.Allocated, Active: l.Active,
		Reserved: d.ReservedAt(event, l), Requested: ofRequests(d, l.Requested)}
}

// ofRequests is a figure that only a file can give which knows what was asked for.
func ofRequests(d *usage.Device, n mem.Bytes) mem.Optional {
	if d.Snapshot.Bare || d.Snapshot.NoRequests {
		return mem.Optional{}
	}
	return mem.Some(int64(n))
}

// NoEventError says that a device has none of the events asked for; others may have.
type NoEventError string

func (e NoEventError) Error() string { return string(e) }

func without(d *usage.Device, file, what string) NoEventError {
	has := "no trace"
	if n := d.Moments; n > 0 {
		has = "events 0 to " + report.Count(int64(n-1))
	}
	return NoEventError(fmt.Sprintf("device %d of %s has %s, and no %s", d.Number, file, has, what))
}

// CheckMoment says whether a moment is written as Options.At is.
func CheckMoment(at string) error {
	_, err := strconv.ParseInt(strings.TrimPrefix(at, "event "), 10, 64)
	if err != nil && at != "" && at != "peak" && at != "end" {
		return fmt.Errorf("%q is not peak, end, event N or a time in ns", at)
	}
	return nil
}

// momentOf is the event after which the memory is looked at.
func momentOf(d *usage.Device, at, file string) (usage.Moment, error) {
	switch {
	case at == "" || at == "peak":
		return d.Peak.Moment, nil
	case at == "end":
		return min(d.Moments-1, d.Among.To), nil
	case strings.HasPrefix(at, "event "):
		n, err := strconv.ParseInt(at[6:], 10, 32)
		if err != nil || n < -1 || int(n) >= d.Moments {
			return 0, without(d, file, at)
		}
		return int(n), nil
	}
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not peak, end, event N or a time in ns", at)
	}
	switch t := d.Times; {
	case len(t) == 0:
		return 0, fmt.Errorf("device %d has no times: name an event, as in --at \"event 12\"", d.Number)
	case n < t[0]/2: // a number of an event, most likely
		return 0, fmt.Errorf("%d ns is long before device %d's trace, which has the times %d to %d; an event is meant by "+
			"--at \"event %d\"", n, d.Number, t[0], t[len(t)-1], n)
	}
	return d.MomentAt(n), nil
}
