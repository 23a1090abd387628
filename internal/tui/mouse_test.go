package tui

import (
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// click presses the left button on the first line that holds a text, at its begin.
func click(t *testing.T, s *State, on string) []ask {
	t.Helper()
	for y, line := range strings.Split(ansi.Strip(s.Frame()), "\n") {
		if before, _, found := strings.Cut(line, on); found {
			return update(s, tea.MouseClickMsg{X: ansi.StringWidth(before), Y: y, Button: tea.MouseLeft})
		}
	}
	t.Fatalf("%q is nowhere in\n%s", on, s.Frame())
	return nil
}

// TestMouse clicks what is drawn, and turns the wheel.
func TestMouse(t *testing.T) {
	s := demo(120, 40)
	if strings.Contains(s.Frame(), spotBegin) {
		t.Fatal("marks of spots reach the terminal")
	}
	rows := s.items()
	click(t, s, "bert-two-gpus") // a run, where nothing was chosen
	if s.Cursor != rows[0] {
		t.Errorf("the first run was clicked, and %q is chosen", s.Cursor)
	}
	process := s.processRows()[3]
	click(t, s, "dockerd")
	if s.Cursor != processKey(process.Seen) {
		t.Errorf("a process was clicked, and %q is chosen", s.Cursor)
	}
	click(t, s, "CPU%")
	if s.Sort != byCPU || s.Reversed {
		t.Errorf("sorted by %s, reversed %t", s.Sort, s.Reversed)
	}
	if click(t, s, "CPU%"); !s.Reversed {
		t.Error("a second click on a title does not reverse")
	}
	click(t, s, "t tree")
	if !s.Tree {
		t.Error("a hint at the foot does nothing")
	}
	click(t, s, " 5 Timeline")
	if s.tab().title != "Timeline" {
		t.Errorf("in front is %s", s.tab().title)
	}
	update(s, tea.MouseWheelMsg{Button: tea.MouseWheelDown})
	if s.Curves.chosen != linesOfWheel {
		t.Errorf("series %d is chosen", s.Curves.chosen)
	}
	click(t, s, " 6 Analysis")
	if asks := update(s, tea.MouseClickMsg{X: 60, Y: 20, Button: tea.MouseLeft}); len(asks) > 0 || s.tab().title != "Analysis" {
		t.Errorf("a click on nothing asks for %v", asks)
	}
}

// TestMouseInTheHeap closes and opens a call, and chooses one.
func TestMouseInTheHeap(t *testing.T) {
	s := demo(120, 40)
	press(s, "8")
	update(s, Reported{ID: "06ffnx559k", Report: demoReport(), Now: s.Now})
	s.refresh()
	if click(t, s, "main  train.py"); len(s.Heap.rows("")) != 1 {
		t.Errorf("a click on the open call leaves %d rows", len(s.Heap.rows("")))
	}
	if click(t, s, "main  train.py"); len(s.Heap.rows("")) != 4 {
		t.Errorf("a click on the closed call leaves %d rows", len(s.Heap.rows("")))
	}
	click(t, s, "AdamW.step")
	if rows := s.Heap.rows(""); s.Heap.chosen(rows) != 3 {
		t.Errorf("row %d is chosen", s.Heap.chosen(rows))
	}
}

// TestMouseInADialog: a signal is only sent after the question.
func TestMouseInADialog(t *testing.T) {
	s := demo(120, 40)
	click(t, s, "dockerd")
	press(s, "x")
	click(t, s, "SIGHUP")
	if signals[s.Signal.chosen].name != "SIGHUP" || s.Signal.sure {
		t.Errorf("%+v", s.Signal)
	}
	if asks := click(t, s, "SIGHUP"); len(asks) > 0 || !s.Signal.sure {
		t.Errorf("a second click asks for %v, and the question is put: %t", asks, s.Signal.sure)
	}
	if click(t, s, "Esc close"); s.Dialog != noDialog {
		t.Error("the dialog is still open")
	}
}
