package analyze

import (
	"maps"
	"slices"
	"strings"

	"hightide/internal/analyze/trace"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// heldIn is what held a device in snapshots that agree.
type heldIn struct {
	table report.Table
	files []string
}

// agreeing adds a table to those of other snapshots, once where they are the same.
func agreeing(all []heldIn, t report.Table) []heldIn {
	for i := range all {
		if o := &all[i]; o.table.Number == t.Number && slices.EqualFunc(o.table.Rows, t.Rows, slices.Equal) {
			o.files = append(o.files, t.File)
			o.table.Title = strings.TrimSuffix(o.table.Title, ")") + ", " + t.File + ")"
			return all
		}
	}
	return append(all, heldIn{t, []string{t.File}})
}

// besidePeak makes what held the device in snapshots a column of the table of the lines that held its peak; false:
// there is none, or it is of several devices.
func (h *heldIn) besidePeak(r *report.Report) bool {
	at := slices.IndexFunc(r.Tables, func(t report.Table) bool { return t.Name == "peak-lines" })
	if at < 0 || len(r.Imagined.Devices) != 1 || h.table.Number.Or(mem.HostDevice) == mem.HostDevice {
		return false
	}
	peak := &r.Tables[at]
	width, from := len(peak.Columns), h.table.Columns
	peak.Columns = append(peak.Columns, report.BytesColumn("in_snapshot", "in "+strings.Join(h.files, ", "),
		from[2].Label))
	for i := range peak.Rows {
		peak.Rows[i] = append(peak.Rows[i], nil)
	}
	for _, row := range h.table.Rows {
		i := slices.IndexFunc(peak.Rows, func(o []report.Cell) bool { return slices.Equal(o[:2], row[:2]) })
		if i < 0 {
			i = len(peak.Rows)
			peak.Rows = append(peak.Rows, append([]report.Cell{row[0], row[1]}, make([]report.Cell, width-1)...))
		}
		peak.Rows[i][width] = row[2]
	}
	return true
}

// snapshots reads the allocator snapshots that travel in the recording. They tell who held the device's
// memory at that moment, and, where it had run out, what was asked and what was in the way.
func snapshots(in *Input, r *report.Report) {
	var held []heldIn
	for _, file := range in.Run.Snapshots {
		s := in.Options.Snapshots[file.Name]
		if s == nil {
			continue
		}
		for _, part := range trace.Parts(s, file.Name) {
			held = agreeing(held, part.Table)
			r.AddOnce(part.Pinned)
			if part.Failed != nil {
				part.Failed.Process = file.Process
				in.failed[file.Process] = part.Failed
			}
		}
	}
	for i := range held {
		if !held[i].besidePeak(r) {
			r.AddTable(held[i].table)
		}
	}
	for _, process := range slices.Sorted(maps.Keys(in.failed)) { // once, however many snapshots tell of it
		if f := in.failed[process].Scattered(); f != nil {
			r.Findings = append(r.Findings, *f)
		}
	}
}
