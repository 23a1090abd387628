package analyze

import (
	"fmt"
	"maps"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const deviceLines = 20

// snapshots reads the allocator snapshots that travel in the recording. They tell who held the device's
// memory at that moment, and, where it had run out, what was asked and what was in the way.
func snapshots(in *Input, r *report.Report) {
	for _, file := range in.Run.Snapshots {
		s := in.Options.Snapshots[file.Name]
		if s == nil {
			continue
		}
		parts := partsOf(s)
		for _, part := range parts {
			d, device := usage.FromTrace(part.of, part.device, usage.Whole), part.device
			if device != mem.HostDevice && !slices.Contains(s.Devices(), device) { // it holds nothing
				continue
			}
			g := newGrouper(d, d.Moments-1, "site", &ExplainOptions{})
			r.AddTable(deviceTable(d, g.names, file.Name))
			addOnce(r, pinnedRounding(d, d.Moments-1))
			if oom, held := outOfDeviceMemory(d, g); oom != nil {
				name := deviceName(device)
				told := recorded(oom, held, g.by, d.Label, name, name)
				told.Process = file.Process
				in.failed[file.Process] = told
			}
		}
	}
	for _, process := range slices.Sorted(maps.Keys(in.failed)) { // once, however many snapshots tell of it
		scattered(r, in.failed[process])
	}
}

// deviceTable lists the lines that held the device when the snapshot was taken.
func deviceTable(d *usage.Device, names *usage.Names, name string) report.Table {
	totals := d.Snapshot.Totals(d.Number)
	t := report.Table{Name: "device", Subject: report.Subject{File: name, Number: mem.Some(int64(d.Number)),
		Of: fmt.Sprintf("%s of %s", deviceName(d.Number), name)}, Title: fmt.Sprintf("Who holds %s (%s)", deviceName(d.Number), name),
		Note: fmt.Sprintf("Allocated %v in %d blocks; reserved %v in %d segments; cached and split %v; largest free block "+
			"%v.",
			totals.Allocated, totals.Blocks, totals.Reserved, totals.Segments, totals.InactiveSplit, totals.LargestFree),
		Columns: []report.Column{report.TextColumn("site", "Line"), report.TextColumn("function", "Function"),
			report.BytesColumn("bytes", "Holds", d.Label), report.CountColumn("blocks", "Blocks")}}
	held := usage.Groups(names, d.Held(d.Moments-1))
	for _, h := range held[:min(len(held), deviceLines)] {
		t.Add(h.Site.Name, h.Site.Function, h.Bytes, h.Blocks)
	}
	return t
}

func deviceName(number int) string {
	if number == mem.HostDevice {
		return hostName
	}
	return fmt.Sprintf("device %d", number)
}

// scattered says so where a request failed though there was enough memory, in pieces.
func scattered(r *report.Report, told *shortage) {
	o := told.record
	if o.WouldFit == nil || !*o.WouldFit || o.Contiguous == nil || *o.Contiguous ||
		mem.Bytes(o.DeviceFree.Or(0)) >= o.Asked {
		return
	}
	r.Findings = append(r.Findings, report.Finding{Kind: report.KindFragmentation, Severity: report.Warning,
		Process: told.Process, Label: told.Label,
		Title: "Enough memory was free, but not in one piece", Bytes: o.Cached,
		Text: fmt.Sprintf("%v were cached and unused and %v free on the device, more than the %v asked for; the largest "+
			"piece was %v.",
			mem.Bytes(o.Cached.Or(0)), mem.Bytes(o.DeviceFree.Or(0)), o.Asked, mem.Bytes(o.LargestFree.Or(0))),
		Advice: "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."})
}
