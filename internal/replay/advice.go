package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

// Advice says which allocator settings would have served a request that ran out of memory, each
// verified by replaying the trace up to it. Figures are replayed.
type Advice struct {
	Event    int       `json:"event"`
	Asked    mem.Bytes `json:"asked_bytes"`
	Capacity mem.Bytes `json:"capacity_bytes"` // that the allocator had on the device then
	// Limited says that the device had room: a memory limit was set, of which only bounds are known. The
	// lower bound is Capacity.
	Limited bool `json:"memory_limit"`
	// Exact says that the model places every block where the record has it; Reproduced, that it runs out
	// of memory at this very event under the recorded settings.
	Exact      bool `json:"exact"`
	Reproduced bool `json:"reproduced"`
	// Hopeless says that no setting can do: what is in use, in one piece, and the request are Lacking bytes
	// more than there are.
	Hopeless bool      `json:"hopeless"`
	Lacking  mem.Bytes `json:"lacking_bytes,omitempty"`
	// Needed is the least capacity that serves the request under the recorded settings.
	Needed mem.Bytes   `json:"needed_bytes"`
	Tries  []AdviceTry `json:"tries"` // those that avoid it first, the simplest first
}

// AdviceTry is one line of settings and what it led to.
type AdviceTry struct {
	AllocConf string `json:"alloc_conf"`
	Avoids    bool   `json:"avoids"` // in every order in which addresses may turn out
	// Depends says that it avoids it in some of those orders only.
	Depends  bool      `json:"depends_on_addresses,omitempty"`
	Reserved mem.Bytes `json:"peak_reserved_bytes"` // up to the request
	Calls    int64     `json:"segment_calls"`
	Retries  int64     `json:"alloc_retries"`
}

// Advise replays the last failed request of a device under other settings; nil where no request
// failed. That many workers search at once. An error says why the trace cannot be replayed.
func Advise(s *mem.AllocatorSnapshot, device, workers int) (*Advice, error) {
	trace := allocator.TraceOf(s, device)
	event := -1
	for i := 0; trace != nil && i < trace.Len(); i++ {
		if trace.Action[i] == mem.ActionOOM {
			event = i
		}
	}
	if event < 0 {
		return nil, nil
	}
	t, err := openTrace(s, device, "", 0)
	if err != nil {
		return nil, err
	}
	return t.advise(event, workers), nil
}

// adviseSeconds bounds the search for settings.
const adviseSeconds = 5

func (r *recorded) advise(event, workers int) *Advice {
	p := r.program.Through(event)
	a := &Advice{Event: event, Asked: r.trace.Size[event], Exact: r.verified.Exact(), Tries: []AdviceTry{}}
	setup := r.setup()
	a.Capacity, a.Limited = p.RoomAt(r.trace, event)
	setup.Capacity = a.Capacity
	failed := allocator.Run(p, setup)
	a.Reproduced = failed.OOM != nil && failed.OOM.Event == event
	if ideal := allocator.RunOn(p, "ideal", setup); ideal.OOM != nil {
		a.Hopeless, a.Lacking = true, ideal.OOM.Active+ideal.OOM.Size-a.Capacity
	}
	a.Needed = leastCapacity(p, setup, a.Capacity)
	if a.Hopeless {
		return a
	}
	for _, settings := range simpleSettings(setup) {
		a.Tries = append(a.Tries, tryOn(p, setup, settings))
	}
	if !slices.ContainsFunc(a.Tries, func(t AdviceTry) bool { return t.Avoids }) {
		start := time.Now()
		found := allocator.Search(p, setup, workers, func() bool { return time.Since(start) > adviseSeconds*time.Second })
		for _, c := range found[:min(3, len(found))] {
			if c.Outcome.OOM == nil {
				a.Tries = append(a.Tries, tryOn(p, setup, c.Settings))
			}
		}
	}
	slices.SortStableFunc(a.Tries, func(x, y AdviceTry) int {
		rank := func(t AdviceTry) int {
			switch {
			case t.Avoids && !a.narrow(&t):
				return 0
			case t.Avoids:
				return 1
			case t.Depends:
				return 2
			}
			return 3
		}
		return cmp.Compare(rank(x), rank(y))
	})
	return a
}

