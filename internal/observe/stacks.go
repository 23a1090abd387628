package observe

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// stackTable numbers the stacks of a run: the same places in the same order are one stack,
// whichever process they were seen in.
type stackTable struct {
	ids    map[stackKey]uint32
	last   uint32            // the highest number given
	texts  map[string]string // one copy of names and line tables that many processes have alike
	define func(mem.StackDef)

	seeds   [2]maphash.Seed
	scratch []byte
}

func newStackTable(define func(mem.StackDef)) *stackTable {
	return &stackTable{
		ids: map[stackKey]uint32{}, texts: map[string]string{}, define: define,
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
}

// text returns the one copy of some bytes.
func (t *stackTable) text(b []byte) string {
	one, ok := t.texts[string(b)]
	if !ok {
		one = string(b)
		t.texts[one] = one
	}
	return one
}

// id returns the number of a stack, innermost location first, and defines it at first sight.
func (t *stackTable) id(locations []mem.Location) uint32 {
	if len(locations) == 0 {
		return 0
	}
	key := t.key(locations)
	id, ok := t.ids[key]
	if !ok {
		t.last++
		id = t.last
		t.ids[key] = id
		t.define(mem.StackDef{ID: id, Locations: locations})
	}
	return id
}

// resume takes over stacks that are numbered already.
func (t *stackTable) resume(stacks *mem.StackTable) {
	for id, locations := range stacks.Each {
		t.ids[t.key(locations)] = id
	}
	t.last = uint32(stacks.Len() - 1)
}

// stackKey stands for the places of a stack: a hash, since the texts of some thousand stacks with
// a hundred frames each would be most of what the engine holds. 128 bits do not meet by chance.
type stackKey [2]uint64

func (t *stackTable) key(locations []mem.Location) (key stackKey) {
	text := t.scratch[:0]
	for _, l := range locations {
		text = append(append(text, l.File...), 0)
		text = append(append(text, l.Function...), 0)
		text = binary.AppendVarint(text, int64(l.Line))
	}
	t.scratch = text
	for i, seed := range t.seeds {
		key[i] = maphash.Bytes(seed, text)
	}
	return key
}

// stackReader names the raw stacks of one heap channel.
type stackReader struct {
	table  *stackTable
	native func(address uint64) mem.Location
	codes  map[uint32]code
	saving bool
	fresh  []uint32                   // codes learnt since they were last saved, where they are
	places map[shm.Frame]mem.Location // decoding a line table costs more than all else
	seen   map[uint64]uint32          // hash of the raw frames → stack id
	seed   maphash.Seed
}

// code is a code object as the heap library described it.
type code struct {
	file, name string
	firstLine  int32
	python     uint16
	table      string
}

// maxSeen bounds the memory of raw stacks; beyond it they are decoded anew.
const maxSeen = 1 << 15

func newStackReader(table *stackTable, native func(uint64) mem.Location) *stackReader {
	return &stackReader{table: table, native: native, codes: map[uint32]code{}, places: map[shm.Frame]mem.Location{}, seen: map[uint64]uint32{}, seed: maphash.MakeSeed()}
}

// learn remembers a code object.
func (r *stackReader) learn(c *shm.Code) {
	r.codes[c.ID] = code{r.table.text(c.File), r.table.text(c.Name), c.FirstLine, c.Python, r.table.text(c.Table)}
	if r.saving {
		r.fresh = append(r.fresh, c.ID)
	}
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

// ofArena returns the number of a raw stack with TensorFlow's arena as its innermost place, if it goes through TensorFlow.
func (r *stackReader) ofArena(frames []shm.Frame) uint32 {
	places := r.locations(frames)
	if !slices.ContainsFunc(places, func(l mem.Location) bool {
		return strings.Contains(l.File, "/tensorflow/") || strings.HasPrefix(l.File, "libtensorflow")
	}) {
		return r.id(frames)
	}
	return r.table.id(append([]mem.Location{{File: mem.TensorFlowArena, Native: true}}, places...))
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
	line, ok := shm.Line(c.python, []byte(c.table), c.firstLine, f.Lasti)
	if !ok {
		line = int(c.firstLine)
	}
	return mem.Location{File: c.file, Line: line, Function: c.name}
}
