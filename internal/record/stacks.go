package record

import (
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// stackTable numbers the stacks of a run: the same places in the same order are one stack,
// whichever process they were seen in.
type stackTable struct {
	ids    map[string]uint32
	define func(mem.StackDef)
}

func newStackTable(define func(mem.StackDef)) *stackTable {
	return &stackTable{ids: map[string]uint32{}, define: define}
}

// id returns the number of a stack, innermost location first, and defines it at first sight.
func (t *stackTable) id(locations []mem.Location) uint32 {
	if len(locations) == 0 {
		return 0
	}
	key := stackKey(locations)
	id, ok := t.ids[key]
	if !ok {
		id = uint32(len(t.ids) + 1)
		t.ids[key] = id
		t.define(mem.StackDef{ID: id, Locations: locations})
	}
	return id
}

// resume takes over stacks that are numbered already, from 1 and without gaps.
func (t *stackTable) resume(stacks map[uint32][]mem.Location) {
	for id, locations := range stacks {
		t.ids[stackKey(locations)] = id
	}
}

func stackKey(locations []mem.Location) string {
	var text strings.Builder
	for _, l := range locations {
		text.WriteString(l.File)
		text.WriteByte(0)
		text.WriteString(l.Function)
		text.WriteByte(0)
		text.WriteString(strconv.Itoa(l.Line))
		text.WriteByte(0)
	}
	return text.String()
}

// stackReader names the raw stacks of one heap channel.
type stackReader struct {
	table  *stackTable
	native func(address uint64) mem.Location
	codes  map[uint32]code
	places map[shm.Frame]mem.Location // decoding a line table costs more than all else
	seen   map[uint64]uint32          // hash of the raw frames → stack id
	seed   maphash.Seed
}

// code is a code object as the heap library described it.
type code struct {
	file, name string
	firstLine  int32
	python     uint16
	table      []byte
}

// maxSeen bounds the memory of raw stacks; beyond it they are decoded anew.
const maxSeen = 1 << 15

func newStackReader(table *stackTable, native func(uint64) mem.Location) *stackReader {
	return &stackReader{table: table, native: native, codes: map[uint32]code{}, places: map[shm.Frame]mem.Location{}, seen: map[uint64]uint32{}, seed: maphash.MakeSeed()}
}

// learn remembers a code object.
func (r *stackReader) learn(c *shm.Code) {
	r.codes[c.ID] = code{string(c.File), string(c.Name), c.FirstLine, c.Python, append([]byte(nil), c.Table...)}
}

// id returns the number of a raw stack.
func (r *stackReader) id(frames []shm.Frame) uint32 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	var raw [13]byte
	for _, f := range frames {
		binary.LittleEndian.PutUint64(raw[:], f.Where)
		binary.LittleEndian.PutUint32(raw[8:], uint32(f.Lasti))
		raw[12] = 0
		if f.Native {
			raw[12] = 1
		}
		h.Write(raw[:])
	}
	sum := h.Sum64()
	if id, ok := r.seen[sum]; ok {
		return id
	}
	if len(r.seen) >= maxSeen {
		clear(r.seen)
	}
	id := r.table.id(r.locations(frames))
	r.seen[sum] = id
	return id
}

// locations decodes frames.
func (r *stackReader) locations(frames []shm.Frame) []mem.Location {
	places := make([]mem.Location, 0, len(frames))
	for _, f := range frames {
		place, ok := r.places[f]
		if !ok {
			if len(r.places) >= maxSeen {
				clear(r.places)
			}
			place = r.location(f)
			r.places[f] = place
		}
		places = append(places, place)
	}
	return places
}

// location decodes one frame; one that names a code object nobody described keeps its place.
func (r *stackReader) location(f shm.Frame) mem.Location {
	if f.Native {
		return r.native(f.Where)
	}
	c, ok := r.codes[uint32(f.Where)]
	if !ok {
		return mem.Location{File: "<unknown>"}
	}
	line, ok := shm.Line(c.python, c.table, c.firstLine, f.Lasti)
	if !ok {
		line = int(c.firstLine)
	}
	return mem.Location{File: c.file, Line: line, Function: c.name}
}
