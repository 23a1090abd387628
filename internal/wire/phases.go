package wire

import (
	"encoding/binary"

	"hightide/internal/mem"
)

// Spans and steps come in batches; each column of a batch lies together.

// names is the table of strings of one frame.
type names struct {
	list  []string
	known map[string]uint64
}

func (n *names) of(s string) uint64 {
	id, ok := n.known[s]
	if !ok {
		if n.known == nil {
			n.known = map[string]uint64{}
		}
		id = uint64(len(n.list))
		n.known[s] = id
		n.list = append(n.list, s)
	}
	return id
}

func appendNames(dst []byte, list []string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, s := range list {
		dst = appendString(dst, s)
	}
	return dst
}

func (d *decoder) names() []string {
	list := make([]string, d.count(1))
	for i := range list {
		list[i] = d.string()
	}
	return list
}

func (d *decoder) name(list []string) string {
	id := d.uint()
	if id >= uint64(len(list)) {
		d.fail()
		return ""
	}
	return list[id]
}

// appendColumn appends the differences of neighbours.
func appendColumn(dst []byte, n int, value func(i int) int64) []byte {
	var before int64
	for i := range n {
		v := value(i)
		dst = appendInt(dst, v-before)
		before = v
	}
	return dst
}

func (d *decoder) column(n int, set func(i int, value int64)) {
	var before int64
	for i := range n {
		before += d.int()
		set(i, before)
	}
}

func appendSpans(dst []byte, f mem.Spans) []byte {
	var table names
	ids := make([][2]uint64, len(f))
	for i := range f {
		ids[i] = [2]uint64{table.of(string(f[i].Phase)), table.of(f[i].Name)}
	}
	n := len(f)
	dst = appendNames(dst, table.list)
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = appendColumn(dst, n, func(i int) int64 { return int64(f[i].Process) })
	dst = appendColumn(dst, n, func(i int) int64 { return int64(f[i].Thread) })
	for _, id := range ids {
		dst = binary.AppendUvarint(binary.AppendUvarint(dst, id[0]), id[1])
	}
	dst = appendColumn(dst, n, func(i int) int64 { return int64(f[i].Step) })
	dst = appendColumn(dst, n, func(i int) int64 { return f[i].Start })
	for i := range f {
		dst = appendInt(dst, f[i].End-f[i].Start)
	}
	var host, device int64
	for i := range f {
		s := &f[i]
		dst = appendOptionals(dst, host, s.RSSStart, s.RSSEnd, s.RSSPeak)
		host = s.RSSPeak.Or(s.RSSEnd.Or(s.RSSStart.Or(host)))
	}
	for i := range f {
		s := &f[i]
		dst = appendOptionals(dst, device, s.DeviceStart, s.DeviceEnd)
		device = s.DeviceEnd.Or(s.DeviceStart.Or(device))
	}
	return dst
}

func decodeSpans(d *decoder) (mem.Frame, error) {
	table := d.names()
	n := d.count(9)
	f := again(&d.own().spans, n)
	d.column(n, func(i int, v int64) { f[i].Process = uint32(v) })
	d.column(n, func(i int, v int64) { f[i].Thread = uint32(v) })
	for i := range f {
		f[i].Phase, f[i].Name = mem.Phase(d.name(table)), d.name(table)
	}
	d.column(n, func(i int, v int64) { f[i].Step = uint64(v) })
	d.column(n, func(i int, v int64) { f[i].Start = v })
	for i := range f {
		f[i].End = f[i].Start + d.int()
	}
	var host, device int64
	for i := range f {
		host = d.optionals(host, &f[i].RSSStart, &f[i].RSSEnd, &f[i].RSSPeak)
	}
	for i := range f {
		device = d.optionals(device, &f[i].DeviceStart, &f[i].DeviceEnd)
	}
	return f, d.err
}

func appendSteps(dst []byte, f mem.Steps) []byte {
	n := len(f)
	dst = binary.AppendUvarint(dst, uint64(n))
	dst = appendColumn(dst, n, func(i int) int64 { return int64(f[i].Process) })
	dst = appendColumn(dst, n, func(i int) int64 { return int64(f[i].Number) })
	dst = appendColumn(dst, n, func(i int) int64 { return f[i].Time })
	dst = appendColumn(dst, n, func(i int) int64 { return f[i].Duration })
	for i := range f {
		flags := uint64(f[i].Micro) << 1
		if f[i].Skipped {
			flags |= 1
		}
		dst = binary.AppendUvarint(dst, flags)
	}
	for _, field := range stepFields {
		var before int64
		for i := range f {
			value := *field(&f[i])
			dst = appendOptionals(dst, before, value)
			before = value.Or(before)
		}
	}
	return dst
}

// stepFields are the optional columns of steps in the order of the file. Add new ones at the end,
// under a new kind of frame.
var stepFields = []func(*mem.Step) *mem.Optional{
	func(s *mem.Step) *mem.Optional { return &s.RSS },
	func(s *mem.Step) *mem.Optional { return &s.Heap },
	func(s *mem.Step) *mem.Optional { return &s.Device },
}

func decodeSteps(d *decoder) (mem.Frame, error) {
	n := d.count(8)
	f := again(&d.own().steps, n)
	d.column(n, func(i int, v int64) { f[i].Process = uint32(v) })
	d.column(n, func(i int, v int64) { f[i].Number = uint64(v) })
	d.column(n, func(i int, v int64) { f[i].Time = v })
	d.column(n, func(i int, v int64) { f[i].Duration = v })
	for i := range f {
		flags := d.uint()
		f[i].Micro, f[i].Skipped = uint32(flags>>1), flags&1 != 0
	}
	for _, field := range stepFields {
		var before int64
		for i := range f {
			before = d.optionals(before, field(&f[i]))
		}
	}
	return f, d.err
}

func appendPhaseStats(dst []byte, f mem.PhaseStats) []byte {
	dst = binary.AppendUvarint(dst, uint64(f.Process))
	dst = appendString(dst, string(f.Phase))
	dst = appendString(dst, f.Name)
	dst = binary.AppendUvarint(dst, f.Count)
	dst = appendInt(dst, f.Total)
	dst = appendInt(dst, f.Max)
	return appendOptionals(dst, 0, f.RSSPeak, f.RSSNet, f.RSSMaxRise, f.DevicePeak, f.DeviceNet)
}

func decodePhaseStats(d *decoder) (mem.Frame, error) {
	f := mem.PhaseStats{Process: d.uint32(), Phase: mem.Phase(d.string()), Name: d.string(), Count: d.uint(),
		Total: d.int(), Max: d.int()}
	d.optionals(0, &f.RSSPeak, &f.RSSNet, &f.RSSMaxRise, &f.DevicePeak, &f.DeviceNet)
	return f, d.err
}
