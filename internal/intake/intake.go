// Package intake turns foreign files into mem's nouns.
//
//	bytes ──▶ [gzip, zstd] ──▶ Formats (sniffed by content) ──▶ Document ──▶ engine
//	                            │ torch.go    snapshot pickle, JSON ──▶ mem.AllocatorSnapshot
//	                            │ profiler.go Kineto, Chrome trace  ──▶ mem.AllocatorSnapshot
//	                            │ pprof.go    JAX's device memory   ──▶ mem.Profile
//	                            │ smaps.go    Linux                 ──▶ mem.Mappings
//	                            │ oom.go      a pasted message      ──▶ mem.OOMMessage
//	                            └ recording                         ──▶ mem.Run
//
// Nothing a file contains is executed; sizes and depths are bounded; keys that are not known are
// kept by name and counted as nothing worse. To add a format: one file and one line in formats.go.
// Read Decode, then torch.go.
package intake

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"hightide/internal/mem"

	"github.com/klauspost/compress/zstd"
)

// Document is what a file turned out to hold. Exactly one of the pointers is set.
type Document struct {
	Name   string // as given
	Format string // name of the entry of Formats
	Notes  []string

	Snapshot  *mem.AllocatorSnapshot
	Profile   *mem.Profile
	Mappings  *mem.Mappings
	OOM       *mem.OOMMessage
	Recording *mem.Run

	// Words explains a message in sentences with its figures; only with OOM.
	Words []string
}

// Format is a kind of file that can be read.
type Format struct {
	Name  string
	Short string // what it is, for help

	// Sniff says whether the first bytes (up to sniffBytes of them) look like this format.
	Sniff func(head []byte) bool
	// Decode reads the whole file, of size bytes; 0: not known.
	Decode func(r io.Reader, size int64) (*Document, error)
}

// sniffBytes is how much of a file its format is told from.
const sniffBytes = 64 << 10

// oneCoreFile is the size in bytes up to which a file is decoded on one core: what it takes to begin on several pays only later.
const oneCoreFile = 8 << 20

// ErrUnknown says that no format recognises a file.
var ErrUnknown = errors.New("unknown file format")

// ErrEmpty says that a file holds nothing.
var ErrEmpty = errors.New("is empty")

// maxExpansion bounds what a compressed file may become, in bytes.
const maxExpansion = 64 << 30

// plain is a whole file from its beginning, decompressed.
type plain struct {
	*ahead
	format     *Format
	compressed bool
	layers     []*ahead
}

// open undoes compression, which it tells from the content, and names the format.
func open(r io.Reader, small bool) (*plain, error) {
	bytesAhead := aheadBytes
	if small {
		bytesAhead = aheadSmall
	}
	p := &plain{ahead: newAhead(r, bytesAhead)}
	for range 3 {
		p.layers = append(p.layers, p.ahead)
		head, err := p.peek()
		if err != nil {
			return p, fmt.Errorf("read: %w", err)
		}
		var inner io.Reader
		switch {
		case bytes.HasPrefix(head, []byte("\x1f\x8b")):
			inner, err = gzip.NewReader(p.ahead)
		case bytes.HasPrefix(head, []byte("\x28\xb5\x2f\xfd")):
			inner, err = zstd.NewReader(p.ahead, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(256<<20))
		default:
			if len(head) == 0 {
				return p, ErrEmpty
			}
			p.format = Sniff(head)
			return p, nil
		}
		if err != nil {
			return p, fmt.Errorf("decompress: %w", err)
		}
		p.ahead, p.compressed = newAhead(&bounded{inner, maxExpansion}, aheadBytes), true
	}
	p.layers = append(p.layers, p.ahead)
	return p, errors.New("decompress: compressed more than twice over")
}

// close stops reading.
func (p *plain) close() {
	for _, layer := range p.layers {
		layer.end()
	}
}

// Sniff names the format of a file that begins with head and is not compressed; nil if none fits.
func Sniff(head []byte) *Format {
	for i := range Formats {
		if Formats[i].Sniff(head) {
			return &Formats[i]
		}
	}
	return nil
}

// Decode reads a file of any format, compressed or not. The name is only for the Document.
func Decode(r io.Reader, name string) (*Document, error) {
	size := sizeOf(r)
	small := 0 < size && size < oneCoreFile
	file, err := open(r, small)
	defer file.close()
	if err != nil {
		return nil, err
	}
	format := file.format
	if format == nil {
		return nil, ErrUnknown
	}
	var in io.Reader = file.ahead
	switch {
	case file.compressed:
		size = 0
	case small:
		in = struct{ io.Reader }{in} // which lends nothing
	}
	document, err := format.Decode(in, size)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", format.Name, err)
	}
	document.Name, document.Format = name, format.Name
	return document, nil
}

// bounded fails where more than left bytes come.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("decompress: more than %d bytes", int64(maxExpansion))
	}
	return n, err
}

// Known names all formats in one line, for a person.
func Known() string {
	var names []string
	for _, f := range Formats {
		names = append(names, f.Short)
	}
	return strings.Join(names, ", ") + "; each also as .gz or .zst"
}
