package wire

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"hightide/internal/mem"

	"github.com/klauspost/compress/zstd"
)

// Writer writes a recording. It is for one goroutine.
type Writer struct {
	w        io.Writer
	zstd     *zstd.Encoder
	raw      []byte // frames of the block in the making
	frames   uint32
	scratch  []byte // payload of one frame
	out      []byte // a finished block
	sequence uint64
}

// NewWriter begins a recording: it writes the file header.
func NewWriter(w io.Writer) (*Writer, error) {
	if _, err := w.Write(fileHeader(Major, Minor)); err != nil {
		return nil, fmt.Errorf("begin recording: %w", err)
	}
	return Append(w, 0), nil
}

// Append continues a recording after its last block: sequence is what Reader.Sequence says at the
// end of it.
func Append(w io.Writer, sequence uint64) *Writer {
	return &Writer{w: w, zstd: newCompressor(), sequence: sequence}
}

// Write adds a frame to the block in the making, and writes the block once it is large enough. The
// error is that of the frame (it is left out) or of the block (it is lost, the Writer goes on).
func (w *Writer) Write(f mem.Frame) error {
	k, payload, err := appendPayload(w.scratch[:0], f)
	w.scratch = payload[:0]
	if err != nil {
		return fmt.Errorf("write frame: %w", err)
	}
	if len(payload) > MaxBlock-blockTarget-2*binary.MaxVarintLen64 { // so that it always fits what waits
		w.scratch = nil
		return fmt.Errorf("write frame %T of %d bytes: %w", f, len(payload), ErrTooLarge)
	}
	w.raw = binary.AppendUvarint(w.raw, uint64(k))
	w.raw = binary.AppendUvarint(w.raw, uint64(len(payload)))
	w.raw = append(w.raw, payload...)
	w.frames++
	if len(w.raw) >= blockTarget {
		return w.Flush()
	}
	return nil
}

// Buffered is the number of bytes that the next Flush writes, before compression.
func (w *Writer) Buffered() int { return len(w.raw) }

// Flush writes the block in the making with one call of the underlying Write. After an error the
// block is gone and its number is given to the next.
func (w *Writer) Flush() error {
	if w.frames == 0 {
		return nil
	}
	block := w.block()
	w.raw, w.frames = w.raw[:0], 0
	if cap(w.raw) > 4*blockTarget { // after a large frame
		w.raw, w.scratch = nil, nil
	}
	n, err := w.w.Write(block)
	if cap(w.out) > 4*blockTarget {
		w.out = nil
	}
	if err == nil && n < len(block) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return fmt.Errorf("write recording: %w", err)
	}
	w.sequence++
	return nil
}

// block builds the bytes of the block in the making.
func (w *Writer) block() []byte {
	if cap(w.out) < blockHeaderSize {
		w.out = make([]byte, 0, blockTarget/4)
	}
	h := header{kind: blockFrames, codec: codecZstd, raw: uint32(len(w.raw)), frames: w.frames, sequence: w.sequence}
	out := w.zstd.EncodeAll(w.raw, w.out[:blockHeaderSize])
	if len(out)-blockHeaderSize >= len(w.raw) {
		h.codec = codecStored
		out = append(out[:blockHeaderSize], w.raw...)
	}
	payload := out[blockHeaderSize:]
	h.stored, h.payloadCheck = uint32(len(payload)), crc32.Checksum(payload, castagnoli)
	h.append(out[:0])
	w.out = out
	return out
}

// Close flushes. The underlying writer stays open.
func (w *Writer) Close() error {
	err := w.Flush()
	w.zstd.Close()
	return err
}
