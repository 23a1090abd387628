package tui

import (
	"slices"

	"hightide/internal/sampler"
)

func overviewKeys() []binding {
	sort := func(by order) func(*State) []ask {
		return func(s *State) []ask { s.Reversed = s.Sort == by && !s.Reversed; s.Sort = by; return nil }
	}
	return []binding{
		{[]string{"enter"}, "Enter", "open the run or process", "Overview", enter},
		{[]string{"s", ">", "f6"}, "s  F6", "sort by the next column", "Overview",
			func(s *State) []ask { s.Sort, s.Reversed = (s.Sort+1)%orders, false; return nil }},
		{[]string{"M", "m"}, "M", "sort by memory; again: reversed", "Overview", sort(byMemory)},
		{[]string{"P"}, "P", "… by processor", "Overview", sort(byCPU)},
		{[]string{"D"}, "D", "… by GPU memory", "Overview", sort(byDevice)},
		{[]string{"T"}, "T", "… by processor time", "Overview", sort(byTime)},
		{[]string{"N"}, "N", "… by pid", "Overview", sort(byPID)},
		{[]string{"I", "R"}, "I", "reversed", "Overview", func(s *State) []ask { s.Reversed = !s.Reversed; return nil }},
		{[]string{"t", "f5"}, "t  F5", "as a tree", "Overview", func(s *State) []ask { s.Tree = !s.Tree; return nil }},
		{[]string{"e"}, "e", "environment of the process", "Overview", openEnv},
		{[]string{"x", "f9"}, "x  F9", "signal, after a question", "Overview", openSignals},
	}
}

// items are the keys of all rows of the overview, from the top.
func (s *State) items() (keys []string) {
	for _, r := range s.listedRuns() {
		keys = append(keys, runKey(r))
	}
	for _, r := range s.processRows() {
		keys = append(keys, processKey(r.Seen))
	}
	return keys
}

func moveOverview(s *State, by int) []ask {
	keys := s.items()
	if len(keys) == 0 {
		return nil
	}
	at := slices.Index(keys, s.Cursor)
	if at < 0 && by > 0 {
		by-- // the first press goes to the first row
		at = 0
	}
	s.Cursor = keys[min(max(at+by, 0), len(keys)-1)]
	return nil
}

// process is the chosen one, nil where there is none or it has ended.
func (s *State) process() *sampler.Seen {
	for i := range s.Machine.Processes {
		if p := &s.Machine.Processes[i]; processKey(p) == s.Cursor {
			return p
		}
	}
	return nil
}

// enter opens the chosen run, or the chosen process.
func enter(s *State) []ask {
	id := ""
	for i := range s.Runs {
		if runKey(&s.Runs[i]) == s.Cursor {
			id = s.Runs[i].ID
		}
	}
	if p := s.process(); p != nil {
		return openProcess(s, p)
	}
	if id == "" {
		s.Message = "choose a row first, with the arrow keys"
		return nil
	}
	return append(s.show(id), s.openTab(numberOf("Timeline"))...)
}
