package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

const (
	siteBands = 11
	otherBand = "all other lines"
)

// timeline samples the lives at the highest moment of each column.
func (g *grouper) timeline(columns int) *report.TraceTimeline {
	points := thinCurve(g.b.curve, columns)
	if len(points) < 2 {
		return nil
	}
	t := &report.TraceTimeline{}
	begin := g.b.time(points[0].event)
	for _, p := range points {
		t.Events = append(t.Events, p.event)
		if knows := g.b.knowsSegments(); knows || g.b.trace.Reserved != nil {
			t.Reserved = append(t.Reserved, g.b.reservedAt(p.event, p.levels))
			if knows {
				t.Releasable = append(t.Releasable, p.releasable)
			}
		}
		if len(g.b.trace.Time) > 0 {
			t.Time = append(t.Time, g.b.time(p.event)-begin)
		}
	}
	category, site := changesOf{}, changesOf{}
	for i := range g.b.lives {
		l := &g.b.lives[i]
		if l.freed == -2 || !g.wants(l.stack) {
			continue
		}
		from, _ := slices.BinarySearch(t.Events, int(l.born))
		to, _ := slices.BinarySearch(t.Events, int(l.freed))
		if from < to {
			category.add(g.sorter.of(i), from, to, l.size, len(points))
			site.add(g.site(l), from, to, l.size, len(points))
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

// changesOf holds what each group gains and loses in which column. There may be many groups of few blocks each,
// and groups of millions of blocks: neither takes more room than its columns.
type changesOf map[string]*changes

type changes struct {
	few   []levelChange
	dense []mem.Bytes // by column; nil as long as few is shorter
}

type levelChange struct {
	column int
	bytes  mem.Bytes
}

func (of changesOf) add(name string, from, to int, size mem.Bytes, columns int) {
	c := of[name]
	if c == nil {
		c = &changes{}
		of[name] = c
	}
	c.few = append(c.few, levelChange{from, size}, levelChange{to, -size})
	if c.dense != nil || 2*len(c.few) > columns {
		c.dense, c.few = c.spread(columns), c.few[:0]
	}
}

// spread is the changes by column; the last is of what stays to the end.
func (c *changes) spread(columns int) []mem.Bytes {
	all := c.dense
	if all == nil {
		all = make([]mem.Bytes, columns+1)
	}
	for _, change := range c.few {
		all[change.column] += change.bytes
	}
	return all
}

// levels sums the changes up.
func (c *changes) levels(columns int) []mem.Bytes {
	all := c.spread(columns)
	for i := range columns {
		all[i+1] += all[i]
	}
	return all[:columns]
}

// top is the highest level.
func (c *changes) top() (top mem.Bytes) {
	var level mem.Bytes
	for _, change := range c.dense {
		level += change
		top = max(top, level)
	}
	slices.SortFunc(c.few, func(a, b levelChange) int { return cmp.Compare(a.column, b.column) })
	for i, change := range c.few {
		if level += change.bytes; i+1 == len(c.few) || c.few[i+1].column != change.column {
			top = max(top, level)
		}
	}
	return top
}

// bands keeps the highest groups and joins the rest. The changes are used up.
func bands(of changesOf, columns, most int) []report.TimelineBand {
	names, top := []string{}, map[string]mem.Bytes{}
	for name, c := range of {
		names, top[name] = append(names, name), c.top()
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(top[b], top[a]), cmp.Compare(a, b)) })
	all := []report.TimelineBand{}
	if len(names) <= most {
		most = len(names) + 1
	}
	for _, name := range names[:most-1] {
		all = append(all, report.TimelineBand{Name: name, Bytes: of[name].levels(columns)})
	}
	if rest := names[most-1:]; len(rest) > 0 {
		sum := &changes{dense: make([]mem.Bytes, columns+1)}
		for _, name := range rest {
			for i, change := range of[name].dense {
				sum.dense[i] += change
			}
			sum.few = of[name].few
			sum.dense, sum.few = sum.spread(columns), nil
		}
		all = append(all, report.TimelineBand{Name: otherBand, Bytes: sum.levels(columns)})
	}
	return all
}
