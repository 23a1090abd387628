package observe

import (
	"bufio"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/system"
)

// The recording says what every line holds, not which block is at which address. Who comes after us,
// if we are killed, could make nothing of the frees that are still in the rings. So with each flush
// of the recording we put what we know beyond it into a file beside the channels, in memory that
// outlives us. That is blocks, code objects, what ids mean. Only then the rings are released up to that
// moment. Recover reads recording, file and rings, and goes on as if nothing had happened.

// savedName is the file in the folder of channels.
const savedName = "checkpoint"

// leastRewrite is the size up to which the file only grows.
const leastRewrite = 1 << 20

// savedFile appends to that file, and writes it anew where most of it is out of date. It goes there a process, or
// some hundred code objects, at a time: all of it at once would be most of what the engine holds.
type savedFile struct {
	file    *bufio.Writer // onto the file while it is open
	encoder *gob.Encoder
	whole   int // bytes when it was last written anew
	size    int
	broken  bool // no room, or the folder is gone: nothing can be resumed until it is written anew
	told    bool // that it was broken
	retry   int64
}

// retryEvery is the time between two attempts to write a file for which there was no room.
const retryEvery = int64(10e9)

// Write implements io.Writer for the encoder.
func (f *savedFile) Write(b []byte) (int, error) {
	f.size += len(b)
	return f.file.Write(b)
}

// checkpoint is one entry: what changed in one process since the one before it. Code objects may come ahead of it,
// in entries without a process.
type checkpoint struct {
	Process  uint32
	Channels []savedChannel
	Heap     *savedHeap
	Open     []byte // phases that it is in: savedSpan by thread, in JSON, which has the optional figures
	Codes    []savedCode
	File     string // of the channel that the codes are of
}

type savedChannel struct {
	File      string
	Position  uint64
	Drops     uint64 // by its writer
	DropBytes uint64
	Messages  [][]byte // that say what ids mean
	Maps      []savedMap
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
	Reset   bool // the address space is a new one
	Gone    []uint64
	Blocks  []savedBlock
	Mapped  bool // Regions are all there are
	Regions []savedBlock
	Sites   []savedSite // that the recording does not know as they are
}

type savedBlock struct {
	Address, Size, Weight, Absent uint64
	Stack                         uint32
	Born                          tick
}

type savedSite struct {
	Stack     uint32
	Phase     mem.Phase
	Allocated mem.Bytes
}

type savedSpan struct {
	Span   mem.Span `json:"span"`
	Module uint16   `json:"module"`
	Keep   bool     `json:"keep"`
	Stay   uint16   `json:"stay,omitempty"` // of a span that the program named
}

// saves says whether anybody could go on from what is saved: a program that ends when this process does leaves nothing
// to go on with.
func (r *Recorder) saves() bool {
	return !r.recovering && r.opts.Channels != "" && !r.opts.Runtime.Own
}

// save writes what changed. Where that fails, what changes is no longer kept for it, which could be without
// end; now and then all of it is tried anew.
func (r *Recorder) save(now int64) {
	f := &r.saved
	if f.broken && now < f.retry {
		return
	}
	path := filepath.Join(r.opts.Channels, savedName)
	err := f.save(r.order, path, f.broken || f.encoder == nil || f.size > max(leastRewrite, 3*f.whole))
	f.broken, f.retry = err != nil, now+retryEvery
	for _, p := range r.order {
		p.keepChanges(err == nil)
	}
	if err == nil {
		return
	}
	_ = os.Remove(path) // half of it would mislead
	_ = os.Remove(path + ".new")
	if !f.told {
		f.told = true
		r.log(0, fmt.Sprintf("the checkpoint in shared memory cannot be written (%v): should hightide be killed, the "+
			"recording ends there, "+
			"and what lines hold after that is lost", cause(err)))
	}
}

