package run

import (
	"maps"
	"slices"
	"strings"

	"hightide/internal/analyze/imagined"
	"hightide/internal/analyze/trace"
	"hightide/internal/mem"
	"hightide/internal/report"
)

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

// readSnapshots reads each snapshot once.
func readSnapshots(run *mem.Run, decoded map[string]*mem.AllocatorSnapshot) taken {
	all := taken{failed: map[uint32]*trace.Shortage{}}
	for _, file := range run.Snapshots {
		s := decoded[file.Name]
		if s == nil || file.AtPeak() { // the verdict has what is in it
			continue
		}
		for _, part := range trace.Parts(s, file.Name, run.Serves()) {
			all.held = agreeing(all.held, part.Table)
			all.pinned = append(all.pinned, part.Pinned)
			if part.Failed != nil {
				part.Failed.Process = file.Process
				all.failed[file.Process] = part.Failed
			}
		}
	}
	return all
}

// besidePeak says whether what held a device in snapshots is a column of the table of the lines that held its peak.
func (in *Input) besidePeak(h *heldIn) bool {
	v := in.Verdict
	return v != nil && len(v.Lines) > 0 && len(v.Devices) == 1 && h.table.Number.Or(mem.HostDevice) != mem.HostDevice
}

// beside makes what held the device in snapshots a column of that table.
func (h *heldIn) beside(peak *report.Table) {
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
}

// snapshots tell who held a device's memory when they were taken, and what was in the way where it had run out.
func snapshots(in *Input) (r report.Part) {
	for _, f := range in.taken.pinned {
		r.AddOnce(f)
	}
	for i := range in.taken.held {
		if held := &in.taken.held[i]; !in.besidePeak(held) {
			r.AddTable(held.table)
		}
	}
	for _, process := range slices.Sorted(maps.Keys(in.taken.failed)) { // once, however many snapshots tell of it
		if f := in.taken.failed[process].Scattered(); f != nil {
			r.Findings = append(r.Findings, *f)
		}
	}
	imagined.Tried(in.Verdict, r.Findings)
	return r
}
