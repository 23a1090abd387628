package observe

import (
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"hightide/internal/mem"
	"hightide/internal/shm"
)

// resume takes up the state of a recording where it was left: by what it says, then by what its
// engine had saved beside the channels.
func (r *Recorder) resume(run *mem.Run) {
	r.info = run.Info
	for _, old := range run.Processes {
		p := r.process(procKey{old.PID, old.StartTicks})
		p.Process, p.dirty = *old, false
		maps.Copy(p.facts, old.Facts)
		maps.Copy(p.numbers, old.Numbers)
		p.steps.total = run.Totals[old.ID]
		p.steps.total.Process = old.ID
		p.lastStep = p.steps.total.Steps
		if heap := run.Heap[old.ID]; heap != nil {
			p.heap = newLiveHeap(p.ID)
			p.heap.traced = old.HeapTraced()
			p.heap.resume(heap)
		}
	}
	for _, stats := range run.Phases {
		if p := r.byID(stats.Process); p != nil {
			key := statKey{stats.Phase, stats.Name}
			p.spans.stats[key] = &stats
			p.spans.order = append(p.spans.order, key)
		}
	}
	for _, drop := range run.Drops {
		if p := r.byID(drop.Process); p != nil {
			p.dropped[drop.Place] = drop
		}
	}
	for _, s := range run.Series {
		r.columns.resume(s.SeriesDef)
	}
	r.stacks.resume(&run.Stacks)
	r.resumeSaved()
}

// resume takes over what the recording says of a heap. What is live comes from the saved blocks.
func (b *liveHeap) resume(heap *mem.Heap) {
	for stack, points := range heap.Sites {
		last := points[len(points)-1].SiteUse
		s := &site{SiteUse: last, told: last.Live, toldAlloc: last.Allocated}
		s.Live, s.Count, s.Absent = 0, 0, 0
		b.sites[stack] = s
		b.touch(s)
	}
	if p := heap.Peak; p != nil {
		b.peak, b.peakTime, b.peakStep, b.peakVar, b.peakWritten = p.Live, p.Time, p.Step, p.Variance, p.Live
	}
}

// resumeSaved reads the entries of the saved file up to the last one that is whole.
func (r *Recorder) resumeSaved() {
	file, err := os.Open(filepath.Join(r.opts.Channels, savedName))
	if err != nil {
		return
	}
	defer file.Close()
	r.left, r.leftCodes = map[string]*savedChannel{}, map[string][]savedCode{}
	decoder := gob.NewDecoder(file)
	for {
		var entry checkpoint
		if decoder.Decode(&entry) != nil {
			break
		}
		r.apply(&entry)
	}
	for _, p := range r.order {
		if p.heap != nil && p.heap.live > p.heap.peak {
			p.heap.rose(r.lastKnown, p.lastStep)
		}
	}
}

// apply takes over one entry.
func (r *Recorder) apply(entry *checkpoint) {
	if entry.Process == 0 {
		r.leftCodes[entry.File] = append(r.leftCodes[entry.File], entry.Codes...)
		return
	}
	for _, s := range entry.Channels {
		r.left[s.File] = r.left[s.File].joinLater(s)
	}
	p := r.byID(entry.Process)
	if p == nil {
		return
	}
	if entry.Heap != nil && p.heap != nil {
		p.heap.apply(entry.Heap)
	}
	clear(p.spans.threads)
	clear(p.spans.user.open)
	p.spans.resume(entry.Open)
}

// joinLater adds a later entry of the same channel.
func (s *savedChannel) joinLater(later savedChannel) *savedChannel {
	if s != nil {
		later.Messages = append(s.Messages, later.Messages...)
		if later.Maps == nil {
			later.Maps = s.Maps
		}
	}
	return &later
}

