package explore

import (
	"slices"

	"hightide/internal/fail"
	"hightide/internal/mem"
)

// Events are some events of a trace, one after the other.
type Events struct {
	From   int         `json:"from" doc:"The number of the first of these events."`
	Events []ListEvent `json:"events" doc:"The events, oldest first."`
	All    int         `json:"all" doc:"How many events the trace has."`
}

// ListEvent is an event with the line that caused it.
type ListEvent struct {
	Event
	Place SiteLabel `json:"place" doc:"The line that caused it."`
	Other bool      `json:"other,omitempty" doc:"Whether a filter leaves it out."`
}

const mostListed = 400

// List gives events from a number on, and says of each whether a filter leaves it out. One that is left out is about
// a block that the filter does not have, or about none and its own line and calls are not those.
func (e *Explorer) List(from, count int, of Filter) (Events, error) {
	from = min(max(from, 0), e.Moments)
	to := min(from+min(max(count, 0), mostListed), e.Moments)
	l := Events{From: from, Events: []ListEvent{}, All: e.Moments}
	e.naming.Lock()
	defer e.naming.Unlock()
	wants, err := e.wants(of)
	if err != nil {
		return l, err
	}
	alone := e.wantsStack(of)
	for i := from; i < to; i++ {
		stack := e.Trace.Stack[i]
		event := ListEvent{Event: *e.eventOf(i), Place: e.labels.Sites[e.siteOf(stack)]}
		if wants != nil {
			event.Other = event.Block >= 0 && !wants(event.Block) || event.Block < 0 && !alone(stack)
		}
		l.Events = append(l.Events, event)
	}
	return l, nil
}

// wantsStack says whether an event that is about no block, such as one of a segment, is what a filter wants: by its
// calls alone.
func (e *Explorer) wantsStack(of Filter) func(stack uint32) bool {
	frame := func(uint32) bool { return true }
	if of.Pattern != nil {
		frame = e.Stacks.Matcher(of.Pattern)
	}
	return func(stack uint32) bool {
		name := e.Names.Of(stack)
		return of.By == "" && of.Category == "" && (of.Site == "" || name.Name == of.Site) &&
			(of.Module == "" || name.Module == of.Module) &&
			(of.Pattern == nil || frame(stack) || of.Pattern.MatchString(name.Name))
	}
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
