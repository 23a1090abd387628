package mem

import (
	"fmt"
	"hash/maphash"
	"maps"
	"math/bits"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/interned"
)

// StackTable keeps call stacks as numbers of distinct locations. Stack 0 is the empty stack. A reader of
// snapshots and profiles has the table number them (Add, equal stacks once); a recording brings its own numbers
// (Define). One table is used in one of these ways.
//
// A tree that shares the callers was measured against this on 150,000 different stacks. Finding a
// stack frame by frame took most of the time of reading a file, and the tree was no smaller.
type StackTable struct {
	Locations []Location        // distinct
	frames    []uint32          // of all stacks, one after the other, innermost first
	stacks    []stretch         // by number: where a stack lies in frames
	defined   int               // by Define
	index     []uint32          // open addressing by content: numbers of stacks, 0 is free
	known     interned.Index    // of Locations
	names     map[string]string // of files that are called otherwise: cells of notebooks
}

// locationSeed keys the hashes of locations, so that no file can choose them.
var locationSeed = maphash.MakeSeed()

// stretch is a range of StackTable.frames.
type stretch struct{ begin, end uint32 }

// Location returns the number of a location, adding it at first sight.
func (t *StackTable) Location(l Location) uint32 {
	l.File = Slashes(l.File)
	hash := maphash.String(locationSeed, l.File)
	hash = bits.RotateLeft64(hash, 21) ^ maphash.String(locationSeed, l.Function) + uint64(l.Line)*0x9e3779b97f4a7c15
	if id, ok := t.known.Find(hash, func(id uint32) bool { return t.Locations[id] == l }); ok {
		return id
	}
	id := uint32(len(t.Locations))
	t.Locations = append(t.Locations, l)
	t.known.Add(hash, id)
	return id
}

// Add returns the number of a stack given by location numbers, innermost first.
func (t *StackTable) Add(innermostFirst []uint32) uint32 {
	if len(innermostFirst) == 0 {
		return 0
	}
	if t.index == nil {
		t.stacks = make([]stretch, 1)
		t.index = make([]uint32, 64)
	}
	mask := len(t.index) - 1
	i := hashStack(innermostFirst) & mask
	for ; t.index[i] != 0; i = (i + 1) & mask {
		if slices.Equal(t.Numbers(t.index[i]), innermostFirst) {
			return t.index[i]
		}
	}
	id := uint32(len(t.stacks))
	begin := uint32(len(t.frames))
	t.frames = append(t.frames, innermostFirst...)
	t.stacks = append(t.stacks, stretch{begin, uint32(len(t.frames))})
	t.index[i] = id
	if len(t.stacks) > len(t.index)/2 {
		t.rehash()
	}
	return id
}

// Numbers of stacks that may be missing in a recording, because what defined them was damaged: so many, and so many
// more for each that is there. A file cannot ask for more memory than it has bytes.
const (
	missingStacks    = 1 << 20
	missingPerStack  = 8
	mostStackNumbers = 1 << 31
)

// Define gives a stack the number under which a recording refers to it. A later definition replaces an earlier one;
// an empty stack is as good as none. A number far beyond those defined is refused.
func (t *StackTable) Define(id uint32, innermostFirst []Location) error {
	if len(innermostFirst) == 0 {
		return nil
	}
	if limit := min(missingStacks+missingPerStack*t.defined, mostStackNumbers); id == 0 || int(id) > limit {
		return fmt.Errorf("stack %d is numbered beyond %d, after %d stacks", id, limit, t.defined)
	}
	for int(id) >= len(t.stacks) {
		t.stacks = append(t.stacks, stretch{})
	}
	t.defined++
	begin := uint32(len(t.frames))
	for _, l := range innermostFirst {
		t.frames = append(t.frames, t.Location(t.renamed(l)))
	}
	t.stacks[id] = stretch{begin, uint32(len(t.frames))}
	return nil
}

