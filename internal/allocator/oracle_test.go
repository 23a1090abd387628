package allocator

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// oracleProgram is one line of scripts/oracle.py: what a program asked of the real allocator and what
// happened.
type oracleProgram struct {
	Seed     int               `json:"seed"`
	Torch    [2]int            `json:"torch"`
	Total    mem.Bytes         `json:"total"`
	Capacity mem.Bytes         `json:"capacity"`
	Fresh    bool              `json:"fresh"`    // in a process of its own
	Limited  bool              `json:"limited"`  // an earlier program of the process set a fraction
	Oversize [2]int64          `json:"oversize"` // what an earlier program left of two counts
	Confs    []string          `json:"confs"`
	Streams  []uint64          `json:"streams"`
	Pools    map[string][2]int `json:"pools"`
	Ops      []int64           `json:"ops"`
	Events   []uint64          `json:"events"`
	Owners   []uint64          `json:"event_pools"`
	Segments []uint64          `json:"segments"`
	Stats    map[string]int64  `json:"stats"`
}

func (o *oracleProgram) version() mem.Version {
	return mem.Version{Major: o.Torch[0], Minor: o.Torch[1]}
}

// Operations, as scripts/oracle.py numbers them.
const (
	opAlloc = iota
	opFree
	opRecord
	opEmpty
	opGate
	opConfigure
	opFraction
	opBegin
	opEnd
	opRelease
	opPeaks
	opSums
	opPool
	opDestroy
	opCapture
	opCaptured
)

// player plays a program through the model and holds every event against the record.
type player struct {
	*oracleProgram
	n        *Native
	at       int // of Events, in events
	live     map[int64]*oracleBlock
	pending  []*oracleBlock
	closed   map[int64]bool // gates of streams
	users    map[mem.PoolID]int
	scope    mem.PoolID
	capture  mem.PoolID // of the graph that is being captured
	captures int64      // on this stream
	captured bool       // there was a capture
	deferred bool       // a freed block waited for another stream
	swept    []Event    // segment_free of private pools: their order is that of a hash table
	asked    ask        // the request in hand
	failures []string
	device   *Device
}

type oracleBlock struct {
	handle  Handle
	address uint64
	stream  int64
	uses    map[int64]bool
}

// recordedAddresses is a Device whose addresses are those of the record.
type recordedAddresses struct {
	*Device
	p *player
}

func (r recordedAddresses) Malloc(size mem.Bytes) (uint64, bool) {
	_, ok := r.Device.Malloc(size)
	return r.p.upcoming(mem.ActionSegmentAlloc), ok
}

func (r recordedAddresses) Reserve(size mem.Bytes) uint64 {
	if address := r.p.upcoming(mem.ActionSegmentMap); address != 0 {
		return address
	}
	// It was reserved, but nothing could be mapped just then.
	if address := r.p.laterMap(); address != 0 {
		return address
	}
	return r.Device.Reserve(size)
}

// laterMap is the address of the next map of the stream and pool in hand that lies in no reservation
// known so far.
func (p *player) laterMap() uint64 {
	for i := p.at; i < p.count(); i++ {
		e := p.recorded(i)
		if e.Action != mem.ActionSegmentMap || e.Stream != p.asked.Stream {
			continue
		}
		known := slices.ContainsFunc(p.n.segments, func(s segment) bool {
			return s.expandable && e.Address >= s.base && e.Address < s.base+uint64(s.size)
		})
		for j := i; !known && j < p.count(); j++ {
			if a := p.recorded(j); a.Action == mem.ActionAlloc || a.Action == mem.ActionOOM {
				if (p.n.settings.Round(a.Size) <= smallLimit) == (p.asked.rounded <= smallLimit) {
					return e.Address
				}
				break
			}
		}
	}
	return 0
}

// order puts the pending blocks in the order in which the record completes them: that of a hash table.
func (p *player) order() {
	if len(p.n.pending) < 2 {
		return
	}
	when := map[uint64]int{}
	for i := p.count() - 1; i >= p.at; i-- {
		if e := p.recorded(i); e.Action == mem.ActionFreeCompleted {
			when[e.Address] = i
		}
	}
	slices.SortStableFunc(p.n.pending, func(a,
		b int32) int {
		return when[p.n.blocks[a].address] - when[p.n.blocks[b].address]
	})
}

