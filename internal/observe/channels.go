package observe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/shm"
	"hightide/internal/system"
)

// channel is one mapped channel of an observed process, drained by one goroutine.
type channel struct {
	path    string
	key     procKey
	role    shm.Role
	mapping []byte
	reader  *shm.Channel
	stacks  *stackReader
	names   *nativeNames
	next    shm.Record // read and not yet taken: see drain
	taken   uint64     // the position behind the last record that was taken
	broken  error      // why nothing more is read from it
	dropped lost       // by the writer, as last written
	unread  lost       // by our reader
	refused bool       // broken was told

	meanings      [][]byte // messages that say what its ids mean
	savedMeanings int
}

// openChannel maps a file of the channel folder. Errors: shm.ErrNotReady, or why it is not a channel.
func openChannel(path string) (*channel, error) {
	f, err := os.OpenFile(path, os.O_RDWR|system.NoFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxChannel {
		return nil, fmt.Errorf("%s is not a channel", path)
	}
	if info.Size() < shm.HeaderBytes {
		return nil, shm.ErrNotReady
	}
	mapping, err := system.Map(f, int(info.Size()), true)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	reader, err := shm.Open(mapping)
	if err != nil {
		_ = system.Unmap(mapping)
		return nil, err
	}
	return &channel{path: path, key: procKey{reader.PID, reader.ProcessStart}, role: reader.Role, mapping: mapping,
		reader: reader}, nil
}

const maxChannel = 1<<30 + shm.HeaderBytes

// close unmaps the channel.
func (c *channel) close() {
	_ = system.Unmap(c.mapping)
	c.mapping, c.next = nil, nil
}

// peek returns the record that is next in line, without taking it.
func (c *channel) peek(final bool) shm.Record {
	if c.next == nil && c.broken == nil {
		c.taken = c.reader.Position()
		c.next, c.broken = c.reader.Next(final)
	}
	return c.next
}

// scan opens the channels that have appeared in the folder. It lists it only where its time says
// that it changed, or that it changed so lately that the clock's grain could hide another change.
func (r *Recorder) scan() {
	changed, err := changedAt(r.opts.Channels)
	if err != nil {
		return
	}
	if changed == r.scanned && system.WallClock()-changed > int64(50*time.Millisecond) {
		return
	}
	r.scanned = changed
	entries, err := os.ReadDir(r.opts.Channels)
	if err != nil {
		return
	}
	for _, entry := range entries {
		name := entry.Name()
		if r.files[name] || !strings.HasSuffix(name, ".ring") {
			continue
		}
		c, err := openChannel(filepath.Join(r.opts.Channels, name))
		if errors.Is(err, shm.ErrNotReady) || errors.Is(err, os.ErrNotExist) {
			r.scanned = 0 // look again
			continue
		}
		r.files[name] = true
		if err != nil {
			r.log(0, fmt.Sprintf("cannot use channel %s: %v", name, err))
			continue
		}
		r.adopt(c)
	}
}

// adopt gives a channel to its process. A second one of the same role is a new program image in
// the same process (exec): what was known of the old address space is over.
func (r *Recorder) adopt(c *channel) {
	c.key = r.keyOf(c)
	p := r.process(c.key)
	for _, old := range p.channels {
		if old.role != c.role || r.recovering {
			continue
		}
		r.drain(p, true)
		if c.role == shm.RoleAgent {
			r.spansLeft(p, r.now())
			p.spans.restart()
		} else if p.heap != nil && !p.heap.traced {
			p.heap.restart()
			p.pages.restart()
		}
	}
	if c.role == shm.RoleHeap {
		if p.heap == nil || p.heap.traced {
			p.heap = newLiveHeap(p.ID)
		}
		c.names = &nativeNames{pid: c.key.pid}
		c.stacks = newStackReader(r.stacks, c.names.location)
	}
	p.channels = append(p.channels, c)
	p.keepChanges(r.saves() && !r.saved.broken)
	r.continues(p, c)
	c.reader.Beat(os.Getpid(), r.now())
	if r.stopAt > 0 {
		c.reader.StopAtStep(r.stopAt)
	}
}

// drain takes what is in a process's channels, merged by time, so that the heap at the end of a
// step is the heap of that moment. If final: the process is dead.
func (r *Recorder) drain(p *process, final bool) {
	until := r.now()
	for {
		var first *channel
		for _, c := range p.channels {
			if next := c.peek(final); next != nil && (first == nil || next.When() < first.next.When()) {
				first = c
			}
		}
		if first == nil || (!final && first.next.When() > until) {
			break
		}
		record := first.next
		first.next = nil
		p.until(record.When())
		r.takeRecord(p, first, record)
	}
	p.until(until)
	p.spans.settle(until)
	for _, c := range p.channels {
		r.drops(p, c)
		if c.broken != nil && !c.refused {
			c.refused = true
			r.log(p.ID, fmt.Sprintf("the rest of channel %s is not read: %v", filepath.Base(c.path), c.broken))
		}
	}
}

// drainAll drains every process and gives up the channels of those that are gone.
func (r *Recorder) drainAll() {
	now := r.now()
	r.busy = false
	for _, p := range r.order {
		if len(p.channels) == 0 {
			continue
		}
		for _, c := range p.channels {
			r.busy = r.busy || c.reader.Pending() > c.reader.RingBytes/16
		}
		dead := p.gone || !p.alive()
		r.drain(p, dead)
		if dead {
			if !p.gone { // the sampler never saw it
				r.ended(p, now)
			}
			r.release(p, now)
			continue
		}
		for _, c := range p.channels {
			c.reader.Beat(r.pid, now)
			r.crowded = r.crowded || c.reader.Held() > c.reader.RingBytes/4
		}
	}
}

// release writes what the heap of a dead process was. Its channels are deleted once what they held
// is in the recording; that is hurried where there are many, each takes room in memory.
func (r *Recorder) release(p *process, now int64) {
	r.spansLeft(p, p.End.Or(now))
	r.lastHeap(p, now)
	for _, c := range p.channels {
		c.close()
		r.finished = append(r.finished, c.path)
	}
	p.channels = nil
	p.pages.close()
	r.crowded = r.crowded || len(r.finished) > mostFinished
}

// lastHeap writes what the heap of a dead process was, as far as its high-water mark is known by now.
func (r *Recorder) lastHeap(p *process, now int64) {
	p.confirm(p.End.Or(now))
	p.touchedSince(p.MaxRSS.Or(0), p.End.Or(now))
	r.useHeap(p, now, true)
}

const mostFinished = 16

// drops accounts for what a channel lost, by where.
func (r *Recorder) drops(p *process, c *channel) {
	w := c.reader.Writer()
	if c.role == shm.RoleHeap {
		p.heapFacts(w)
		if mark := min(w.PeakRSS, 1<<62); mark > 0 && !p.final {
			p.final = true
			r.reached(p, int64(mark))
		}
	}
	full := c.dropped.rise(lost{w.DroppedRecords, w.DroppedBytes})
	unread := c.unread.rise(lost{c.reader.Holes + c.reader.Malformed + c.reader.Unknown, c.reader.HoleBytes})
	if full == (lost{}) && unread == (lost{}) {
		return
	}
	drop := p.dropped["ring"]
	drop.Process, drop.Place = p.ID, "ring"
	drop.Records += full.records + unread.records
	drop.Bytes += full.bytes + unread.bytes
	p.dropped["ring"] = drop
	r.emit(drop)
}

// lost is how much of a channel was lost, since its beginning.
type lost struct{ records, bytes uint64 }

// rise takes in what is lost now, and says how much more that is. The counters are a stranger's: they may fall.
func (l *lost) rise(now lost) lost {
	before := *l
	l.records, l.bytes = max(l.records, now.records), max(l.bytes, now.bytes)
	return lost{l.records - before.records, l.bytes - before.bytes}
}

// heapFacts says what the heap library sees of this process, and how.
func (p *process) heapFacts(w shm.WriterStats) {
	switch {
	case w.HeapFlags&shm.HeapBypassed != 0:
		p.fact(mem.FactHeap, "only mappings are seen: another allocator takes the other calls")
	case w.HeapFlags&shm.HeapUnknownPython != 0:
		p.fact(mem.FactHeap, "sampled without Python lines: this Python version's frames cannot be read")
	case w.HeapFlags&shm.HeapNoPython != 0:
		p.fact(mem.FactHeap, "sampled, native stacks: no Python in it")
	default:
		p.fact(mem.FactHeap, "sampled")
	}
	if w.HeapFlags&shm.HeapFreeThreaded != 0 {
		p.fact("python_build", "free-threaded")
	}
	if w.HeapFlags&shm.HeapLate != 0 {
		p.fact("heap_late", "the library was loaded while it ran")
	}
	if mean := mem.Some(int64(w.HeapMean)); w.HeapMean > 0 && mean != p.HeapMean {
		p.HeapMean, p.dirty = mean, true
	}
	if w.HeapUntracked > 0 {
		p.number("heap_untracked", int64(w.HeapUntracked))
	}
}

// log notes something about hightide itself.
func (r *Recorder) log(process uint32, text string) {
	r.emit(mem.Event{Time: r.now(), Process: process, Kind: "log", Text: text})
}
