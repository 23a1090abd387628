package observe

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/frameworks"
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
	return &stackReader{table: table, native: native, codes: map[uint32]code{}, places: map[shm.Frame]mem.Location{},
		seen: map[uint64]uint32{}, seed: maphash.MakeSeed()}
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

// ofArena returns the number of a raw stack with TensorFlow's arena as its innermost place, if it goes through
// TensorFlow.
func (r *stackReader) ofArena(frames []shm.Frame) uint32 {
	places := r.locations(frames)
	if !slices.ContainsFunc(places, frameworks.TensorFlow().Owns) {
		return r.id(frames)
	}
	return r.table.id(append([]mem.Location{{File: mem.TensorFlowArena, Native: true}}, places...))
}

// objectsIn is how much Python asks for at once to lay small objects in, at a line of its code: 1 MiB, before 3.10
// 256 KiB (ARENA_BITS of Objects/obmalloc.c).
func (r *stackReader) objectsIn(f shm.Frame) uint64 {
	if c, ok := r.codes[uint32(f.Where)]; ok && c.python < 0x030a {
		return 256 << 10
	}
	return 1 << 20
}

// ofObjects returns the number of a raw stack with Python's small objects as its innermost place.
func (r *stackReader) ofObjects(frames []shm.Frame) uint32 {
	return r.table.id(append([]mem.Location{{File: mem.PythonObjects, Native: true}}, r.locations(frames)...))
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

// nativeNames names addresses of one process by the file that is mapped there and the offset in
// it. That is the same in every process and at every run of the same build.
type nativeNames struct {
	pid     int
	maps    []mapped
	missing int
	saved   int // missing, when the maps were last saved
}

type mapped struct {
	start, end, offset uint64
	file               string
}

// location names one address. The maps are read again for an address that is in none of them, but
// not over and over for one that never will be: code made at run time.
func (n *nativeNames) location(address uint64) mem.Location {
	m, ok := n.findMapping(address)
	if !ok && n.missing < 64 {
		n.missing++
		if maps := readMaps(n.pid); len(maps) > 0 {
			n.maps = maps
		}
		m, ok = n.findMapping(address)
	}
	if !ok {
		return mem.Location{File: "<native>", Native: true}
	}
	return mem.Location{File: filepath.Base(m.file), Function: fmt.Sprintf("+%#x", address-m.start+m.offset), Native: true}
}

func (n *nativeNames) findMapping(address uint64) (mapped, bool) {
	at, ok := slices.BinarySearchFunc(n.maps, address, func(m mapped, a uint64) int {
		switch {
		case m.end <= a:
			return -1
		case m.start > a:
			return 1
		}
		return 0
	})
	if !ok {
		return mapped{}, false
	}
	return n.maps[at], true
}

// readMaps lists the executable mappings of files; empty where the process is gone.
func readMaps(pid int) []mapped {
	f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil
	}
	defer f.Close()
	var maps []mapped
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		// 7f1c…-7f1d… r-xp 00026000 08:01 1234   /usr/lib/libc.so.6
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || !strings.Contains(fields[1], "x") || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		start, err1 := strconv.ParseUint(from, 16, 64)
		end, err2 := strconv.ParseUint(to, 16, 64)
		offset, err3 := strconv.ParseUint(fields[2], 16, 64)
		if cmp.Or(err1, err2, err3) == nil {
			maps = append(maps, mapped{start, end, offset, fields[5]})
		}
	}
	return maps
}
