package torch

import (
	"fmt"

	"hightide/internal/mem"
	"hightide/internal/pickle"
)

// Rows takes events that follow each other.
func (b *torchBuilder) Rows(d *pickle.Decoder, shape int, columns []pickle.Column) (pickle.Value, int, error) {
	return b.events(d, &b.shapes[shape], columns)
}

// event takes one that came the long way.
func (b *torchBuilder) event(d *pickle.Decoder, l *layout, values []pickle.Value) (pickle.Value, error) {
	columns := make([]pickle.Column, len(values))
	for i, v := range values {
		columns[i] = pickle.Column{uint64(v)}
		if name := l.columns[i].integer(); name != "" {
			columns[i][0] = uint64(b.number(d, v, name))
		}
	}
	if err := b.faulty("an event"); err != nil {
		return 0, err
	}
	made, _, err := b.events(d, l, columns)
	return made, err
}

// integer names the columns that hold integers and nothing else.
func (c column) integer() string {
	switch c {
	case colAddress:
		return "addr"
	case colSize:
		return "size"
	case colStream:
		return "stream"
	case colTime:
		return "time_us"
	}
	return ""
}

// rowCost is about what a row takes in bytes, with what growing the columns leaves behind.
const rowCost = 128

// events appends rows, column by column.
func (b *torchBuilder) events(d *pickle.Decoder, l *layout, columns []pickle.Column) (made pickle.Value, bad int,
	err error) {
	r := &b.rows
	n, at := len(columns[0]), b.rows.n
	if l.lacks != "" {
		return 0, 0, fmt.Errorf("an event without %s", l.lacks)
	}
	if at+n > maxEvents {
		return 0, 0, fmt.Errorf("more than %d events", maxEvents)
	}
	if err := d.Spend(rowCost * n); err != nil {
		return 0, 0, err
	}
	if at+n > r.room {
		r.grow(n, d.Offset(), b.size)
	}
	timed := false
	for k, c := range l.columns {
		col := columns[k]
		switch c {
		case colAction:
			for i, v := range col {
				r.Action[at+i] = b.action(d, pickle.Value(v))
			}
		case colAddress:
			copy(r.Address[at:], col)
		case colSize:
			for i, v := range col {
				if v > uint64(mem.MaxSize) {
					return 0, i, fmt.Errorf("an event whose size is %s", sizeText(int64(v)))
				}
				r.Size[at+i] = mem.Bytes(v)
			}
		case colStream:
			set(&r.Stream, at, r.room, col, func(v uint64) uint64 { return v })
		case colTime:
			timed = true
			set(&r.Time, at, r.room, col, func(v uint64) int64 { return int64(v) * 1000 })
		case colFrames:
			for i, v := range col {
				r.Stack[at+i] = b.stackOf(pickle.Value(v))
			}
		default:
			b.rest(d, c, col)
		}
	}
	if b.fault != nil {
		return 0, 0, b.faulty("an event")
	}
	r.untimed = r.untimed || !timed
	r.n += n
	r.provider.reach(r.n)
	if n == 1 {
		return madeEvent(at), 0, nil
	}
	return madeEvents(at, n), 0, nil
}

// rest takes what few events have, or most the same as those before.
func (b *torchBuilder) rest(d *pickle.Decoder, c column, col pickle.Column) {
	r := &b.rows
	text := func(v uint64) uint32 { return b.text(d, pickle.Value(v)) }
	switch c {
	case colPool:
		set(&r.Pool, r.n, r.room, col, func(v uint64) mem.PoolID { return b.pool(d, pickle.Value(v)) })
	case colMetadata:
		b.saw.metadata = true
		set(&r.Metadata, r.n, r.room, col, text)
	case colContext:
		b.saw.context = true
		set(&r.Context, r.n, r.room, col, func(v uint64) uint32 {
			if d.String(pickle.Value(v)) == "N/A" {
				return 0
			}
			return text(v)
		})
	case colCategory:
		set(&r.Category, r.n, r.room, col, text)
	case colInternal:
		set(&r.Internal, r.n, r.room, col, text)
	case colForward:
		set(&r.Forward, r.n, r.room, col, func(v uint64) uint32 { return b.forward(d, pickle.Value(v)) })
	}
}

// set fills a column from row at on; it comes into being with its first value that is not zero. A
// value that repeats the one before is converted once.
func set[T comparable](column *[]T, at, room int, values pickle.Column, convert func(uint64) T) {
	var zero, is T
	for i, v := range values {
		if i == 0 || v != values[i-1] {
			is = convert(v)
		}
		if *column == nil {
			if is == zero {
				continue
			}
			*column = make([]T, room)
		}
		(*column)[at+i] = is
	}
}

// sizeText is a size that cannot be. What a file has of 2^63 bytes on is read as a negative number, as far below 0.
func sizeText(size int64) string {
	if size < -int64(mem.MaxSize) {
		return "2^63 bytes or more, or as far below 0"
	}
	return fmt.Sprintf("%d bytes", size)
}
