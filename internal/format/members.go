package format

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"
)

const (
	gzipMagic = "\x1f\x8b"
	zstdMagic = "\x28\xb5\x2f\xfd"
)

// members reads the parts of a compressed file one after the other. It stops where what follows a whole one is none: a
// download or a tape may have left something behind the end.
type members struct {
	from *bufio.Reader
	gzip *gzip.Reader  // the present part
	zstd *zstd.Decoder // or all of them
	junk atomic.Bool   // something other than zeros follows the end; known once that was reached
}

// newMembers reads what begins with one of the magics; nil: it does not.
func newMembers(r io.Reader, head []byte) (m *members, err error) {
	switch {
	case bytes.HasPrefix(head, []byte(gzipMagic)):
		m = &members{from: bufio.NewReader(r)}
		if m.gzip, err = gzip.NewReader(m.from); err == nil {
			m.gzip.Multistream(false)
		}
	case bytes.HasPrefix(head, []byte(zstdMagic)):
		m = &members{}
		m.zstd, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
	}
	return m, err
}

func (m *members) Read(p []byte) (int, error) {
	if m.zstd != nil {
		n, err := m.zstd.Read(p)
		if errors.Is(err, zstd.ErrMagicMismatch) { // at the beginning of a part, and the first one's was seen
			m.junk.Store(true)
			err = io.EOF
		}
		return n, err
	}
	for {
		n, err := m.gzip.Read(p)
		if n > 0 && err == io.EOF {
			return n, nil // what follows is looked at by the next call
		}
		if err != io.EOF {
			return n, err
		}
		if err := m.next(); err != nil {
			return 0, err
		}
	}
}

// next begins the next part; io.EOF: there is none.
func (m *members) next() error {
	if head, _ := m.from.Peek(len(gzipMagic)); string(head) == gzipMagic {
		err := m.gzip.Reset(m.from)
		m.gzip.Multistream(false)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	rest, err := io.ReadAll(io.LimitReader(m.from, sniffBytes))
	if err != nil {
		return err
	}
	m.junk.Store(len(bytes.Trim(rest, "\x00")) > 0)
	return io.EOF
}
