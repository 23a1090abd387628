package allocator

import (
	"math"

	"hightide/internal/mem"
)

// Native is PyTorch's CUDA caching allocator on one device (c10/cuda/CUDACachingAllocator.cpp), exact
// in every address, segment, statistic and failure. It holds no more than its live blocks need.
type Native struct {
	// Observe is called with every event as it happens, in PyTorch's order; nil: nobody looks.
	Observe func(Event)
	Stats   Stats

	settings Settings
	rules    Rules
	driver   Driver
	memory   mem.Bytes // of the device; 0: not known

	maxSplit, maxNonSplitRound mem.Bytes // of settings, worked out
	limit                      mem.Bytes // memory limit
	limited                    bool
	total                      mem.Bytes // held from the device

	blocks   []block // by handle; 0 is none
	spare    []int32 // indices to use again
	segments []segment
	unused   []int32 // likewise for segments
	age      uint32  // of the newest segment
	loaded   uint32  // of the newest that was there before the trace
	made     uint64  // blocks so far
	before   uint64  // of them before the trace

	small, large *pool
	private      []*privatePool // by creation
	pending      []int32        // blocks that other streams still use, in the order of their frees
	unordered    bool           // private pools are giving back: PyTorch visits them in the order of a hash table
}

// block is a part of a segment. Its neighbours are those of its segment.
type block struct {
	address    uint64
	size       mem.Bytes
	requested  mem.Bytes
	calls      uint64 // of its pool when it became free
	made       uint64 // how many blocks there were when it was made, itself among them
	prev, next int32
	segment    int32
	state      state
}

type state uint8

const (
	gone      state = iota // the index is spare
	free                   // in its pool
	unmapped               // address space without memory, in its pool's other list
	allocated              // the program has it
	waiting                // the program freed it, other streams still use it
	returned               // completed early; its handle waits for FreeCompleted
	taken                  // out of all lists, for a moment
)

// segment is one cudaMalloc, or one reservation of address space.
type segment struct {
	base       uint64
	size       mem.Bytes
	page       mem.Bytes // of an expandable one, from its beginning on
	age        uint32
	expandable bool
	list       *streamBlocks
}

// pool serves either small or large requests, for the default owner or a private pool.
type pool struct {
	small   bool
	owner   *privatePool // nil: the default pool
	streams []*streamBlocks
	last    *streamBlocks // the stream that asked last
	calls   uint64        // of takeFree while garbage collection is on
}

// streamBlocks are a pool's blocks of one stream that the program does not hold.
type streamBlocks struct {
	stream   uint64
	pool     *pool
	free     freeList
	unmapped []int32 // by address
}

// NewNative starts with nothing held. Memory is the device's, as the framework sees it; 0: not known.
func NewNative(settings Settings, rules Rules, memory mem.Bytes, driver Driver) *Native {
	n := &Native{rules: rules, driver: driver, memory: memory, blocks: make([]block, 1, 1024)}
	n.small, n.large = &pool{small: true}, &pool{}
	n.Configure(settings)
	if settings.Fraction > 0 && settings.Fraction < 1 {
		n.LimitFraction(settings.Fraction)
	}
	return n
}

// Configure changes the settings from here on; the memory limit stays as it is.
func (n *Native) Configure(settings Settings) {
	n.settings = settings
	n.maxSplit, n.maxNonSplitRound = settings.maxSplit(), settings.maxNonSplitRound()
}

// LimitFraction is torch.cuda.set_per_process_memory_fraction. What throw_on_cudamalloc_oom compares with
// stays that of the settings.
func (n *Native) LimitFraction(fraction float64) {
	n.limit = mem.Bytes(math.Round(fraction * float64(n.memory)))
	n.limited = fraction < 1 || n.rules.FractionAlwaysLimits
}

// ask is one request on its way through the allocator.
type ask struct {
	Request
	rounded mem.Bytes
	segment mem.Bytes // what a new segment would take
	pool    *pool
	list    *streamBlocks
	// expandable says that memory for this request grows in expandable segments.
	expandable bool
}

// Malloc hands out a block for a request, or 0 if the device has no memory left even after what is
// cached was given back.
func (n *Native) Malloc(r Request) Handle {
	if r.Size <= 0 || r.Size >= hugeRequest {
		return 0
	}
	var a ask
	n.ask(&a, r)
	b, rejected := n.takeFree(&a), false
	if b == 0 {
		b, rejected = n.takeNew(&a)
	}
	if rejected {
		return 0
	}
	if b == 0 {
		n.Stats.OOMs++
		n.event(mem.ActionOOM, 0, a.rounded, a.Stream)
		return 0
	}
	return Handle(n.handOut(&a, b))
}

// ask works out what the settings make of a request.
func (n *Native) ask(a *ask, r Request) {
	a.Request, a.rounded, a.expandable = r, n.settings.Round(r.Size), n.settings.Expandable
	a.segment = n.settings.SegmentSize(a.rounded)
	a.pool = n.poolFor(r.Pool, a.rounded)
	a.list = a.pool.of(r.Stream)
}

