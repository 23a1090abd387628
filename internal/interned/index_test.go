package interned

import (
	"strconv"
	"testing"
)

// TestIndex: each thing has its own number, also where hashes are equal or nearly.
func TestIndex(t *testing.T) {
	for name, hash := range map[string]func(i int) uint64{
		"equal": func(int) uint64 { return 7 }, "low bits alone": func(i int) uint64 { return uint64(i) << 36 },
		"in turn": func(i int) uint64 { return uint64(i) },
	} {
		var x Index
		var things []string
		for i := range 3000 {
			thing := strconv.Itoa(i)
			same := func(n uint32) bool { return things[n] == thing }
			if n, ok := x.Find(hash(i), same); ok {
				t.Fatalf("%s: %q is found as %q before it is there", name, thing, things[n])
			}
			x.Add(hash(i), uint32(len(things)))
			things = append(things, thing)
			if n, ok := x.Find(hash(i/2), func(n uint32) bool { return things[n] == strconv.Itoa(i/2) }); !ok || n != uint32(i/2) {
				t.Fatalf("%s: %d is %d, %v after %d", name, i/2, n, ok, i)
			}
		}
	}
}
