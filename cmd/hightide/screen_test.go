package main

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// screen is what a terminal shows of what is written to it: as much of one as bubbletea makes use of. Colours are
// passed over.
type screen struct {
	cells       [][]rune
	width       int
	x, y        int
	top, bottom int // of what scrolls
	saved       [2]int
	main        [][]rune // while the other screen is shown; nil: it is this one
	hidden      bool     // the cursor
	last        rune
	scrolled    []string // off the top of the main screen
	parser      *ansi.Parser
}

func newScreen(width, height int) *screen {
	s := &screen{parser: ansi.NewParser()}
	s.parser.SetHandler(ansi.Handler{Print: s.print, Execute: s.execute, HandleCsi: s.csi, HandleEsc: s.esc})
	s.resize(width, height)
	return s
}

func (s *screen) resize(width, height int) {
	fit := func(cells [][]rune) [][]rune {
		out := blank(width, height)
		for y := range min(height, len(cells)) {
			copy(out[y], cells[y])
		}
		return out
	}
	s.cells, s.width, s.top, s.bottom = fit(s.cells), width, 0, height-1
	if s.main != nil {
		s.main = fit(s.main)
	}
	s.move(s.x, s.y)
}

func blank(width, height int) [][]rune {
	cells := make([][]rune, height)
	for y := range cells {
		cells[y] = slices.Repeat([]rune{' '}, width)
	}
	return cells
}

// text is all of it, with what has scrolled off the main screen.
func (s *screen) text() string {
	lines := slices.Clone(s.scrolled)
	for _, row := range s.cells {
		lines = append(lines, strings.TrimRight(string(row), " "))
	}
	return strings.Join(lines, "\n")
}

func (s *screen) move(x, y int) {
	s.x, s.y = min(max(x, 0), s.width-1), min(max(y, 0), len(s.cells)-1)
}

func (s *screen) print(r rune) {
	if s.x >= s.width { // what was written last filled the line
		s.x = 0
		s.feed()
	}
	s.cells[s.y][s.x], s.last = r, r
	s.x++
}

func (s *screen) execute(b byte) {
	switch b {
	case '\n':
		s.feed()
	case '\r':
		s.x = 0
	case '\b':
		s.x = max(s.x-1, 0)
	case '\t':
		s.x = min((s.x/8+1)*8, s.width-1)
	}
}

func (s *screen) feed() {
	if s.y == s.bottom {
		s.scroll(s.top, 1)
		return
	}
	s.y = min(s.y+1, len(s.cells)-1)
}

// scroll moves the lines from a row to the end of what scrolls up, or down where n is negative.
func (s *screen) scroll(from, n int) {
	for ; n > 0; n-- {
		if from == 0 && s.main == nil {
			s.scrolled = append(s.scrolled, strings.TrimRight(string(s.cells[0]), " "))
		}
		copy(s.cells[from:s.bottom+1], s.cells[from+1:s.bottom+1])
		s.cells[s.bottom] = slices.Repeat([]rune{' '}, s.width)
	}
	for ; n < 0; n++ {
		copy(s.cells[from+1:s.bottom+1], s.cells[from:s.bottom])
		s.cells[from] = slices.Repeat([]rune{' '}, s.width)
	}
}

func (s *screen) esc(c ansi.Cmd) {
	switch c.Final() {
	case '7':
		s.saved = [2]int{s.x, s.y}
	case '8':
		s.move(s.saved[0], s.saved[1])
	case 'D':
		s.feed()
	case 'M':
		if s.y == s.top {
			s.scroll(s.top, -1)
		} else {
			s.y--
		}
	}
}

func (s *screen) csi(c ansi.Cmd, params ansi.Params) {
	n, _, _ := params.Param(0, 1)
	n = max(n, 1)
	if c.Prefix() == '?' {
		s.mode(c.Final(), params)
		return
	}
	if c.Prefix() != 0 || c.Intermediate() != 0 {
		return
	}
	switch c.Final() {
	case 'A':
		s.move(s.x, s.y-n)
	case 'B', 'e':
		s.move(s.x, s.y+n)
	case 'C', 'a':
		s.move(s.x+n, s.y)
	case 'D':
		s.move(s.x-n, s.y)
	case 'E':
		s.move(0, s.y+n)
	case 'F':
		s.move(0, s.y-n)
	case 'G', '`':
		s.move(n-1, s.y)
	case 'd':
		s.move(s.x, n-1)
	case 'H', 'f':
		column, _, _ := params.Param(1, 1)
		s.move(max(column, 1)-1, n-1)
	case 'I':
		s.move((s.x/8+n)*8, s.y)
	case 'Z':
		s.move((s.x-1)/8*8-8*(n-1), s.y)
	default:
		s.edit(c.Final(), n, params)
	}
}

// edit changes what stands there.
func (s *screen) edit(final byte, n int, params ansi.Params) {
	x := min(s.x, s.width-1)
	row := s.cells[s.y]
	how, _, _ := params.Param(0, 0)
	switch final {
	case 'J':
		s.erase(how)
	case 'K':
		wipe(row[map[int]int{0: x}[how]:map[int]int{0: s.width, 1: x + 1, 2: s.width}[how]])
	case 'X':
		wipe(row[x:min(x+n, s.width)])
	case 'P':
		wipe(row[x+copy(row[x:], row[min(x+n, s.width):]):])
	case '@':
		copy(row[min(x+n, s.width):], slices.Clone(row[x:]))
		wipe(row[x:min(x+n, s.width)])
	case 'L':
		s.scroll(s.y, -n)
	case 'M':
		s.scroll(s.y, n)
	case 'S':
		s.scroll(s.top, n)
	case 'T':
		s.scroll(s.top, -n)
	case 'b':
		for range n {
			s.print(s.last)
		}
	case 'r':
		bottom, _, _ := params.Param(1, len(s.cells))
		s.top, s.bottom = n-1, min(bottom, len(s.cells))-1
		s.move(0, 0)
	}
}

func wipe(cells []rune) {
	for i := range cells {
		cells[i] = ' '
	}
}

func (s *screen) erase(how int) {
	switch how {
	case 0:
		wipe(s.cells[s.y][min(s.x, s.width):])
		for _, row := range s.cells[s.y+1:] {
			wipe(row)
		}
	case 1:
		for _, row := range s.cells[:s.y] {
			wipe(row)
		}
	default:
		for _, row := range s.cells {
			wipe(row)
		}
	}
}

// mode switches the cursor and between the two screens.
func (s *screen) mode(final byte, params ansi.Params) {
	params.ForEach(0, func(_, mode int, _ bool) {
		switch {
		case mode == 25:
			s.hidden = final == 'l'
		case mode == 1049 && final == 'h' && s.main == nil:
			s.saved, s.main = [2]int{s.x, s.y}, s.cells
			s.cells = blank(s.width, len(s.cells))
		case mode == 1049 && final == 'l' && s.main != nil:
			s.cells, s.main = s.main, nil
			s.move(s.saved[0], s.saved[1])
		}
	})
}
