package wire

import (
	"fmt"
	"io"

	"hightide/internal/mem"
)

// Batch is what one block of a recording holds.
type Batch struct {
	Frames []mem.Frame
	Next   int64        // the place in the recording behind these frames: Tail goes on there
	Left   int64        // bytes that were there behind Next when it was read: 0 for the newest
	Damage []mem.Damage // what was passed over before them
}

// Tail reads a recording while it is written: whole blocks, from any place between two. What looks torn
// at the end may still be completed, so it is taken for damage only once a whole block stands behind it.
// It is for one goroutine.
type Tail struct {
	reader Reader
	src    section
	next   int64 // the block to read next begins here
	size   int64 // what was there at the last look
	begun  bool  // the start of the file was read
}

// section is the part of a file that is known to be there.
type section struct {
	file      io.ReaderAt
	at, limit int64
}

func (s *section) Read(p []byte) (int, error) {
	if s.at >= s.limit {
		return 0, io.EOF
	}
	n, err := s.file.ReadAt(p[:min(int64(len(p)), s.limit-s.at)], s.at)
	s.at += int64(n)
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// NewTail begins at a place that Batch.Next named before, or at the start of the recording for 0. At any
// other place reading begins with the next block behind it.
func NewTail(file io.ReaderAt, from int64) *Tail {
	t := &Tail{src: section{file: file}, next: from}
	t.reader = Reader{src: &t.src, decoder: decoder{strings: map[string]string{}}, unknown: map[kind]int{}}
	return t
}

// Next returns the next whole block among the first size bytes of the recording. io.EOF says that there is
// none yet: call again when the recording has grown. Other errors are final.
func (t *Tail) Next(size int64) (Batch, error) {
	if t.next > 0 && size < t.next {
		return t.cutBack(size), nil
	}
	if size != t.size { // what was read ahead may have been torn, and be whole now
		t.seek(t.next)
		t.src.limit, t.size = size, size
	}
	retried := t.reader.retried
	for {
		batch, err := t.block()
		if err != nil {
			t.seek(t.next)
			t.reader.retried = retried // the same bytes are read again when there are more
			return Batch{}, err
		}
		t.next, batch.Left = batch.Next, size-batch.Next
		if len(batch.Frames) > 0 || len(batch.Damage) > 0 {
			return batch, nil
		}
	}
}

// seek has the reader forget what it read ahead.
func (t *Tail) seek(to int64) {
	r := &t.reader
	r.buf, r.frames, r.damage = nil, nil, nil
	r.offset, t.src.at = to, to
	r.srcErr = nil
}

// cutBack follows a recording that is shorter than it was.
func (t *Tail) cutBack(size int64) Batch {
	t.seek(size)
	lost := t.next - size
	t.next, t.reader.begun = size, false
	return Batch{Next: size, Damage: []mem.Damage{{Offset: size,
		Text: fmt.Sprintf("the recording was cut back by %d bytes", lost)}}}
}

// block reads the next block.
func (t *Tail) block() (Batch, error) {
	r := &t.reader
	if err := t.readStart(); err != nil {
		return Batch{}, err
	}
	if err := r.nextBlock(); err != nil {
		return Batch{}, err
	}
	batch := Batch{Next: r.offset}
	for weight := int64(0); len(r.frames) > 0; {
		f, err := r.frame()
		if err != nil {
			r.note(r.at, 0, err.Error())
		}
		if f == nil {
			continue
		}
		if weight += weigh(f, r.last); weight > maxBatchWeight {
			r.note(r.at, 0, "a block holds more than can be read at once")
			r.frames = nil
			break
		}
		batch.Frames = append(batch.Frames, f)
	}
	batch.Damage, r.damage = r.damage, nil
	return batch, nil
}

// maxBatchWeight bounds the memory that the frames of one block may take.
const maxBatchWeight = 256 << 20

// readStart reads the start of the file, then goes where reading is to begin.
func (t *Tail) readStart() error {
	if t.begun {
		return nil
	}
	if t.src.limit < fileHeaderSize {
		return io.EOF
	}
	from := t.next
	t.seek(0)
	if err := t.reader.start(); err != nil {
		return err
	}
	t.begun, t.next = true, t.reader.offset
	if from > t.next {
		t.seek(from)
		t.next = from
	}
	return nil
}
