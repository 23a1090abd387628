package shm

import (
	"encoding/binary"

	"hightide/internal/mem"
)

// Kind is enum ht_kind.
type Kind uint16

const (
	kindPad      Kind = 0
	kindJSON     Kind = 1
	kindEdge     Kind = 2
	kindCounters Kind = 3
	kindStep     Kind = 4
	kindCode     Kind = 64
	kindAlloc    Kind = 65
	kindFree     Kind = 66
	kindThread   Kind = 67
	kindMalloc   Kind = 68

	frameBytes   = 16
	counterBytes = 16
)

// Record is one of *JSON, *Edge, *Counters, *Step, *Code, *Alloc, *Free, *Thread and *Malloc. It and all
// it points to is valid until the next record is read. Every value is as the writer gave it: in
// range for its type, otherwise unjudged.
type Record interface{ When() int64 }

// Time is the moment of a record, ns of CLOCK_MONOTONIC.
type Time int64

// When returns the moment as nanoseconds.
func (t Time) When() int64 { return int64(t) }

// JSON is a message of the agent: an object with "type" (docs/formats/channel.md). Not yet parsed.
type JSON struct {
	Time
	Data []byte
}

// Edge is entering or leaving a phase or a module.
type Edge struct {
	Time
	Phase  mem.Phase
	Leave  bool
	Module uint16 // id from the "modules" message, of a user's span from "spans"; 0: none
	// of a user's span: its number while it is open, so that its end is told from another's; 0: none
	Stay            uint16
	Thread          uint32
	Step            uint64 // optimizer steps completed before
	RSS             mem.Optional
	DeviceAllocated mem.Optional
	DeviceReserved  mem.Optional
}

// Counters is one reading of several series, ids as the "series" messages announced them.
type Counters struct {
	Time
	Counters []Counter
}

// Counter is one value of one series.
type Counter struct {
	Series uint32
	Value  int64
}

// Step is the end of an optimizer step.
type Step struct {
	Time
	Step            uint64 // 1 after the first
	Duration        int64  // ns since the step before; 0 for the first
	RSS             mem.Optional
	MicroSteps      uint32
	Skipped         bool
	DeviceAllocated mem.Optional
}

// Code is a Python code object, sent before the first frame that names it. Line decodes its table.
type Code struct {
	Time
	ID        uint32 // never reused within a channel
	FirstLine int32
	Python    uint16 // 0x030b for 3.11
	File      []byte
	Name      []byte // qualified where the version has one
	Table     []byte
}

// Alloc is a recorded allocation.
type Alloc struct {
	Time
	Address    uint64
	Size       uint64 // as asked for
	Weight     uint64 // bytes this sample stands for
	Word       Word
	Thread     uint32
	Origin     Origin
	Truncated  bool    // the stack was deeper than Frames
	OtherStack bool    // the stack is another thread's, the one that caused the allocation
	Failed     bool    // there was no memory: Address is 0, and nothing was allocated
	Frames     []Frame // innermost first
}

// Frame is one level of a stack: an instruction of a code object, or a native return address.
type Frame struct {
	Where  uint64 // code id, or address
	Lasti  int32  // byte offset in co_code; 0 for native
	Native bool
}

// Origin is the function that allocated, enum ht_origin.
type Origin uint8

const (
	OriginMalloc  Origin = 1
	OriginCalloc  Origin = 2
	OriginRealloc Origin = 3
	OriginAligned Origin = 4
	OriginMmap    Origin = 5
	OriginShared  Origin = 6 // mmap of memory that processes may share
)

// Mapped says whether munmap frees it, in parts too.
func (o Origin) Mapped() bool { return o == OriginMmap || o == OriginShared }

// Free is the end of an allocation that was recorded.
type Free struct {
	Time
	Address uint64
	Size    uint64 // 0: all of it; else munmap freed this part
}

// Thread names a thread.
type Thread struct {
	Time
	ID   uint32
	Name []byte
}

// Malloc is what the C library's malloc holds, in its own count; bytes.
type Malloc struct {
	Time
	Used     int64 // of its arenas, that the program has, with what threads keep to hand out again
	Free     int64 // of its arenas, that nobody has
	Top      int64 // of Free: the end of the main arena
	Mapped   int64 // blocks with a mapping of their own
	Duration int64 // ns that counting took
}

// records are the values that next hands out, reused so that reading allocates nothing.
type records struct {
	json     JSON
	edge     Edge
	counters Counters
	step     Step
	code     Code
	alloc    Alloc
	free     Free
	thread   Thread
	malloc   Malloc
}

// writes says whether a writer of this role has records of that kind to write. In a channel of another
// role they have nothing to refer to: no heap, no code objects, no series.
func (r Role) writes(kind Kind) bool {
	if kind >= kindCode {
		return r == RoleHeap
	}
	return r == RoleAgent
}

