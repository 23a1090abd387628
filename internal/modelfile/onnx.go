package modelfile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// The numbers of the fields of ONNX's messages that tell of weights.
const (
	onnxDims = 1 // of TensorProto
	onnxType = 2
	onnxName = 8
)

// onnxTypes are those of TensorProto.DataType.
var onnxTypes = map[uint64]Type{1: F32, 2: {"U8", 1, 1}, 3: {"I8", 1, 1}, 4: {"U16", 1, 2}, 5: {"I16", 1, 2},
	6: {"I32", 1, 4}, 7: {"I64", 1, 8}, 9: {"BOOL", 1, 1}, 10: F16, 11: {"F64", 1, 8}, 12: {"U32", 1, 4},
	13: {"U64", 1, 8}, 14: {"C64", 1, 8}, 15: {"C128", 1, 16}, 16: BF16, 17: FP8, 18: {"F8_E4M3FNUZ", 1, 1},
	19: {"F8_E5M2", 1, 1}, 20: {"F8_E5M2FNUZ", 1, 1}, 21: {"U4", 2, 1}, 22: {"INT4", 2, 1}, 23: {"F4", 2, 1},
	24: {"F8_E8M0", 1, 1}}

// onnxReader walks through a file of ONNX, a protocol buffer. Weights in it are passed over, and those in files beside
// it are not opened: their shapes and types stand in it.
type onnxReader struct {
	in      *bufio.Reader
	at      int64
	keep    *budget
	tensors []Tensor
}

// tensor reads the name, shape and type of one.
func (o *onnxReader) tensor(length int64) error {
	t := Tensor{}
	err := o.message(length, func(number, length int64) (err error) {
		switch {
		case number == onnxDims:
			err = o.dims(length, &t)
		case number == onnxType && length < 0:
			var kind uint64
			if kind, err = o.varint(); err == nil {
				var known bool
				if t.Type, known = onnxTypes[kind]; !known {
					err = fmt.Errorf("a tensor of the unknown type %d", kind)
				}
			}
		case number == onnxName && length >= 0 && length <= 1<<10:
			name := make([]byte, length)
			_, err = io.ReadFull(o.in, name)
			t.Name, o.at = string(name), o.at+length
		default:
			err = o.pass(length)
		}
		return err
	})
	if err != nil {
		return err
	}
	if t.Type.Block == 0 {
		return fmt.Errorf("tensor %q has no type", short(t.Name))
	}
	n := t.Elements()
	padded := t.Shape
	if rest := n % t.Type.Block; rest > 0 && n > 0 { // the last byte is half full
		padded = []int64{n + t.Type.Block - rest}
	}
	if _, err = F64.size(t.Shape); err == nil {
		t.Bytes, err = t.Type.size(padded)
	}
	if err != nil {
		return fmt.Errorf("tensor %q: %w", short(t.Name), err)
	}
	if t.Name == "" {
		t.Name = fmt.Sprintf("constant %d", len(o.tensors))
	}
	o.tensors = append(o.tensors, t)
	return o.keep.tensor(&t)
}

// F64 is the widest type.
var F64 = Type{"F64", 1, 8}

// dims reads sizes, packed or not.
func (o *onnxReader) dims(length int64, t *Tensor) error {
	for end := o.at + length; ; {
		n, err := o.varint()
		if err != nil {
			return err
		}
		if t.Shape = append(t.Shape, int64(n)); len(t.Shape) > 16 || n > math.MaxInt64 {
			return errors.New("a tensor with sizes that no tensor has")
		}
		if length < 0 || o.at >= end {
			return nil
		}
	}
}

// message calls each for every field of a message of so many bytes: with its length, or -1 for a varint, which is to be
// read.
func (o *onnxReader) message(length int64, each func(number, length int64) error) error {
	for end := o.at + length; o.at < end; {
		key, err := o.varint()
		if err == io.EOF && length > math.MaxInt64/4 {
			return nil // the end of a file whose size is not known
		}
		if err != nil {
			return err
		}
		number, size := int64(key>>3), int64(-1)
		switch key & 7 {
		case 0:
		case 1, 5:
			if err := o.pass(map[uint64]int64{1: 8, 5: 4}[key&7]); err != nil {
				return err
			}
			continue
		case 2:
			n, err := o.varint()
			if err != nil {
				return err
			}
			if size = int64(min(n, math.MaxInt64)); size > end-o.at {
				return io.ErrUnexpectedEOF
			}
		default:
			return errors.New("no ONNX: it is no protocol buffer")
		}
		if err := each(number, size); err != nil {
			return err
		}
	}
	return nil
}

func (o *onnxReader) varint() (uint64, error) {
	n, err := binary.ReadUvarint(countedBytes{o})
	return n, err
}

// countedBytes counts what is read.
type countedBytes struct{ *onnxReader }

// ReadByte implements io.ByteReader.
func (c countedBytes) ReadByte() (byte, error) {
	b, err := c.in.ReadByte()
	if err == nil {
		c.at++
	}
	return b, err
}

// pass passes over a field that is not wanted.
func (o *onnxReader) pass(length int64) error {
	if length < 0 {
		_, err := o.varint()
		return err
	}
	for length > 0 {
		n, err := o.in.Discard(int(min(length, 1<<30)))
		o.at, length = o.at+int64(n), length-int64(n)
		if err != nil {
			return err
		}
	}
	return nil
}

// text reads a string.
func (o *onnxReader) text(length int64) (string, error) {
	if length > 1<<10 {
		return "", errors.New("a name of more than 1024 bytes")
	}
	text := make([]byte, length)
	n, err := io.ReadFull(o.in, text)
	o.at += int64(n)
	return string(text), err
}