// cause is an error without the path that it is about.
func cause(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// keepChanges says whether the process notes what changes for the next save.
func (p *process) keepChanges(keep bool) {
	if p.heap != nil {
		if p.heap.saving = keep; !keep {
			p.heap.fresh, p.heap.gone = nil, nil
		}
	}
	for _, c := range p.channels {
		if c.stacks != nil {
			if c.stacks.saving = keep; !keep {
				c.stacks.fresh = nil
			}
		}
	}
}

// save appends what changed; anew: it writes all into a new file in its place.
func (f *savedFile) save(processes []*process, path string, anew bool) error {
	name, flags := path, os.O_WRONLY|os.O_APPEND
	if anew {
		name, flags = path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC
	}
	file, err := os.OpenFile(name, flags|system.NoFollow, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	if f.file == nil {
		f.file = bufio.NewWriterSize(nil, 64<<10)
	}
	f.file.Reset(file)
	if anew {
		f.encoder, f.size = gob.NewEncoder(f), 0
	}
	for _, p := range processes {
		if len(p.channels) == 0 && (anew || !p.saved) {
			continue
		}
		p.saved = len(p.channels) > 0 // once more when they are gone: it is in no phase then
		if err := f.process(p, anew); err != nil {
			return err
		}
	}
	if err := f.file.Flush(); err != nil || !anew {
		return err
	}
	f.whole = f.size
	return os.Rename(name, path)
}

// process writes the entries of one process. Its code objects come first: alone they change nothing.
func (f *savedFile) process(p *process, all bool) error {
	entry := checkpoint{Process: p.ID}
	if !p.saved {
		return f.encoder.Encode(entry)
	}
	entry.Open = p.spans.save()
	for _, c := range p.channels {
		entry.Channels = append(entry.Channels, c.save(all))
		if c.stacks == nil {
			continue
		}
		for ids := range slices.Chunk(c.stacks.unsaved(all), 500) {
			if err := f.encoder.Encode(checkpoint{File: filepath.Base(c.path), Codes: c.stacks.save(ids)}); err != nil {
				return err
			}
		}
	}
	if p.heap != nil {
		entry.Heap = p.heap.save(all)
	}
	return f.encoder.Encode(entry)
}

func (c *channel) save(all bool) savedChannel {
	c.peek(false) // so that `taken` is up to date
	s := savedChannel{File: filepath.Base(c.path), Position: c.taken, Messages: c.meanings}
	s.Drops, s.DropBytes = c.dropped.records, c.dropped.bytes
	if !all {
		s.Messages = c.meanings[c.savedMeanings:]
	}
	c.savedMeanings = len(c.meanings)
	if c.stacks != nil {
		s.Maps = c.names.save(all)
	}
	return s
}

// unsaved are the code objects learnt since the last call, or all.
func (r *stackReader) unsaved(all bool) []uint32 {
	ids := r.fresh
	if all {
		ids = slices.Sorted(maps.Keys(r.codes))
	}
	r.fresh = nil
	return ids
}

func (r *stackReader) save(ids []uint32) []savedCode {
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

func (b *liveHeap) save(all bool) *savedHeap {
	s := &savedHeap{Reset: b.reset || all, Gone: b.gone}
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
			s.Regions = append(s.Regions, savedBlock{g.start, g.size, g.weight, g.absent, g.site.Stack, g.born})
		}
	}
	for _, site := range b.changed {
		s.Sites = append(s.Sites, savedSite{site.Stack, site.Phase, site.Allocated})
	}
	b.reset, b.remapped, b.gone, b.fresh = false, false, b.gone[:0], b.fresh[:0]
	return s
}

func (b *liveHeap) saveBlock(address uint64, k block) savedBlock {
	k.saved = true
	b.blocks[address] = k
	return savedBlock{address, k.size, k.weight, k.absent, k.site.Stack, k.born}
}

func (b *openSpans) save() []byte {
	open := map[uint32][]savedSpan{}
	for stay, s := range b.user.open {
		open[s.Thread] = append(open[s.Thread], savedSpan{s.Span, s.module, s.keep, stay})
	}
	for thread, spans := range b.threads {
		for _, s := range spans {
			open[thread] = append(open[thread], savedSpan{s.Span, s.module, s.keep, 0})
		}
	}
	if len(open) == 0 {
		return nil
	}
	data, _ := json.Marshal(open) // spans hold nothing that JSON cannot
	return data
}
