// Package format is the one list of files that hightide reads and writes, and what tells them apart.
//
//	bytes ──▶ [gzip, zstd] ──▶ Formats, sniffed by content ──▶ Document ──▶ engine
//	                             │ torch/    PyTorch's snapshots and profiler ◀──▶ mem.AllocatorSnapshot
//	                             │ stacks/   pprof, speedscope, memray …      ◀──▶ mem.Profile
//	                             │ profiler/ XSpaces of tf.profiler            ──▶ mem.AllocatorSnapshot
//	                             │           profiles of ONNX Runtime          ──▶ mem.NodeProfile
//	                             │ smaps/    Linux                             ──▶ mem.Mappings
//	                             │ telemetry/ readings of trackers              ◀──▶ mem.Run
//	                             │ oomtext/  a pasted message                  ──▶ mem.OOMMessage
//	                             └ recording                                  ◀──▶ mem.Run
//
// Source ──▶ [Matching, Redacted] ──▶ tables (csv.go, parquet.go, arrow.go), the whole (json.go, perfetto.go), or a
// format of the above
//
// Nothing a file contains is executed; sizes and depths are bounded; keys that are not known are
// kept by name and counted as nothing worse. What writes is a pure function that never changes its Source: units are in
// the names of columns (…_bytes, …_ns) or in a column "unit". What was not observed is empty, never zero.
// To add a format: one file, in the package of its family, and one entry in formats.go. Read formats.go, then Decode.
package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"hightide/internal/format/oomtext"
	"hightide/internal/format/torch"
	"hightide/internal/mem"
	"hightide/internal/pickle"
)

// Document is what a file turned out to hold. Exactly one of the pointers is set.
type Document struct {
	Name   string // as given
	Format string // name of the entry of Formats

	Snapshot  *mem.AllocatorSnapshot
	Profile   *mem.Profile
	Mappings  *mem.Mappings
	Nodes     *mem.NodeProfile
	OOM       *mem.OOMMessage
	Recording *mem.Run

	// Words say what the file holds in sentences with its figures: with OOM, or alone where a text shows one moment of
	// GPUs.
	Words []string
}

// Format is a kind of file that can be read, written, or both.
type Format struct {
	Name string

	// Reads says what it is that can be read, for help; "": it is only written.
	Reads string
	// Sniff says whether the first bytes (up to sniffBytes of them) look like this format.
	Sniff func(head []byte) bool
	// Decode reads the whole file, of size bytes; 0: not known.
	Decode func(r io.Reader, size int64) (*Document, error)

	// Writes says what is written, for help; "": it is only read.
	Writes    string
	Extension string
	Tables    bool // writes one table at a time
	Binary    bool // not for a terminal
	Measures  bool // shows one measure first; see Source.Measure
	// Takes says which kinds of Source it can write.
	Takes Kinds
	// Write writes a Source of such a kind, or one table of it where Tables is set.
	Write func(w io.Writer, from Source, table *Table) error
}

// sniffBytes is how much of a file its format is told from.
const sniffBytes = 64 << 10

// oneCoreFile is the size in bytes up to which a file is decoded on one core: what it takes to begin on several pays
// only later.
const oneCoreFile = 8 << 20

// ErrUnknown says that no format recognises a file.
var ErrUnknown = errors.New("unknown file format")

// ErrText is ErrUnknown of a text, in which a message was looked for.
var ErrText = fmt.Errorf("%w: a text without an out-of-memory message of a kind that is known", ErrUnknown)

// maxText is how much of a text is searched for a message that does not stand in its beginning, in bytes.
const maxText = 64 << 20

// ErrEmpty says that a file holds nothing.
var ErrEmpty = errors.New("is empty")

// maxExpansion bounds what a compressed file may become, in bytes.
const maxExpansion = 64 << 30

