package replay

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

const (
	searchTime  = time.Minute // for one search
	mostChecked = 24          // of the best, run in every order of addresses until one holds
)

// search tries settings on all cores on the trace that reserves most, and looks for the best that holds on all
// traces. Each is run from a fresh start, as a program would be with them, and so are the default settings and the
// record's own.
func search(ctx context.Context, all []*replaying, tell func(done, all int)) {
	worst := slices.MaxFunc(all, func(a, b *replaying) int {
		return cmp.Compare(a.result.Recorded.Reserved,
			b.result.Recorded.Reserved)
	})
	start := time.Now()
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	for _, r := range all {
		r.beginSearch()
	}
	found := allocator.SearchTelling(worst.program, worst.trial(worst.asked.Settings), worst.o.Workers,
		func() bool { return ctx.Err() != nil }, tell)
	worst.result.Search = distinct(found)
	worst.result.Searched = Searched{Settings: len(found), Nanoseconds: time.Since(start).Nanoseconds(),
		Capacity: worst.room}
	simplestFirst(found)
	own := slices.IndexFunc(found, func(c allocator.Candidate) bool { return c.Settings == worst.asked.Settings })
	for i, c := range found[:min(len(found), mostChecked)] {
		if i > own || !less(&c, &found[own]) { // changing nothing is as good
			c = found[own]
		}
		if tryOnAll(all, c.Settings) || c.Settings == found[own].Settings {
			break
		}
	}
}

// distinct are the figures of a search, those that lead to the same once: of the shortest line, which comes first.
func distinct(found []allocator.Candidate) (all []Figures) {
	type outcome struct {
		reserved, allocated     mem.Bytes
		calls, retries, refused int64
		oom                     int
	}
	seen := map[outcome]bool{}
	for _, c := range found {
		f, at := figures(c.Settings.String(), c.Outcome), -1
		if f.OOM != nil {
			at = *f.OOM
		}
		if of := (outcome{f.Reserved, f.Allocated, f.SegmentCalls, f.Retries, f.Refused, at}); !seen[of] {
			seen[of] = true
			all = append(all, f)
		}
	}
	return all
}

// asGood is by what part of its peak, as a divisor, one may reserve more than another and be as good: a line that is
// simpler is better then.
const asGood = 1000

// simplestFirst puts those that are as good as the best in front, the one that changes the fewest settings first.
func simplestFirst(found []allocator.Candidate) {
	if len(found) == 0 || found[0].Outcome.OOM != nil {
		return
	}
	best := &found[0].Outcome.Usage
	end := slices.IndexFunc(found, func(c allocator.Candidate) bool {
		u := &c.Outcome.Usage
		return c.Outcome.OOM != nil || u.OOMs > best.OOMs || u.PeakReserved > best.PeakReserved+best.PeakReserved/asGood
	})
	if end < 0 {
		end = len(found)
	}
	slices.SortStableFunc(found[:end], func(a, b allocator.Candidate) int {
		return cmp.Compare(changes(a.Settings),
			changes(b.Settings))
	})
}

// changes is how many settings a line has.
func changes(s allocator.Settings) int {
	line := s.String()
	if line == "" {
		return 0
	}
	return 1 + strings.Count(line, ",")
}

// less says whether a candidate refuses less or reserves less than another, whatever it costs in calls.
func less(a, b *allocator.Candidate) bool {
	if (a.Outcome.OOM == nil) != (b.Outcome.OOM == nil) {
		return a.Outcome.OOM == nil
	}
	u, v := &a.Outcome.Usage, &b.Outcome.Usage
	return cmp.Or(cmp.Compare(u.OOMs, v.OOMs), cmp.Compare(u.PeakReserved, v.PeakReserved)) < 0
}

// beginSearch finds out on what device settings are tried, and what the default ones take there.
func (r *replaying) beginSearch() {
	if r.room = r.asked.Capacity; r.room == 0 {
		r.room = r.program.Room(r.trace)
	}
	outcomes, spread := allocator.Variants(r.program, r.trial(allocator.Settings{Fraction: r.asked.Settings.Fraction}))
	fresh := figures("", outcomes[0])
	r.result.Fresh, r.result.FreshSpread = &fresh, [2]mem.Bytes{spread.Low, spread.High}
}

// trial is how settings are tried: from a fresh start, on the device that was asked for or that the file tells of.
func (r *replaying) trial(settings allocator.Settings) allocator.Setup {
	setup := r.asked
	setup.Settings, setup.Anew, setup.Capacity = settings, true, r.room
	return setup
}

// tryOnAll makes settings the best of each trace; false: on one of them they do not hold.
func tryOnAll(all []*replaying, settings allocator.Settings) bool {
	best := make([]*Best, len(all))
	for i, r := range all {
		if best[i] = r.best(settings); best[i] == nil {
			return false
		}
	}
	for i, r := range all {
		r.result.Best = best[i]
	}
	return true
}

// best is what settings come to on one trace; nil: in some order of addresses they are worse than what was recorded.
// That is so where memory runs out, where more requests are refused, or where more is reserved without a request the
// fewer refused.
func (r *replaying) best(settings allocator.Settings) *Best {
	recorded := &r.result.Recorded
	setup := r.trial(settings)
	outcomes, spread := allocator.Variants(r.program, setup)
	for _, o := range outcomes {
		if f := figures("", o); f.OOM != nil || f.Refused > recorded.Refused ||
			f.Refused == recorded.Refused && f.Reserved > recorded.Reserved {
			return nil
		}
	}
	b := &Best{Figures: figures(settings.String(), outcomes[0]), Verdict: r.judge(&setup, outcomes, false),
		Spread: [2]mem.Bytes{spread.Low, spread.High}, Curve: outcomes[0].Curve}
	b.Gain, b.GainFresh = recorded.Reserved-b.Reserved, r.result.Fresh.Reserved-b.Reserved
	b.MoreCalls = b.SegmentCalls - recorded.SegmentCalls
	return b
}
