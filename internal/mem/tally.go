package mem

// Tally sums what belongs together under one key. The zero value is empty.
type Tally[K comparable, V any] struct {
	All   []V // in the order in which their keys were first met
	index map[K]int
}

// At is the sum under a key, zero at first sight; the pointer holds until the next call.
func (t *Tally[K, V]) At(key K) *V {
	i, ok := t.index[key]
	if !ok {
		if t.index == nil {
			t.index = map[K]int{}
		}
		i = len(t.All)
		t.index[key] = i
		t.All = append(t.All, *new(V))
	}
	return &t.All[i]
}
