package stacks

import (
	"cmp"
	"compress/gzip"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"

	"hightide/internal/mem"
)

// encoder is a message being written.
type encoder struct{ data []byte }

func (p *encoder) varint(field int, value uint64) {
	if value != 0 {
		p.data = binary.AppendUvarint(binary.AppendUvarint(p.data, uint64(field)<<3), value)
	}
}

func (p *encoder) bytes(field int, value []byte) {
	p.data = binary.AppendUvarint(binary.AppendUvarint(p.data, uint64(field)<<3|2), uint64(len(value)))
	p.data = append(p.data, value...)
}

func (p *encoder) packed(field int, values []uint64) {
	var inner []byte
	for _, v := range values {
		inner = binary.AppendUvarint(inner, v)
	}
	p.bytes(field, inner)
}

// pprofWriter numbers strings and functions as they come.
type pprofWriter struct {
	strings   map[string]uint64
	table     []string
	functions map[[2]uint64]uint64
	out       encoder // functions and locations
}

func (w *pprofWriter) text(s string) uint64 {
	if id, ok := w.strings[s]; ok {
		return id
	}
	id := uint64(len(w.table))
	w.strings[s] = id
	w.table = append(w.table, s)
	return id
}

func (w *pprofWriter) location(id uint64, l mem.Location) {
	name := l.Function
	if name == "" {
		name = cmp.Or(l.File, "(unknown)")
	}
	key := [2]uint64{w.text(name), w.text(l.File)}
	function, ok := w.functions[key]
	if !ok {
		function = uint64(len(w.functions) + 1)
		w.functions[key] = function
		var f encoder
		f.varint(1, function)
		f.varint(2, key[0])
		if l.Native { // what has a system name is shortened, which takes Python's <module> for a template's arguments
			f.varint(3, key[0])
		}
		f.varint(4, key[1])
		w.out.bytes(5, f.data)
	}
	var line, location encoder
	line.varint(1, function)
	line.varint(2, uint64(l.Line))
	location.varint(1, id)
	location.bytes(4, line.data)
	w.out.bytes(4, location.data)
}

// WritePprof writes a profile as pprof does: gzip around profile.proto. Read it with
// `go tool pprof`, its web view, or Speedscope.
func WritePprof(out io.Writer, p *mem.Profile) error {
	zip := gzip.NewWriter(out)
	w := &pprofWriter{strings: map[string]uint64{}, functions: map[[2]uint64]uint64{}}
	w.text("")
	var head encoder
	for _, k := range p.Kinds {
		var t encoder
		t.varint(1, w.text(k.Name))
		t.varint(2, w.text(string(k.Unit)))
		head.bytes(1, t.data)
	}
	if _, err := zip.Write(head.data); err != nil {
		return err
	}
	used := map[uint32]uint64{} // location → its number
	for _, s := range p.Samples {
		if _, err := zip.Write(w.sample(p, s, used)); err != nil {
			return err
		}
	}
	w.out.varint(9, uint64(p.Time))
	for _, note := range p.Notes {
		w.out.varint(13, w.text(note))
	}
	if len(p.Kinds) > 0 {
		w.out.varint(14, w.text(p.Kinds[p.Default].Name))
	}
	for _, s := range w.table {
		w.out.bytes(6, []byte(s))
	}
	if _, err := zip.Write(w.out.data); err != nil {
		return err
	}
	return zip.Close()
}

func (w *pprofWriter) sample(p *mem.Profile, s mem.ProfileSample, used map[uint32]uint64) []byte {
	var ids, values []uint64
	number := func(l uint32, where mem.Location) {
		id, ok := used[l]
		if !ok {
			id = uint64(len(used) + 1)
			used[l] = id
			w.location(id, where)
		}
		ids = append(ids, id)
	}
	for _, l := range p.Stacks.Numbers(s.Stack) {
		number(l, p.Stacks.Locations[l])
	}
	if len(ids) == 0 { // else the tool leaves its bytes out
		number(math.MaxUint32, mem.Location{Function: "(no stack recorded)"})
	}
	for _, v := range s.Values {
		values = append(values, uint64(v))
	}
	var sample, outer encoder
	sample.packed(1, ids)
	sample.packed(2, values)
	for _, key := range slices.Sorted(maps.Keys(s.Labels)) {
		var label encoder
		label.varint(1, w.text(key))
		label.varint(2, w.text(s.Labels[key]))
		sample.bytes(3, label.data)
	}
	outer.bytes(2, sample.data)
	return outer.data
}
