package observe

import "hightide/internal/mem"

// columns gathers samples by series and writes them in chunks.
type columns struct {
	byKey map[seriesKey]*column
	order []*column
	emit  func(mem.Frame)
}

type seriesKey struct {
	process   uint32
	device    string
	framework string
	name      mem.Quantity
}

// resume takes over a series that is defined already. Ids come in order and without gaps.
func (c *columns) resume(def mem.SeriesDef) {
	col := &column{def: def}
	c.byKey[col.key()] = col
	c.order = append(c.order, col)
}

type column struct {
	def    mem.SeriesDef
	times  []int64
	values []int64
	last   int64 // time of the newest sample
}

func newColumns(emit func(mem.Frame)) *columns {
	return &columns{byKey: map[seriesKey]*column{}, emit: emit}
}

// key is what tells the series from others.
func (c *column) key() seriesKey {
	return seriesKey{c.def.Process, c.def.Device, c.def.Framework, c.def.Name}
}

// column returns the series of that key, defining it at first sight.
func (c *columns) column(key seriesKey, unit mem.Unit, label mem.Label) *column {
	col := c.byKey[key]
	if col == nil {
		col = &column{def: mem.SeriesDef{
			ID: uint32(len(c.order) + 1), Process: key.process, Device: key.device, Framework: key.framework, Name: key.name,
			Unit: unit, Label: label,
		}}
		c.byKey[key] = col
		c.order = append(c.order, col)
		c.emit(col.def)
	}
	return col
}

// add appends a sample. A time before the newest one counts as the newest: times never decrease.
func (c *column) add(time, value int64) {
	c.last = max(c.last, time)
	c.times = append(c.times, c.last)
	c.values = append(c.values, value)
}

// putSample is column and add in one.
func (c *columns) putSample(key seriesKey, unit mem.Unit, label mem.Label, time, value int64) {
	c.column(key, unit, label).add(time, value)
}

// flush writes what came since the last one.
func (c *columns) flush() {
	for _, col := range c.order {
		if len(col.times) > 0 {
			c.emit(mem.Samples{Series: col.def.ID, Times: col.times, Values: col.values})
			col.times, col.values = nil, nil
		}
	}
}
