package wire

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"hightide/internal/mem"
)

// drain reads what is there and returns the frames, the damage, and where reading stopped.
func drain(t testing.TB, tail *Tail, size int) (frames []mem.Frame, damage []mem.Damage, next int64) {
	t.Helper()
	for {
		batch, err := tail.Next(int64(size))
		if err == io.EOF {
			return frames, damage, next
		}
		if err != nil {
			t.Fatal(err)
		}
		if batch.Next <= next && len(batch.Damage) == 0 {
			t.Fatalf("from %d on to %d", next, batch.Next)
		}
		frames, damage, next = append(frames, batch.Frames...), append(damage, batch.Damage...), batch.Next
	}
}

// TestTailGrows: whatever part of a recording is there, its whole blocks are read once, and a torn one is
// waited for.
func TestTailGrows(t *testing.T) {
	data := encode(t, true, everyKind()...)
	want, _ := readAll(t, data)
	for step := 1; step < 200; step += 13 {
		tail := NewTail(bytes.NewReader(data), 0)
		var got []mem.Frame
		for size := 0; ; size = min(size+step, len(data)) {
			frames, damage, _ := drain(t, tail, size)
			if len(damage) > 0 {
				t.Fatalf("at %d bytes: %v", size, damage)
			}
			got = append(got, frames...)
			if size == len(data) {
				break
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("in steps of %d: %d frames, want %d", step, len(got), len(want))
		}
	}
}

// TestTailGoesOn: whoever stops after any batch goes on there and misses nothing.
func TestTailGoesOn(t *testing.T) {
	data := encode(t, true, everyKind()...)
	want, _ := readAll(t, data)
	got := 0
	for next := int64(0); got < len(want); {
		batch, err := NewTail(bytes.NewReader(data), next).Next(int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range batch.Frames {
			if !reflect.DeepEqual(f, want[got]) {
				t.Fatalf("frame %d is %+v, want %+v", got, f, want[got])
			}
			got++
		}
		next = batch.Next
	}
	inside := NewTail(bytes.NewReader(data), fileHeaderSize+1)
	if frames, damage, _ := drain(t, inside, len(data)); len(frames) != len(want)-1 || len(damage) != 1 {
		t.Errorf("from inside a block: %d frames and damage %v, want all but the first", len(frames), damage)
	}
}

// TestTailAfterATornBlock: it is damage once a block stands behind it, whole or not.
func TestTailAfterATornBlock(t *testing.T) {
	sound := blocks(t, 10)
	where := bounds(sound)
	data := append(bytes.Clone(sound[:where[4][1]-3]), sound[where[5][0]:]...)
	torn := where[4][1] - 3
	tail := NewTail(bytes.NewReader(data), 0)
	frames, damage, _ := drain(t, tail, torn)
	if len(frames) != 4 || len(damage) > 0 {
		t.Fatalf("before it: %d frames, damage %v", len(frames), damage)
	}
	frames, damage, _ = drain(t, tail, torn+where[5][1]-where[5][0])
	if len(frames) != 1 || len(damage) != 1 || damage[0].Offset != int64(where[4][0]) {
		t.Fatalf("behind it: %d frames, damage %v", len(frames), damage)
	}
	if frames, damage, _ = drain(t, tail, len(data)); len(frames) != 4 || len(damage) > 0 {
		t.Errorf("after it: %d frames, damage %v", len(frames), damage)
	}
}

// changing is a file that is cut back and written anew.
type changing struct{ data []byte }

func (c *changing) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(c.data).ReadAt(p, at)
}

func TestTailOfAFileThatIsCutBack(t *testing.T) {
	sound := blocks(t, 10)
	where := bounds(sound)
	file := &changing{sound}
	tail := NewTail(file, 0)
	if frames, _, _ := drain(t, tail, len(file.data)); len(frames) != 10 {
		t.Fatalf("%d frames", len(frames))
	}
	file.data = bytes.Clone(sound[:where[6][1]-5])
	if frames, damage, _ := drain(t, tail, len(file.data)); len(frames) != 0 || len(damage) != 1 {
		t.Errorf("after the cut %d frames, damage %v", len(frames), damage)
	}
	file.data = append(file.data, sound[where[6][0]:where[7][1]]...) // as who goes on writing after a repair
	frames, damage, next := drain(t, tail, len(file.data))
	if len(frames) != 2 || len(damage) != 0 || next != int64(len(file.data)) {
		t.Errorf("what was written then: %d frames, damage %v, up to %d of %d", len(frames), damage, next, len(file.data))
	}
	// A block that replaces a torn one of the same place, behind one that was read with it.
	file.data = append(file.data, sound[where[8][0]:where[9][1]-1]...)
	if frames, _, _ := drain(t, tail, len(file.data)); len(frames) != 1 {
		t.Fatalf("%d frames", len(frames))
	}
	file.data = append(file.data[:len(file.data)-(where[9][1]-1-where[9][0])], sound[where[9][0]:]...)
	if frames, damage, _ := drain(t, tail, len(file.data)); len(frames) != 1 || len(damage) > 0 {
		t.Errorf("%d frames, damage %v", len(frames), damage)
	}
}

func TestTailRefuses(t *testing.T) {
	newer := append(fileHeader(Major+1, 0), blocks(t, 2)[fileHeaderSize:]...)
	var wrong ErrNewer
	if _, err := NewTail(bytes.NewReader(newer), 100).Next(int64(len(newer))); !errors.As(err, &wrong) {
		t.Errorf("a newer recording: %v", err)
	}
	text := []byte("nothing that anybody recorded")
	if _, err := NewTail(bytes.NewReader(text), 0).Next(int64(len(text))); !errors.Is(err, ErrFormat) {
		t.Errorf("no recording: %v", err)
	}
	if _, err := NewTail(bytes.NewReader(nil), 0).Next(0); err != io.EOF {
		t.Errorf("nothing yet: %v", err)
	}
}

// FuzzTail: read as a whole, a stranger's file gives what Reader gives; read as it grows, and from any
// place, it ends.
func FuzzTail(f *testing.F) {
	f.Add(encode(f, true, everyKind()...), int64(0), uint16(40))
	f.Add(blocks(f, 4)[:100], int64(16), uint16(1))
	f.Add(append(bytes.Clone(blocks(f, 4)[:150]), blocks(f, 4)...), int64(1000), uint16(9))
	f.Fuzz(func(t *testing.T, data []byte, from int64, step uint16) {
		reader, err := NewReader(bytes.NewReader(data))
		if err == nil {
			var want []mem.Frame
			for f, err := reader.Next(); err != io.EOF; f, err = reader.Next() {
				want = append(want, f)
			}
			got, _, _ := drain(t, NewTail(bytes.NewReader(data), 0), len(data))
			if len(got) != len(want) {
				t.Fatalf("%d frames, a Reader gives %d", len(got), len(want))
			}
		}
		tail := NewTail(bytes.NewReader(data), max(0, from))
		for size := 0; size <= len(data); size += max(int(step), len(data)/64, 1) {
			for {
				if _, err := tail.Next(int64(size)); err != nil {
					break
				}
			}
		}
	})
}
