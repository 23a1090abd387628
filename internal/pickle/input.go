package pickle

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"io"
)

// Lender is a reader that lends its own memory, which spares a copy of all there is.
type Lender interface {
	// Lend returns keep followed by what comes next. It returns an error, io.EOF at the end, only with
	// nothing new.
	Lend(keep []byte) ([]byte, error)

	// Return gives back the memory that was lent longest ago; what was lent after it stays as it is. It may
	// be called while another goroutine waits for Lend.
	Return()
}

// Stored is a reader that knows how much of the file it has read as it is stored: compressed, where it is.
type Stored interface{ Stored() int64 }

// input is a window over the stream that the machine reads opcodes and operands from.
type input struct {
	r     io.Reader
	buf   []byte
	at    int   // next byte
	end   int   // bytes in buf
	base  int64 // offset of buf[0] in the stream
	fault error // what the reader said beside io.EOF

	ahead  *readAhead // instead of r, where that is a Lender
	window *window    // that buf is of
	next   int        // of its runs, the first that is not behind
	ended  bool       // there is no window after it
	own    bool       // buf is not a window's
}

const windowBytes = 256 << 10

func newInput(r io.Reader, seed maphash.Seed) *input {
	if lend, ok := r.(Lender); ok {
		return &input{ahead: newReadAhead(lend, seed)}
	}
	return &input{r: r, buf: make([]byte, windowBytes)}
}

// close ends what goes on beside; nothing more can be read.
func (in *input) close() {
	if in.ahead != nil {
		in.ahead.close()
	}
}

func (in *input) offset() int64 { return in.base + int64(in.at) }

// need makes n bytes available at buf[at:], growing the window only as data really arrives, so
// that a length that lies costs nothing.
func (in *input) need(n int) bool {
	for in.end-in.at < n {
		if in.ahead != nil {
			if !in.borrow() {
				return false
			}
			continue
		}
		if in.at > 0 {
			copy(in.buf, in.buf[in.at:in.end])
			in.base += int64(in.at)
			in.end -= in.at
			in.at = 0
		}
		if in.end == len(in.buf) {
			in.buf = append(in.buf, make([]byte, len(in.buf))...)
		}
		got, err := in.r.Read(in.buf[in.end:])
		in.end += got
		if err != nil && in.end-in.at < n {
			if err != io.EOF {
				in.fault = err
			}
			return false
		}
	}
	return true
}

// borrow moves the window on. At the end it stays.
func (in *input) borrow() bool {
	if in.ended {
		return false
	}
	w := in.ahead.next()
	if w.err != nil {
		if in.ended = true; w.err != io.EOF {
			in.fault = w.err
		}
		return false
	}
	if behind := w.base - in.offset(); behind <= 0 {
		in.buf, in.at, in.base, in.own = w.b, int(-behind), w.base, false
	} else { // more is wanted than what windows have in common
		rest := in.buf[in.at:][:behind]
		if !in.own || cap(rest)-len(rest) < len(w.b) {
			rest = append(make([]byte, 0, 2*len(rest)+len(w.b)), rest...)
		}
		in.base += int64(in.at)
		in.buf, in.at, in.own = append(rest, w.b...), 0, true
	}
	in.end = len(in.buf)
	if in.window != nil {
		in.ahead.back(in.window)
	}
	in.window, in.next = w, 0
	return true
}

// rowAhead returns the run with the row that begins with the next byte, if that was read ahead, and the
// row's place in it.
func (in *input) rowAhead() (*run, int) {
	if in.window == nil {
		return nil, 0
	}
	return in.window.at(in.offset(), &in.next)
}

func (in *input) short() error {
	if in.fault != nil {
		return fmt.Errorf("read: %w", in.fault)
	}
	return ErrTruncated
}

// takeBytes returns the next n bytes, valid until the next call.
func (in *input) takeBytes(n int) ([]byte, error) {
	if in.end-in.at < n && !in.need(n) {
		return nil, in.short()
	}
	in.at += n
	return in.buf[in.at-n : in.at], nil
}

// uint reads n bytes, little endian.
func (in *input) uint(n int) (uint64, error) {
	b, err := in.takeBytes(n)
	if err != nil {
		return 0, err
	}
	var v uint64
	for i := n - 1; i >= 0; i-- {
		v = v<<8 | uint64(b[i])
	}
	return v, nil
}

// line returns the text up to the next newline, which is eaten; for the text opcodes.
func (in *input) line(limit int) ([]byte, error) {
	for scanned := 0; ; {
		i := bytes.IndexByte(in.buf[in.at+scanned:in.end], '\n')
		if i >= 0 && scanned+i <= limit {
			b, err := in.takeBytes(scanned + i + 1)
			return b[:len(b)-1], err
		}
		scanned = in.end - in.at
		if i >= 0 || scanned > limit {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrLimit, limit)
		}
		if !in.need(scanned + 1) {
			return nil, in.short()
		}
	}
}