// plain is a whole file from its beginning, decompressed.
type plain struct {
	*ahead
	format     *Format
	text       bool       // format is not known, and the beginning is text
	timeline   bool       // likewise; of PyTorch's profiler
	unread     error      // likewise; of a kind that is known and not read
	compressed []*members // the outer one first
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
		inner, err := newMembers(p.ahead, head)
		if inner == nil && err == nil {
			if len(head) == 0 {
				return p, ErrEmpty
			}
			p.format = Sniff(head)
			p.timeline = torch.IsTimeline(head)
			if p.format == nil {
				p.unread = namedUnread(head)
			}
			p.text = p.format == nil && bytes.IndexByte(head, 0) < 0 && utf8.Valid(head[:max(0, len(head)-utf8.UTFMax)])
			return p, nil
		}
		if err != nil {
			return p, fmt.Errorf("decompress: %w", err)
		}
		below := p.ahead
		p.ahead, p.compressed = newAhead(&bounded{inner, maxExpansion}, aheadBytes), append(p.compressed, inner)
		p.ahead.below = below
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
		if f := &Formats[i]; f.Sniff != nil && f.Sniff(head) {
			return &Formats[i]
		}
	}
	return nil
}

// named is a format by its name.
func named(name string) *Format {
	return &Formats[slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name })]
}

// Decode reads a file of any format, compressed or not. The name is only for the Document.
func Decode(r io.Reader, name string) (*Document, error) {
	size := pickle.SizeOf(r)
	small := 0 < size && size < oneCoreFile
	file, err := open(r, small)
	defer file.close()
	if err != nil {
		return nil, err
	}
	format := file.format
	var in io.Reader = file.ahead
	if format == nil && file.text { // a log: the message may stand at its end
		format, in = named("oom-message"), io.LimitReader(in, maxText)
	}
	if format == nil {
		return nil, ErrUnknown
	}
	switch {
	case file.compressed != nil:
		size = 0
	case small && !file.text:
		in = struct{ io.Reader }{in} // which lends nothing
	}
	document, err := format.Decode(in, size)
	if errors.Is(err, oomtext.ErrNoMessage) {
		if file.timeline {
			return nil, torch.ErrTimeline
		}
		if file.unread != nil {
			return nil, file.unread
		}
		return nil, ErrText
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", format.Name, err)
	}
	document.Name, document.Format = name, format.Name
	if file.compressed != nil {
		return document, file.drain(document)
	}
	return document, nil
}

// maxAfter is how much of a compressed file may follow what was decoded, in bytes, for its checksum to be looked at.
const maxAfter = 16 << 20

// drain reads a compressed file to its end, where its checksum lies.
func (p *plain) drain(document *Document) error {
	n, err := io.Copy(io.Discard, io.LimitReader(p.ahead, maxAfter))
	switch {
	case err != nil:
		return fmt.Errorf("the compressed file is damaged, so its figures may be wrong: %w", err)
	case n == maxAfter:
		document.note("The compressed file goes on after its end; its checksum was not looked at.")
	case slices.ContainsFunc(p.compressed, func(m *members) bool { return m.junk.Load() }):
		document.note("What follows the end of the compressed data in the file is no part of it, and was left out.")
	}
	return nil
}

// note adds what readers of snapshots and profiles are to know, who show their notes.
func (d *Document) note(text string) {
	if d.Snapshot != nil {
		d.Snapshot.Notes = append(d.Snapshot.Notes, text)
	}
	if d.Profile != nil {
		d.Profile.Notes = append(d.Profile.Notes, text)
	}
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

// Known names all formats that can be read in one line, for a person.
func Known() string {
	var names []string
	for _, f := range Formats {
		if f.Reads != "" {
			names = append(names, f.Reads)
		}
	}
	return strings.Join(names, ", ") + "; each also as .gz or .zst"
}

// Tell names the format of a file from its beginning, and whether it is compressed. ErrUnknown and ErrEmpty as Decode
// gives them.
func Tell(r io.Reader) (f *Format, compressed bool, err error) {
	file, err := open(r, true)
	defer file.close()
	if err != nil {
		return nil, false, err
	}
	if file.format == nil {
		return nil, file.compressed != nil, ErrUnknown
	}
	return file.format, file.compressed != nil, nil
}
