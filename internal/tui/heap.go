package tui

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// explorer is a walk through what the stacks of a report hold.
type explorer struct {
	ref    string // a file; "": the run that is shown
	report *report.Report
	err    string
	asked  bool
	began  time.Time // of what is shown: source files that are newer are not quoted

	set, measure int
	inverted     bool
	tree         *callTree
	open         map[uint64]bool
	cursor       uint64
	files        map[string][]string // read for the source panel; nil: not there to be read
}

// callTree is the tree that is walked through: made anew where what it is of has changed.
type callTree struct {
	of           *report.Report
	set, measure int
	inverted     bool
	root         *report.Call
}

// callRow is a line of the tree.
type callRow struct {
	*report.Call
	key    uint64
	depth  int
	parent uint64
	opened bool
}

// refreshHeap asks for what is to be walked through.
func (s *State) refreshHeap() []ask {
	h := &s.Heap
	if h.ref == "" {
		asks := s.refreshReport()
		if r, _ := s.shownRun(); r != nil && s.Reports[r.ID] != nil {
			h.report, h.err, h.began = s.Reports[r.ID].report, s.Reports[r.ID].err, time.Unix(0, r.Start)
		}
		return append(asks, h.prepare()...)
	}
	if !h.asked {
		h.asked = true
		return []ask{askHeap{h.ref}}
	}
	return h.prepare()
}

func (h *explorer) explained(m Explained) []ask {
	if h.report, h.began = m.Report, m.Began; m.Err != nil {
		h.err = m.Err.Error()
	}
	return h.prepare()
}

// leave forgets a run.
func (h *explorer) leave() {
	*h = explorer{open: map[uint64]bool{}, files: map[string][]string{}}
}

// sets are the stacks that there are to walk through: of devices, of heaps.
func (h *explorer) sets() []report.StackSet {
	if h.report == nil {
		return nil
	}
	return h.report.Stacks
}

// prepare makes the tree, opens the way to what holds most, and asks for the source of the chosen line.
func (h *explorer) prepare() []ask {
	sets := h.sets()
	if len(sets) == 0 {
		return nil
	}
	h.set = min(h.set, len(sets)-1)
	set := &sets[h.set]
	h.measure = min(h.measure, max(len(set.Measures)-1, 0))
	if t := h.tree; t == nil || t.of != h.report || t.set != h.set || t.measure != h.measure || t.inverted != h.inverted {
		fresh := t == nil || t.set != h.set || t.inverted != h.inverted
		t = &callTree{of: h.report, set: h.set, measure: h.measure, inverted: h.inverted, root: set.Calls(h.measure)}
		if h.inverted {
			t.root = set.Callers(h.measure)
		}
		if h.tree = t; fresh {
			h.openHeaviest(set)
		}
	}
	return h.askSource(set)
}

// openHeaviest opens the calls through which most of the bytes go.
func (h *explorer) openHeaviest(set *report.StackSet) {
	h.open, h.cursor = map[uint64]bool{}, 0
	at, key := h.tree.root, uint64(0)
	for len(at.Children) > 0 && at.Children[0].Value*2 > h.tree.root.Value {
		at = at.Children[0]
		key = callKey(key, set, at.Place)
		h.open[key] = true
		h.cursor = cmp.Or(h.cursor, key)
	}
}

// callKey is a call for good: by the places on the way to it, which a later report has too.
func callKey(parent uint64, set *report.StackSet, place int) uint64 {
	f := fnv.New64a()
	fmt.Fprint(f, parent)
	if place >= 0 {
		p := set.Frames[place]
		fmt.Fprint(f, p.File, ":", p.Line, " ", p.Function)
	}
	return f.Sum64()
}

// rows are the lines of the tree that are open, and of those what the filter lets through.
func (h *explorer) rows(filter string) (rows []callRow) {
	sets := h.sets()
	if len(sets) == 0 || h.tree == nil {
		return nil
	}
	set := &sets[h.set]
	var walk func(c *report.Call, key uint64, depth int) (rows []callRow)
	walk = func(c *report.Call, key uint64, depth int) (rows []callRow) {
		for _, child := range c.Children {
			at := callRow{child, callKey(key, set, child.Place), depth, key, false}
			at.opened = h.open[at.key] || filter != ""
			var below []callRow
			if at.opened {
				below = walk(child, at.key, depth+1)
			}
			if child.Value > 0 && (filter == "" || len(below) > 0 || matches(filter, callName(set, child.Place))) {
				rows = append(append(rows, at), below...)
			}
		}
		return rows
	}
	return walk(h.tree.root, 0, 0)
}

// callName is how a call is written.
func callName(set *report.StackSet, place int) string {
	if place < 0 {
		return "not known"
	}
	f := &set.Frames[place]
	if f.File == "" || f.Native {
		return firstOf(f.Function, f.File)
	}
	return clean(fmt.Sprintf("%s  %s:%d", f.Function, path.Base(f.File), f.Line))
}

// chosen is the row at the cursor, the first where the cursor is nowhere; -1: there is none.
func (h *explorer) chosen(rows []callRow) int {
	for i, r := range rows {
		if r.key == h.cursor {
			return i
		}
	}
	return min(0, len(rows)-1)
}

func (h *explorer) askSource(set *report.StackSet) []ask {
	rows := h.rows("")
	at := h.chosen(rows)
	if at < 0 || rows[at].Place < 0 {
		return nil
	}
	file := set.Frames[rows[at].Place].File
	if _, seen := h.files[file]; seen || file == "" {
		return nil
	}
	if h.files == nil {
		h.files = map[string][]string{}
	}
	h.files[file] = nil
	return []ask{askSource{file, h.began}}
}

func (h *explorer) quoted(m Quoted) {
	if h.files != nil {
		h.files[m.File] = m.Lines
	}
}

// value writes a figure of a measure.
func (h *explorer) value(n int64, set *report.StackSet) string {
	if h.measure < len(set.Measures) && set.Measures[h.measure].Unit != mem.UnitBytes {
		return report.FormatCell(n, set.Measures[h.measure].Unit)
	}
	return size(mem.Some(n))
}

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
		holds = map[string]string{"bytes-time": "AVERAGE", "count": "COUNT", "churn": "FREED",
			"end": "AT END"}[set.Measures[h.measure].Name]
	}
	columns := []column{{title: holds, width: 9, right: true}, {title: "SHARE", width: 5, right: true},
		{title: "", width: 8, least: 70}, {title: "CALL", width: 10, grows: true}}
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
		line := pad(fmt.Sprint(i+1), 5, true) + "  " +
			strings.ReplaceAll(clean(strings.ReplaceAll(source[i], "\t", "    ")), "\r", "")
		if i == f.Line-1 {
			line = paint(chosen, pad("▸"+line[1:], width, false))
		} else {
			line = paint(plain, line)
		}
		lines = append(lines, pad(line, width, false))
	}
	return lines
}
