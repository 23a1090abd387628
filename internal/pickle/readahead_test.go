package pickle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
)

// table is a tree that takes dictionaries of known keys as records: those with a size as rows.
type table struct {
	tree
	shapes [][]Value
}

// manyRows is what a table makes of rows that follow each other, until a list takes them.
type manyRows []any

func (t *table) Shape(d *Decoder, keys []Value) Form {
	form := Form{Take: true, Integers: make([]bool, len(keys))}
	for i, k := range keys {
		form.Rows = form.Rows || d.String(k) == "size"
		form.Integers[i] = d.String(k) == "addr" || d.String(k) == "size"
	}
	if !form.Rows {
		form.Integers = nil
	}
	t.shapes = append(t.shapes, append([]Value(nil), keys...))
	return form
}

func (t *table) Record(d *Decoder, shape int, values []Value) (Value, error) {
	m := map[string]any{}
	for i, v := range values {
		m[d.String(t.shapes[shape][i])] = t.value(d, v)
	}
	return t.keep(m)
}

const badSize = 0x6666

func (t *table) Rows(d *Decoder, shape int, columns []Column) (Value, int, error) {
	rows := manyRows{}
	for row := range columns[0] {
		m := map[string]any{}
		for i, key := range t.shapes[shape] {
			switch name := d.String(key); {
			case name == "size" && columns[i][row] == badSize:
				return 0, row, errors.New("a bad size")
			case name == "size" || name == "addr":
				m[name] = int64(columns[i][row])
			default:
				m[name] = t.value(d, Value(columns[i][row]))
			}
		}
		rows = append(rows, m)
	}
	v, err := t.keep(rows)
	return v, 0, err
}

func (t *table) Pure(Value) bool { return true }

func (t *table) Dict(d *Decoder, pairs []Value) (Value, error) {
	for i := 0; i < len(pairs); i += 2 {
		if d.String(pairs[i]) == "size" && d.Offset() > 0 {
			if size, _ := d.Int(pairs[i+1]); size == badSize {
				return 0, errors.New("a bad size")
			}
		}
	}
	return t.tree.Dict(d, pairs)
}

func (t *table) List(d *Decoder, items []Value) (Value, error) {
	l := []any{}
	for _, v := range items {
		if rows, ok := t.value(d, v).(manyRows); ok {
			l = append(l, rows...)
		} else {
			l = append(l, t.value(d, v))
		}
	}
	return t.keep(l)
}

func (t *table) Tuple(d *Decoder, items []Value) (Value, error) { return t.List(d, items) }

// pickler writes what Python would, with BINPUT or with MEMOIZE.
type pickler struct {
	bytes.Buffer
	old  bool
	ids  map[string]int
	next int
}

func (p *pickler) op(b ...byte) { p.Write(b) }

func (p *pickler) put() {
	switch {
	case !p.old:
		p.op(0x94)
	case p.next < 256:
		p.op('q', byte(p.next))
	default:
		p.Write(binary.LittleEndian.AppendUint32([]byte{'r'}, uint32(p.next)))
	}
	p.next++
}

func (p *pickler) get(id int) {
	if id < 256 {
		p.op('h', byte(id))
	} else {
		p.Write(binary.LittleEndian.AppendUint32([]byte{'j'}, uint32(id)))
	}
}

func (p *pickler) text(s string) {
	if id, ok := p.ids[s]; ok {
		p.get(id)
		return
	}
	p.op(0x8c, byte(len(s)))
	p.WriteString(s)
	p.ids[s] = p.next
	p.put()
}

func (p *pickler) integer(v uint64) {
	switch {
	case v < 256:
		p.op('K', byte(v))
	case v < 65536:
		p.op('M', byte(v), byte(v>>8))
	case v < 1<<31:
		p.Write(binary.LittleEndian.AppendUint32([]byte{'J'}, uint32(v)))
	default:
		p.op(0x8a, 9)
		p.Write(append(binary.LittleEndian.AppendUint64(nil, v), 0))
	}
}

func (p *pickler) list(ids []int) {
	p.op(']')
	p.put()
	if len(ids) == 0 {
		return
	}
	if len(ids) > 1 {
		p.op('(')
	}
	for _, id := range ids {
		p.get(id)
	}
	p.op(map[bool]byte{true: 'e', false: 'a'}[len(ids) > 1])
}

