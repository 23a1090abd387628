package record

import (
	"bytes"
	"encoding/gob"
	"encoding/json"
	"os"
	"path/filepath"

	"hightide/internal/mem"
)

// The recording says what every line holds, not which block is at which address; who comes after us,
// if we are killed, could make nothing of the frees that are still in the rings. So with each flush
// of the recording we put what we know beyond it into a file beside the channels, in memory that
// outlives us: blocks, code objects, what ids mean. Only then the rings are released up to that
// moment. Recover reads recording, file and rings, and goes on as if nothing had happened.

// savedName is the file in the folder of channels.
const savedName = "books"

// leastRewrite is the size up to which the file only grows.
const leastRewrite = 1 << 20

// savedFile appends to that file, and writes it anew where most of it is out of date.
type savedFile struct {
	buffer  bytes.Buffer
	encoder *gob.Encoder
	whole   int // bytes when it was last written anew
	size    int
	broken  bool // no room, or the folder is gone: nothing can be resumed then
}

// savedBooks is one entry: what changed since the one before.
type savedBooks struct {
	Channels []savedChannel
	Heaps    []savedHeap
	Spans    []savedSpans
}

type savedChannel struct {
	File     string
	Position uint64
	Drops    uint64
	Codes    []savedCode
	Messages [][]byte // that say what ids mean
	Maps     []savedMap
}

type savedCode struct {
	ID                uint32
	File, Name, Table string
	FirstLine         int32
	Python            uint16
}

type savedMap struct {
	Start, End, Offset uint64
	File               string
}

type savedHeap struct {
	Process uint32
	Reset   bool // the address space is a new one
	Gone    []uint64
	Blocks  []savedBlock
	Mapped  bool // Regions are all there are
	Regions []savedBlock
	Sites   []savedSite // that the recording does not know as they are
}

type savedBlock struct {
	Address, Size, Weight uint64
	Stack                 uint32
}

type savedSite struct {
	Stack     uint32
	Phase     mem.Phase
	Allocated mem.Bytes
}

// savedSpans are the phases that a process is in. JSON has the optional figures.
type savedSpans struct {
	Process uint32
	Open    []byte
}

type savedSpan struct {
	Span   mem.Span `json:"span"`
	Module uint16   `json:"module"`
	Keep   bool     `json:"keep"`
}

// save writes what changed. A failure ends the saving, never the recording.
func (r *Recorder) save() {
	f := &r.saved
	if f.broken {
		return
	}
	anew := f.encoder == nil || f.size > max(leastRewrite, 3*f.whole)
	if anew {
		f.encoder = gob.NewEncoder(&f.buffer)
	}
	f.buffer.Reset()
	err := f.encoder.Encode(r.books(anew))
	if err == nil {
		err = f.write(filepath.Join(r.opts.Channels, savedName), anew)
	}
	if err != nil {
		f.broken = true
		_ = os.Remove(filepath.Join(r.opts.Channels, savedName)) // half of it would mislead
	}
}

func (f *savedFile) write(path string, anew bool) error {
	if anew {
		f.whole, f.size = f.buffer.Len(), f.buffer.Len()
		if err := os.WriteFile(path+".new", f.buffer.Bytes(), 0o600); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	f.size += f.buffer.Len()
	_, err = file.Write(f.buffer.Bytes())
	return err
}

// books gathers what changed since the last call, or all.
func (r *Recorder) books(all bool) savedBooks {
	var books savedBooks
	for _, p := range r.order {
		if len(p.channels) == 0 {
			continue
		}
		for _, c := range p.channels {
			books.Channels = append(books.Channels, c.save(all))
		}
		if p.heap != nil {
			books.Heaps = append(books.Heaps, p.heap.save(all))
		}
		if open := p.spans.save(); len(open) > 0 {
			books.Spans = append(books.Spans, savedSpans{p.ID, open})
		}
	}
	return books
}

func (c *channel) save(all bool) savedChannel {
	c.peek(false) // so that `taken` is up to date
	s := savedChannel{File: filepath.Base(c.path), Position: c.taken, Drops: c.told, Messages: c.meanings}
	if !all {
		s.Messages = c.meanings[c.savedMeanings:]
	}
	c.savedMeanings = len(c.meanings)
	if c.stacks != nil {
		s.Codes = c.stacks.save(all)
		s.Maps = c.names.save(all)
	}
	return s
}

func (r *stackReader) save(all bool) []savedCode {
	ids := r.fresh
	if all {
		ids = sortedKeys(r.codes)
	}
	r.fresh = nil
	codes := make([]savedCode, 0, len(ids))
	for _, id := range ids {
		c := r.codes[id]
		codes = append(codes, savedCode{id, c.file, c.name, c.table, c.firstLine, c.python})
	}
	return codes
}

func (n *nativeNames) save(all bool) []savedMap {
	if n.saved == n.missing && !all {
		return nil
	}
	n.saved = n.missing
	var maps []savedMap
	for _, m := range n.maps {
		maps = append(maps, savedMap{m.start, m.end, m.offset, m.file})
	}
	return maps
}

func (b *book) save(all bool) savedHeap {
	s := savedHeap{Process: b.process, Reset: b.reset || all, Gone: b.gone}
	if all {
		s.Gone = nil
		for address, k := range b.blocks {
			s.Blocks = append(s.Blocks, b.saveBlock(address, k))
		}
	}
	for _, address := range b.fresh {
		if k, ok := b.blocks[address]; ok && !k.saved {
			s.Blocks = append(s.Blocks, b.saveBlock(address, k))
		}
	}
	if b.remapped || all {
		s.Mapped = true
		for _, g := range b.regions {
			s.Regions = append(s.Regions, savedBlock{g.start, g.size, g.weight, g.site.Stack})
		}
	}
	for _, site := range b.changed {
		s.Sites = append(s.Sites, savedSite{site.Stack, site.Phase, site.Allocated})
	}
	b.reset, b.remapped, b.gone, b.fresh = false, false, b.gone[:0], b.fresh[:0]
	return s
}

func (b *book) saveBlock(address uint64, k block) savedBlock {
	k.saved = true
	b.blocks[address] = k
	return savedBlock{address, k.size, k.weight, k.site.Stack}
}

func (b *spanBook) save() []byte {
	open := map[uint32][]savedSpan{}
	for thread, spans := range b.threads {
		for _, s := range spans {
			open[thread] = append(open[thread], savedSpan{s.Span, s.module, s.keep})
		}
	}
	if len(open) == 0 {
		return nil
	}
	data, _ := json.Marshal(open) // spans hold nothing that JSON cannot
	return data
}
