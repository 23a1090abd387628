package mem

import (
	"math/rand/v2"
	"testing"
)

// TestAddressMap does the same to it and to Go's own map.
func TestAddressMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var m AddressMap
	want := map[uint64]int32{}
	for n := range int32(200_000) {
		key := rng.Uint64N(3000) * 512
		value, ok := want[key]
		switch rng.IntN(3) {
		case 0:
			m.Set(key, n)
			want[key] = n
		case 1:
			if got, found := m.Get(key); found != ok || ok && got != value {
				t.Fatalf("%d: got %d, %v for %d, want %d, %v", n, got, found, key, value, ok)
			}
		case 2:
			if got, found := m.Take(key); found != ok || ok && got != value {
				t.Fatalf("%d: took %d, %v for %d, want %d, %v", n, got, found, key, value, ok)
			}
			delete(want, key)
		}
	}
	for key, value := range want {
		if got, ok := m.Take(key); !ok || got != value {
			t.Fatalf("%d left with %d, %v, want %d", key, got, ok, value)
		}
	}
}