func (p *player) recorded(i int) Event {
	e := p.Events[4*i : 4*i+4]
	return Event{mem.Action(e[0]), e[1], mem.Bytes(e[2]), e[3]}
}

func (p *player) count() int { return len(p.Events) / 4 }

// upcoming is the address of the next recorded event if it is of this kind.
func (p *player) upcoming(action mem.Action) uint64 {
	if at := p.at + len(p.swept); at < p.count() && p.recorded(at).Action == action {
		return p.recorded(at).Address
	}
	return 0
}

func (p *player) fail(format string, args ...any) {
	if len(p.failures) < 3 {
		p.failures = append(p.failures, fmt.Sprintf(format, args...))
	}
}

// observe compares an event of the model with the next one of the record.
func (p *player) observe(e Event) {
	if e.Action == mem.ActionSegmentFree && p.n.unordered {
		p.swept = append(p.swept, e)
		return
	}
	p.settle()
	if p.at >= p.count() {
		p.fail("event %d: the model has %+v, the record has ended", p.at, e)
		return
	}
	want := p.recorded(p.at)
	if e.Action == mem.ActionOOM && want.Action == mem.ActionOOM {
		want.Address = 0 // what the device had left
	}
	if e != want {
		p.fail("event %d: the model has %v %#x %d, the record %v %#x %d", p.at, mem.ActionNames[e.Action], e.Address, e.Size,
			mem.ActionNames[want.Action], want.Address, want.Size)
	}
	p.at++
}

// settle compares what private pools gave back, in any order.
func (p *player) settle() {
	if len(p.swept) == 0 {
		return
	}
	var want []Event
	for i := range p.swept {
		if p.at+i < p.count() {
			want = append(want, p.recorded(p.at+i))
		}
	}
	byAddress := func(a, b Event) int { return int(int64(a.Address) - int64(b.Address)) }
	slices.SortFunc(want, byAddress)
	slices.SortFunc(p.swept, byAddress)
	if !slices.Equal(want, p.swept) {
		p.fail("event %d: the model's private pools give back %v, the record's %v", p.at, p.swept, want)
	}
	p.at += len(p.swept)
	p.swept = nil
}

func (p *player) settings(conf string, old Settings) Settings {
	s, err := RulesOf(p.version()).Parse(conf)
	if err != nil {
		p.fail("%v", err)
	}
	if !strings.Contains(conf, "large_segment") { // such settings stay when others are changed
		s.LargeSegment = old.LargeSegment
	}
	s.ReserveBytes, s.ReserveFraction = max(s.ReserveBytes, old.ReserveBytes), max(s.ReserveFraction, old.ReserveFraction)
	s.Fraction = max(s.Fraction, old.Fraction)
	return s
}

func (p *player) play() {
	p.device = &Device{Capacity: p.Capacity, Base: 1 << 60} // beyond what is recorded
	p.n = NewNative(p.settings(p.Confs[0], Settings{}), RulesOf(p.version()), p.Total,
		recordedAddresses{p.device, p})
	if p.Limited {
		p.n.LimitFraction(1)
	}
	p.n.Stats.OversizeAllocations = Stat{Current: p.Oversize[0], Peak: p.Oversize[0]}
	p.n.Stats.OversizeSegments = Stat{Current: p.Oversize[1], Peak: p.Oversize[1]}
	p.n.Observe = p.observe
	p.live, p.closed, p.users = map[int64]*oracleBlock{}, map[int64]bool{}, map[mem.PoolID]int{}
	for i := 0; i+5 <= len(p.Ops) && len(p.failures) == 0; i += 5 {
		p.step(p.Ops[i : i+5])
		p.settle()
	}
	if len(p.failures) == 0 {
		if p.at != p.count() {
			p.fail("the record goes on with %+v", p.recorded(p.at))
		}
		p.compareState()
		p.compareStats()
	}
}

