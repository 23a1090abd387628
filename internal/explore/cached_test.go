package explore

import (
	"testing"

	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// TestCached: at each column's point the parts are those of the segments and the blocks in them, found the slow way,
// and nowhere in a column is more cached.
func TestCached(t *testing.T) {
	for _, name := range []string{"real/h100-lm-ctx128-train-step.pickle", "real/h100-lm-ctx256-forward-bf16.pickle"} {
		e := explorerOf(testkit.Snapshot(t, name))
		c := e.Cached(0, 0, 60)
		if !c.Known || len(c.Point) < 30 || len(c.Point) > 60 {
			t.Fatalf("%s: %d columns", name, len(c.Point))
		}
		for i, p := range c.Point {
			var reserved, active, free mem.Bytes
			segments := e.segmentsAt(int(p))
			for _, g := range segments {
				used := mem.Bytes(0)
				e.eachAt(int(p), func(n int) bool {
					if a := e.AddressOf(n); a >= g.Address && a < g.Address+uint64(g.Size) {
						used += e.Bytes[n]
					}
					return true
				})
				reserved, active = reserved+g.Size, active+used
				if used == 0 {
					free += g.Size
				}
			}
			if c.Reserved[i] != reserved || c.Active[i] != active || c.Free[i] != free || c.Split[i] != reserved-active-free {
				t.Fatalf("%s at point %d: %v reserved, %v active, %v free, %v split; want %v, %v, %v", name, p, c.Reserved[i],
					c.Active[i], c.Free[i], c.Split[i], reserved, active, free)
			}
			for q := c.From + i*c.Step; q < min(c.From+(i+1)*c.Step, c.To); q += 1 + c.Step/7 {
				if m := moment(e, q, 1); m.Reserved-m.Allocated-m.Waiting > reserved-active {
					t.Fatalf("%s: at point %d is more cached than at %d", name, q, p)
				}
			}
		}
		if part := e.Cached(100, 200, 1000); len(part.Point) != 100 || part.Step != 1 || part.Point[0] != 100 {
			t.Errorf("%s: a part of %d columns of %d points", name, len(part.Point), part.Step)
		}
	}
}

// TestHeld: memory that is mapped page by page is one segment, until what lies between is given back.
func TestHeld(t *testing.T) {
	var h held
	sum := func(what string, reserved, active, free mem.Bytes, segments int) {
		t.Helper()
		if h.reserved != reserved || h.active != active || h.free != free || len(h.all) != segments {
			t.Fatalf("%s: %+v", what, h)
		}
	}
	none := func(uint64, uint64) mem.Bytes { return 0 }
	h.add(1000, 100, true)
	h.add(1200, 100, true)
	sum("two", 200, 0, 200, 2)
	h.add(1100, 100, true)
	sum("joined", 300, 0, 300, 1)
	h.use(1210, 50)
	sum("used", 300, 50, 0, 1)
	h.remove(1100, 50, func(from, to uint64) mem.Bytes {
		if from != 1150 || to != 1300 {
			t.Errorf("asked from %d to %d", from, to)
		}
		return 50
	})
	sum("parted", 250, 50, 100, 2)
	h.remove(1150, 50, none)
	sum("its begin", 200, 50, 100, 2)
	h.use(1210, -50)
	h.remove(1200, 100, none)
	h.remove(1000, 100, none)
	h.remove(5, 5, none)
	sum("nothing", 0, 0, 0, 0)
	h.add(10, 5, false)
	h.add(15, 5, false)
	sum("segments of their own", 10, 0, 10, 2)
}
