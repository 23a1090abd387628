package pickle

import "fmt"

// memo is what a pickle asks to be remembered, four bytes an entry, in chunks that never move.
type memo struct {
	chunks [][]uint32       // a Value of 32 bits xor mark, so that zero means unset
	wide   map[uint64]Value // of the few entries that do not fit
	count  uint64           // 1 + the largest number set, as MEMOIZE counts
	paid   uint64           // chunks that were counted
}

const (
	chunkBits = 14
	chunkMask = 1<<chunkBits - 1
	unset     = Value(mark)
)

// get returns the entry, or unset.
func (m *memo) get(id uint64) Value {
	at := id >> chunkBits
	if at >= uint64(len(m.chunks)) || m.chunks[at] == nil {
		return unset
	}
	v := Value(m.chunks[at][id&chunkMask]) ^ Value(mark)
	if v == Value(elsewhere) {
		return m.wide[id]
	}
	return v
}

// set returns whether the entry was something else before.
func (m *memo) set(id uint64, v Value) (replaced bool) {
	at := id >> chunkBits
	for uint64(len(m.chunks)) <= at {
		m.chunks = append(m.chunks, nil)
	}
	if m.chunks[at] == nil {
		m.chunks[at] = make([]uint32, 1<<chunkBits)
	}
	entry := &m.chunks[at][id&chunkMask]
	// Memory that is read before it is written costs twice: the kernel lends a page of zeros first.
	replaced = id < m.count && *entry != 0
	if v>>32 != 0 {
		if m.wide == nil {
			m.wide = map[uint64]Value{}
		}
		m.wide[id] = v
		v = Value(elsewhere)
	}
	*entry = uint32(v ^ Value(mark))
	m.count = max(m.count, id+1)
	return replaced
}

func (d *Decoder) get(id uint64, err error) error {
	if err != nil {
		return err
	}
	v := d.memo.get(id)
	switch v.Tag() {
	case mark:
		return fmt.Errorf("%w: memo entry %d is not set, or a dictionary that may occur only once", ErrMalformed, id)
	case open:
		if v, err = d.finish(v); err != nil {
			return err
		}
	}
	return d.push(v)
}

func (d *Decoder) memoize(id uint64, err error) error {
	if err != nil {
		return err
	}
	if !d.mayRemember(id) {
		return fmt.Errorf("%w: memo entry %d", ErrLimit, id)
	}
	n := len(d.stack)
	if n == 0 || d.stack[n-1].Tag() == mark {
		return fmt.Errorf("%w: nothing to remember", ErrMalformed)
	}
	v := d.stack[n-1]
	d.remember(id, v)
	if v.Tag() == open {
		if s := &d.slots[v.Payload()]; s.memo < 0 {
			s.memo = int64(id)
		} else if s.memo != int64(id) {
			return fmt.Errorf("%w: a container remembered twice", ErrMalformed)
		}
	}
	return nil
}

// mayRemember bounds the memo: it cannot outrun the values.
func (d *Decoder) mayRemember(id uint64) bool {
	return id < uint64(d.limits.Memo) && id <= uint64(d.pushed)+1<<12 && d.payMemo(id)
}

// payMemo counts what the memo takes once it has grown by a chunk.
func (d *Decoder) payMemo(id uint64) bool {
	for ; d.memo.paid<<chunkBits <= id; d.memo.paid++ {
		if d.Spend(4<<chunkBits) != nil {
			return false
		}
	}
	return true
}

// spend makes an entry one that is not set, at no cost where it never was.
func (d *Decoder) spend(id uint64) {
	if id < d.memo.count && d.memo.get(id) != unset {
		d.remember(id, unset)
	}
	d.memo.count = max(d.memo.count, id+1)
}

// remember sets an entry. A number used again gives other meaning to bytes seen before.
func (d *Decoder) remember(id uint64, v Value) {
	if d.memo.set(id, v) {
		d.forget()
	}
}
