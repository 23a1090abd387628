package replay

import (
	"cmp"
	"slices"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

// Adviser is a mem.Replayer.
type Adviser struct{ Workers int } // so many search for settings at once

// Advise replays the last failed request of a device under other settings; nil where no request failed, or the trace
// cannot be replayed.
func (a Adviser) Advise(s *mem.AllocatorSnapshot, device int) *mem.Advice {
	advice, err := Advise(s, device, a.Workers)
	if err != nil {
		return nil
	}
	return advice
}

// Advise likewise; an error says why the trace cannot be replayed.
func Advise(s *mem.AllocatorSnapshot, device, workers int) (*mem.Advice, error) {
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

func (r *recorded) advise(event, workers int) *mem.Advice {
	p := r.program.Through(event)
	a := &mem.Advice{Event: event, Asked: r.trace.Size[event], Exact: r.verified.Exact(), Tries: []mem.AdviceTry{}}
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
	if !slices.ContainsFunc(a.Tries, func(t mem.AdviceTry) bool { return t.Avoids }) {
		start := time.Now()
		found := allocator.Search(p, setup, workers, func() bool { return time.Since(start) > adviseSeconds*time.Second })
		for _, c := range found[:min(3, len(found))] {
			if c.Outcome.OOM == nil {
				a.Tries = append(a.Tries, tryOn(p, setup, c.Settings))
			}
		}
	}
	slices.SortStableFunc(a.Tries, func(x, y mem.AdviceTry) int {
		rank := func(t mem.AdviceTry) int {
			switch {
			case t.Avoids && !a.Narrow(&t):
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
	if !setup.Rules.NoLargeSegment {
		for _, large := range []mem.Bytes{32, 64, 128} {
			add(func(s *allocator.Settings) { s.LargeSegment = large * mem.MiB })
		}
	}
	return list
}

func tryOn(p *allocator.Program, setup allocator.Setup, settings allocator.Settings) mem.AdviceTry {
	setup.Settings = settings
	all, _ := allocator.Variants(p, setup)
	u := &all[0].Usage
	avoids, depends := served(all)
	return mem.AdviceTry{AllocConf: settings.String(), Avoids: avoids, Depends: depends,
		Reserved: u.PeakReserved, Calls: u.DeviceAllocs + u.DeviceFrees, Retries: u.Retries}
}
