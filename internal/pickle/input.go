package pickle

import (
	"bytes"
	"fmt"
	"io"
)

// Lender is a reader that lends its own memory, which spares a copy of all there is.
type Lender interface {
	// Lend returns keep followed by what comes next, valid until the next call. It returns an
	// error, io.EOF at the end, only with nothing new.
	Lend(keep []byte) ([]byte, error)
}

// input is a window over the stream that the machine reads opcodes and operands from.
type input struct {
	r     io.Reader
	lend  Lender // r, if it is one
	buf   []byte
	at    int   // next byte
	end   int   // bytes in buf
	base  int64 // offset of buf[0] in the stream
	fault error // what the reader said beside io.EOF
}

const windowBytes = 256 << 10

func newInput(r io.Reader) *input {
	if lend, ok := r.(Lender); ok {
		return &input{lend: lend}
	}
	return &input{r: r, buf: make([]byte, windowBytes)}
}

func (in *input) offset() int64 { return in.base + int64(in.at) }

// need makes n bytes available at buf[at:], growing the window only as data really arrives, so
// that a length that lies costs nothing.
func (in *input) need(n int) bool {
	for in.end-in.at < n {
		if in.lend != nil {
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

// borrow moves the window on by what comes next.
func (in *input) borrow() bool {
	window, err := in.lend.Lend(in.buf[in.at:in.end])
	if err != nil {
		if err != io.EOF {
			in.fault = err
		}
		return false
	}
	in.base += int64(in.at)
	in.buf, in.at, in.end = window, 0, len(window)
	return true
}

func (in *input) short() error {
	if in.fault != nil {
		return fmt.Errorf("read: %w", in.fault)
	}
	return ErrTruncated
}

// take returns the next n bytes, valid until the next call.
func (in *input) take(n int) ([]byte, error) {
	if in.end-in.at < n && !in.need(n) {
		return nil, in.short()
	}
	in.at += n
	return in.buf[in.at-n : in.at], nil
}

// uint reads n bytes, little endian.
func (in *input) uint(n int) (uint64, error) {
	b, err := in.take(n)
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
		if i := bytes.IndexByte(in.buf[in.at+scanned:in.end], '\n'); i >= 0 {
			b, err := in.take(scanned + i + 1)
			return b[:len(b)-1], err
		}
		scanned = in.end - in.at
		if scanned > limit {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrLimit, limit)
		}
		if !in.need(scanned + 1) {
			return nil, in.short()
		}
	}
}
