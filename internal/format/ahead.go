package format

import (
	"errors"
	"io"
	"sync/atomic"
)

const (
	aheadBytes  = 1 << 20
	aheadSmall  = 128 << 10 // where the file is small: each page is of use several times
	aheadChunks = 4         // as many as package pickle holds at once, and one that is being filled
	aheadKeep   = 64 << 10  // room before a chunk for what is left of the one before it
)

// ahead reads on another core, a few chunks before they are asked for. Fetching a large file from
// the page cache, or decompressing it, takes a good part of the time that decoding it takes. Its
// memory is lent out (pickle.Lender), so that nothing is copied twice.
type ahead struct {
	full  chan chunk
	empty chan []byte
	lent  chan []byte // in order
	stop  chan struct{}
	now   chunk
	rest  []byte // of now

	below *ahead       // what this is the decompressed content of
	read  atomic.Int64 // bytes, of the file or of below
}

// errClosed is what comes after the end.
var errClosed = errors.New("nothing is read any more")

type chunk struct {
	room []byte // aheadKeep bytes, then the data
	n    int
	err  error
}

// newAhead begins to read, bytes at a time.
func newAhead(r io.Reader, bytes int) *ahead {
	a := &ahead{full: make(chan chunk, aheadChunks), empty: make(chan []byte, aheadChunks),
		lent: make(chan []byte, aheadChunks), stop: make(chan struct{})}
	go a.fill(r, bytes)
	return a
}

// Stored is how many bytes of the file were read, as they are stored.
func (a *ahead) Stored() int64 {
	for a.below != nil {
		a = a.below
	}
	return a.read.Load()
}

// end stops reading. Whoever opened the file closes it after that.
func (a *ahead) end() { close(a.stop) }

// fill ends at the file's end, at an error, or once nobody wants more.
func (a *ahead) fill(r io.Reader, bytes int) {
	for made := 0; ; {
		var room []byte
		if made < aheadChunks {
			room = make([]byte, aheadKeep+bytes)
			made++
		} else {
			select {
			case room = <-a.empty:
			case <-a.stop:
				return
			}
		}
		n, err := readSome(r, room[aheadKeep:])
		a.read.Add(int64(n))
		select {
		case a.full <- chunk{room, n, err}:
		case <-a.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// readSome reads until sniffing has enough: pipes give little at a time.
func readSome(r io.Reader, p []byte) (n int, err error) {
	for n < sniffBytes && err == nil {
		var got int
		got, err = r.Read(p[n:])
		n += got
	}
	return n, err
}

// next takes the next chunk, which is empty only at the end; keep is copied in front of it.
func (a *ahead) next(keep []byte) ([]byte, error) {
	if a.now.err != nil {
		return keep, a.now.err
	}
	select {
	case a.now = <-a.full:
	case <-a.stop:
		return keep, errClosed
	}
	var window []byte
	if len(keep) <= aheadKeep {
		window = a.now.room[aheadKeep-len(keep) : aheadKeep+a.now.n]
		copy(window, keep)
	} else {
		window = append(append(make([]byte, 0, 2*len(keep)+a.now.n), keep...), a.now.room[aheadKeep:aheadKeep+a.now.n]...)
	}
	if a.now.n == 0 {
		return window, a.now.err
	}
	return window, nil
}

// Lend returns keep followed by more of the file, in memory that stays as it is until it is given back.
func (a *ahead) Lend(keep []byte) (window []byte, err error) {
	if len(a.rest) == 0 {
		window, err = a.next(keep)
	} else if window, a.rest = a.rest, nil; len(keep) > 0 {
		window = append(append([]byte(nil), keep...), window...)
	}
	if err == nil {
		a.lent <- a.now.room
	}
	return window, err
}

// Return gives back what was lent longest ago.
func (a *ahead) Return() { a.empty <- <-a.lent }

func (a *ahead) Read(p []byte) (n int, err error) {
	for len(a.rest) == 0 {
		read := a.now.room
		if a.rest, err = a.next(nil); err != nil {
			return 0, err
		}
		if read != nil {
			a.empty <- read
		}
	}
	n = copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}

// peek returns the beginning of the file, at most sniffBytes, without taking it.
func (a *ahead) peek() ([]byte, error) {
	var err error
	if a.now.room == nil {
		a.rest, err = a.next(nil)
	}
	if err == io.EOF {
		err = nil
	}
	return a.rest[:min(len(a.rest), sniffBytes)], err
}
