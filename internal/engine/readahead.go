package engine

import (
	"io"
	"os"
)

const (
	aheadBytes  = 1 << 20
	aheadChunks = 3
)

// readAhead reads a file on another core, a few chunks before they are asked for: copying a large
// snapshot out of the page cache takes a third as long as decoding it. The file is closed by who
// opened it, after end.
type readAhead struct {
	*os.File // for Stat
	full     chan chunk
	empty    chan []byte
	stop     chan struct{}
	now      chunk
}

type chunk struct {
	data []byte
	room []byte // whole, to be used again
	err  error
}

func newReadAhead(file *os.File) *readAhead {
	r := &readAhead{File: file, full: make(chan chunk, aheadChunks), empty: make(chan []byte, aheadChunks+1), stop: make(chan struct{})}
	for range aheadChunks {
		r.empty <- make([]byte, aheadBytes)
	}
	go r.fill()
	return r
}

// fill ends at the file's end, at an error, or once nobody wants more.
func (r *readAhead) fill() {
	for {
		select {
		case room := <-r.empty:
			n, err := r.File.Read(room)
			select {
			case r.full <- chunk{room[:n], room, err}:
			case <-r.stop:
				return
			}
			if err != nil {
				return
			}
		case <-r.stop:
			return
		}
	}
}

func (r *readAhead) Read(p []byte) (int, error) {
	for len(r.now.data) == 0 {
		if r.now.err != nil {
			return 0, r.now.err
		}
		if r.now.room != nil {
			r.empty <- r.now.room
		}
		r.now = <-r.full
	}
	n := copy(p, r.now.data)
	r.now.data = r.now.data[n:]
	return n, nil
}

// WriteTo keeps io.Copy from going around Read.
func (r *readAhead) WriteTo(w io.Writer) (int64, error) {
	return io.Copy(w, struct{ io.Reader }{r})
}

// end stops reading.
func (r *readAhead) end() { close(r.stop) }
