package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// TraceTimeline is the course of the memory in columns of events. Each column is the moment in its stretch
// at which most was allocated, so no peak is lost; the bands of a column add up to what was then.
type TraceTimeline struct {
	Events     []int          `json:"events"`
	Time       []int64        `json:"time_ns,omitempty"` // since the first
	Reserved   []mem.Bytes    `json:"reserved_bytes"`
	Releasable []mem.Bytes    `json:"releasable_bytes"` // the most of the stretch
	Category   []TimelineBand `json:"by_category"`
	Site       []TimelineBand `json:"by_site"` // the largest, and the rest
}

// TimelineBand is one group over the columns.
type TimelineBand struct {
	Name  string      `json:"name"`
	Bytes []mem.Bytes `json:"bytes"`
}

const (
	siteBands = 11
	otherBand = "all other lines"
)

// timeline samples the lives at the highest moment of each column.
func (g *grouper) timeline(columns int) *TraceTimeline {
	points := thinCurve(g.b.curve, columns)
	if len(points) < 2 {
		return nil
	}
	t := &TraceTimeline{}
	begin := g.b.time(points[0].event)
	for _, p := range points {
		t.Events = append(t.Events, p.event)
		t.Reserved = append(t.Reserved, p.reserved)
		t.Releasable = append(t.Releasable, p.releasable)
		if len(g.b.trace.Time) > 0 {
			t.Time = append(t.Time, g.b.time(p.event)-begin)
		}
	}
	category, site := map[string][]mem.Bytes{}, map[string][]mem.Bytes{}
	for i := range g.b.lives {
		l := &g.b.lives[i]
		if l.freed == -2 || !g.wants(l.stack) {
			continue
		}
		from, _ := slices.BinarySearch(t.Events, int(l.born))
		to, _ := slices.BinarySearch(t.Events, int(l.freed))
		if from < to {
			change(category, g.sorter.of(i), len(points), from, to, l.size)
			change(site, g.site(l), len(points), from, to, l.size)
		}
	}
	t.Category, t.Site = bands(category, len(traceCategories)+1), bands(site, siteBands)
	return t
}

// thinCurve joins points of a curve until there are few enough, keeping the highest of those joined.
func thinCurve(points []levelPoint, columns int) []levelPoint {
	width := (len(points) + columns - 1) / max(columns, 1)
	var out []levelPoint
	for from := 0; from < len(points); from += width {
		part := points[from:min(from+width, len(points))]
		high := slices.MaxFunc(part, func(p, q levelPoint) int { return cmp.Compare(p.allocated, q.allocated) })
		for _, p := range part {
			high.releasable = max(high.releasable, p.releasable)
		}
		out = append(out, high)
	}
	return out
}

// change notes where a block comes and goes.
func change(of map[string][]mem.Bytes, name string, columns, from, to int, size mem.Bytes) {
	changes := of[name]
	if changes == nil {
		changes = make([]mem.Bytes, columns+1)
		of[name] = changes
	}
	changes[from] += size
	changes[to] -= size
}

// bands sums changes up, keeps the highest groups and joins the rest.
func bands(of map[string][]mem.Bytes, most int) []TimelineBand {
	all, top := []TimelineBand{}, map[string]mem.Bytes{}
	for name, changes := range of {
		var level mem.Bytes
		for i, c := range changes {
			level += c
			changes[i] = level
			top[name] = max(top[name], level)
		}
		all = append(all, TimelineBand{name, changes[:len(changes)-1]})
	}
	slices.SortFunc(all, func(p, q TimelineBand) int {
		return cmp.Or(cmp.Compare(top[q.Name], top[p.Name]), cmp.Compare(p.Name, q.Name))
	})
	if len(all) <= most {
		return all
	}
	rest := TimelineBand{otherBand, make([]mem.Bytes, len(all[0].Bytes))}
	for _, band := range all[most-1:] {
		for i, n := range band.Bytes {
			rest.Bytes[i] += n
		}
	}
	return append(all[:most-1], rest)
}