// apply takes over the blocks that were saved.
func (b *liveHeap) apply(s *savedHeap) {
	if s.Reset {
		b.restart()
	}
	for _, address := range s.Gone {
		b.forget(address, 0)
	}
	for _, k := range s.Blocks {
		b.forget(k.Address, 0)
		fresh := block{size: k.Size, weight: k.Weight, absent: k.Absent, site: b.site(k.Stack), born: k.Born}
		b.add(fresh, +1)
		b.blocks[k.Address] = fresh
	}
	if s.Mapped {
		for _, g := range b.regions {
			b.add(g.block, -1)
		}
		b.regions = b.regions[:0]
		for _, k := range s.Regions {
			fresh := block{size: k.Size, weight: k.Weight, absent: k.Absent, site: b.site(k.Stack), born: k.Born}
			b.add(fresh, +1)
			b.regions = append(b.regions, region{k.Address, k.Address + k.Size, fresh})
		}
	}
	for _, site := range s.Sites {
		at := b.site(site.Stack)
		at.Phase, at.Allocated = site.Phase, max(at.Allocated, site.Allocated)
	}
}

func (b *openSpans) resume(open []byte) {
	var threads map[uint32][]savedSpan
	if json.Unmarshal(open, &threads) != nil {
		return
	}
	for thread, spans := range threads {
		for _, s := range spans {
			open := openSpan{s.Span, s.Module, s.Keep, s.Span.DeviceStart}
			if s.Stay != 0 {
				b.user.open[s.Stay] = &open
			} else {
				b.threads[thread] = append(b.threads[thread], open)
			}
		}
	}
}

// continues gives a channel what the engine before us knew of it.
func (r *Recorder) continues(p *process, c *channel) {
	s := r.left[filepath.Base(c.path)]
	if s == nil {
		return
	}
	c.reader.Skip(s.Position)
	c.dropped = lost{s.Drops, s.DropBytes}
	for _, message := range s.Messages {
		r.message(p, c, &shm.JSON{Data: message})
	}
	if c.stacks == nil {
		return
	}
	for _, code := range r.leftCodes[filepath.Base(c.path)] {
		c.stacks.codes[code.ID] = codeOf(code)
	}
	for _, m := range s.Maps {
		c.names.maps = append(c.names.maps, mapped{m.Start, m.End, m.Offset, m.File})
	}
}

func codeOf(s savedCode) code {
	return code{file: s.File, name: s.Name, firstLine: s.FirstLine, python: s.Python, table: s.Table}
}

// Recover adds what a leftover holds to its recording and closes it; run is the recording so far,
// outDir its folder. What the channels still hold is taken as the dead engine would have taken it,
// with what that had saved of its state. The folder is deleted.
//
// The channels are a stranger's memory, so they are read once: where that ended this program, the next
// recovery closes the recording without them. A sink that failed gets them again.
func Recover(l Leftover, run *mem.Run, outDir string, sink Sink) error {
	r := newRecorder(&Options{ID: l.ID, Label: run.Info.Label, Channels: l.Dir, OutDir: outDir}, sink)
	r.recovering = true
	r.lastKnown = lastSample(run)
	r.resume(run)
	tried := filepath.Join(l.Dir, triedFile)
	if first, err := markTried(tried); err != nil {
		return fmt.Errorf("recover run %s: %w", l.ID, err)
	} else if first {
		r.scan()
	} else {
		r.log(0, "what the processes wrote after the end of their engine is lost: reading it failed once")
	}
	for _, p := range r.order {
		if len(p.channels) > 0 {
			r.drain(p, true)
			r.release(p, r.lastKnown)
		}
	}
	r.flush(true)
	if run.End == nil {
		r.emit(mem.End{Time: r.lastKnown, Reason: "recovered"})
	}
	if r.fail == nil {
		r.fail = sink.Flush()
	}
	if r.fail != nil {
		return errors.Join(fmt.Errorf("recover run %s: %w", l.ID, r.fail), os.Remove(tried))
	}
	return os.RemoveAll(l.Dir)
}

// triedFile in a folder of channels says that its channels have been read for a recovery.
const triedFile = "tried"

// markTried makes that file, and says whether it was not there.
func markTried(path string) (first bool, err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, file.Close()
}

func (r *Recorder) byID(id uint32) *process {
	if id == 0 || int(id) > len(r.order) {
		return nil
	}
	return r.order[id-1]
}

// lastSample is the newest thing that a recording knows of.
func lastSample(run *mem.Run) int64 {
	last := run.Start()
	for _, s := range run.Series {
		if n := len(s.Times); n > 0 {
			last = max(last, s.Times[n-1])
		}
	}
	for _, s := range run.Steps {
		last = max(last, s.Time)
	}
	return last
}
