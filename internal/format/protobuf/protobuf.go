// Package protobuf walks the fields of protocol buffers, and trusts none of their lengths: no messages are compiled in.
package protobuf

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// ErrMalformed says that bytes are not a protocol buffer.
var ErrMalformed = errors.New("is not a well-formed protocol buffer")

// Fields calls yield with every field of a message: its number, and its varint or its bytes.
// Fixed-width fields, which no profile has, are skipped.
func Fields(message []byte, yield func(number int, value uint64, data []byte) error) error {
	whole := len(message)
	malformed := func() error {
		return fmt.Errorf("%w: byte %d of a message of %d", ErrMalformed, whole-len(message), whole)
	}
	for len(message) > 0 {
		key, n := binary.Uvarint(message)
		if n <= 0 || key>>3 == 0 || key>>3 > 1<<20 {
			return malformed()
		}
		message = message[n:]
		var value uint64
		var data []byte
		switch key & 7 {
		case 0:
			if value, n = binary.Uvarint(message); n <= 0 {
				return malformed()
			}
			message = message[n:]
		case 1, 5:
			size := map[uint64]int{1: 8, 5: 4}[key&7]
			if len(message) < size {
				return malformed()
			}
			message = message[size:]
			continue
		case 2:
			size, n := binary.Uvarint(message)
			if n <= 0 || size > uint64(len(message)-n) {
				return malformed()
			}
			data, message = message[n:n+int(size)], message[n+int(size):]
		default:
			return malformed()
		}
		if err := yield(int(key>>3), value, data); err != nil {
			return err
		}
	}
	return nil
}

// Varints reads a repeated number, packed or not.
func Varints(to []uint64, value uint64, data []byte) ([]uint64, error) {
	if data == nil {
		return append(to, value), nil
	}
	for len(data) > 0 {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, fmt.Errorf("%w: a list of numbers", ErrMalformed)
		}
		to, data = append(to, v), data[n:]
	}
	return to, nil
}
