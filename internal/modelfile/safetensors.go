package modelfile

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
)

// entry is what the header of a file of safetensors says of one tensor.
type entry struct {
	Type    string          `json:"dtype"`
	Shape   json.RawMessage `json:"shape"`
	Offsets [2]int64        `json:"data_offsets"`
}

// readSafetensors reads the header of a file of safetensors: 8 bytes with its length, then JSON. The tensors must lie
// one behind the other and fill the rest of the file, as the format wants it.
func readSafetensors(r io.ReaderAt, size int64, keep *budget) ([]Tensor, error) {
	length, err := headerLength(r, size)
	if err != nil {
		return nil, err
	}
	if length > maxHeader/16 {
		defer keep.alone()() // one large header at a time
	}
	section := io.NewSectionReader(r, 8, length)
	tensors, spans, err := decodeHeader(json.NewDecoder(section), keep)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(spans, func(a, b span) int { return int(min(max(a.from-b.from, -1), 1)) })
	end := int64(0)
	for _, s := range spans {
		if s.from != end {
			return nil, &Error{Offset: 8 + length + end, Err: fmt.Errorf("tensors overlap or leave a hole: one begins at %d of the data", s.from)}
		}
		end = s.to
	}
	if size >= 0 && 8+length+end != size {
		if 8+length+end > size {
			return nil, &Error{Offset: size, Err: errEnds}
		}
		return nil, &Error{Offset: 8 + length + end, Err: errors.New("the file goes on behind its last tensor")}
	}
	return tensors, nil
}

// headerLength is the number with which a file begins.
func headerLength(r io.ReaderAt, size int64) (int64, error) {
	var first [9]byte
	if n, err := r.ReadAt(first[:], 0); n < len(first) {
		if err == io.EOF {
			err = errors.New("too short to be safetensors")
		}
		return 0, &Error{Offset: 0, Err: err}
	}
	length := binary.LittleEndian.Uint64(first[:])
	switch {
	case first[8] != '{' || length < 2:
		return 0, &Error{Offset: 8, Err: errors.New("no safetensors: the header does not begin with {")}
	case size >= 0 && length > uint64(size-8):
		return 0, &Error{Offset: size, Err: errEnds}
	case length > maxHeader:
		return 0, &Error{Offset: 0, Err: fmt.Errorf("a header of %d bytes; hightide reads up to %d", length, maxHeader)}
	}
	return int64(length), nil
}

// span is where a tensor lies, in bytes from the end of the header.
type span struct{ from, to int64 }

func decodeHeader(in *json.Decoder, keep *budget) (tensors []Tensor, spans []span, err error) {
	damaged := func(err error) ([]Tensor, []span, error) {
		var own *Error
		if errors.As(err, &own) {
			return nil, nil, err
		}
		return nil, nil, &Error{Offset: 8 + in.InputOffset(), Err: inHeader(err)}
	}
	if _, err := in.Token(); err != nil {
		return damaged(err)
	}
	for in.More() {
		key, err := in.Token()
		if err != nil {
			return damaged(err)
		}
		name, _ := key.(string)
		if name == "__metadata__" {
			var texts json.RawMessage // nobody needs them
			if err := in.Decode(&texts); err != nil {
				return damaged(err)
			}
			continue
		}
		t, s, err := decodeEntry(in, name)
		if err == nil {
			err = keep.tensor(&t)
		}
		if err != nil {
			return damaged(err)
		}
		tensors, spans = append(tensors, t), append(spans, s)
	}
	if _, err := in.Token(); err != nil {
		return damaged(err)
	}
	return tensors, spans, nil
}

func decodeEntry(in *json.Decoder, name string) (Tensor, span, error) {
	var e entry
	if err := in.Decode(&e); err != nil {
		return Tensor{}, span{}, err
	}
	t := Tensor{Name: name}
	if len(e.Shape) > 256 {
		return t, span{}, fmt.Errorf("tensor %q has a shape of %d bytes", short(name), len(e.Shape))
	}
	if err := json.Unmarshal(e.Shape, &t.Shape); err != nil || t.Shape == nil {
		return t, span{}, fmt.Errorf("tensor %q has no shape", short(name))
	}
	kind, known := safetensorsTypes[e.Type]
	if !known {
		return t, span{}, fmt.Errorf("tensor %q is of an unknown type %q", short(name), short(e.Type))
	}
	t.Type = kind
	var err error
	if t.Bytes, err = kind.size(t.Shape); err != nil {
		return t, span{}, fmt.Errorf("tensor %q: %w", short(name), err)
	}
	s := span{e.Offsets[0], e.Offsets[1]}
	if s.from < 0 || s.to > math.MaxInt64/2 || s.to-s.from != int64(t.Bytes) {
		return t, s, fmt.Errorf("tensor %q has the place %d to %d, and takes %d bytes", short(name), s.from, s.to, t.Bytes)
	}
	return t, s, nil
}

// inHeader is an error of the decoder in the words of people.
func inHeader(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the header ends in the middle")
	case errors.As(err, &syntax):
		return fmt.Errorf("the header is no JSON: %w", err)
	case errors.As(err, &kind):
		return fmt.Errorf("the header has a %s where it should not", kind.Value)
	}
	return err
}