// rowsOf pickles a dictionary of frames and events, with all that events can hold.
func rowsOf(rng *rand.Rand, old bool, rows int) []byte {
	p := &pickler{old: old, ids: map[string]int{}}
	p.op(0x80, 4, ']')
	p.put()
	p.op('(', ']')
	p.put()
	p.op('(')
	var frames []int
	for i := range 400 {
		frames = append(frames, p.next)
		p.op('}')
		p.put()
		p.op('(')
		p.text("name")
		p.text(fmt.Sprint("function ", i))
		p.text("line")
		p.integer(uint64(i * i))
		p.op('u')
	}
	p.op('e', ']')
	p.put()
	p.op('(')
	stacks, lists := [][]int{{}}, []int{}
	for range 50 {
		stack := []int{}
		for range rng.IntN(12) {
			stack = append(stack, frames[rng.IntN(len(frames))])
		}
		stacks = append(stacks, stack)
	}
	for i := range rows {
		if i%1000 == 999 {
			p.op('e', '(')
		}
		p.op('}')
		p.put()
		p.op('(')
		p.text("action")
		p.text([]string{"alloc", "free", "snapshot"}[rng.IntN(3)])
		p.text("addr")
		p.integer(rng.Uint64() >> rng.IntN(64))
		p.text("size")
		p.integer(uint64(rng.IntN(1 << 14)))
		p.text("frames")
		if len(lists) > 0 && rng.IntN(2) == 0 {
			p.get(lists[rng.IntN(len(lists))])
		} else {
			lists = append(lists, p.next)
			p.list(stacks[rng.IntN(len(stacks))])
		}
		if i%700 > 300 { // another shape
			p.text("pool")
			p.integer(uint64(rng.IntN(3)))
			p.integer(rng.Uint64())
			p.op(0x86)
			p.put()
			p.text("note")
			p.text(fmt.Sprint("note ", rng.IntN(100)))
			p.text("done")
			p.op([]byte{'N', 0x88, 0x89}[rng.IntN(3)])
		}
		p.op('u')
	}
	p.op('e', 'e', '.')
	return p.Bytes()
}

// lender lends parts of all sizes, and spoils what is given back.
type lender struct {
	data []byte
	rng  *rand.Rand
	lent chan []byte
}

func (l *lender) Read([]byte) (int, error) { panic("it lends") }

func (l *lender) Lend(keep []byte) ([]byte, error) {
	if len(l.data) == 0 {
		return nil, io.EOF
	}
	n := min(1+l.rng.IntN(60<<10), len(l.data))
	window := append(append([]byte(nil), keep...), l.data[:n]...)
	l.data = l.data[n:]
	l.lent <- window
	return window, nil
}

func (l *lender) Return() {
	spoilt := <-l.lent
	for i := range spoilt {
		spoilt[i] = '}'
	}
}

func read(r io.Reader, b interface {
	Builder
	value(*Decoder, Value) any
}) (any, *Decoder, error) {
	v, d, err := Decode(r, b, Limits{})
	if err != nil {
		return nil, nil, err
	}
	return b.value(d, v), d, nil
}

// TestForesight: what is read ahead means what it means when it is read in order, which is what the
// machine says of it.
func TestForesight(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, old := range []bool{true, false} {
		data := rowsOf(rng, old, 6000)
		want, _, err := read(bytes.NewReader(data), &tree{})
		if err != nil {
			t.Fatal(err)
		}
		inOrder, _, err := read(bytes.NewReader(data), &table{})
		if err != nil || !reflect.DeepEqual(inOrder, want) {
			t.Fatalf("in order: %v, or not the same", err)
		}
		ahead, d, err := read(lend(data, rng), &table{})
		if err != nil || !reflect.DeepEqual(ahead, want) {
			t.Fatalf("ahead: %v, or not the same", err)
		}
		f, w := &readAhead{scan: scan{seed: d.scan.seed}}, &window{b: data}
		f.known.Store(d.in.ahead.known.Load())
		f.findRows(w)
		found, next := 0, 0
		for _, r := range w.runs[:w.found] {
			found += r.n
			if at, row := w.at(int64(r.starts[r.n/2]), &next); at != r || row != r.n/2 {
				t.Fatalf("the row at byte %d is not found again", r.starts[r.n/2])
			}
		}
		if found < 4000 { // but for the first ones, odd ones and the end
			t.Errorf("only %d of 6,000 rows were found ahead", found)
		}
	}
}

// TestForesightHostile: what is wrong is found in the same place.
func TestForesightHostile(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	whole, wrong := rowsOf(rng, false, 2500), 0
	for range 40 {
		data := bytes.Clone(whole[:len(whole)-rng.IntN(2)*rng.IntN(len(whole))])
		for range rng.IntN(4) {
			data[len(data)/3+rng.IntN(len(data)-len(data)/3)] = byte(rng.IntN(256))
		}
		want, _, wantErr := read(bytes.NewReader(data), &table{})
		got, _, err := read(lend(data, rng), &table{})
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("ahead: %v; in order: %v", err, wantErr)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatal("not the same")
		}
		if err != nil {
			wrong++
		}
	}
	if wrong < 12 {
		t.Errorf("only %d of 40 were wrong", wrong)
	}
}

func lend(data []byte, rng *rand.Rand) *lender {
	return &lender{data, rand.New(rand.NewPCG(rng.Uint64(), 5)), make(chan []byte, 8)}
}
