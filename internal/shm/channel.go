// Package shm reads the shared-memory channel that an observed process writes.
//
//	agent (Python), heap (C) ──▶ ring in a mapped file ──▶ Channel.Next ──▶ Record
//	        ▲                                                                 │
//	        └── control line: stop, look at containers ◀── observe (Go) ◀─────┘
//
// The layout is include/hightide_channel.h, its use docs/formats/channel.md. The other side is
// somebody else's process: any byte may change at any moment and say anything. So every shared
// word is loaded once, atomically, and only that copy is judged; a record is copied out before it
// is parsed; positions the reader needs are its own. Nothing here opens or maps a file: the caller
// hands over the mapping. Start reading at Next in ring.go; lines.go turns a code object's line
// table and an instruction into a line.
package shm

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"unsafe"
)

// The layout of struct ht_header; layout_test.go compares it with the C compiler's.
const (
	Magic       = 0x31304e4148435448 // "HTCHAN01" in memory
	ABI         = 1
	HeaderBytes = 4096
	MaxFrames   = 64

	minRing = 64 << 10
	maxRing = 1 << 30

	offMagic          = 0
	offABI            = 8
	offRole           = 12
	offPID            = 16
	offHeaderBytes    = 20
	offProcessStart   = 24
	offRingBytes      = 32
	offCreatedMono    = 40
	offCreatedWall    = 48
	offHead           = 64
	offDroppedRecords = 72
	offDroppedBytes   = 80
	offTail           = 128
	offEnginePID      = 136
	offEngineBeat     = 144
	offControlSeq     = 192
	offStopAtStep     = 200
	offScanSeq        = 232
	offMallocSeq      = 240
	offWaiting        = 248
	offHeapSampled    = 320
	offHeapMeanNow    = 328
	offHeapUntracked  = 336
	offHeapFlags      = 344
	offHeapPeakRSS    = 352
	offAlertState     = 1024
	offAlertCount     = 1536
	offAlertValue     = 2048
)

// Role says which helper writes a channel.
type Role uint32

const (
	RoleAgent Role = 1
	RoleHeap  Role = 2
)

var (
	// ErrNotReady: the writer has not finished the header. Try again later.
	ErrNotReady = errors.New("channel is not ready")
	// ErrCorrupt: the header or the ring contradicts itself. The channel is of no further use; what
	// was read before stands.
	ErrCorrupt = errors.New("channel is corrupt")
)

// Header is the identity of a channel, read once when it is opened.
type Header struct {
	Role         Role
	PID          int
	ProcessStart uint64 // clock ticks since boot, field 22 of /proc/PID/stat
	RingBytes    int
	CreatedMono  int64 // ns, CLOCK_MONOTONIC
	CreatedWall  int64 // ns since 1970, the same instant
}

// Channel is one mapped channel and its only reader. It is not safe for concurrent use by several
// goroutines; the writer on the other side needs no care.
type Channel struct {
	Header
	Stats

	mapping []byte // header and ring, no more
	ring    []byte
	tail    uint64 // bytes read
	// released are the bytes whose room the writer has again: ours, the shared copy is for the writer.
	released uint64
	broken   error // once corrupt, always

	control [3]uint64 // control_seq, scan_seq, malloc_seq: ours
	sounded [MaxAlerts]uint64
	scratch []byte // the record being parsed
	decoded records
}

// Stats counts what the reader itself left out.
type Stats struct {
	Records   uint64 // delivered
	Holes     uint64 // stretches that a dead writer had reserved and not finished
	HoleBytes uint64
	Malformed uint64 // records of a known kind whose lengths contradict each other, or that this role does not write
	Unknown   uint64 // records of a kind this version does not know
}

// Open checks the header of a mapped channel and continues where the last reader stopped. The
// mapping must be writable, shared and stay mapped while the Channel is used. Errors: ErrNotReady
// while the writer is still setting up, ErrCorrupt, or an unknown version.
func Open(mapping []byte) (c *Channel, err error) {
	defer caught(debug.SetPanicOnFault(true), mapping, &err)
	if len(mapping) < HeaderBytes {
		return nil, fmt.Errorf("%w: %d bytes are less than its header", ErrNotReady, len(mapping))
	}
	if uintptr(unsafe.Pointer(&mapping[0]))%8 != 0 {
		return nil, fmt.Errorf("%w: mapping is not aligned", ErrCorrupt)
	}
	switch magic := load64(mapping, offMagic); magic {
	case Magic:
	case 0:
		return nil, ErrNotReady
	default:
		return nil, fmt.Errorf("%w: magic %#x", ErrCorrupt, magic)
	}
	if abi := load32(mapping, offABI); abi != ABI {
		return nil, fmt.Errorf("channel version %d: this hightide reads version %d; use the helpers that came with it", abi,
			ABI)
	}
	ring := load64(mapping, offRingBytes)
	header := load32(mapping, offHeaderBytes)
	if header != HeaderBytes || ring < minRing || ring > maxRing || ring&(ring-1) != 0 {
		return nil, fmt.Errorf("%w: header of %d and ring of %d bytes", ErrCorrupt, header, ring)
	}
	if uint64(len(mapping)) < HeaderBytes+ring {
		return nil, fmt.Errorf("%w: ring of %d bytes in a mapping of %d", ErrCorrupt, ring, len(mapping))
	}
	c = &Channel{
		Header: Header{
			Role:         Role(load32(mapping, offRole)),
			PID:          int(load32(mapping, offPID)),
			ProcessStart: load64(mapping, offProcessStart),
			RingBytes:    int(ring),
			CreatedMono:  int64(load64(mapping, offCreatedMono)),
			CreatedWall:  int64(load64(mapping, offCreatedWall)),
		},
		mapping: mapping[:HeaderBytes+ring],
		ring:    mapping[HeaderBytes : HeaderBytes+ring],
		tail:    load64(mapping, offTail),
		control: [3]uint64{load64(mapping, offControlSeq), load64(mapping, offScanSeq), load64(mapping, offMallocSeq)},
	}
	c.released = c.tail
	if _, ok := c.head(); !ok {
		return nil, c.broken
	}
	return c, nil
}

func at64(b []byte, off int) *uint64 { return (*uint64)(unsafe.Pointer(&b[off : off+8][0])) }

func load64(b []byte, off int) uint64         { return atomic.LoadUint64(at64(b, off)) }
func store64(b []byte, off int, value uint64) { atomic.StoreUint64(at64(b, off), value) }
func load32(b []byte, off int) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&b[off : off+4][0])))
}
