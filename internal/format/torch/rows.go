package torch

import (
	"fmt"
	"hightide/internal/mem"
	"hightide/internal/pickle"
)

// rows are the events of all devices in the order of the file; n of room rows are filled. Columns
// beyond action, address, size and stack exist once an event has something to put there.
type rows struct {
	mem.Trace
	n, room int
	untimed bool         // some event has no time
	actions []mem.Action // 1 + action, by number of its name
	began   int64        // offset in the file where the first row ended

	provider provider
}

// grow makes room for n more at least. Where the file's size is known, for half as many more as the
// rest of it will need at the density so far. Room that is never touched costs no memory, and copying
// hundreds of megabytes costs both memory and time.
func (r *rows) grow(n int, offset, size int64) {
	room := max(1024, r.n+r.n/4)
	if r.n == 0 {
		r.began = offset
	}
	if rest := size - offset; r.n >= 1024 && rest > 0 && offset > r.began {
		density := float64(r.n) / float64(offset-r.began) // rows a byte
		expected := min(float64(rest)*density*1.5, float64(rest)/16, float64(maxEvents))
		room = max(r.n+1024, r.n+int(expected)+64)
		if r.n < 16<<10 { // the density is not yet known well
			room = min(room, 4*r.n)
		}
	}
	room = max(room, r.n+n)
	r.room = room
	r.Action = widen(r.Action, room)
	r.Address = widen(r.Address, room)
	r.Size = widen(r.Size, room)
	r.Stack = widen(r.Stack, room)
	widenIf(&r.Stream, room)
	widenIf(&r.Time, room)
	widenIf(&r.Pool, room)
	widenIf(&r.Metadata, room)
	widenIf(&r.Context, room)
	widenIf(&r.Category, room)
	widenIf(&r.Internal, room)
	widenIf(&r.Forward, room)
	r.provide()
}

// widen copies a column into more room. Not by make and copy, which the compiler joins into one that
// clears, and so touches, what is left over.
func widen[T any](old []T, room int) []T {
	return append(make([]T, 0, room), old...)[:room]
}

func widenIf[T any](column *[]T, room int) {
	if *column != nil {
		*column = widen(*column, room)
	}
}

// cut takes rows [first, end) as the trace of a device.
func (r *rows) cut(device, first, end int) mem.Trace {
	t := mem.Trace{Device: device, Action: r.Action[first:end:end], Address: r.Address[first:end:end],
		Size: r.Size[first:end:end], Stream: nonzero(r.Stream, first, end), Stack: r.Stack[first:end:end]}
	if !r.untimed && r.Time != nil {
		t.Time = r.Time[first:end:end]
	}
	t.Pool = nonzero(r.Pool, first, end)
	t.Metadata, t.Context = nonzero(r.Metadata, first, end), nonzero(r.Context, first, end)
	t.Category, t.Internal = nonzero(r.Category, first, end), nonzero(r.Internal, first, end)
	t.Forward = nonzero(r.Forward, first, end)
	return t
}

// nonzero is nil where the column has nothing but zeros there.
func nonzero[T comparable](column []T, first, end int) []T {
	var zero T
	if column == nil {
		return nil
	}
	for _, v := range column[first:end] {
		if v != zero {
			return column[first:end:end]
		}
	}
	return nil
}

// trace takes the rows of one device. They lie together, in the order the file has them.
func (b *torchBuilder) trace(device int, items []pickle.Value) (mem.Trace, error) {
	first, end := 0, 0
	for i, v := range items {
		row, count := rowsOf(v)
		if i == 0 {
			first, end = row, row
		}
		if count == 0 || row != end {
			return mem.Trace{}, fmt.Errorf("entry %d is not an event, or one that occurs twice", end-first)
		}
		end = row + count
	}
	return b.rows.cut(device, first, end), nil
}