func (p *player) pool(name int64) mem.PoolID {
	id := p.Pools[strconv.FormatInt(name, 10)]
	return mem.PoolID{uint64(id[0]), uint64(id[1])}
}

func (p *player) step(op []int64) {
	switch op[0] {
	case opAlloc:
		p.alloc(op)
	case opFree:
		p.free(op[1])
	case opRecord:
		if b := p.live[op[1]]; b.stream != op[2] {
			b.uses[op[2]] = true
		}
	case opEmpty:
		p.order()
		p.n.EmptyCache()
		p.forget()
	case opGate:
		p.closed[op[1]] = op[2] == 0
	case opConfigure:
		p.n.Configure(p.settings(p.Confs[op[1]], p.n.settings))
	case opFraction:
		p.n.LimitFraction(float64(op[1]) / 1e6)
	case opBegin:
		p.scope = p.pool(op[1])
		p.use(p.scope)
	case opEnd:
		p.scope = mem.PoolID{}
	case opRelease:
		p.release(p.pool(op[1]))
	case opCapture:
		p.capture, p.captures, p.captured = p.pool(op[1]), op[2], true
		p.use(p.capture)
	case opCaptured:
		p.capture = mem.PoolID{}
	case opPeaks:
		p.n.Stats.resetPeaks()
	case opSums:
		p.n.Stats.resetAccumulated()
	case opPool:
		p.use(p.pool(op[1]))
	case opDestroy:
		p.release(p.pool(op[1]))
		p.n.EmptyPool(p.pool(op[1]))
	}
}

// use adds a user to a pool, of which there may be several: a scope, a graph, a torch.cuda.MemPool.
func (p *player) use(id mem.PoolID) {
	p.users[id]++
	p.n.UsePool(id)
}

// release removes one. PyTorch counts them, traces do not show them.
func (p *player) release(id mem.PoolID) {
	if p.users[id]--; p.users[id] == 0 {
		p.n.ReleasePool(id)
	}
}

// capturing: up to 2.12 a pool's scope counts as a capture; known of 2.6, 2.9, 2.13 and 2.15.
func (p *player) capturing() bool {
	return p.scope != (mem.PoolID{}) && p.Torch[0]*1000+p.Torch[1] < 2013
}

func (p *player) alloc(op []int64) {
	pool, capturing := p.scope, p.capturing()
	if p.capture != (mem.PoolID{}) && op[3] == p.captures {
		pool, capturing = p.capture, true
	}
	if p.captured {
		p.completeRecorded()
	} else if !capturing {
		p.completeFinished()
	}
	p.order()
	r := Request{Size: mem.Bytes(op[2]), Stream: p.Streams[op[3]], Pool: pool, Capturing: capturing}
	p.asked = ask{Request: r, rounded: p.n.settings.Round(r.Size)}
	h := p.n.Malloc(r)
	p.forget()
	if h != 0 {
		p.live[op[1]] = &oracleBlock{handle: h, address: p.n.blocks[h].address, stream: op[3], uses: map[int64]bool{}}
	}
}

// completeFinished looks which streams are done with pending blocks, each for itself, and returns those
// that none uses any more, in the order of the record.
func (p *player) completeFinished() {
	finished := 0
	for _, b := range p.pending {
		for s := range b.uses {
			if !p.closed[s] {
				delete(b.uses, s)
			}
		}
		if len(b.uses) == 0 {
			finished++
		}
	}
	for ; finished > 0; finished-- {
		i := slices.IndexFunc(p.pending, func(b *oracleBlock) bool {
			return len(b.uses) == 0 && p.upcoming(mem.ActionFreeCompleted) == b.address
		})
		if i < 0 {
			p.fail("event %d: %d blocks stay pending in the record", p.at, finished)
			return
		}
		p.n.FreeCompleted(p.pending[i].handle)
		p.pending = slices.Delete(p.pending, i, i+1)
	}
}