// poolFor finds the pool that serves a request.
func (n *Native) poolFor(id mem.PoolID, rounded mem.Bytes) *pool {
	small, large := n.small, n.large
	if id != (mem.PoolID{}) {
		private := n.privatePool(id)
		small, large = private.small, private.large
	}
	if rounded <= smallLimit {
		return small
	}
	return large
}

// takeFree takes the best cached block out of its pool, or none.
func (n *Native) takeFree(a *ask) int32 {
	if n.collects() {
		a.pool.calls++
	}
	at, ok := n.findFree(a)
	if !ok {
		return 0
	}
	return n.takeBlock(a, at)
}

// takeBlock takes a block out of its pool.
func (n *Native) takeBlock(a *ask, at place) int32 {
	b := a.list.free.at(at).block
	a.list.free.removeAt(at)
	n.blocks[b].state = taken
	return b
}

// findFree finds the best cached block: the smallest that is large enough, of those the first by the
// rule for ties.
func (n *Native) findFree(a *ask) (place, bool) {
	list := &a.list.free
	at, ok := list.lowerBound(key{size: uint64(a.rounded)})
	if !ok {
		return at, false
	}
	if n.segmentOf(list.at(at).block).expandable {
		if at, ok = n.bestExpandable(a, at); !ok {
			return at, false
		}
	}
	size := n.blocks[list.at(at).block].size
	if a.rounded < n.maxSplit && size >= n.maxSplit {
		return at, false // oversize blocks are kept whole for oversize requests
	}
	if a.rounded >= n.maxSplit && size >= a.rounded+n.maxNonSplitRound {
		return at, false // and those may not waste too much
	}
	return at, true
}

// bestExpandable moves from the best fit to the block to take where segments are expandable. There, a
// hole is better than a smaller block that could grow, and without the setting such blocks are left.
func (n *Native) bestExpandable(a *ask, at place) (place, bool) {
	list := &a.list.free
	if !a.expandable {
		for ok := true; ok; at, ok = list.next(at) {
			if !n.segmentOf(list.at(at).block).expandable {
				return at, true
			}
		}
		return at, false
	}
	for {
		next, ok := list.next(at)
		if !ok || !n.segmentOf(list.at(at).block).expandable ||
			n.growable(list.at(next).block) >= n.growable(list.at(at).block) {
			return at, true
		}
		at = next
	}
}

// growable is a block's size with the address space that follows it.
func (n *Native) growable(b int32) mem.Bytes {
	block := &n.blocks[b]
	if block.next != 0 && n.blocks[block.next].state == unmapped {
		return block.size + n.blocks[block.next].size
	}
	return block.size
}

// takeNew gets a block that no cached one could serve: from the device, if need be after giving back
// more and more of what is cached. Rejected requests fail without a word in the history.
func (n *Native) takeNew(a *ask) (b int32, rejected bool) {
	if n.collects() {
		n.collectGarbage()
	}
	if b, rejected = n.allocBlock(a, false); b != 0 || rejected {
		return b, rejected
	}
	if n.releaseOversize(a) {
		if b, rejected = n.allocBlock(a, false); b != 0 || rejected {
			return b, rejected
		}
	}
	if !a.Capturing {
		n.releaseCached()
		b, rejected = n.allocBlock(a, true)
	}
	return b, rejected
}

// allocBlock takes memory from the device. Rejected means that retries are pointless.
func (n *Native) allocBlock(a *ask, retry bool) (b int32, rejected bool) {
	if retry {
		n.Stats.AllocRetries++
	}
	if n.limited && n.total+a.segment > n.limit {
		return 0, false
	}
	if n.settings.ThrowOnCudaMalloc && n.memory > 0 && n.total+a.segment > n.fractionOfMemory() {
		n.Stats.OOMRejected++
		return 0, true
	}
	if a.expandable {
		b = n.allocExpandable(a)
		if b != 0 && a.pool.owner != nil {
			a.pool.owner.held++
		}
		return b, false
	}
	address, ok := n.driver.Malloc(a.segment)
	if !ok {
		return 0, false
	}
	if a.pool.owner != nil {
		a.pool.owner.held++
	}
	b = n.newSegment(a.list, address, a.segment)
	n.total += a.segment
	n.both(a.pool, func(f *Figures) {
		f.Segment.up(1)
		f.ReservedBytes.up(int64(a.segment))
	})
	if a.segment >= n.maxSplit {
		n.Stats.OversizeSegments.up(1)
	}
	n.Stats.DeviceAllocs++
	n.event(mem.ActionSegmentAlloc, address, a.segment, a.Stream)
	return b, false
}

// fractionOfMemory is what one process may take where cudaMalloc itself is not to fail.
func (n *Native) fractionOfMemory() mem.Bytes {
	fraction := n.settings.Fraction
	if fraction <= 0 {
		fraction = 1
	}
	return mem.Bytes(fraction * float64(n.memory))
}

