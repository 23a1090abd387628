package allocator

import "hightide/internal/mem"

// privatePool is memory apart: of a captured graph, or of a torch.cuda.MemPool. The options of a MemPool (no_split,
// use_on_oom) are in no file, so pools have none here.
type privatePool struct {
	id           mem.PoolID
	used         bool // its memory is kept
	held         int  // segments, and pages mapped
	small, large *pool
}

// UsePool keeps a private pool's memory from being given back until ReleasePool.
func (n *Native) UsePool(id mem.PoolID) { n.privatePool(id).used = true }

// ReleasePool says that nobody uses a pool any more: EmptyCache and retries may give its memory back.
func (n *Native) ReleasePool(id mem.PoolID) { n.privatePool(id).used = false }

// privatePool finds a pool, or makes one that nobody uses.
func (n *Native) privatePool(id mem.PoolID) *privatePool {
	for _, p := range n.private {
		if p.id == id {
			return p
		}
	}
	p := &privatePool{id: id}
	p.small, p.large = &pool{small: true, owner: p}, &pool{owner: p}
	n.private = append(n.private, p)
	return p
}