// completeRecorded returns what the record does next. While a graph is captured, and after, it depends on
// the streams' capture whether the allocator looks whether they are done.
func (p *player) completeRecorded() {
	for {
		address := p.upcoming(mem.ActionFreeCompleted)
		i := slices.IndexFunc(p.pending, func(b *oracleBlock) bool { return b.address == address })
		if address == 0 || i < 0 {
			return
		}
		p.n.FreeCompleted(p.pending[i].handle)
		p.pending = slices.Delete(p.pending, i, i+1)
	}
}

// forget drops pending blocks that the model completed itself while it waited for the device.
func (p *player) forget() {
	p.pending = slices.DeleteFunc(p.pending, func(b *oracleBlock) bool {
		if p.n.blocks[b.handle].state != returned {
			return false
		}
		p.n.FreeCompleted(b.handle)
		return true
	})
}

func (p *player) free(name int64) {
	b := p.live[name]
	if b == nil {
		p.fail("event %d: the record frees block %d, which the model could not allocate", p.at, name)
		return
	}
	delete(p.live, name)
	if len(b.uses) == 0 {
		p.n.Free(b.handle)
		return
	}
	p.n.FreeRequested(b.handle)
	p.pending, p.deferred = append(p.pending, b), true
}

func (p *player) compareState() {
	got, want := p.n.State(), p.segments()
	if !reflect.DeepEqual(got, want) {
		p.fail("segments at the end: the model has %+v, the record %+v", got, want)
	}
}

// segments are those at the end of the record.
func (o *oracleProgram) segments() (all []mem.Segment) {
	for n := o.Segments; len(n) > 0; {
		g := mem.Segment{Address: n[0], Size: mem.Bytes(n[1]), Stream: n[2], Large: n[3] == 1, Expandable: n[4] == 1,
			Pool: mem.PoolID{n[5], n[6]}}
		blocks := n[7]
		n = n[8:]
		at := g.Address
		for range blocks {
			g.Blocks = append(g.Blocks, mem.Block{Address: at, Size: mem.Bytes(n[0]), State: mem.BlockState(n[1]),
				Requested: mem.Bytes(n[2])})
			at += n[0]
			n = n[3:]
		}
		all = append(all, g)
	}
	return all
}

func (p *player) compareStats() {
	for name, value := range statsMap(&p.n.Stats) {
		want, ok := p.Stats[name]
		if !ok && p.Torch[1] >= 15 {
			p.fail("torch has no statistic %s", name)
		}
		if ok && value != want {
			p.fail("%s: the model has %d, torch %d", name, value, want)
		}
	}
	if p.Torch[1] >= 6 && len(p.Stats) < 100 {
		p.fail("only %d statistics in the record", len(p.Stats))
	}
}

// statsMap is the statistics by PyTorch's names, as torch.cuda.memory_stats has them.
func statsMap(s *Stats) map[string]int64 {
	out := map[string]int64{
		"num_alloc_retries": s.AllocRetries, "num_ooms": s.OOMs, "num_sync_all_streams": s.SyncAllStreams,
		"num_device_alloc": s.DeviceAllocs, "num_device_free": s.DeviceFrees, "num_oom_rejections": s.OOMRejected,
	}
	put := func(name string, stat *Stat) {
		out[name+".current"], out[name+".peak"] = stat.Current, stat.Peak
		out[name+".allocated"], out[name+".freed"] = stat.Allocated, stat.Freed
	}
	for i, kind := range [kinds]string{"all", "small_pool", "large_pool"} {
		f := &s.By[i]
		put("allocation."+kind, &f.Allocation)
		put("segment."+kind, &f.Segment)
		put("active."+kind, &f.Active)
		put("inactive_split."+kind, &f.InactiveSplit)
		put("allocated_bytes."+kind, &f.AllocatedBytes)
		put("reserved_bytes."+kind, &f.ReservedBytes)
		put("active_bytes."+kind, &f.ActiveBytes)
		put("inactive_split_bytes."+kind, &f.InactiveBytes)
		put("requested_bytes."+kind, &f.RequestedBytes)
	}
	put("oversize_allocations", &s.OversizeAllocations)
	put("oversize_segments", &s.OversizeSegments)
	return out
}