// simpleSettings change one thing of a setup's, what most often helps first.
func simpleSettings(setup allocator.Setup) []allocator.Settings {
	var list []allocator.Settings
	add := func(change func(*allocator.Settings)) {
		s := setup.Settings
		if change(&s); s != setup.Settings && s.Check() == nil {
			list = append(list, s)
		}
	}
	if !setup.Rules.NoExpandable {
		add(func(s *allocator.Settings) { s.Expandable = true })
	}
	for _, split := range []mem.Bytes{512, 256, 128, 64, 32} {
		add(func(s *allocator.Settings) { s.MaxSplit = split * mem.MiB })
	}
	for _, divisions := range []int{2, 4, 8} {
		add(func(s *allocator.Settings) {
			for i := range s.Divisions {
				s.Divisions[i] = divisions
			}
		})
	}
	if setup.Rules.OldestFirst { // the versions that know large_segment_size_mb
		for _, large := range []mem.Bytes{32, 64, 128} {
			add(func(s *allocator.Settings) { s.LargeSegment = large * mem.MiB })
		}
	}
	return list
}

func tryOn(p *allocator.Program, setup allocator.Setup, settings allocator.Settings) AdviceTry {
	setup.Settings = settings
	all, _ := allocator.Variants(p, setup)
	u := &all[0].Usage
	avoids, depends := served(all)
	return AdviceTry{AllocConf: settings.String(), Avoids: avoids, Depends: depends,
		Reserved: u.PeakReserved, Calls: u.DeviceAllocs + u.DeviceFrees, Retries: u.Retries}
}

// leastSpare is the part of the capacity, as its divisor, that settings must leave: with less the next request fails.
const leastSpare = 100

// narrow says that settings serve the request, and leave hardly anything.
func (a *Advice) narrow(t *AdviceTry) bool { return a.Capacity-t.Reserved < a.Capacity/leastSpare }

// Best is the simplest settings that avoid it, with room to spare if any do; nil: none do.
func (a *Advice) Best() *AdviceTry {
	if len(a.Tries) > 0 && a.Tries[0].Avoids {
		return &a.Tries[0]
	}
	return nil
}

// Text is the advice in words.
func (a *Advice) Text() string {
	var text strings.Builder
	if a.Limited {
		fmt.Fprintf(&text, "The device had room, so this holds if a limit of %v was reached, which the file does not say. ",
			a.Capacity)
	}
	switch best := a.Best(); {
	case a.Hopeless:
		fmt.Fprintf(&text,
			"No allocator setting avoids it (verified by replay): even without any fragmentation, %v are missing.", a.Lacking)
	case best != nil && a.narrow(best):
		fmt.Fprintf(&text, "`%s=%s` serves this request (verified by replay), but leaves only %v of the %v that there "+
			"were: too little to go on.",
			allocator.Variable, best.AllocConf, a.Capacity-best.Reserved, a.Capacity)
	case best != nil:
		fmt.Fprintf(&text, "`%s=%s` avoids it (verified by replay): up to there it reserves %v of the %v that there were.",
			allocator.Variable, best.AllocConf, best.Reserved, a.Capacity)
	default:
		fmt.Fprintf(&text, "None of %d settings tried by replay avoids it.", len(a.Tries))
	}
	if a.Needed > a.Capacity {
		fmt.Fprintf(&text, " Under the settings it ran with, %v more memory would have been enough for this request.",
			a.Needed-a.Capacity)
	}
	if !a.Exact || !a.Reproduced {
		text.WriteString(" The replay is not exact here, so this is an estimate.")
	}
	return text.String()
}
