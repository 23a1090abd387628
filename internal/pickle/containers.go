package pickle

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// maxOpen bounds the containers that wait for their parents. Genuine files have a batch of them,
// which Python makes a thousand.
const maxOpen = 1 << 19

// pushOpen starts a container. Its slot's storage is one that an earlier container left.
func (d *Decoder) pushOpen(dict bool) error {
	var id uint32
	if n := len(d.free); n > 0 {
		id = d.free[n-1]
		d.free = d.free[:n-1]
	} else {
		if len(d.slots) == maxOpen {
			return fmt.Errorf("%w: more than %d containers are open", ErrLimit, maxOpen)
		}
		id = uint32(len(d.slots))
		d.slots = append(d.slots, slot{})
	}
	s := &d.slots[id]
	s.items, s.memo, s.depth, s.dict, s.at = s.items[:0], -1, 1, dict, len(d.stack)
	return d.push(tagged(open, uint64(id)))
}

// closed gives the value that stands for v from now on: the Builder's, if v is a container.
func (d *Decoder) closed(v Value) (Value, error) {
	if v.Tag() != open {
		return v, nil
	}
	s := &d.slots[v.Payload()]
	var made Value
	var err error
	if s.dict {
		made, err = d.build.Dict(d, s.items)
	} else {
		made, err = d.build.List(d, s.items)
	}
	if err != nil {
		return 0, err
	}
	if s.memo >= 0 && d.memo.get(uint64(s.memo)) == v {
		d.memo.set(uint64(s.memo), made)
	}
	d.release(v)
	return made, nil
}

// release gives a container's slot back. Only one Value on the stack names it: an open container is
// not duplicated, and closed before the memo gives it out.
func (d *Decoder) release(v Value) {
	s := &d.slots[v.Payload()]
	d.waiting -= int64(len(s.items))
	if s.items = s.items[:0]; cap(s.items) > 1<<16 { // do not keep the room of a giant
		s.items = nil
	}
	d.free = append(d.free, uint32(v.Payload()))
}

// finish closes a container that is asked for again before its parent has taken it, as in [x, x].
// One that is still being filled has a mark above it, and contains itself.
func (d *Decoder) finish(v Value) (Value, error) {
	at := d.slots[v.Payload()].at
	if at >= len(d.stack) || d.stack[at] != v || (at+1 < len(d.stack) && d.stack[at+1].Tag() == mark) {
		return 0, fmt.Errorf("%w: a container inside itself", ErrMalformed)
	}
	made, err := d.closed(v)
	d.stack[at] = made
	return made, err
}

// add moves values into the open container, closing those that are containers themselves.
func (d *Decoder) add(target Value, values []Value) error {
	if target.Tag() != open {
		return fmt.Errorf("%w: items for a value that takes none (or no more)", ErrMalformed)
	}
	id := target.Payload()
	depth := 1
	for i, v := range values {
		if v.Tag() == mark || v == target {
			return fmt.Errorf("%w: a mark or a container inside itself", ErrMalformed)
		}
		if v.Tag() != open {
			continue
		}
		depth = max(depth, d.slots[v.Payload()].depth+1)
		made, err := d.closed(v)
		if err != nil {
			return err
		}
		values[i] = made
	}
	if depth > d.limits.Depth {
		return fmt.Errorf("%w: more than %d containers inside each other", ErrLimit, d.limits.Depth)
	}
	s := &d.slots[id]
	before := len(s.items)
	s.takeValues(values, d.merge)
	s.depth = max(s.depth, depth)
	d.waiting += int64(len(s.items) - before)
	return nil
}

// takeValues appends values, those of a list merged with the one before where the Builder can.
func (s *slot) takeValues(values []Value, merge Merger) {
	if merge == nil || s.dict {
		s.items = append(s.items, values...)
		return
	}
	for _, v := range values {
		if n := len(s.items); n > 0 && v.Tag() == Made && s.items[n-1].Tag() == Made {
			if both, ok := merge.Merge(s.items[n-1], v); ok {
				s.items[n-1] = both
				continue
			}
		}
		s.items = append(s.items, v)
	}
}

// extend runs SETITEMS and APPENDS: everything above the mark goes into the container below it.
func (d *Decoder) extend(dict bool) error {
	n, err := d.sinceMark()
	if err != nil {
		return err
	}
	at := len(d.stack) - n - 2
	if at < 0 {
		return fmt.Errorf("%w: no container below the mark", ErrMalformed)
	}
	if err := d.fits(d.stack[at], dict, n); err != nil {
		return err
	}
	if err := d.add(d.stack[at], d.stack[at+2:]); err != nil {
		return err
	}
	d.marks = d.marks[:len(d.marks)-1]
	d.stack = d.stack[:at+1]
	if dict && d.records != nil && d.takes(d.slots[d.stack[at].Payload()].items) {
		_, err = d.finish(d.stack[at]) // now: the records after it do not wait either
	}
	return err
}