// Rename has a file called otherwise, in the stacks that are there and in those that come. Views that were made
// before keep what they have.
func (t *StackTable) Rename(file, name string) {
	t.names = maps.Clone(t.names)
	if t.names == nil {
		t.names = map[string]string{}
	}
	t.names[file] = name
	if !slices.ContainsFunc(t.Locations, func(l Location) bool { return l.File == file }) {
		return
	}
	t.Locations = slices.Clone(t.Locations)
	for i := range t.Locations {
		t.Locations[i] = t.renamed(t.Locations[i])
	}
}

func (t *StackTable) renamed(l Location) Location {
	if name, ok := t.names[l.File]; ok {
		l.File = name
	}
	return l
}

// Each calls yield with every stack that has frames, by number, until it returns false.
func (t *StackTable) Each(yield func(id uint32, innermostFirst []Location) bool) {
	for id := range t.stacks {
		if frames := t.Frames(uint32(id)); len(frames) > 0 && !yield(uint32(id), frames) {
			return
		}
	}
}

func hashStack(numbers []uint32) int {
	h := uint64(len(numbers))
	for _, n := range numbers {
		h = (h ^ uint64(n)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return int(h >> 16 & 0xffffffff)
}

func (t *StackTable) rehash() {
	t.index = make([]uint32, 2*len(t.index))
	mask := len(t.index) - 1
	for id := 1; id < len(t.stacks); id++ {
		i := hashStack(t.Numbers(uint32(id))) & mask
		for t.index[i] != 0 {
			i = (i + 1) & mask
		}
		t.index[i] = uint32(id)
	}
}

// Len is above every stack's number, and so at least 1.
func (t *StackTable) Len() int { return max(1, len(t.stacks)) }

// Frames returns a stack, innermost first; none for a number that no stack has.
func (t *StackTable) Frames(id uint32) []Location {
	numbers := t.Numbers(id)
	if len(numbers) == 0 {
		return nil
	}
	frames := make([]Location, len(numbers))
	for i, n := range numbers {
		frames[i] = t.Locations[n]
	}
	return frames
}

// Matcher says of a stack whether one of its frames, as "file:function", matches. It remembers its answers.
func (t *StackTable) Matcher(filter *regexp.Regexp) func(stack uint32) bool {
	known := map[uint32]bool{}
	return func(stack uint32) bool {
		match, ok := known[stack]
		if !ok {
			match = slices.ContainsFunc(t.Frames(stack),
				func(l Location) bool { return filter.MatchString(l.File + ":" + l.Function) })
			known[stack] = match
		}
		return match
	}
}

// OfObjects says whether a stack is of memory that Python lays small objects in, which may be of any line.
func (t *StackTable) OfObjects(id uint32) bool {
	numbers := t.Numbers(id)
	return len(numbers) > 0 && t.Locations[numbers[0]].File == PythonObjects
}

// Importing says whether a stack is of the import of a module.
func (t *StackTable) Importing(id uint32) bool {
	return slices.ContainsFunc(t.Numbers(id),
		func(n uint32) bool { return t.Locations[n].File == "<frozen importlib._bootstrap>" })
}

// Numbers returns a stack as numbers of Locations, innermost first; do not change it.
func (t *StackTable) Numbers(id uint32) []uint32 {
	if int(id) >= len(t.stacks) {
		return nil
	}
	at := t.stacks[id]
	return t.frames[at.begin:at.end:at.end]
}

// What stands for a line where none is known.
const (
	UnknownPlace = "<no stack>" // a file's name
	NoFrames     = "no frames (autograd, or a native thread)"
)

// LineName is "train.py:61" for people; the full path stands in the location's file.
func LineName(l Location) string {
	switch l.File {
	case "":
		return "an unknown line"
	case UnknownPlace:
		return NoFrames
	}
	name := path.Base(l.File)
	if l.Line == 0 {
		return name
	}
	return name + ":" + strconv.Itoa(l.Line)
}

// Slashes writes a path of Windows with slashes, so that it is taken apart as any other:
// C:/env/Lib/site-packages/torch/a.py.
func Slashes(file string) string {
	if drive := len(file) > 2 && file[1] == ':' && file[2] == '\\'; drive || strings.HasPrefix(file, `\\`) {
		return strings.ReplaceAll(file, `\`, "/")
	}
	return file
}
