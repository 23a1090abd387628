package pickle

import "encoding/binary"

// resolve makes of the rows of a run, from one on and at most so many, what they mean. It looks up what
// they refer to, in place, and makes their memo entries. It returns how many it understood; of the next
// it has changed nothing that counts.
func (d *Decoder) resolve(r *run, from, most int) (n int) {
	if from == 0 {
		d.lists.findAll(r.lists)
	}
	for row := from; row < r.n && row < from+most; row++ {
		if d.memo.count+maxPuts > uint64(d.limits.Memo) || !d.resolveRow(r, row) || !d.keepRow(r, row) {
			break
		}
		d.pushed += int64(r.ops[row])
		if n++; r.generation != d.generation {
			break // the keys may mean something else from here on
		}
	}
	return n
}

// resolveRow looks up the values of one row.
func (d *Decoder) resolveRow(r *run, row int) bool {
	for _, k := range r.shape.unresolved {
		to := &r.columns[k][row]
		var v Value
		switch payload := *to >> 4; Tag(*to & 15) {
		case entry:
			v = d.memo.get(payload)
			if tag := v.Tag(); tag == open || tag == mark {
				return false
			}
		case listed:
			l := &r.lists[payload]
			if v = Value(l.v); v == 0 {
				var ok bool
				if v, ok = d.listOf(r, l); !ok {
					return false
				}
			}
		case paired:
			made, err := d.pair(r.pairs[payload])
			if err != nil {
				return false
			}
			v = made
		case spelt:
			text := r.b[payload>>32:][:uint32(payload)]
			if len(text) > d.limits.StringBytes {
				return false
			}
			made, err := d.intern(text)
			if err != nil {
				return false
			}
			v = made
		default:
			continue
		}
		*to = uint64(v)
	}
	return true
}

func (d *Decoder) pair(integers [2]int64) (Value, error) {
	var values [2]Value
	for i, integer := range integers {
		v, err := d.intValue(integer)
		if err != nil {
			return 0, err
		}
		values[i] = v
	}
	return d.build.Tuple(d, values[:])
}

// keepRow makes the memo entries of a row, if it may make them all. That of a record which is taken alone
// waits for its Value.
func (d *Decoder) keepRow(r *run, row int) bool {
	first := int32(0)
	if row > 0 {
		first = r.until[row-1]
	}
	puts, next := r.puts[first:r.until[row]], d.memo.count
	for _, p := range puts {
		id := uint64(p.id)
		if p.next {
			id = next
		}
		if next = max(next, id+1); !(p.next && p.column == itself) && !d.mayRemember(id) {
			return false
		}
	}
	next, d.self = d.memo.count, 0
	for _, p := range puts {
		id := uint64(p.id)
		if p.next {
			id = next
		}
		next = max(next, id+1)
		switch {
		case p.column != itself:
			d.remember(id, Value(r.columns[p.column][row]))
		case r.shape.form.Rows:
			d.spend(id)
		default:
			d.self = id + 1
		}
	}
	return true
}

// listOf makes a list, or finds it where it was made before.
func (d *Decoder) listOf(r *run, l *listBytes) (Value, bool) {
	if v := d.lists.findValue(l.listKey); v != 0 {
		return v, true
	}
	raw, items := r.b[l.begin:][:l.size], d.scratch[:0]
	for i := 0; i < len(raw); {
		var v Value
		if raw[i] == 'h' {
			v = d.memo.get(uint64(raw[i+1]))
			i += 2
		} else {
			v = d.memo.get(uint64(binary.LittleEndian.Uint32(raw[i+1:])))
			i += 5
		}
		if tag := v.Tag(); tag == open || tag == mark {
			return 0, false
		}
		items = append(items, v)
	}
	d.scratch = items
	v, err := d.build.List(d, items)
	if err != nil || !d.records.Pure(v) {
		return 0, false
	}
	d.lists.add(l.listKey, v)
	return v, true
}
