package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"hightide/internal/mem"
)

// Reader reads a recording, frame by frame. It goes on after damage, and after the last whole block
// of a recording that was cut off; Damage tells what was left out. It is for one goroutine.
type Reader struct {
	src    io.Reader
	buf    []byte // window of the file, from offset
	window []byte // the memory it moves through
	offset int64
	srcErr error // io.EOF, or why reading ended

	frames   []byte // of the current block, not yet read
	raw      []byte // their buffer, used again
	at       int64  // where the current block begins
	decoder  decoder
	sequence uint64
	begun    bool // a block was read: sequence counts
	retried  int  // bytes of payloads that were read in vain

	damage  []mem.Damage
	unknown map[kind]int // frames skipped
	last    int          // bytes of the frame that Next returned last
}

// NewReader reads the header. Errors are ErrFormat, ErrNewer, or that of src.
func NewReader(src io.Reader) (*Reader, error) {
	r := &Reader{src: src, decoder: decoder{strings: map[string]string{}}, unknown: map[kind]int{}}
	if err := r.start(); err != nil {
		return nil, err
	}
	return r, nil
}

// start reads the file header.
func (r *Reader) start() error {
	r.fill(fileHeaderSize)
	if r.srcErr != nil && r.srcErr != io.EOF {
		return fmt.Errorf("read recording: %w", r.srcErr)
	}
	if len(r.buf) < fileHeaderSize {
		if len(r.buf) == 0 || bytes.HasPrefix([]byte(Magic), r.buf[:min(len(r.buf), len(Magic))]) {
			return fmt.Errorf("%w: it ends before it begins (%d bytes)", ErrFormat, len(r.buf))
		}
		return ErrFormat
	}
	start := r.buf[:fileHeaderSize]
	if binary.LittleEndian.Uint32(start[12:]) != crc32.Checksum(start[:12], castagnoli) {
		return r.findFirst()
	}
	if string(start[:len(Magic)]) != Magic {
		return ErrFormat
	}
	if major := int(binary.LittleEndian.Uint16(start[8:])); major > Major {
		return ErrNewer{major, int(binary.LittleEndian.Uint16(start[10:]))}
	}
	r.skip(fileHeaderSize)
	return nil
}

// firstWithin is how far a damaged start may reach before the input is taken for something else.
const firstWithin = 1 << 20

// findFirst looks for a block where the file header is damaged.
func (r *Reader) findFirst() error {
	r.fill(firstWithin)
	for at := 0; ; {
		next := bytes.Index(r.buf[at:], []byte(blockSync))
		if next < 0 {
			return ErrFormat
		}
		at += next
		if _, ok := parseHeader(r.buf[at:]); ok {
			r.note(0, int64(at), "the start of the file is damaged")
			r.skip(at)
			return nil
		}
		at++
	}
}

// Next returns the next frame, or io.EOF. Any other error is that of the source.
func (r *Reader) Next() (mem.Frame, error) {
	for {
		for len(r.frames) == 0 {
			if err := r.nextBlock(); err != nil {
				return nil, err
			}
		}
		f, err := r.frame()
		if err != nil {
			r.note(r.at, 0, err.Error())
		}
		if f != nil {
			return f, nil
		}
	}
}

// frame takes one frame off the block; nil for one of unknown kind.
func (r *Reader) frame() (mem.Frame, error) {
	d := &r.decoder
	d.rest, d.err = r.frames, nil
	k := kind(d.uint())
	payload := d.bytes()
	if d.err != nil {
		r.frames = nil
		return nil, errors.New("a block holds something that is not a frame")
	}
	r.frames = d.rest
	decode := decoders[k]
	if decode == nil {
		if len(r.unknown) < 64 || r.unknown[k] > 0 {
			r.unknown[k]++
		}
		return nil, nil
	}
	d.rest, r.last = payload, len(payload)
	f, err := decode(d)
	if err != nil {
		return nil, fmt.Errorf("a frame of kind %d cannot be read: %w", k, err)
	}
	return f, nil
}

// nextBlock reads the next undamaged block.
func (r *Reader) nextBlock() error {
	damaged := int64(-1) // where the damage began
	why := ""
	for {
		h, payload, problem := r.tryBlock()
		if problem == "" && len(payload) == 0 && r.ended() {
			if damaged >= 0 {
				r.note(damaged, r.offset-damaged, why)
			}
			return r.srcErr
		}
		if problem == "" {
			if damaged >= 0 {
				r.note(damaged, r.offset-damaged, why)
			}
			return r.openBlock(h, payload, damaged >= 0)
		}
		if damaged < 0 {
			damaged, why = r.offset, problem
		}
		r.resync()
	}
}

// ended says whether nothing is left.
func (r *Reader) ended() bool { return len(r.buf) == 0 && r.srcErr != nil }

