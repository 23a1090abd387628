// Package interned finds things by their content among millions, in eight to sixteen bytes for each beside the things
// themselves: Go's maps take several times that, and time with it, where most things occur once. It is pure.
package interned

// Index finds numbers by hash. The things numbered are kept by whoever uses it; numbers are below 2³².
type Index struct {
	entries []uint64 // open addressing, a power of two: low 32 bits of the hash, then 1 + number; 0 is free
	used    int
}

const smallest = 64

// Find returns the number with this hash that same says yes to.
func (x *Index) Find(hash uint64, same func(number uint32) bool) (uint32, bool) {
	if x.used == 0 {
		return 0, false
	}
	mask := uint64(len(x.entries) - 1)
	for i := spread(hash) & mask; x.entries[i] != 0; i = (i + 1) & mask {
		if e := x.entries[i]; uint32(e>>32) == uint32(hash) && same(uint32(e)-1) {
			return uint32(e) - 1, true
		}
	}
	return 0, false
}

// Add gives a hash a number, which it has not yet.
func (x *Index) Add(hash uint64, number uint32) {
	if x.used >= len(x.entries)/8*5 {
		x.grow()
	}
	x.insert(hash<<32 | uint64(number+1))
	x.used++
}

func (x *Index) insert(entry uint64) {
	mask := uint64(len(x.entries) - 1)
	i := spread(entry>>32) & mask
	for x.entries[i] != 0 {
		i = (i + 1) & mask
	}
	x.entries[i] = entry
}

func (x *Index) grow() {
	old := x.entries
	x.entries = make([]uint64, max(smallest, 2*len(old)))
	for _, e := range old {
		if e != 0 {
			x.insert(e)
		}
	}
}

// spread makes a place of the 32 bits of a hash that are kept.
func spread(hash uint64) uint64 { return uint64(uint32(hash)) * 0x9e3779b97f4a7c15 >> 20 }
