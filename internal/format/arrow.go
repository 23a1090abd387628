package format

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	flatbuffers "github.com/google/flatbuffers/go"
)

// ArrowKind is the media type of a stream of Apache Arrow.
const ArrowKind = "application/vnd.apache.arrow.stream"

// textGroup bounds the bytes of text that wait in memory beside the rows; places in a column of text have 32 bits.
const textGroup = 64 << 20

// Numbers of Arrow's columnar format 1.5 (Schema.fbs and Message.fbs).
const (
	arrowVersion5      = 4
	arrowSchema        = 1 // headers of messages
	arrowBatch         = 3
	arrowInt           = 2 // types of fields
	arrowFloatingPoint = 3
	arrowUTF8          = 5
	arrowBool          = 6
	arrowDouble        = 2 // a precision
)

// writeArrow writes a table as a stream of Apache Arrow, with the same metadata as Parquet's.
func writeArrow(w io.Writer, from Source, table *Table) error {
	return WriteArrowRows(w, table.Columns, "hightide."+from.name(), from.about(), func(add func([]any) error) error {
		return table.Rows(from, add)
	})
}

// WriteArrowRows writes rows, which have a cell for each column, as a stream of Apache Arrow: a schema, then a record
// batch for every 65,536 rows. Every column is optional, and has its unit in its metadata where that is one for all
// rows. What the stream is about is in the schema's metadata under a key, as JSON.
func WriteArrowRows(w io.Writer, columns []Column, key string, about any,
	rows func(add func(cells []any) error) error) error {
	info, err := json.Marshal(about)
	if err != nil {
		return err
	}
	if _, err := w.Write(schemaMessage(columns, key, string(info))); err != nil {
		return err
	}
	batch := arrowRows{columns: make([]arrowColumn, len(columns))}
	for i, c := range columns {
		batch.columns[i].kind = c.Kind
	}
	err = rows(func(cells []any) error {
		if err := batch.add(cells); err != nil {
			return err
		}
		if batch.count == rowGroup || batch.text >= textGroup {
			return batch.write(w)
		}
		return nil
	})
	if err == nil && batch.count > 0 {
		err = batch.write(w)
	}
	if err != nil {
		return err
	}
	_, err = w.Write([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}) // the end of a stream
	return err
}

// arrowRows are those that wait for being written as one record batch.
type arrowRows struct {
	columns []arrowColumn
	count   int
	text    int // bytes of text in all columns
}

// arrowColumn is a column as the format lays it out.
type arrowColumn struct {
	kind   Kind
	known  []byte // a bit for each row, the lowest first: it has a value
	absent int
	ends   []byte // of Text: where each row's letters end, 32 bits; the first is 0
	data   []byte // 64 bits a row, of Boolean one, of Text the letters
}

func (r *arrowRows) add(cells []any) error {
	for i, cell := range cells {
		c := &r.columns[i]
		size := len(c.data)
		if err := c.add(r.count, cell); err != nil {
			return fmt.Errorf("column %d: %w", i, err)
		}
		if c.kind == Text {
			r.text += len(c.data) - size
		}
	}
	r.count++
	return nil
}

func (c *arrowColumn) add(row int, cell any) error {
	if row == 0 && c.kind == Text {
		c.ends = append(c.ends, 0, 0, 0, 0)
	}
	c.known = withBit(c.known, row, cell != nil)
	if cell == nil {
		c.absent++
	}
	switch c.kind {
	case Text:
		text, ok := cell.(string)
		c.data = append(c.data, strings.ToValidUTF8(text, "\uFFFD")...)
		c.ends = binary.LittleEndian.AppendUint32(c.ends, uint32(len(c.data)))
		return misfit(ok, cell)
	case Boolean:
		value, ok := cell.(bool)
		c.data = withBit(c.data, row, value)
		return misfit(ok, cell)
	case Real:
		value, ok := cell.(float64)
		c.data = binary.LittleEndian.AppendUint64(c.data, math.Float64bits(value))
		return misfit(ok, cell)
	}
	value, ok := cell.(int64)
	c.data = binary.LittleEndian.AppendUint64(c.data, uint64(value))
	return misfit(ok, cell)
}

// misfit says that a cell is none of its column's kind. An absent one is of every kind.
func misfit(ok bool, cell any) error {
	if ok || cell == nil {
		return nil
	}
	return fmt.Errorf("no Arrow form of %T", cell)
}

func withBit(bits []byte, n int, set bool) []byte {
	if n%8 == 0 {
		bits = append(bits, 0)
	}
	if set {
		bits[n/8] |= 1 << (n % 8)
	}
	return bits
}

