package explore

import (
	"slices"

	"hightide/internal/fail"
	"hightide/internal/mem"
)

// Events are some events of a trace, one after the other.
type Events struct {
	From   int         `json:"from"`   // number of the first
	Events []ListEvent `json:"events"` // oldest first
	All    int         `json:"all"`    // of the trace
}

// ListEvent is an event with the line that caused it.
type ListEvent struct {
	Event
	Place SiteLabel `json:"place"`
}

const mostListed = 400

// List gives events from a number on.
func (e *Explorer) List(from, count int) Events {
	from = min(max(from, 0), e.Moments)
	to := min(from+min(max(count, 0), mostListed), e.Moments)
	l := Events{From: from, Events: []ListEvent{}, All: e.Moments}
	e.naming.Lock()
	defer e.naming.Unlock()
	for i := from; i < to; i++ {
		site := e.siteOf(e.Trace.Stack[i])
		l.Events = append(l.Events, ListEvent{*e.eventOf(i), e.labels.Sites[site]})
	}
	return l
}

// Next finds the first event of a kind after a number, or before it where back; -1: there is none.
func (e *Explorer) Next(action string, after int, back bool) (int, error) {
	kind := slices.Index(mem.ActionNames[:], action)
	if kind < 0 {
		return -1, fail.Usage("as alloc, free_requested, free_completed, segment_alloc, oom", "no event is called %q", action)
	}
	step := 1
	if back {
		step = -1
	}
	for i := min(max(after, -1), e.Moments) + step; i >= 0 && i < e.Moments; i += step {
		if e.Trace.Action[i] == mem.Action(kind) {
			return i, nil
		}
	}
	return -1, nil
}