// newSegment makes a segment of one block that is in no list.
func (n *Native) newSegment(list *streamBlocks, address uint64, size mem.Bytes) int32 {
	n.age++
	s := segment{base: address, size: size, age: n.age, list: list}
	index := int32(len(n.segments))
	if last := len(n.unused) - 1; last >= 0 {
		index, n.unused = n.unused[last], n.unused[:last]
		n.segments[index] = s
	} else {
		n.segments = append(n.segments, s)
	}
	return n.newBlock(block{address: address, size: size, segment: index})
}

func (n *Native) dropSegment(index int32) {
	n.segments[index] = segment{}
	n.unused = append(n.unused, index)
}

// newBlock makes a block that is in no list.
func (n *Native) newBlock(b block) int32 {
	n.made++
	b.made, b.state = n.made, taken
	return n.place(b)
}

// place finds an index for a block.
func (n *Native) place(b block) int32 {
	if last := len(n.spare) - 1; last >= 0 {
		index := n.spare[last]
		n.spare = n.spare[:last]
		n.blocks[index] = b
		return index
	}
	n.blocks = append(n.blocks, b)
	return int32(len(n.blocks) - 1)
}

func (n *Native) dropBlock(b int32) {
	n.blocks[b].state = gone
	n.spare = append(n.spare, b)
}

// shouldSplit says whether the rest of a block is worth keeping apart.
func (n *Native) shouldSplit(a *ask, size mem.Bytes) bool {
	return n.settings.splits(a.rounded, size-a.rounded, a.pool.small || a.expandable)
}

// handOut gives the front of a block to the program and puts the rest back.
func (n *Native) handOut(a *ask, b int32) int32 {
	block := &n.blocks[b]
	wasSplit := block.prev != 0 || block.next != 0
	expandable := n.segments[block.segment].expandable
	var parts int64 // change of the cached parts of segments
	var cached mem.Bytes
	switch {
	case n.shouldSplit(a, block.size):
		rest := n.splitAfter(b, a.rounded)
		block = &n.blocks[b]
		if wasSplit {
			cached = -block.size
		} else {
			parts, cached = 1, n.blocks[rest].size
		}
	case wasSplit:
		parts, cached = -1, -block.size
	}
	block.state, block.requested = allocated, a.Size
	for _, f := range [2]*Figures{&n.Stats.By[AllPools], &n.Stats.By[a.pool.kind()]} {
		if !expandable {
			f.change(parts, cached)
		}
		f.handedOut(block.size, a.Size)
	}
	if block.size >= n.maxSplit {
		n.Stats.OversizeAllocations.up(1)
	}
	n.event(mem.ActionAlloc, block.address, a.Size, a.Stream)
	return b
}

// splitAfter cuts a block that is in no list; what follows the first bytes goes into the pool.
func (n *Native) splitAfter(b int32, size mem.Bytes) int32 {
	rest := n.cut(b, size)
	n.blocks[b].made, n.blocks[rest].made = n.blocks[rest].made, n.blocks[b].made // the front is the new one
	n.insertFree(rest)
	return rest
}

func (n *Native) segmentOf(b int32) *segment { return &n.segments[n.blocks[b].segment] }

// keyOf is a block's place among the free ones.
func (n *Native) keyOf(b int32) key {
	block := &n.blocks[b]
	switch n.rules.Ties {
	case ByAddress:
		return key{uint64(block.size), block.address}
	case ByBlock:
		return key{uint64(block.size), block.made}
	}
	s := &n.segments[block.segment]
	return key{uint64(block.size), uint64(s.age)<<32 | (block.address-s.base)/minBlock}
}

func (n *Native) insertFree(b int32) {
	list := n.segmentOf(b).list
	n.blocks[b].state, n.blocks[b].calls = free, list.pool.calls
	list.free.insert(n.keyOf(b), b)
}

func (n *Native) removeFree(b int32) { n.segmentOf(b).list.free.remove(n.keyOf(b)) }

// of is the part of a pool that belongs to a stream.
func (p *pool) of(stream uint64) *streamBlocks {
	if p.last != nil && p.last.stream == stream {
		return p.last
	}
	at := 0
	for at < len(p.streams) && p.streams[at].stream < stream {
		at++
	}
	if at == len(p.streams) || p.streams[at].stream != stream {
		p.streams = append(p.streams, nil)
		copy(p.streams[at+1:], p.streams[at:])
		p.streams[at] = &streamBlocks{stream: stream, pool: p}
	}
	p.last = p.streams[at]
	return p.last
}

// both updates the figures of all pools and of this kind.
func (n *Native) both(p *pool, do func(*Figures)) {
	do(&n.Stats.By[AllPools])
	do(&n.Stats.By[p.kind()])
}

func (p *pool) kind() int {
	if p.small {
		return SmallPool
	}
	return LargePool
}

func (n *Native) event(action mem.Action, address uint64, size mem.Bytes, stream uint64) {
	if n.Observe != nil {
		n.Observe(Event{action, address, size, stream})
	}
}
