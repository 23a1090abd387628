package shm

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"
)

const (
	busy        = 0x80000000
	recordBytes = 16 // struct ht_record
	padBytes    = 8  // the smallest pad
)

// Next returns the next complete record, in the order of the ring, or nil where there is none now. A
// record that a thread of the writer still fills hides those behind it, unless final says that the
// writer is dead. Then it is skipped and counted in Holes. The record is valid until the next call and
// keeps its room in the ring until Release. ErrCorrupt means that nothing more can be read from this
// channel.
func (c *Channel) Next(final bool) (Record, error) {
	if record := c.next(final); record != nil {
		return record, nil
	}
	return nil, c.broken
}

// Pending is how many bytes of the ring have not been read; 0 where nothing more can be.
func (c *Channel) Pending() int {
	defer caught(debug.SetPanicOnFault(true), c.mapping, &c.broken)
	head, ok := c.head()
	if !ok {
		return 0
	}
	return int(head - c.tail)
}

// Position is how many bytes have been read since the channel was made; Held how many of them still
// have their room in the ring.
func (c *Channel) Position() uint64 { return c.tail }
func (c *Channel) Held() int        { return int(c.tail - c.released) }

// Release zeroes what was read up to a position and gives its room back to the writer. Another reader,
// after this one's death, begins there. A position behind the last one, or not yet read, changes nothing.
func (c *Channel) Release(to uint64) {
	if to-c.released > c.tail-c.released {
		return
	}
	defer caught(debug.SetPanicOnFault(true), c.mapping, &c.broken)
	for c.released != to {
		at := c.released & uint64(len(c.ring)-1)
		size := min(to-c.released, uint64(len(c.ring))-at)
		clear(c.ring[at : at+size])
		c.released += size
	}
	store64(c.mapping, offTail, c.released)
}

// Skip passes over what another reader had read before it died, though it did not come to release it.
func (c *Channel) Skip(to uint64) {
	defer caught(debug.SetPanicOnFault(true), c.mapping, &c.broken)
	if head, ok := c.head(); ok && to%8 == 0 && to-c.tail <= head-c.tail {
		c.tail = to
		c.Release(to)
	}
}

// head loads the writer's position, once, and judges it against our own.
func (c *Channel) head() (head uint64, ok bool) {
	if c.broken != nil {
		return 0, false
	}
	head = load64(c.mapping, offHead)
	if head%8 != 0 || c.tail%8 != 0 || head-c.tail > uint64(len(c.ring)) || head-c.released > uint64(len(c.ring)) {
		c.corrupt("head %d, tail %d", head, c.tail)
		return 0, false
	}
	return head, true
}

// next walks from the tail towards head until a record of a known kind is decoded.
func (c *Channel) next(final bool) Record {
	defer caught(debug.SetPanicOnFault(true), c.mapping, &c.broken)
	for head, ok := c.head(); ok && c.tail != head; {
		at := int(c.tail & uint64(len(c.ring)-1))
		word := load64(c.ring, at) // bytes, kind and aux are one aligned word
		size := uint64(uint32(word) &^ busy)
		// What a record may span at most: it never wraps and was reserved before head moved.
		room := min(head-c.tail, uint64(len(c.ring)-at))
		if word == 0 || uint32(word)&busy != 0 || size == 0 {
			if !final {
				return nil
			}
			c.skipHole(at, size, room)
			continue
		}
		kind := Kind(word >> 32)
		if size%8 != 0 || size > room || size < recordBytes && kind != kindPad {
			c.corrupt("record of %d bytes and kind %d at %d, %d to head", size, kind, c.tail, room)
			return nil
		}
		if kind == kindPad {
			c.tail += size
			continue
		}
		c.scratch = append(c.scratch[:0], c.ring[at:at+int(size)]...)
		c.tail += size
		time := int64(binary.LittleEndian.Uint64(c.scratch[8:]))
		if record := c.decode(kind, uint16(word>>48), time, c.scratch[recordBytes:]); record != nil {
			c.Records++
			return record
		}
	}
	return nil
}

// skipHole passes over what a dead writer left unfinished. A reservation that was stamped busy says
// how long it is. One that was not is still all zero, since nothing is written before the stamp;
// so it ends where the first word is that is not zero: the next record.
func (c *Channel) skipHole(at int, size, room uint64) {
	if size < padBytes || size%8 != 0 || size > room {
		size = padBytes
		for size < room && load64(c.ring, at+int(size)) == 0 {
			size += 8
		}
	}
	c.Holes++
	c.HoleBytes += size
	c.tail += size
}

func (c *Channel) corrupt(format string, args ...any) {
	c.broken = fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// caught turns a fault on the mapping into ErrCorrupt: whoever owns the file can shorten it under us,
// and the kernel then answers a read with SIGBUS. Other panics pass. Every function that touches the
// mapping defers it, whoever calls; `old` is what debug.SetPanicOnFault returned.
func caught(old bool, mapping []byte, err *error) {
	debug.SetPanicOnFault(old)
	value := recover()
	if value == nil {
		return
	}
	fault, ok := value.(interface {
		runtime.Error
		Addr() uintptr
	})
	start := uintptr(unsafe.Pointer(unsafe.SliceData(mapping)))
	if !ok || fault.Addr() < start || fault.Addr() >= start+uintptr(len(mapping)) {
		panic(value)
	}
	*err = fmt.Errorf("%w: its file was cut short", ErrCorrupt)
}
