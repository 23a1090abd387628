package mem

import "math/rand/v2"

// AddressMap maps addresses to small numbers, such as those of events or blocks: open addressing
// without deletion marks. A trace looks up, sets and removes an address for each of its events, for
// which Go's own map takes several times as long. The zero value is empty.
type AddressMap struct {
	slots []addressSlot // a power of two, at most half of them used
	shift uint          // 64 less the bits of an index
	odd   uint64        // drawn anew for each map, so that no file can be made whose addresses collide
	used  int
	zero  int32 // 1 + value of address 0, which has its own place
}

type addressSlot struct {
	key   uint64 // 0: free
	value int32
}

// slot is where a key belongs.
func (m *AddressMap) slot(key uint64) int {
	h := key * m.odd
	return int((h ^ h>>32) * 0x9e3779b97f4a7c15 >> m.shift)
}

// Get looks an address up.
func (m *AddressMap) Get(key uint64) (value int32, ok bool) {
	if key == 0 {
		return m.zero - 1, m.zero > 0
	}
	if m.used == 0 {
		return 0, false
	}
	for i := m.slot(key); ; i = (i + 1) & (len(m.slots) - 1) {
		switch m.slots[i].key {
		case key:
			return m.slots[i].value, true
		case 0:
			return 0, false
		}
	}
}

// Set adds an address or gives it another value, which is not negative.
func (m *AddressMap) Set(key uint64, value int32) {
	if key == 0 {
		m.zero = value + 1
		return
	}
	if m.used >= len(m.slots)/2 {
		m.grow()
	}
	for i := m.slot(key); ; i = (i + 1) & (len(m.slots) - 1) {
		if m.slots[i].key == 0 {
			m.used++
		} else if m.slots[i].key != key {
			continue
		}
		m.slots[i] = addressSlot{key, value}
		return
	}
}

// Take removes an address, moving what follows so that searches need no marks.
func (m *AddressMap) Take(key uint64) (value int32, ok bool) {
	if key == 0 {
		value, ok = m.zero-1, m.zero > 0
		m.zero = 0
		return value, ok
	}
	if m.used == 0 {
		return 0, false
	}
	mask := len(m.slots) - 1
	i := m.slot(key)
	for m.slots[i].key != key {
		if m.slots[i].key == 0 {
			return 0, false
		}
		i = (i + 1) & mask
	}
	value = m.slots[i].value
	m.used--
	for j := i; ; {
		m.slots[i].key = 0
		for {
			j = (j + 1) & mask
			if m.slots[j].key == 0 {
				return value, true
			}
			if home := m.slot(m.slots[j].key); (j-home)&mask >= (j-i)&mask {
				break
			}
		}
		m.slots[i] = m.slots[j]
		i = j
	}
}

func (m *AddressMap) grow() {
	if m.odd == 0 {
		m.odd = rand.Uint64() | 1
	}
	old := m.slots
	m.slots, m.used = make([]addressSlot, max(256, 2*len(old))), 0
	m.shift = 64
	for n := len(m.slots); n > 1; n /= 2 {
		m.shift--
	}
	for _, s := range old {
		if s.key != 0 {
			m.Set(s.key, s.value)
		}
	}
}