// write writes the rows as a record batch, and forgets them.
func (r *arrowRows) write(w io.Writer) error {
	var body []byte
	var places [][2]int64 // of each buffer: where it begins in the body, and its bytes
	put := func(buffer []byte) {
		places = append(places, [2]int64{int64(len(body)), int64(len(buffer))})
		body = padded(append(body, buffer...))
	}
	for i := range r.columns {
		c := &r.columns[i]
		put(c.known)
		if c.kind == Text {
			put(c.ends)
		}
		put(c.data)
	}
	head := r.head(places, int64(len(body)))
	for i := range r.columns {
		c := &r.columns[i]
		c.known, c.absent, c.ends, c.data = c.known[:0], 0, c.ends[:0], c.data[:0]
	}
	r.count, r.text = 0, 0
	if _, err := w.Write(head); err != nil {
		return err
	}
	_, err := w.Write(body)
	return err
}

// head is the message that goes before a record batch's body.
func (r *arrowRows) head(places [][2]int64, size int64) []byte {
	b := flatbuffers.NewBuilder(1024)
	pairs := func(all [][2]int64) flatbuffers.UOffsetT {
		b.StartVector(16, len(all), 8)
		for i := range all { // from the last to the first, and so within each
			pair := all[len(all)-1-i]
			b.Prep(8, 16)
			b.PrependInt64(pair[1])
			b.PrependInt64(pair[0])
		}
		return b.EndVector(len(all))
	}
	nodes := make([][2]int64, len(r.columns)) // of each column: rows, and how many of them are absent
	for i, c := range r.columns {
		nodes[i] = [2]int64{int64(r.count), int64(c.absent)}
	}
	buffers, fields := pairs(places), pairs(nodes)
	b.StartObject(5)
	b.PrependInt64Slot(0, int64(r.count), 0)
	b.PrependUOffsetTSlot(1, fields, 0)
	b.PrependUOffsetTSlot(2, buffers, 0)
	return arrowMessage(b, arrowBatch, b.EndObject(), size)
}

// schemaMessage is the message that a stream begins with.
func schemaMessage(columns []Column, key, about string) []byte {
	b := flatbuffers.NewBuilder(4096)
	fields := make([]flatbuffers.UOffsetT, len(columns))
	for i, c := range columns {
		fields[i] = arrowField(b, c)
	}
	all, metadata := offsets(b, fields), arrowMetadata(b, key, about)
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, all, 0)
	b.PrependUOffsetTSlot(2, metadata, 0)
	return arrowMessage(b, arrowSchema, b.EndObject(), 0)
}

func arrowField(b *flatbuffers.Builder, c Column) flatbuffers.UOffsetT {
	var kind byte
	switch c.Kind {
	case Text:
		kind = arrowUTF8
		b.StartObject(0)
	case Boolean:
		kind = arrowBool
		b.StartObject(0)
	case Real:
		kind = arrowFloatingPoint
		b.StartObject(1)
		b.PrependInt16Slot(0, arrowDouble, 0)
	default:
		kind = arrowInt
		b.StartObject(2)
		b.PrependInt32Slot(0, 64, 0)
		b.PrependBoolSlot(1, true, false) // signed
	}
	of := b.EndObject()
	var metadata flatbuffers.UOffsetT
	if unit := c.Unit(); unit != "" {
		metadata = arrowMetadata(b, "unit", unit)
	}
	name, children := b.CreateString(c.Name), offsets(b, nil)
	b.StartObject(7)
	b.PrependUOffsetTSlot(0, name, 0)
	b.PrependBoolSlot(1, true, false) // may be absent
	b.PrependByteSlot(2, kind, 0)
	b.PrependUOffsetTSlot(3, of, 0)
	b.PrependUOffsetTSlot(5, children, 0)
	b.PrependUOffsetTSlot(6, metadata, 0)
	return b.EndObject()
}

// arrowMetadata is a list of one key and its value.
func arrowMetadata(b *flatbuffers.Builder, key, value string) flatbuffers.UOffsetT {
	k, v := b.CreateString(key), b.CreateString(value)
	b.StartObject(2)
	b.PrependUOffsetTSlot(0, k, 0)
	b.PrependUOffsetTSlot(1, v, 0)
	return offsets(b, []flatbuffers.UOffsetT{b.EndObject()})
}

func offsets(b *flatbuffers.Builder, of []flatbuffers.UOffsetT) flatbuffers.UOffsetT {
	b.StartVector(4, len(of), 4)
	for i := range of {
		b.PrependUOffsetT(of[len(of)-1-i])
	}
	return b.EndVector(len(of))
}

// arrowMessage is a header with what goes before it: a mark and its own size.
func arrowMessage(b *flatbuffers.Builder, kind byte, header flatbuffers.UOffsetT, body int64) []byte {
	b.StartObject(5)
	b.PrependInt16Slot(0, arrowVersion5, 0)
	b.PrependByteSlot(1, kind, 0)
	b.PrependUOffsetTSlot(2, header, 0)
	b.PrependInt64Slot(3, body, 0)
	b.Finish(b.EndObject())
	message := padded(b.FinishedBytes())
	head := binary.LittleEndian.AppendUint32([]byte{0xff, 0xff, 0xff, 0xff}, uint32(len(message)))
	return append(head, message...)
}

// padded begins what comes next at a multiple of eight.
func padded(b []byte) []byte { return append(b, make([]byte, -len(b)&7)...) }
