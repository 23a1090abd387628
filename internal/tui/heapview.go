package tui

import (
	"fmt"
	"strings"
)

// treeLines draw the calls, what each holds first.
func (h *explorer) treeLines(s *State, width, height int) []string {
	set := &h.sets()[h.set]
	rows := h.rows(s.Filter)
	if len(rows) == 0 {
		return []string{paint(faint, "  nothing here, or the filter lets nothing through")}
	}
	at := h.chosen(rows)
	holds := "HOLDS"
	if h.measure > 0 && h.measure < len(set.Measures) {
		holds = map[string]string{"bytes-time": "AVERAGE", "count": "COUNT", "churn": "FREED", "end": "AT END"}[set.Measures[h.measure].Name]
	}
	columns := []column{{title: holds, width: 9, right: true}, {title: "SHARE", width: 5, right: true}, {title: "", width: 8, least: 70}, {title: "CALL", width: 10, grows: true}}
	from, to := window(len(rows), height-1, at)
	var cells [][]cell
	for _, r := range rows[from:to] {
		milli := int64(float64(r.Value) / float64(max(h.tree.root.Value, 1)) * 1000)
		mark := "  "
		if len(r.Children) > 0 {
			mark = map[bool]string{true: "▾ ", false: "▸ "}[r.opened]
		}
		look := faint
		if r.Place >= 0 && set.Frames[r.Place].User {
			look = plain
		}
		cells = append(cells, []cell{text(h.value(r.Value, set)), text(percent(milli)), text(shareBar(milli, 8)),
			inked(look, strings.Repeat("  ", min(r.depth, 20))+mark+callName(set, r.Place))})
	}
	lines := rowsOf(columns, cells, width, at-from, "")
	rowSpots(lines[1:], from-at)
	return lines
}

// chosenIsOpen says whether the calls below the chosen one are shown.
func (h *explorer) chosenIsOpen(filter string) bool {
	rows := h.rows(filter)
	at := h.chosen(rows)
	return at >= 0 && rows[at].opened
}

// shareBar is a bar without a judgement: a large share is not a bad one.
func shareBar(milli int64, width int) string {
	eighths := int(milli) * width * 8 / 1000
	full := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		full += string(partial[rest])
	}
	return paint(cyan, full)
}

// sourceLines quote the file around the chosen line.
func (h *explorer) sourceLines(s *State, width, height int) []string {
	rows := h.rows(s.Filter)
	at := h.chosen(rows)
	if at < 0 || rows[at].Place < 0 {
		return nil
	}
	f := &h.sets()[h.set].Frames[rows[at].Place]
	lines := []string{paint(faint, pad(clean(fmt.Sprintf("%s:%d", f.File, f.Line)), width, false))}
	source := h.files[f.File]
	if f.Line < 1 || f.Line > len(source) {
		return append(lines, paint(faint, "the source is not here, or was changed since"))
	}
	from, to := window(len(source), height-1, f.Line-1)
	for i := from; i < to; i++ {
		line := pad(fmt.Sprint(i+1), 5, true) + "  " + strings.ReplaceAll(clean(strings.ReplaceAll(source[i], "\t", "    ")), "\r", "")
		if i == f.Line-1 {
			line = paint(chosen, pad("▸"+line[1:], width, false))
		} else {
			line = paint(plain, line)
		}
		lines = append(lines, pad(line, width, false))
	}
	return lines
}
