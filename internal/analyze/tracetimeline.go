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
	category, site := map[string][]levelChange{}, map[string][]levelChange{}
	for i := range g.b.lives {
		l := &g.b.lives[i]
		if l.freed == -2 || !g.wants(l.stack) {
			continue
		}
		from, _ := slices.BinarySearch(t.Events, int(l.born))
		to, _ := slices.BinarySearch(t.Events, int(l.freed))
		if from < to {
			come, leave := levelChange{from, l.size}, levelChange{to, -l.size}
			name := g.sorter.of(i)
			category[name] = append(category[name], come, leave)
			name = g.site(l)
			site[name] = append(site[name], come, leave)
		}
	}
	t.Category, t.Site = bands(category, len(points), len(traceCategories)+1), bands(site, len(points), siteBands)
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

// levelChange is what a block adds to a group from a column on.
type levelChange struct {
	column int
	bytes  mem.Bytes
}

// bands sums changes up, keeps the highest groups and joins the rest. There may be many groups of few blocks
// each: only those that are shown are spread over the columns.
func bands(of map[string][]levelChange, columns, most int) []TimelineBand {
	names, top := []string{}, map[string]mem.Bytes{}
	for name, changes := range of {
		slices.SortFunc(changes, func(a, b levelChange) int { return cmp.Compare(a.column, b.column) })
		var level mem.Bytes
		for i, c := range changes {
			if level += c.bytes; i+1 == len(changes) || changes[i+1].column != c.column {
				top[name] = max(top[name], level)
			}
		}
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(top[b], top[a]), cmp.Compare(a, b)) })
	all := []TimelineBand{}
	if len(names) > most {
		for _, name := range names[most-1:] {
			of[otherBand] = append(of[otherBand], of[name]...)
		}
		names = append(names[:most-1], otherBand)
	}
	for _, name := range names {
		band := TimelineBand{name, make([]mem.Bytes, columns+1)}
		for _, c := range of[name] {
			band.Bytes[c.column] += c.bytes
		}
		for i := range columns {
			band.Bytes[i+1] += band.Bytes[i]
		}
		band.Bytes = band.Bytes[:columns]
		all = append(all, band)
	}
	return all
}
