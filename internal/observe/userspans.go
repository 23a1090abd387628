package observe

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// userSpans are the spans that the program itself names. Those of threads and of asynchronous tasks overlap, so each
// open one has a number, and they lie in no stack.
type userSpans struct {
	names   map[uint16]string
	open    map[uint16]*openSpan // by number of the stay
	budgets map[string]*selection
}

// selection keeps an even part of the spans of one name.
type selection struct {
	thinning
	nth uint64
}

// Of each name the first spans are kept whole, up to userBurst; after that an even selection, about userRate a second.
const (
	userBurst = 500
	userRate  = 5
	// mostRaised bounds the open spans that every reading of a device is compared with.
	mostRaised = 64
)

func newUserSpans() userSpans {
	return userSpans{names: map[uint16]string{}, open: map[uint16]*openSpan{}, budgets: map[string]*selection{}}
}

// sample raises the peaks of what is open to a reading of RSS.
func (u *userSpans) sample(rss int64) {
	for _, open := range u.open {
		open.RSSPeak.Raise(mem.Some(rss))
	}
}

// device raises them to what is allocated on the device now, whichever thread read it.
func (u *userSpans) device(allocated mem.Optional) {
	if !allocated.Known() || len(u.open) > mostRaised {
		return
	}
	for _, open := range u.open {
		open.device.Raise(allocated)
	}
}

// userEdge takes in one edge of a span that the program named.
func (b *openSpans) userEdge(e *shm.Edge) {
	if !e.Leave {
		s := b.enter(e)
		s.Name = b.user.names[e.Module]
		b.user.open[e.Stay] = &openSpan{Span: s, module: e.Module, keep: b.user.keeps(s.Name), device: e.DeviceAllocated}
		return
	}
	open := b.user.open[e.Stay]
	if open == nil || open.module != e.Module {
		return // entered before we looked, or its record was dropped
	}
	delete(b.user.open, e.Stay)
	b.leaveUser(open, e.When(), e.RSS, e.DeviceAllocated)
}

func (b *openSpans) leaveUser(open *openSpan, end int64, rss, device mem.Optional) {
	s := &open.Span
	s.End, s.RSSEnd, s.DeviceEnd = max(end, s.Start), rss, device
	s.RSSPeak.Raise(rss)
	b.count(open)
	b.user.budget(s.Name).count(s.End)
	if open.keep {
		b.out = append(b.out, *s)
	}
}

func (u *userSpans) budget(name string) *selection {
	budget := u.budgets[name]
	if budget == nil {
		budget = &selection{thinning: thinning{burst: userBurst, rate: userRate}}
		u.budgets[name] = budget
	}
	return budget
}

func (u *userSpans) keeps(name string) bool {
	budget := u.budget(name)
	budget.nth++
	return budget.keeps(budget.nth)
}

// spanMessage says what the id of a span means, or how many stays a process only counted, since they came too fast to
// tell of each.
type spanMessage struct {
	ID    uint16 `json:"id"`
	Name  string `json:"name"`
	Count uint64 `json:"count"`
	Total int64  `json:"total_ns"`
	Max   int64  `json:"max_ns"`
}

func (b *openSpans) counted(all []spanMessage) {
	for _, c := range all {
		stats := b.sums(statKey{mem.PhaseUser, b.user.names[c.ID]})
		stats.Count += c.Count
		stats.Total += max(c.Total, 0)
		stats.Max = max(stats.Max, c.Max)
	}
}

// endUser ends the spans that are still open when the process is gone, or became another program, and returns their
// names.
func (b *openSpans) endUser(end int64) (left []string) {
	for _, stay := range slices.Sorted(maps.Keys(b.user.open)) {
		open := b.user.open[stay]
		left = append(left, open.Name)
		b.leaveUser(open, end, mem.Optional{}, mem.Optional{})
	}
	clear(b.user.open)
	return left
}

// spansLeft closes the spans that a process left open, and says so.
func (r *Recorder) spansLeft(p *process, now int64) {
	left := p.spans.endUser(now)
	if len(left) == 0 {
		return
	}
	counts := map[string]int{}
	for _, name := range left {
		counts[name]++
	}
	var each []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		text := fmt.Sprintf("%q", name)
		if counts[name] > 1 {
			text += fmt.Sprintf(" (%d times)", counts[name])
		}
		each = append(each, text)
	}
	const most = 5
	text := strings.Join(each[:min(len(each), most)], ", ")
	if more := len(each) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	r.emit(mem.Event{Time: now, Process: p.ID, Kind: "log",
		Text: "spans still open as the process ended, counted up to there: " + text})
}
