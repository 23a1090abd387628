package tui

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// A part of a frame that does something when it is clicked is a spot. It stands in the line between two escape
// sequences (application program commands, which take no room). What is drawn is thus what can be clicked. The marks
// never reach the terminal.
const spotBegin, spotEnd = "\x1b_", "\x1b\\"

var spotMarks = regexp.MustCompile("\x1b_[^\x1b]*\x1b\\\\")

// spot marks a text with the key that a click on it stands for.
func spot(key, text string) string {
	return spotBegin + key + spotEnd + text + spotBegin + spotEnd
}

// rowSpots marks rows that the cursor can go to: a click goes there, one on the chosen row opens it. Parameter first
// is how far below the cursor the first of the rows is.
func rowSpots(rows []string, first int) {
	for i := range rows {
		rows[i] = spot(fmt.Sprintf("%+d", first+i), rows[i])
	}
}

// spotAt is what stands at a cell of the screen; "" where a click does nothing.
func (s *State) spotAt(column, line int) string {
	lines := strings.Split(s.marked(), "\n")
	if line < 0 || line >= len(lines) {
		return ""
	}
	at, key := 0, ""
	for rest := lines[line]; ; {
		text, after, more := strings.Cut(rest, spotBegin)
		if at += ansi.StringWidth(text); column < at {
			return key
		}
		if !more {
			return ""
		}
		key, rest, _ = strings.Cut(after, spotEnd)
	}
}

// clicked does what the spot under the pointer stands for.
func (s *State) clicked(m tea.Mouse) []ask {
	key := s.spotAt(m.X, m.Y)
	if m.Button != tea.MouseLeft || key == "" {
		return nil
	}
	s.Typing = false
	rows, err := strconv.Atoi(key)
	switch isRow := err == nil && strings.ContainsAny(key, "+-"); {
	case !isRow:
		return s.press(key, 1)
	case rows > 0:
		return s.press("down", rows)
	case rows < 0:
		return s.press("up", -rows)
	case s.Dialog == noDialog && s.tab().title == "Heap" && s.Heap.chosenIsOpen(s.Filter):
		return s.press("left", 1)
	}
	return s.press("enter", 1)
}

// linesOfWheel is how far one notch goes.
const linesOfWheel = 3

func (s *State) wheeled(m tea.Mouse) []ask {
	switch m.Button {
	case tea.MouseWheelUp:
		return s.press("up", linesOfWheel)
	case tea.MouseWheelDown:
		return s.press("down", linesOfWheel)
	}
	return nil
}

func (s *State) press(key string, times int) (asks []ask) {
	for range times {
		asks = append(asks, s.key(key, key)...)
	}
	return asks
}
