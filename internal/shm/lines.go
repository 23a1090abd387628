package shm

// Line returns the source line of an instruction. Its byte offset in co_code is lasti, and table is the
// code object's raw co_lnotab (Python 3.8, 3.9) or co_linetable (3.10 and later). And python is the
// version as in 0x030b. The result ok is false where the instruction has no line, lies beyond the table, or
// the table or version cannot be read. It is a stranger's bytes, so any input is allowed.
//
// Sources: Objects/lnotab_notes.txt of CPython 3.8 to 3.10, Objects/locations.md (in 3.13:
// InternalDocs/code_objects.md) of 3.11 and later.
func Line(python uint16, table []byte, firstLine, lasti int32) (line int, ok bool) {
	if lasti < 0 {
		return 0, false
	}
	var found int64
	switch {
	case python < 0x0308 || python > 0x030f:
		return 0, false
	case python < 0x030a:
		found, ok = lineOfNotab(table, int64(firstLine), int64(lasti)), true
	case python == 0x030a:
		found, ok = lineOfRanges(table, int64(firstLine), int64(lasti))
	default:
		found, ok = lineOfLocations(table, int64(firstLine), int64(lasti))
	}
	if !ok || found < 0 || found > 1<<31-1 {
		return 0, false
	}
	return int(found), true
}

// lineOfNotab walks pairs of (bytes of code, signed lines): a pair takes effect once its bytes are
// passed. Beyond the last pair the line stays.
func lineOfNotab(table []byte, line, lasti int64) int64 {
	address := int64(0)
	for ; len(table) >= 2; table = table[2:] {
		if address += int64(table[0]); address > lasti {
			break
		}
		line += int64(int8(table[1]))
	}
	return line
}

// lineOfRanges walks pairs of (bytes of code, signed lines). Each pair is a range of its own whose
// line is the sum so far. The value -128 marks a range without a line.
func lineOfRanges(table []byte, line, lasti int64) (int64, bool) {
	end := int64(0)
	for ; len(table) >= 2; table = table[2:] {
		delta := int8(table[1])
		if delta != -128 {
			line += int64(delta)
		}
		if end += int64(table[0]); lasti < end {
			return line, delta != -128
		}
	}
	return 0, false
}

// Codes of a location entry, bits 3 to 6 of its first byte.
const (
	locationOneLine0 = 10 // line + 0; 11: + 1; 12: + 2
	locationNoColumn = 13
	locationLong     = 14
	locationNone     = 15
)

// lineOfLocations walks entries that begin with a byte whose top bit is set: code, and length in
// 2-byte instructions less one. Columns are passed over.
func lineOfLocations(table []byte, line, lasti int64) (int64, bool) {
	end := int64(0)
	for i := 0; i < len(table); {
		first := table[i]
		i++
		code := first >> 3 & 15
		switch {
		case code == locationLong || code == locationNoColumn:
			line += signedVarint(table[i:])
		case code > locationOneLine0 && code < locationNoColumn:
			line += int64(code - locationOneLine0)
		}
		if end += 2 * (int64(first&7) + 1); lasti < end {
			return line, code != locationNone
		}
		for i < len(table) && table[i]&0x80 == 0 {
			i++
		}
	}
	return 0, false
}

// signedVarint reads 6 bits a byte, low ones first, bit 6 meaning more; the lowest bit is the sign.
func signedVarint(p []byte) int64 {
	var value uint64
	for shift, i := 0, 0; i < len(p) && shift < 36; shift, i = shift+6, i+1 {
		value |= uint64(p[i]&63) << shift
		if p[i]&64 == 0 {
			break
		}
	}
	if value&1 != 0 {
		return -int64(value >> 1)
	}
	return int64(value >> 1)
}
