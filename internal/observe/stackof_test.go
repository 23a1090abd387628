package observe

import (
	"testing"

	"hightide/internal/shm"
)

// TestStackOfSmallObjects: a private mapping of the size that this Python asks for is for its small objects; one of
// another size, and one that processes may share, is what the line itself asked for.
func TestStackOfSmallObjects(t *testing.T) {
	run, r := told(t)
	for _, test := range []struct {
		python uint16
		origin shm.Origin
		size   uint64
		want   bool
	}{
		{0x030b, shm.OriginMmap, 1 << 20, true},
		{0x0309, shm.OriginMmap, 256 << 10, true},
		{0x030b, shm.OriginMmap, 256 << 10, false},
		{0x0309, shm.OriginMmap, 1 << 20, false},
		{0x030b, shm.OriginShared, 1 << 20, false},
		{0x030b, shm.OriginMalloc, 1 << 20, false},
	} {
		c := &channel{stacks: newStackReader(r.stacks, nil)}
		c.stacks.learn(&shm.Code{ID: 7, File: []byte("a.py"), Name: []byte("f"), FirstLine: 3, Python: test.python})
		id := r.order[0].stackOf(c, &shm.Alloc{Size: test.size, Origin: test.origin, Frames: []shm.Frame{{Where: 7}}})
		if got := run.Stacks.OfObjects(id); got != test.want {
			t.Errorf("%+v: of small objects %v", test, got)
		}
	}
}
