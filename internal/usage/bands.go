package usage

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// Band is what one group held at some moments.
type Band struct {
	Name  string      `json:"name" doc:"The group."`
	Bytes []mem.Bytes `json:"bytes" doc:"What it held at each of the moments, in bytes."`
}

// Other is the band of all groups that have none of their own.
const Other = "all other lines"

// Bands is the course of a history by group: what each held at some moments, which are in order. Those that held most
// have a band, at most so many; the last is of the others together, so that a moment's bands add up to what was held.
func (h *History) Bands(at []Moment, most int, group func(span int) string, wants func(stack uint32) bool) []Band {
	changes := changesOf{}
	for i, stack := range h.Stack {
		if h.From[i] >= h.To[i] || wants != nil && !wants(stack) {
			continue
		}
		from, _ := slices.BinarySearch(at, int(h.From[i]))
		to, _ := slices.BinarySearch(at, int(h.To[i]))
		if from < to {
			changes.add(group(i), from, to, h.Bytes[i], len(at))
		}
	}
	return changes.bands(len(at), most)
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
func (of changesOf) bands(columns, most int) []Band {
	names, top := []string{}, map[string]mem.Bytes{}
	for name, c := range of {
		names, top[name] = append(names, name), c.top()
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(top[b], top[a]), cmp.Compare(a, b)) })
	all := []Band{}
	if len(names) <= most {
		most = len(names) + 1
	}
	for _, name := range names[:most-1] {
		all = append(all, Band{name, of[name].levels(columns)})
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
		all = append(all, Band{Other, sum.levels(columns)})
	}
	return all
}

// Highest thins the curve of a device to so many points, each the highest of those it stands for.
func (d *Device) Highest(points int) []LevelPoint {
	width := (len(d.Curve) + points - 1) / max(points, 1)
	var out []LevelPoint
	for from := 0; from < len(d.Curve); from += width {
		part := d.Curve[from:min(from+width, len(d.Curve))]
		high := slices.MaxFunc(part, func(p, q LevelPoint) int { return cmp.Compare(p.Allocated, q.Allocated) })
		for _, p := range part {
			high.Releasable = max(high.Releasable, p.Releasable)
		}
		out = append(out, high)
	}
	return out
}
