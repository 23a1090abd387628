package tui

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// binding is what keys do. The list is what "?" shows.
type binding struct {
	keys  []string // as bubbletea names them
	shown string   // for people
	does  string
	tab   string // only there; "": everywhere
	work  func(*State) []ask
}

// bindings lists every key in the order that help shows them. Of two with the same key the first that fits counts.
func bindings() []binding {
	return slices.Concat(general(), overviewKeys(), timelineKeys(), analysisKeys(), heapKeys(), outputKeys())
}

func general() []binding {
	return []binding{
		{[]string{"tab"}, "Tab", "next view", "", func(s *State) []ask { return s.openTab((s.Tab + 1) % s.tabCount()) }},
		{[]string{"shift+tab"}, "Shift-Tab", "view before", "",
			func(s *State) []ask { return s.openTab((s.Tab + s.tabCount() - 1) % s.tabCount()) }},
		{[]string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}, "1 … 9", "a view", "", nil},
		{[]string{"]", "n"}, "] n", "next run", "", func(s *State) []ask { return s.nextRun(1) }},
		{[]string{"[", "p"}, "[ p", "run before", "", func(s *State) []ask { return s.nextRun(-1) }},
		{[]string{"/", "f4", "\\"}, "/  F4", "filter; Esc clears it", "",
			func(s *State) []ask { s.Typing = true; return nil }},
		{[]string{"space", "z"}, "Space z", "hold still, go on", "",
			func(s *State) []ask { s.Paused = !s.Paused; return nil }},
		{[]string{"?", "h", "f1"}, "?  h  F1", "these keys", "", func(s *State) []ask { s.Dialog = helpDialog; return nil }},
		{[]string{"q", "f10"}, "q  F10", "leave", "", func(s *State) []ask { return []ask{askQuit{}} }},
		{[]string{"ctrl+c"}, "Ctrl-C", "leave; of --live: interrupt", "", interrupt},
		{[]string{"ctrl+z"}, "Ctrl-Z", "stop; fg goes on", "", stopJob},
	}
}

// interrupt is what Ctrl-C does: of a program that hightide runs it goes to that.
func interrupt(s *State) []ask {
	if s.Launching {
		return []ask{askInterrupt{}}
	}
	return []ask{askQuit{}}
}

// stopJob is what Ctrl-Z does: the shell has the terminal until fg.
func stopJob(*State) []ask { return []ask{askStopJob{}} }

// key does what a key does.
func (s *State) key(name, text string) []ask {
	s.Message = ""
	switch {
	case name == "ctrl+c":
		return interrupt(s)
	case name == "ctrl+z":
		return stopJob(s)
	case s.Dialog != noDialog:
		return s.dialogKey(name)
	case s.Typing:
		return s.typed(name, text)
	}
	if len(name) == 1 && name[0] >= '1' && name[0] <= '9' {
		return s.openTab(int(name[0] - '1'))
	}
	if name == "esc" {
		s.escape()
		return nil
	}
	for _, b := range bindings() {
		if b.work == nil || b.tab != "" && b.tab != s.tab().title {
			continue
		}
		if slices.Contains(b.keys, name) {
			return b.work(s)
		}
	}
	if move, ok := moves[name]; ok && s.tab().move != nil {
		return s.tab().move(s, move(s.Height))
	}
	return nil
}

// moves are how far a key goes, in rows of a terminal of some height.
var moves = map[string]func(height int) int{
	"up": func(int) int { return -1 }, "k": func(int) int { return -1 }, "down": func(int) int { return 1 },
	"j":    func(int) int { return 1 },
	"pgup": func(h int) int { return -max(h-8, 1) }, "pgdown": func(h int) int { return max(h-8, 1) },
	"ctrl+u": func(h int) int { return -max(h/2, 1) }, "ctrl+d": func(h int) int { return max(h/2, 1) },
	"home": func(int) int { return -far }, "g": func(int) int { return -far }, "end": func(int) int { return far },
	"G": func(int) int { return far },
}

// far is beyond every list.
const far = 1 << 30

// typed takes a letter into the filter.
func (s *State) typed(name, text string) []ask {
	switch name {
	case "enter", "tab", "down":
		s.Typing = false
	case "esc":
		s.Typing, s.Filter = false, ""
	case "backspace":
		_, n := utf8.DecodeLastRuneInString(s.Filter)
		s.Filter = s.Filter[:len(s.Filter)-n]
	case "ctrl+w":
		s.Filter = s.Filter[:strings.LastIndexByte(strings.TrimRight(s.Filter, " "), ' ')+1]
	case "ctrl+u":
		s.Filter = ""
	default:
		s.Filter += clean(text)
	}
	return nil
}

// escape takes back one thing: the filter, else the run that was chosen.
func (s *State) escape() {
	switch {
	case s.Filter != "":
		s.Filter = ""
	default:
		s.Tab = 0
	}
}

// openTab goes to a view; a filter is of the view in which it was typed.
func (s *State) openTab(tab int) []ask {
	if tab < s.tabCount() && tab != s.Tab {
		s.Tab, s.Filter = tab, ""
	}
	return s.refresh()
}

// nextRun goes to another run, newest first.
func (s *State) nextRun(by int) []ask {
	if len(s.Runs) == 0 {
		return nil
	}
	at := 0
	shown, _ := s.shownRun()
	for i := range s.Runs {
		if shown != nil && s.Runs[i].ID == shown.ID {
			at = i
		}
	}
	return s.show(s.Runs[(at+by+len(s.Runs))%len(s.Runs)].ID)
}

// show makes a run the one that the views are about.
func (s *State) show(id string) []ask {
	if s.Run != id {
		s.Finding, s.Curves.chosen, s.Curves.top = 0, 0, 0
		s.Heap.leave()
	}
	s.Run = id
	return append(s.follow(id), s.refresh()...)
}
