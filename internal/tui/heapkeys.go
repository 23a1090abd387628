package tui

import (
	"strings"

	"hightide/internal/report"
)

func heapKeys() []binding {
	on := func(work func(h *explorer, s *State)) func(*State) []ask {
		return func(s *State) []ask { work(&s.Heap, s); return s.refreshHeap() }
	}
	return []binding{
		{[]string{"right", "l", "enter"}, "→ Enter", "open a call, go into it", "Heap", on(openCall)},
		{[]string{"left", "backspace"}, "←", "close it, go to its caller", "Heap", on(closeCall)},
		{[]string{"m"}, "m", "next figure of a call", "Heap", on(func(h *explorer, _ *State) {
			if sets := h.sets(); len(sets) > 0 {
				h.measure = (h.measure + 1) % max(len(sets[h.set].Measures), 1)
			}
		})},
		{[]string{"d"}, "d", "next heap or device", "Heap", on(func(h *explorer, _ *State) {
			if n := len(h.sets()); n > 0 {
				h.set = (h.set + 1) % n
			}
		})},
		{[]string{"i"}, "i", "inverted: who allocates", "Heap", on(func(h *explorer, _ *State) { h.inverted = !h.inverted })},
	}
}

func moveHeap(s *State, by int) []ask {
	h := &s.Heap
	rows := h.rows(s.Filter)
	if at := h.chosen(rows); at >= 0 {
		h.cursor = rows[min(max(at+by, 0), len(rows)-1)].key
	}
	return s.refreshHeap()
}

// openCall opens the chosen call, with those below it that have nothing beside them.
func openCall(h *explorer, s *State) {
	rows := h.rows(s.Filter)
	at := h.chosen(rows)
	if at < 0 {
		return
	}
	if rows[at].opened {
		if at+1 < len(rows) && rows[at+1].parent == rows[at].key {
			h.cursor = rows[at+1].key
		}
		return
	}
	h.cursor = rows[at].key
	set := &h.sets()[h.set]
	for c, key := rows[at].Call, rows[at].key; ; key = callKey(key, set, c.Place) {
		h.open[key] = true
		if len(c.Children) != 1 {
			return
		}
		c = c.Children[0]
	}
}

func closeCall(h *explorer, s *State) {
	rows := h.rows(s.Filter)
	at := h.chosen(rows)
	switch {
	case at < 0:
	case rows[at].opened && len(rows[at].Children) > 0 && s.Filter == "":
		delete(h.open, rows[at].key)
	case rows[at].parent != 0:
		h.cursor = rows[at].parent
	}
}

// heap shows the tree of calls, and beside it or below it the source of the chosen one.
func heap(s *State, width, height int) []string {
	h := &s.Heap
	var lines []string
	if h.ref == "" {
		lines = s.runLine(width)
		if r, _ := s.shownRun(); r == nil {
			return lines
		}
	} else {
		lines = []string{" " + paint(strong, clean(h.ref)), ""}
	}
	sets := h.sets()
	switch {
	case h.err != "":
		return append(lines, wrap(h.err, width-4, "  ")...)
	case h.report == nil:
		return append(lines, paint(faint, "  reading …"))
	case len(sets) == 0 || h.tree == nil:
		return append(lines,
			"  There are no stacks in it: the heap was not sampled and no snapshot of an allocator was taken.",
			"", paint(faint, "  hightide run samples the heap; hightide run --snapshot-on exit records a snapshot."))
	}
	lines = append(lines, h.titleLine(&sets[h.set], len(sets)), "")
	room := height - len(lines)
	if width >= 120 {
		left := width * 3 / 5
		return append(lines, beside(h.treeLines(s, left, room), h.sourceLines(s, width-left-3, room), left, room)...)
	}
	below := max(room/3, 4)
	lines = append(lines, h.treeLines(s, width, room-below-1)...)
	for len(lines) < height-below {
		lines = append(lines, "")
	}
	return append(lines, h.sourceLines(s, width, below)...)
}

// titleLine says what is shown, of how much.
func (h *explorer) titleLine(set *report.StackSet, n int) string {
	line := " " + paint(strong, clean(set.Title))
	if set.Of != "" && !strings.EqualFold(set.Of, set.Title) {
		line += ", " + clean(set.Of)
	}
	line += "  " + strings.TrimSpace(h.value(h.tree.root.Value, set))
	// of a device the title says what is held, in bytes
	if (h.measure > 0 || set.Name == "heap") && h.measure < len(set.Measures) {
		line += paint(cyan, ", "+set.Measures[h.measure].Title)
	}
	if h.inverted {
		line += paint(cyan, "  inverted")
	}
	if n > 1 {
		line += paint(faint, "  "+report.Count(int64(h.set+1))+" of "+report.Count(int64(n))+" (d)")
	}
	return line
}

// beside puts two blocks next to each other.
func beside(left, right []string, width, height int) (lines []string) {
	at := func(of []string, i int) string {
		if i < len(of) {
			return of[i]
		}
		return ""
	}
	for i := range height {
		lines = append(lines, pad(at(left, i), width, false)+paint(faint, " │ ")+at(right, i))
	}
	return lines
}
