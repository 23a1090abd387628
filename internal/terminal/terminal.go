// Package terminal counts the rows of what a program wrote to a terminal, so that a part of a long output can be
// shown without reading what is before it.
//
//	bytes ──▶ Index ──▶ blocks: where each begins, in which row and in which colours
//
// Rows are those of a screen without end. A line feed goes on to the next, and a program that goes back up, as
// displays of progress do, writes over rows that it has. The page draws rows in the same way. What either knows of a
// sequence, the other must.
package terminal

import (
	"bytes"
	"unicode/utf8"
)

const (
	// BlockBytes is about how many bytes a block has: it ends at the end of a line, where there is one soon.
	BlockBytes = 256 << 10
	soon       = 64 << 10
	// Tallest is how far above its lowest row a program can go back, as on the tallest screen.
	Tallest = 200

	mostStyle    = 256  // bytes of sequences that set colours
	mostSequence = 4096 // bytes of one sequence that are looked at
)

// Block is a part of the output.
type Block struct {
	At    int64  // where it begins, in bytes
	Row   int64  // of the cursor there
	Low   int64  // the first row that it writes to
	High  int64  // the last row there is at its end
	Style string // the sequences that set the colours it begins with
}

// Index is what is known of an output so far. The zero value is that of an empty one.
type Index struct {
	Size   int64 // bytes that were written
	Blocks []Block

	row, high, page, saved int64 // page: where the screen was cleared last, 0: never
	state                  byte
	sequence               []byte
	style                  []byte
}

// States between two bytes: text, or within a sequence.
const (
	inText byte = iota
	inEscape
	inBetween
	inCSI
	inString
	inStringEscape
)

// Rows is how many rows there are.
func (x *Index) Rows() int64 {
	if x.Size == 0 {
		return 0
	}
	return x.high + 1
}

// Write takes in more of the output. It never fails.
func (x *Index) Write(p []byte) (int, error) {
	n := len(p)
	if len(x.Blocks) == 0 && n > 0 {
		x.beginBlock()
	}
	for len(p) > 0 {
		if x.state != inText {
			x.sequenceByte(p[0])
			x.Size++
			p = p[1:]
			continue
		}
		escape := bytes.IndexByte(p, 0x1b)
		if escape < 0 {
			x.text(p)
			break
		}
		x.text(p[:escape])
		if x.Size-x.Blocks[len(x.Blocks)-1].At >= BlockBytes+soon { // sequences alone make no text that could end it
			x.beginBlock()
		}
		p = p[escape:]
		if n := x.common(p); n > 0 {
			x.Size += int64(n)
			p = p[n:]
			continue
		}
		x.Size++
		x.state, x.sequence = inEscape, x.sequence[:0]
		p = p[1:]
	}
	return n, nil
}

// Skip passes over bytes that are not there, such as a hole of the file: what follows begins a block.
func (x *Index) Skip(n int64) {
	x.Size += n
	x.state = inText
	x.beginBlock()
}

// common takes a sequence of numbers that is there as a whole, and gives its length; 0: it is not one. Nearly all are.
func (x *Index) common(p []byte) int {
	if len(p) < 3 || p[1] != '[' {
		return 0
	}
	for n := 2; n < min(len(p), mostStyle); n++ {
		switch c := p[n]; {
		case c >= '0' && c <= ';':
		case c >= 0x40 && c < 0x7f:
			x.csi(c, p[2:n])
			return n + 1
		default:
			return 0
		}
	}
	return 0
}

// text counts the lines of a text, and begins blocks in it.
func (x *Index) text(p []byte) {
	for len(p) > 0 {
		n, full := x.ends(p)
		if lines := int64(bytes.Count(p[:n], []byte{'\n'})); lines > 0 {
			x.moveTo(x.row + lines)
		}
		x.Size += int64(n)
		p = p[n:]
		if full {
			x.beginBlock()
		}
	}
}

// ends is how much of a text still belongs to the block, and whether the block ends there. It does once it is full,
// after a line or, where none ends soon, before a letter.
func (x *Index) ends(p []byte) (n int, full bool) {
	room := x.Blocks[len(x.Blocks)-1].At + BlockBytes - x.Size
	from, late := min(max(room, 0), int64(len(p))), min(max(room+soon, 0), int64(len(p)))
	if line := bytes.IndexByte(p[from:late], '\n'); line >= 0 {
		return int(from) + line + 1, true
	}
	for n := int(late); n < len(p); n++ {
		if utf8.RuneStart(p[n]) {
			return n, true
		}
	}
	return len(p), false
}

