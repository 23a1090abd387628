// Package trace says who holds the memory of a device, by the trace and the state that its allocator left, and what
// else a file tells that is no recording.
//
//	mem.AllocatorSnapshot ──▶ usage.FromTrace ──▶ grouper (groups.go) ──┬──▶ explanation (explain.go) ──▶ Explaining ──▶ report.Report
//	                                                                    ├──▶ Parts: of a run's snapshots
//	                                                                    └──▶ Diff: of two peaks
//	mem.Profile ──▶ OfProfile, mem.Mappings ──▶ OfMappings, mem.NodeProfile ──▶ OfNodes ──▶ report.Report
//
// An explanation is figures, which fragments.go, growth.go, shortage.go and uses.go fill in; explaintables.go and
// explainreport.go put them into tables and words. Nothing here knows of a run. Read options.go, then explain.go.
package trace

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

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
