package mem

import (
	"maps"
	"slices"
)

// View is the run as it stands. It stays so while Add goes on, so that one goroutine reads it and another one adds.
// What is only ever appended to is shared: a view of an hour's recording takes a few megabytes at most.
func (r *Run) View() *Run {
	v := *r
	v.Spans, v.Steps, v.Holders = r.Spans.view(), slices.Clip(r.Steps), slices.Clip(r.Holders)
	v.Cells = slices.Clone(r.Cells)
	v.Events, v.Damage = slices.Clip(r.Events), slices.Clip(r.Damage)
	v.Phases, v.Modules, v.Models, v.Drops = slices.Clone(r.Phases), slices.Clone(r.Modules), slices.Clone(r.Models),
		slices.Clone(r.Drops)
	v.Totals, v.Imagined, v.Stacks = maps.Clone(r.Totals), r.Imagined.view(), r.Stacks.view()
	v.places, v.clocks = maps.Clone(r.places), map[uint32]*Series{}
	v.viewProcesses(r)
	v.viewSeries(r)
	v.Heap = make(map[uint32]*Heap, len(r.Heap))
	for id, h := range r.Heap {
		v.Heap[id] = &Heap{slices.Clip(h.History), clipped(h.Sites), h.Peak, slices.Clone(h.Ages)}
	}
	v.Snapshots = slices.Clone(r.Snapshots)
	for i, s := range v.Snapshots {
		file := *s
		file.Data = slices.Clip(s.Data)
		v.Snapshots[i] = &file
	}
	return &v
}

func clipped(sites map[uint32][]SitePoint) map[uint32][]SitePoint {
	all := make(map[uint32][]SitePoint, len(sites))
	for stack, points := range sites {
		all[stack] = slices.Clip(points)
	}
	return all
}

func (r *Run) viewProcesses(of *Run) {
	r.Processes, r.processes = make([]*Process, len(of.Processes)), make(map[uint32]*Process, len(of.Processes))
	for i, p := range of.Processes {
		now := *p
		r.Processes[i], r.processes[p.ID] = &now, &now
	}
}

func (r *Run) viewSeries(of *Run) {
	r.Series, r.series = make([]*Series, len(of.Series)), make(map[uint32]*Series, len(of.Series))
	for i, s := range of.Series {
		now := Series{SeriesDef: s.SeriesDef, Times: slices.Clip(s.Times), Values: slices.Clip(s.Values)}
		r.Series[i], r.series[s.ID] = &now, &now
	}
}

func (t *StackTable) view() StackTable {
	return StackTable{Locations: slices.Clip(t.Locations), frames: slices.Clip(t.frames), stacks: slices.Clone(t.stacks),
		defined: t.defined, names: t.names}
}

func (all *ImaginedFacts) view() ImaginedFacts {
	return ImaginedFacts{
		all.Setup, slices.Clone(all.Devices), slices.Clone(all.Uses), slices.Clone(all.Calls), slices.Clone(all.Reads),
		slices.Clone(all.Peaks),
		slices.Clone(all.Parts), slices.Clone(all.Sizes), slices.Clone(all.Unreached), slices.Clone(all.Weights),
		slices.Clone(all.Redirected),
		slices.Clone(all.Switches), slices.Clone(all.Conditions), slices.Clone(all.Serving), slices.Clone(all.Trials),
	}
}
