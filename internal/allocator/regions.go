package allocator

import "hightide/internal/mem"

// chunks are regions of memory divided into chunks, best fit, neighbours joined when free: what BFC and
// the driver's pool have in common. Regions never touch each other.
type chunks struct {
	tally
	limit mem.Bytes
	all   []chunk
	spare []int32
	free  freeList
	next  uint64 // address of the next region
	split func(chunk, wanted mem.Bytes) bool
}

type chunk struct {
	address         uint64
	size, requested mem.Bytes
	prev, next      int32
	used            bool
}

func newChunks(limit mem.Bytes, split func(chunk, wanted mem.Bytes) bool) chunks {
	return chunks{limit: limit, all: make([]chunk, 1), next: firstAddress, split: split}
}

func (c *chunks) slot() int32 {
	if n := len(c.spare) - 1; n >= 0 {
		s := c.spare[n]
		c.spare = c.spare[:n]
		return s
	}
	c.all = append(c.all, chunk{})
	return int32(len(c.all) - 1)
}

func (c *chunks) key(i int32) key { return key{uint64(c.all[i].size), c.all[i].address} }

// grow adds a region if the device has room.
func (c *chunks) grow(size mem.Bytes) bool {
	if c.limit > 0 && c.u.Reserved+size > c.limit {
		return false
	}
	i := c.slot()
	c.all[i] = chunk{address: c.next, size: size}
	c.next += uint64(size) + uint64(driverPage)
	c.free.insert(c.key(i), i)
	c.reserve(size)
	return true
}

// takeBestFit hands out the best fit, or 0.
func (c *chunks) takeBestFit(wanted, requested mem.Bytes) Handle {
	at, ok := c.free.lowerBound(key{size: uint64(wanted)})
	if !ok {
		return 0
	}
	i := c.free.at(at).block
	c.free.removeAt(at)
	if rest := c.all[i].size - wanted; rest > 0 && c.split(c.all[i].size, wanted) {
		j := c.slot()
		front := &c.all[i]
		c.all[j] = chunk{address: front.address + uint64(wanted), size: rest, prev: i, next: front.next}
		if front.next != 0 {
			c.all[front.next].prev = j
		}
		front.size, front.next = wanted, j
		c.free.insert(c.key(j), j)
	}
	c.all[i].used, c.all[i].requested = true, requested
	c.handedOut(requested, c.all[i].size)
	return Handle(i)
}

// FreeRequested counts the free.
func (c *chunks) FreeRequested(h Handle) { c.letGo(c.all[h].size) }

// FreeCompleted joins a chunk with its free neighbours.
func (c *chunks) FreeCompleted(h Handle) {
	i := int32(h)
	c.reusable(c.all[i].requested, c.all[i].size)
	c.all[i].used = false
	if next := c.all[i].next; next != 0 && !c.all[next].used {
		c.swallow(i, next)
	}
	if prev := c.all[i].prev; prev != 0 && !c.all[prev].used {
		c.free.remove(c.key(prev))
		c.joinNeighbours(prev, i)
		i = prev
	}
	c.free.insert(c.key(i), i)
}

func (c *chunks) swallow(i, next int32) {
	c.free.remove(c.key(next))
	c.joinNeighbours(i, next)
}

// joinNeighbours makes two neighbours one.
func (c *chunks) joinNeighbours(i, next int32) {
	c.all[i].size += c.all[next].size
	c.all[i].next = c.all[next].next
	if after := c.all[i].next; after != 0 {
		c.all[after].prev = i
	}
	c.spare = append(c.spare, next)
}

// trim gives back the regions that are free as a whole.
func (c *chunks) trim() {
	var whole []int32
	for at, ok := c.free.first(); ok; at, ok = c.free.next(at) {
		if i := c.free.at(at).block; c.all[i].prev == 0 && c.all[i].next == 0 {
			whole = append(whole, i)
		}
	}
	for _, i := range whole {
		c.free.remove(c.key(i))
		c.unreserve(c.all[i].size)
		c.spare = append(c.spare, i)
	}
}

// Usage is what is held.
func (c *chunks) Usage() Usage { return c.u }

// bfc is the allocator of TensorFlow and, in JAX, of XLA (tsl/framework/bfc_allocator.cc): chunks of
// multiples of 256 bytes, regions that double. It never gives a region back, and knows no streams.
type bfc struct {
	chunks
	region mem.Bytes // size of the next one
}

const (
	bfcStep  = 256
	bfcFirst = 2 * mem.MiB
	bfcWaste = 128 * mem.MiB // most of a chunk that may stay unused in a request
)

func newBFC(s Setup) Policy {
	return &bfc{newChunks(s.Limit(), func(chunk, wanted mem.Bytes) bool {
		return chunk >= 2*wanted || chunk-wanted >= bfcWaste
	}), bfcFirst}
}

// Malloc serves a request; where no chunk is large enough, the memory grows by twice the last growth.
func (b *bfc) Malloc(r Request) Handle {
	if r.Size <= 0 {
		return 0
	}
	wanted := roundUp(r.Size, bfcStep)
	if h := b.takeBestFit(wanted, r.Size); h != 0 {
		return h
	}
	if !b.extend(wanted) {
		b.u.OOMs++
		return 0
	}
	return b.takeBestFit(wanted, r.Size)
}

func (b *bfc) extend(wanted mem.Bytes) bool {
	grown := false
	for b.region < wanted {
		b.region, grown = 2*b.region, true
	}
	size := b.region
	if b.limit > 0 {
		size = min(size, (b.limit-b.u.Reserved)/bfcStep*bfcStep)
	}
	if size < wanted {
		return false
	}
	b.grow(size)
	if !grown {
		b.region *= 2
	}
	return true
}

// EmptyCache does nothing: regions stay.
func (b *bfc) EmptyCache() {}

// async is the driver's stream-ordered pool as PyTorch sets it up: nothing goes back to the device
// unless memory runs out. How the driver places blocks is not published; this is best fit in regions of
// 32 MiB.
type async struct{ chunks }

const asyncRegion = 32 * mem.MiB

func newAsync(s Setup) Policy {
	return &async{newChunks(s.Limit(), func(chunk, wanted mem.Bytes) bool { return chunk > wanted })}
}

// Malloc serves a request; a failed one trims the pool and is tried once more.
func (a *async) Malloc(r Request) Handle {
	if r.Size <= 0 {
		return 0
	}
	wanted := roundUp(r.Size, minBlock)
	if h := a.takeBestFit(wanted, r.Size); h != 0 {
		return h
	}
	if !a.grow(roundUp(wanted, asyncRegion)) {
		a.u.Retries++
		a.trim()
		if !a.grow(roundUp(wanted, asyncRegion)) {
			a.u.OOMs++
			return 0
		}
	}
	return a.takeBestFit(wanted, r.Size)
}

// EmptyCache gives unused regions back.
func (a *async) EmptyCache() { a.trim() }