// tryBlock looks at what stands at the current place, without going on; a problem says why it is
// not a block.
func (r *Reader) tryBlock() (h header, payload []byte, problem string) {
	r.fill(blockHeaderSize)
	if len(r.buf) == 0 {
		return h, nil, ""
	}
	if len(r.buf) < blockHeaderSize {
		return h, nil, "cut off in the middle of a block"
	}
	h, ok := parseHeader(r.buf)
	if !ok {
		return h, nil, "damaged"
	}
	size := blockHeaderSize + int(h.stored)
	r.fill(size)
	if len(r.buf) < size {
		r.retried += len(r.buf)
		return h, nil, "cut off in the middle of a block"
	}
	payload = r.buf[blockHeaderSize:size]
	if crc32.Checksum(payload, castagnoli) != h.payloadCheck {
		r.retried += size
		return h, nil, "damaged: the checksum of a block does not match"
	}
	return h, payload, ""
}

// retryLimit bounds the work that a hostile file can ask for: many headers that overlap.
const retryLimit = 64 * MaxBlock

// resync goes on to the next place where a block may begin.
func (r *Reader) resync() {
	if r.retried > retryLimit {
		if h, ok := parseHeader(r.buf); ok {
			r.skip(min(len(r.buf), blockHeaderSize+int(h.stored)))
			return
		}
	}
	r.skip(1)
	for {
		if at := bytes.Index(r.buf, []byte(blockSync)); at >= 0 {
			r.skip(at)
			return
		}
		keep := len(blockSync) - 1 // the marker may begin here and end in the next piece
		if r.srcErr != nil {
			keep = 0
		}
		if len(r.buf) > keep {
			r.skip(len(r.buf) - keep)
		}
		if r.srcErr != nil {
			return
		}
		r.fill(len(r.buf) + readPiece)
	}
}

// openBlock takes the frames out of a block and goes on behind it.
func (r *Reader) openBlock(h header, payload []byte, afterDamage bool) error {
	r.at = r.offset
	size := blockHeaderSize + len(payload)
	defer func() { r.skip(size) }()
	if r.begun && h.sequence < r.sequence {
		r.note(r.at, int64(size), "a block stands in the file a second time")
		return nil
	}
	if r.begun && h.sequence > r.sequence && !afterDamage {
		r.note(r.at, 0, fmt.Sprintf("%d blocks are missing", h.sequence-r.sequence))
	}
	r.begun, r.sequence = true, h.sequence+1
	if h.kind != blockFrames {
		return nil // of a later version
	}
	frames, err := r.decompress(h, payload)
	if err != nil {
		r.note(r.at, int64(size), "damaged: "+err.Error())
		return nil
	}
	r.frames = frames
	return nil
}

func (r *Reader) decompress(h header, payload []byte) ([]byte, error) {
	if cap(r.raw) < int(h.raw) {
		r.raw = make([]byte, 0, max(int(h.raw), blockTarget+blockTarget/4))
	}
	switch h.codec {
	case codecStored:
		r.raw = append(r.raw[:0], payload...)
	case codecZstd:
		var err error
		if r.raw, err = decompressor().DecodeAll(payload, r.raw[:0:h.raw]); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("a block is packed in an unknown way (%d)", h.codec)
	}
	if len(r.raw) != int(h.raw) {
		return nil, errors.New("a block has not the length it says")
	}
	return r.raw, nil
}

// readPiece is how much is read ahead.
const readPiece = 256 << 10

// fill makes the window at least n bytes long, unless the source ends before.
func (r *Reader) fill(n int) {
	for len(r.buf) < n && r.srcErr == nil {
		if need := max(n, len(r.buf)+readPiece); cap(r.buf) < need {
			if cap(r.window) < need {
				r.window = make([]byte, 0, need+need/2)
			}
			r.buf = append(r.window[:0], r.buf...) // to the start: append copies as if by way of a third place
		}
		got, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
		r.buf, r.srcErr = r.buf[:len(r.buf)+got], err
	}
}

func (r *Reader) skip(n int) {
	r.buf = r.buf[n:]
	r.offset += int64(n)
}

// maxDamage bounds the list; what comes after is added to its last entry.
const maxDamage = 256

func (r *Reader) note(offset, size int64, text string) {
	if len(r.damage) > 0 {
		last := &r.damage[len(r.damage)-1]
		if len(r.damage) == maxDamage || last.Text == text && last.Offset+last.Bytes == offset && size > 0 {
			last.Bytes += size
			return
		}
	}
	r.damage = append(r.damage, mem.Damage{Offset: offset, Bytes: size, Text: text})
}

// Damage lists what could not be read so far.
func (r *Reader) Damage() []mem.Damage { return r.damage }

// Unknown is the number of frames that were skipped since this version does not know their kind.
func (r *Reader) Unknown() int {
	n := 0
	for _, count := range r.unknown {
		n += count
	}
	return n
}

// Sequence is the number that the next block would have: what Append needs at the end of a file.
func (r *Reader) Sequence() uint64 { return r.sequence }
