package trace

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
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

	// DeviceA and DeviceB are set where a side has several devices: the one that is compared.
	DeviceA mem.Optional `json:"a_device,omitzero"`
	DeviceB mem.Optional `json:"b_device,omitzero"`
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
	var rows mem.Tally[string, DiffRow]
	before, after := usage.FromTrace(a, deviceA, usage.Whole), usage.FromTrace(b, deviceB, usage.Whole)
	if (before.Moments == 0) != (after.Moments == 0) {
		return nil, fmt.Errorf("one of the snapshots has a history and the other only its final state: their peaks cannot " +
			"be compared")
	}
	tally(before, by, func(name string, bytes mem.Bytes) {
		row := rows.At(name)
		row.Name, row.A, row.BlocksA = name, row.A+bytes, row.BlocksA+1
	})
	tally(after, by, func(name string, bytes mem.Bytes) {
		row := rows.At(name)
		row.Name, row.B, row.BlocksB = name, row.B+bytes, row.BlocksB+1
	})
	d := &Difference{Version: report.Version, A: tracePeak(before, before.Peak.Moment, before.PeakLevels),
		B: tracePeak(after, after.Peak.Moment, after.PeakLevels), By: by,
		Delta: after.PeakLevels.Allocated - before.PeakLevels.Allocated, Rows: []DiffRow{}, Label: a.Label}
	if d.Label == mem.Measured { // as weak as the weaker side
		d.Label = b.Label
	}
	if len(a.AllDevices()) > 1 || len(b.AllDevices()) > 1 {
		d.DeviceA, d.DeviceB = mem.Some(int64(deviceA)), mem.Some(int64(deviceB))
	}
	for _, row := range rows.All {
		row.Delta = row.B - row.A
		d.Rows = append(d.Rows, row)
	}
	slices.SortFunc(d.Rows, func(p, q DiffRow) int {
		return cmp.Or(cmp.Compare(magnitude(q.Delta), magnitude(p.Delta)), cmp.Compare(q.A, p.A), cmp.Compare(p.Name, q.Name))
	})
	return d, nil
}

func magnitude(n mem.Bytes) mem.Bytes { return max(n, -n) }

// tally names what was held at the peak, block by block.
func tally(d *usage.Device, by string, add func(name string, bytes mem.Bytes)) {
	categories, names, known := usage.NewCategories(d, nil), usage.NewNames(d.Stacks), map[uint32]string{}
	d.Each(d.Peak.Moment, func(n int) {
		stack := d.Stack[n]
		name, ok := known[stack]
		switch {
		case by == "category":
			name = categories.Of(n)
		case by == "site" && stack == 0 && d.From[n] < 0:
			name = usage.BeforeTrace
		case !ok:
			name = diffName(names, d.Stacks.Frames(stack), stack, by)
			known[stack] = name
		}
		add(name, d.Bytes[n])
	})
}

func diffName(names *usage.Names, frames []mem.Location, stack uint32, by string) string {
	if by == "module" {
		for _, f := range frames {
			if f.Function == "forward" && !f.Native {
				return path.Base(f.File) + ":forward"
			}
		}
		return usage.NoModule
	}
	return normalStack(names, frames, names.Of(stack))
}

// normalStack names a stack by the functions of the program's own files that it passes through,
// innermost first. Where there are none, by the place it has, or what native calls it by.
func normalStack(known *usage.Names, frames []mem.Location, at *usage.Site) string {
	var names []string
	for _, f := range frames {
		if !f.Native && known.Kind(f.File) == usage.UserFile && !strings.HasPrefix(f.File, "<") {
			names = append(names, path.Base(f.File)+":"+f.Function)
		}
	}
	switch {
	case len(names) > 0:
		return strings.Join(names, " ← ")
	case at.Native || at.File == "" || at.File == "??":
		return at.Name
	}
	return at.Innermost
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

// Table shows the difference: every row is there, and they add up to it.
func (d *Difference) Table() report.Table {
	t := report.Table{Name: "diff", Title: d.title(),
		Note: fmt.Sprintf("All rows, %d of them, add up to %s bytes exactly.", len(d.Rows), report.Count(int64(d.Delta))),
		Columns: []report.Column{report.TextColumn("what", report.UpperFirst(d.By)),
			report.BytesColumn("delta", "Change", d.Label), report.BytesColumn("a", "Before", d.Label),
			report.BytesColumn("b", "After", d.Label),
			report.CountColumn("a_blocks", "Blocks before"), report.CountColumn("b_blocks", "Blocks after")}}
	if d.DeviceA.Known() {
		t.Note += fmt.Sprintf(" Device %d before is compared with device %d after: of several the one that holds most at "+
			"its peak.", d.DeviceA.Or(0), d.DeviceB.Or(0))
	}
	for i := range t.Columns[4:] { // blocks of a device that is not there are not measured either
		t.Columns[4+i].Label = d.Label
	}
	for _, r := range d.Rows {
		t.Add(r.Name, r.Delta, r.A, r.B, r.BlocksA, r.BlocksB)
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
	r.Headline.NotLooked = "Findings are each side's own: hightide explain prints them."
	table.Title = "Where the difference comes from, by " + d.By
	r.Tables = append(r.Tables, table)
	r.Notes = append(r.Notes,
		"Blocks alive at both peaks are matched by the functions that allocated them, so lines may move.")
	return r
}
