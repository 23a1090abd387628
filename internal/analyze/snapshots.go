package analyze

import (
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const deviceLines = 20

// snapshots reads the allocator snapshots that travel in the recording: who held the device's
// memory at that moment, and, where it had run out, what was asked and what was in the way.
func snapshots(in *Input, r *report.Report) {
	for _, file := range in.Run.Snapshots {
		s := in.Options.Snapshots[file.Name]
		if s == nil {
			continue
		}
		for _, device := range s.Devices() {
			d := usage.FromTrace(s, device, usage.Whole)
			g := newGrouper(d, d.Moments-1, "site", &ExplainOptions{})
			r.AddTable(deviceTable(d, g.names, file.Name))
			if oom := outOfDeviceMemory(d, g); oom != nil {
				in.completeOOM(r, file.Process, d, oom)
			}
		}
	}
}

// deviceTable lists the lines that held the device when the snapshot was taken.
func deviceTable(d *usage.Device, names *usage.Names, name string) report.Table {
	totals := d.Snapshot.Totals(d.Number)
	t := report.Table{Name: "device", Subject: report.Subject{File: name, Number: mem.Some(int64(d.Number)), Of: fmt.Sprintf("device %d of %s", d.Number, name)}, Title: fmt.Sprintf("Who holds device %d (%s)", d.Number, name),
		Note: fmt.Sprintf("Allocated %v in %d blocks; reserved %v in %d segments; cached and split %v; largest free block %v.",
			totals.Allocated, totals.Blocks, totals.Reserved, totals.Segments, totals.InactiveSplit, totals.LargestFree),
		Columns: []report.Column{report.TextColumn("site", "Line"), report.TextColumn("function", "Function"), report.BytesColumn("bytes", "Holds", d.Label), report.CountColumn("blocks", "Blocks")}}
	held := usage.Groups(names, d.Held(d.Moments-1))
	for _, h := range held[:min(len(held), deviceLines)] {
		t.Rows = append(t.Rows, []report.Cell{h.Site.Name, report.TextCell(h.Site.Function), int64(h.Bytes), int64(h.Blocks)})
	}
	return t
}

// completeOOM completes the finding that the event of the same process made, or makes one, with what the allocator
// recorded of the last request that failed.
func (in *Input) completeOOM(r *report.Report, process uint32, d *usage.Device, oom *report.TraceOOM) {
	told := oomFinding(oom, &report.Allocator{Name: fmt.Sprintf("device %d", d.Number), Alone: true, Label: d.Label})
	told.Process = process
	i := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.Kind == report.KindOOM && f.Process == process })
	if i < 0 {
		r.Findings = append(r.Findings, told)
	} else {
		f := &r.Findings[i]
		told.Title, told.Label, told.Severity, told.Phase = f.Title, f.Label, f.Severity, f.Phase
		if told.Advice == "" {
			told.Advice = f.Advice
		}
		*f = told
	}
	if oom.WouldFit != nil && *oom.WouldFit && !*oom.Contiguous && mem.Bytes(oom.DeviceFree.Or(0)) < oom.Asked {
		r.Findings = append(r.Findings, report.Finding{Kind: report.KindFragmentation, Severity: report.Warning, Process: process, Label: d.Label,
			Title: "Enough memory was free, but not in one piece", Bytes: oom.Cached,
			Text: fmt.Sprintf("%v were cached and unused and %v free on the device, more than the %v asked for; the largest piece was %v.",
				mem.Bytes(oom.Cached.Or(0)), mem.Bytes(oom.DeviceFree.Or(0)), oom.Asked, mem.Bytes(oom.LargestFree.Or(0))),
			Advice: "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."})
	}
}
