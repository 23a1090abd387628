package allocator

import "hightide/internal/mem"

// privatePool is memory apart: of a captured graph, or of a torch.cuda.MemPool.
type privatePool struct {
	id           mem.PoolID
	users        int // while there are any, its memory is kept
	held         int // segments, and pages mapped
	small, large *pool

	noSplit bool // blocks are handed out whole
}

// PoolOptions are those of a torch.cuda.MemPool, but for an allocator of its own.
type PoolOptions struct {
	NoSplit  bool
	UseOnOOM bool // serves the default pool before it gives up
}

// KeepPool makes a private pool or adds a user to it; its memory is not given back before ReleasePool
// was called as often.
func (n *Native) KeepPool(id mem.PoolID, options PoolOptions) {
	p := n.privatePool(id)
	p.users++
	p.noSplit = p.noSplit || options.NoSplit
	if options.UseOnOOM {
		n.fallback.add(p)
	}
}

// usePool gives a pool that has no user one.
func (n *Native) usePool(id mem.PoolID) {
	if p := n.privatePool(id); p.users == 0 {
		p.users = 1
	}
}

// ReleasePool removes a user; without any, EmptyCache and retries may give the pool's memory back.
func (n *Native) ReleasePool(id mem.PoolID) {
	for _, p := range n.private {
		if p.id != id || p.users == 0 {
			continue
		}
		if p.users--; p.users == 0 {
			n.fallback.remove(p)
		}
	}
}

// privatePool finds a pool, or makes one without users.
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

// takeFallback looks for a cached block in the pools that may serve the default one.
func (n *Native) takeFallback(a *ask) int32 {
	if a.pool.owner != nil {
		return 0
	}
	for _, slot := range n.fallback.slots {
		p := slot.pool
		if p == nil {
			continue
		}
		own := *a
		own.expandable = a.expandable && n.rules.FallbackLast // later ones look at whole segments only
		own.pool = p.large
		if a.pool.small {
			own.pool = p.small
		}
		own.list = own.pool.of(a.Stream)
		if b := n.takeFree(&own); b != 0 {
			*a = own
			return b
		}
	}
	return 0
}