func (d *Decoder) fits(target Value, dict bool, n int) error {
	if target.Tag() != open || d.slots[target.Payload()].dict != dict {
		return fmt.Errorf("%w: items for a value that takes none (or no more)", ErrMalformed)
	}
	if dict && n%2 != 0 {
		return fmt.Errorf("%w: a key without a value", ErrMalformed)
	}
	return nil
}

// one runs SETITEM and APPEND.
func (d *Decoder) one(dict bool) error {
	n := 1
	if dict {
		n = 2
	}
	at := len(d.stack) - n - 1
	if at < 0 || (len(d.marks) > 0 && d.marks[len(d.marks)-1] >= at) {
		return fmt.Errorf("%w: the stack is empty", ErrMalformed)
	}
	if err := d.fits(d.stack[at], dict, n); err != nil {
		return err
	}
	if err := d.add(d.stack[at], d.stack[at+1:]); err != nil {
		return err
	}
	d.stack = d.stack[:at+1]
	return nil
}

// fromMark runs LIST, DICT and FROZENSET: everything above the mark becomes a container.
func (d *Decoder) fromMark(dict bool) error {
	n, err := d.sinceMark()
	if err != nil {
		return err
	}
	if dict && n%2 != 0 {
		return fmt.Errorf("%w: a key without a value", ErrMalformed)
	}
	if err := d.pushOpen(dict); err != nil {
		return err
	}
	container := d.stack[len(d.stack)-1]
	at := len(d.stack) - n - 2
	if err := d.add(container, d.stack[at+1:len(d.stack)-1]); err != nil {
		return err
	}
	d.marks = d.marks[:len(d.marks)-1]
	d.stack[at] = container
	d.slots[container.Payload()].at = at
	d.stack = d.stack[:at+1]
	return nil
}

// tuple closes the top n values into the Builder's value for a tuple. Tuples cannot grow, so they
// never wait.
func (d *Decoder) tuple(n int) error {
	at := len(d.stack) - n
	if at < 0 || (n > 0 && len(d.marks) > 0 && d.marks[len(d.marks)-1] >= at) {
		return fmt.Errorf("%w: too few values for a tuple", ErrMalformed)
	}
	for i := at; i < len(d.stack); i++ {
		made, err := d.closed(d.stack[i])
		if err != nil {
			return err
		}
		d.stack[i] = made
	}
	made, err := d.build.Tuple(d, d.stack[at:])
	if err != nil {
		return err
	}
	d.stack = d.stack[:at]
	return d.push(made)
}

// sinceMark counts the values above the last mark.
func (d *Decoder) sinceMark() (int, error) {
	if len(d.marks) == 0 {
		return 0, fmt.Errorf("%w: no mark", ErrMalformed)
	}
	return len(d.stack) - d.marks[len(d.marks)-1] - 1, nil
}

func (d *Decoder) popMark() error {
	if len(d.marks) == 0 {
		return fmt.Errorf("%w: no mark", ErrMalformed)
	}
	at := d.marks[len(d.marks)-1]
	for _, v := range d.stack[at:] {
		if v.Tag() == open {
			d.release(v)
		}
	}
	d.stack = d.stack[:at]
	d.marks = d.marks[:len(d.marks)-1]
	return nil
}

// dropBelow removes the mark under the top value.
func (d *Decoder) dropBelow() error {
	n := len(d.stack)
	d.stack[n-2] = d.stack[n-1]
	d.stack = d.stack[:n-1]
	d.marks = d.marks[:len(d.marks)-1]
	return nil
}

// unescape reads Python's raw-unicode-escape.
func unescape(line []byte) ([]byte, error) {
	out := make([]byte, 0, len(line))
	for i := 0; i < len(line); i++ {
		if line[i] != '\\' || i+1 >= len(line) || (line[i+1] != 'u' && line[i+1] != 'U') {
			out = utf8.AppendRune(out, rune(line[i])) // Latin-1
			continue
		}
		digits := 4
		if line[i+1] == 'U' {
			digits = 8
		}
		if i+2+digits > len(line) {
			return nil, fmt.Errorf("%w: an escape without its digits", ErrMalformed)
		}
		r, err := strconv.ParseUint(string(line[i+2:i+2+digits]), 16, 32)
		if err != nil {
			return nil, fmt.Errorf("%w: escape %q", ErrMalformed, line[i:i+2+digits])
		}
		out = utf8.AppendRune(out, rune(r))
		i += 1 + digits
	}
	return out, nil
}
