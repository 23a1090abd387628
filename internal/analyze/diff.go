package analyze

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Difference is what changed between the peaks of two devices' histories. Its rows add up to the
// difference of the peaks.
type Difference struct {
	Version int              `json:"version"`
	A       report.TracePeak `json:"a"`
	B       report.TracePeak `json:"b"`
	By      string           `json:"by"`
	Delta   mem.Bytes        `json:"delta_bytes"`
	Rows    []DiffRow        `json:"rows"` // largest change first
	Label   mem.Label        `json:"label"`
}

// DiffRow is one group of blocks on both sides.
type DiffRow struct {
	Name    string    `json:"name"`
	A       mem.Bytes `json:"a_bytes"`
	B       mem.Bytes `json:"b_bytes"`
	BlocksA int       `json:"a_blocks"`
	BlocksB int       `json:"b_blocks"`
	Delta   mem.Bytes `json:"delta_bytes"`
}

// Differences are what blocks of two peaks can be matched by.
var Differences = []string{"site", "module", "category"}

// Diff compares the blocks alive at two peaks of allocated bytes. By site, blocks are the same where
// their stacks pass through the same functions of the same files: lines may move.
func Diff(a, b *mem.AllocatorSnapshot, deviceA, deviceB int, by string) (*Difference, error) {
	by = cmp.Or(by, "site")
	if !slices.Contains(Differences, by) {
		return nil, fmt.Errorf("a difference is by %s, not by %s", strings.Join(Differences, ", "), by)
	}
	rows := map[string]*DiffRow{}
	before, after := newBooks(a, deviceA), newBooks(b, deviceB)
	if before.trace.Len() == 0 != (after.trace.Len() == 0) {
		return nil, fmt.Errorf("one of the snapshots has a history and the other only its final state: their peaks cannot be compared")
	}
	tally(before, by, rows, false)
	tally(after, by, rows, true)
	d := &Difference{Version: report.Version, A: before.tracePeak(before.peakAt, before.peak), B: after.tracePeak(after.peakAt, after.peak), By: by,
		Delta: after.peak.allocated - before.peak.allocated, Rows: []DiffRow{}, Label: a.Label}
	if d.Label == mem.Measured { // as weak as the weaker side
		d.Label = b.Label
	}
	for _, row := range rows {
		row.Delta = row.B - row.A
		d.Rows = append(d.Rows, *row)
	}
	slices.SortFunc(d.Rows, func(p, q DiffRow) int {
		return cmp.Or(cmp.Compare(magnitude(q.Delta), magnitude(p.Delta)), cmp.Compare(q.A, p.A), cmp.Compare(p.Name, q.Name))
	})
	return d, nil
}

func magnitude(n mem.Bytes) mem.Bytes { return max(n, -n) }

func tally(b *traceBooks, by string, rows map[string]*DiffRow, second bool) {
	s := newSorter(b, nil)
	places, names, known := newPlaces(nil), map[uint32]string{}, newTraceNames(&b.snapshot.Stacks)
	b.aliveNumbers(b.peakAt, func(n int) {
		l := &b.lives[n]
		name, ok := names[l.stack]
		switch {
		case by == "category":
			name = s.of(n)
		case l.stack == 0 && by == "site": // from before the trace or not, by block
			name = diffName(b, l, by, places, known)
		case !ok:
			name = diffName(b, l, by, places, known)
			names[l.stack] = name
		}
		row := rows[name]
		if row == nil {
			row = &DiffRow{Name: name}
			rows[name] = row
		}
		if second {
			row.B += l.size
			row.BlocksB++
		} else {
			row.A += l.size
			row.BlocksA++
		}
	})
}

func diffName(b *traceBooks, l *life, by string, p *places, known *traceNames) string {
	frames := b.snapshot.Stacks.Frames(l.stack)
	if by == "module" {
		for _, f := range frames {
			if f.Function == "forward" && !f.Native {
				return path.Base(f.File) + ":forward"
			}
		}
		return noModule
	}
	if l.stack == 0 && l.born < 0 {
		return beforeTrace
	}
	return normalStack(frames, p, func() string { return known.of(l.stack).site })
}

// normalStack names a stack by the functions of the program's own files that it passes through,
// innermost first; where there are none, by the place it has, or what native calls it by.
func normalStack(frames []mem.Location, p *places, native func() string) string {
	var names []string
	for _, f := range frames {
		if !f.Native && p.kind(f.File) == userFile && !strings.HasPrefix(f.File, "<") {
			names = append(names, path.Base(f.File)+":"+f.Function)
		}
	}
	if len(names) > 0 {
		return strings.Join(names, " ← ")
	}
	at := p.search(frames)
	switch {
	case at.Native || at.File == "" || at.File == "??" || at.File == report.UnknownPlace:
		return native()
	}
	return path.Base(at.File) + ":" + at.Function
}

func (d *Difference) title() string {
	how := fmt.Sprintf("rose by %v", d.Delta)
	switch {
	case d.Delta == 0:
		return fmt.Sprintf("The peak is the same: %v", d.B.Allocated)
	case d.Delta < 0:
		how = fmt.Sprintf("fell by %v", -d.Delta)
	}
	return fmt.Sprintf("The peak %s: %v before, %v after", how, d.A.Allocated, d.B.Allocated)
}

// Table shows the difference: every row is there, and the last one is the sum.
func (d *Difference) Table() report.Table {
	t := report.Table{Name: "diff", Title: d.title(),
		Note: fmt.Sprintf("The rows add up to %s bytes exactly.", report.Count(int64(d.Delta))),
		Columns: []report.Column{report.TextColumn("what", report.UpperFirst(d.By)), report.BytesColumn("delta", "Change", d.Label), report.BytesColumn("a", "Before", d.Label), report.BytesColumn("b", "After", d.Label),
			report.CountColumn("a_blocks", "Blocks before"), report.CountColumn("b_blocks", "Blocks after")}}
	for _, r := range d.Rows {
		t.Rows = append(t.Rows, []report.Cell{r.Name, int64(r.Delta), int64(r.A), int64(r.B), int64(r.BlocksA), int64(r.BlocksB)})
	}
	return t
}

// Report is the difference as a page.
func (d *Difference) Report(a, b string) *report.Report {
	r := report.New()
	table := d.Table()
	r.Run.Verb = "diff"
	r.Run.Name = path.Base(a) + " → " + path.Base(b)
	r.Headline.Say(table.Title)
	table.Title = "Where the difference comes from, by " + d.By
	r.Tables = append(r.Tables, table)
	r.Notes = append(r.Notes, "Blocks alive at both peaks are matched by the functions that allocated them, so lines may move.")
	return r
}