// decode parses a private copy of a record's payload, or counts why it cannot and returns nil.
func (c *Channel) decode(kind Kind, aux uint16, time int64, p []byte) Record {
	var record Record
	d := &c.decoded
	switch kind {
	case kindJSON:
		record = d.json.decode(p)
	case kindEdge:
		record = d.edge.decode(p, aux)
	case kindCounters:
		record = d.counters.decode(p, int(aux))
	case kindStep:
		record = d.step.decode(p)
	case kindCode:
		record = d.code.decode(p)
	case kindAlloc:
		record = d.alloc.decode(p)
	case kindFree:
		record = d.free.decode(p)
	case kindThread:
		record = d.thread.decode(p)
	case kindMalloc:
		record = d.malloc.decode(p)
	default:
		c.Unknown++
		return nil
	}
	if record == nil || !c.Role.writes(kind) {
		c.Malformed++
		return nil
	}
	record.(interface{ setTime(int64) }).setTime(time)
	return record
}

func (t *Time) setTime(time int64) { *t = Time(time) }

func u16(p []byte, off int) uint16 { return binary.LittleEndian.Uint16(p[off:]) }
func u32(p []byte, off int) uint32 { return binary.LittleEndian.Uint32(p[off:]) }
func u64(p []byte, off int) uint64 { return binary.LittleEndian.Uint64(p[off:]) }

// observed reads a size in bytes of which -1 (or any negative) means not read.
func observed(p []byte, off int) mem.Optional {
	value := int64(u64(p, off))
	if value < 0 {
		return mem.Optional{}
	}
	return mem.Some(value)
}

func (r *JSON) decode(p []byte) Record {
	if len(p) < 4 || uint64(u32(p, 0)) > uint64(len(p)-4) {
		return nil
	}
	r.Data = p[4 : 4+u32(p, 0)]
	return r
}

func (r *Edge) decode(p []byte, stay uint16) Record {
	if len(p) < 40 || int(p[0]) >= len(mem.Phases) {
		return nil
	}
	*r = Edge{
		Phase: mem.Phases[p[0]], Leave: p[1] != 0, Module: u16(p, 2), Stay: stay, Thread: u32(p, 4), Step: u64(p, 8),
		RSS: observed(p, 16), DeviceAllocated: observed(p, 24), DeviceReserved: observed(p, 32),
	}
	return r
}

func (r *Counters) decode(p []byte, n int) Record {
	if len(p) < n*counterBytes {
		return nil
	}
	r.Counters = r.Counters[:0]
	for ; n > 0; n, p = n-1, p[counterBytes:] {
		r.Counters = append(r.Counters, Counter{u32(p, 0), int64(u64(p, 8))})
	}
	return r
}

func (r *Step) decode(p []byte) Record {
	if len(p) < 40 {
		return nil
	}
	*r = Step{
		Step: u64(p, 0), Duration: max(0, int64(u64(p, 8))), RSS: observed(p, 16),
		MicroSteps: u32(p, 24), Skipped: u32(p, 28)&1 != 0, DeviceAllocated: observed(p, 32),
	}
	return r
}

func (r *Code) decode(p []byte) Record {
	if len(p) < 24 {
		return nil
	}
	file, name, table := uint64(u16(p, 10)), uint64(u16(p, 12)), uint64(u32(p, 16))
	text := p[24:]
	if file+name+table > uint64(len(text)) {
		return nil
	}
	*r = Code{
		ID: u32(p, 0), FirstLine: int32(u32(p, 4)), Python: u16(p, 8),
		File: text[:file], Name: text[file : file+name], Table: text[file+name : file+name+table],
	}
	return r
}

func (r *Alloc) decode(p []byte) Record {
	if len(p) < 40 {
		return nil
	}
	n := int(u16(p, 36))
	if n > MaxFrames || len(p) < 40+n*frameBytes {
		return nil
	}
	frames := r.Frames[:0]
	for f := p[40:]; n > 0; n, f = n-1, f[frameBytes:] {
		frames = append(frames, Frame{u64(f, 0), int32(u32(f, 8)), u32(f, 12) != 0})
	}
	*r = Alloc{
		Address: u64(p, 0), Size: u64(p, 8), Weight: u64(p, 16), Word: Word(u64(p, 24)), Thread: u32(p, 32),
		Origin: Origin(p[38]), Truncated: p[39]&1 != 0, OtherStack: p[39]&2 != 0, Failed: p[39]&4 != 0, Frames: frames,
	}
	return r
}

func (r *Free) decode(p []byte) Record {
	if len(p) < 16 {
		return nil
	}
	*r = Free{Address: u64(p, 0), Size: u64(p, 8)}
	return r
}

func (r *Thread) decode(p []byte) Record {
	if len(p) < 8 || uint64(u32(p, 4)) > uint64(len(p)-8) {
		return nil
	}
	*r = Thread{ID: u32(p, 0), Name: p[8 : 8+u32(p, 4)]}
	return r
}

// decode refuses counts that no process can have.
func (r *Malloc) decode(p []byte) Record {
	if len(p) < 40 {
		return nil
	}
	var counts [5]int64
	for i := range counts {
		if counts[i] = int64(u64(p, 8*i)); counts[i] < 0 || counts[i] > 1<<56 {
			return nil
		}
	}
	*r = Malloc{Used: counts[0], Free: counts[1], Top: min(counts[2], counts[1]), Mapped: counts[3], Duration: counts[4]}
	return r
}