// beginBlock begins a block here.
func (x *Index) beginBlock() {
	x.Blocks = append(x.Blocks, Block{At: x.Size, Row: x.row, Low: x.row, High: x.high, Style: string(x.style)})
}

// moveTo sets the row of the cursor.
func (x *Index) moveTo(row int64) {
	x.row, x.high = row, max(x.high, row)
	b := &x.Blocks[len(x.Blocks)-1]
	b.Low, b.High = min(b.Low, row), x.high
}

// back sets a row among those that there are.
func (x *Index) back(row int64) { x.moveTo(min(max(row, x.high-Tallest, 0), x.high)) }

// sequenceByte takes one byte of an escape sequence.
func (x *Index) sequenceByte(c byte) {
	switch {
	case c == 0x18 || c == 0x1a:
		x.state = inText
		return
	case c == '\n': // none has a line within it: it was never ended
		x.state = inText
		x.moveTo(x.row + 1)
		return
	}
	switch x.state {
	case inEscape:
		switch {
		case c == '[':
			x.state = inCSI
		case c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_':
			x.state = inString
		case c >= 0x20 && c < 0x30:
			x.state = inBetween
		case c != 0x1b:
			x.state = inText
			x.single(c)
		}
	case inBetween:
		if c >= 0x30 {
			x.state = inText
		} else if c == 0x1b {
			x.state = inEscape
		}
	case inCSI:
		switch {
		case c >= 0x40 && c < 0x7f:
			x.state = inText
			x.csi(c, x.sequence)
		case c == 0x1b:
			x.state, x.sequence = inEscape, x.sequence[:0]
		case c >= 0x20 && c < 0x40 && len(x.sequence) < mostSequence:
			x.sequence = append(x.sequence, c)
		}
	case inString:
		if c == 0x07 {
			x.state = inText
		} else if c == 0x1b {
			x.state = inStringEscape
		}
	case inStringEscape:
		if c == '\\' {
			x.state = inText
			break
		}
		x.state, x.sequence = inEscape, x.sequence[:0]
		x.sequenceByte(c)
	}
}

func (x *Index) single(c byte) {
	switch c {
	case 'M':
		x.back(x.row - 1)
	case 'D', 'E':
		x.moveTo(x.row + 1)
	case '7':
		x.saved = x.row
	case '8':
		x.back(x.saved)
	case 'c':
		x.style = x.style[:0]
	}
}

func (x *Index) csi(final byte, parameters []byte) {
	if final == 'm' {
		x.colour(parameters)
		return
	}
	number := int64(0)
	for i, c := range parameters {
		if c != ';' && (c < '0' || c > '9') {
			return
		}
		if c == ';' && len(bytes.Trim(parameters[i:], "0123456789;")) > 0 {
			return
		}
		if c == ';' {
			break
		}
		number = min(10*number+int64(c-'0'), 1e6)
	}
	n := max(number, 1)
	switch final {
	case 'A', 'F':
		x.back(x.row - n)
	case 'B', 'E':
		x.back(x.row + n)
	case 'H', 'f':
		if x.page > 0 {
			x.moveTo(max(x.page+min(n, Tallest)-1, x.high-Tallest))
		}
	case 'J':
		if number == 2 { // what is written from now on begins below
			x.page = x.high + 1
			x.moveTo(x.page)
		}
	case 's':
		x.saved = x.row
	case 'u':
		x.back(x.saved)
	}
}

// colour keeps the sequences since the last that sets everything back.
func (x *Index) colour(parameters []byte) {
	if len(parameters) >= mostStyle {
		return
	}
	back, more := true, false // the first of them sets everything back; there are others
	for _, c := range parameters {
		if (c < '0' || c > '9') && c != ';' && c != ':' {
			return
		}
		more = more || c != '0' && c != ';'
	}
	first, _, _ := bytes.Cut(parameters, []byte{';'})
	for _, c := range first {
		back = back && c == '0'
	}
	if back {
		x.style = x.style[:0]
	}
	before := len(x.style)
	if more {
		x.style = append(append(append(x.style, 0x1b, '['), parameters...), 'm')
	}
	if added := x.style[before:]; bytes.HasSuffix(x.style[:before], added) { // said twice
		x.style = x.style[:before]
	}
	for len(x.style) > mostStyle { // the oldest go; later ones mostly say the same anew
		x.style = append(x.style[:0], x.style[1+bytes.IndexByte(x.style[1:], 0x1b):]...)
	}
}
