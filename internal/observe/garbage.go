package observe

import (
	"slices"

	"hightide/internal/mem"
)

// What Python's collector frees was held by objects that refer to each other in a cycle. The agent says when it
// worked, and the heap what was freed meanwhile.

// freed is a block of the heap that went.
type freed struct {
	time  int64
	stack uint32
	bytes mem.Bytes
}

// recentFrees are those of the last collections.
type recentFrees struct{ all []freed }

const mostRecent = 1 << 14

func (f *recentFrees) add(k block, now int64) {
	if len(f.all) >= mostRecent {
		f.all = append(f.all[:0], f.all[mostRecent/2:]...)
	}
	f.all = append(f.all, freed{now, k.site.Stack, mem.Bytes(k.weight - min(k.absent, k.weight))})
}

// collection is one time that the collector worked.
type collection struct {
	from, to     int64
	objects      uint64
	rss, devices mem.Bytes // by which they fell
}

// garbage is what the collector freed in one process.
type garbage struct {
	pending        []collection // of which the heap's records may still come
	heap           []mem.Bytes  // that each freed; one of the host, one of devices
	device         []mem.Bytes
	count, objects uint64
	spent          int64 // ns
	longest        int64
	stack          uint32    // that allocated most of what the largest one freed
	most           mem.Bytes // that was of it
	told           mem.Bytes // the largest that was told
}

// settled is how long after a collection the heap's records of it have come.
const settled = int64(300e6)

func (g *garbage) collected(m *message) {
	if m.Ended < m.Began || len(g.pending) > 1000 {
		return
	}
	g.pending = append(g.pending, collection{m.Began, m.Ended, m.Count, mem.Bytes(m.RSS.Or(0)), mem.Bytes(m.Bytes.Or(0))})
}

// tellGarbage takes in collections whose frees are known, and writes what they came to where that is a quarter more
// than was written.
func (r *Recorder) tellGarbage(p *process, now int64, last bool) {
	g, more := &p.garbage, false
	for len(g.pending) > 0 && (last || now-g.pending[0].to > settled) {
		more = g.takeCollection(p.heap, g.pending[0]) || more
		g.pending = g.pending[1:]
	}
	if most := max(mostOf(g.heap), mostOf(g.device)); most >= mem.MiB && (most > g.told+g.told/4 || last && more) {
		g.told = most
		r.emit(g.event(p.ID, now))
	}
}

// takeCollection adds up one collection.
func (g *garbage) takeCollection(heap *liveHeap, c collection) bool {
	g.count, g.objects = g.count+1, g.objects+c.objects
	g.spent, g.longest = g.spent+c.to-c.from, max(g.longest, c.to-c.from)
	bytes, byStack := mem.Bytes(0), map[uint32]mem.Bytes{}
	if heap != nil {
		for _, f := range heap.recent.all {
			if f.time >= c.from && f.time <= c.to {
				bytes += f.bytes
				byStack[f.stack] += f.bytes
			}
		}
	} else {
		bytes = max(c.rss, 0)
	}
	if bytes > mostOf(g.heap) {
		g.stack, g.most = 0, 0
		for stack, of := range byStack {
			if of > g.most || of == g.most && stack < g.stack {
				g.stack, g.most = stack, of
			}
		}
	}
	g.heap, g.device = kept(g.heap, bytes), kept(g.device, max(c.devices, 0))
	return true
}

// kept adds a value, and of very many keeps the largest.
func kept(all []mem.Bytes, value mem.Bytes) []mem.Bytes {
	const most = 4096
	if len(all) >= most {
		slices.Sort(all)
		all = append(all[:0], all[most/2:]...)
	}
	return append(all, value)
}

func mostOf(all []mem.Bytes) mem.Bytes {
	if len(all) == 0 {
		return 0
	}
	return slices.Max(all)
}

// often is how many freed a quarter of the largest or more.
func often(all []mem.Bytes) (n int) {
	for _, bytes := range all {
		if bytes > 0 && bytes >= mostOf(all)/4 {
			n++
		}
	}
	return n
}

func (g *garbage) event(process uint32, now int64) mem.Event {
	return mem.Event{Time: now, Process: process, Kind: mem.EventGarbage, Bytes: mem.Some(int64(mostOf(g.heap))),
		Numbers: map[string]int64{
			"often": int64(often(g.heap)), "device_bytes": int64(mostOf(g.device)), "device_often": int64(often(g.device)),
			"collections": int64(g.count), "objects": int64(g.objects), "longest_ns": g.longest, "spent_ns": g.spent,
			"stack": int64(g.stack), "stack_bytes": int64(g.most),
		}}
}
