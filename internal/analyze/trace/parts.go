package trace

import (
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// Part is what a snapshot says of one of its devices, for the report of a run.
type Part struct {
	Table  report.Table    // the lines that held it when the snapshot was taken
	Pinned *report.Finding // what rounding may take of pinned host memory; nil: nothing to tell
	Failed *Shortage       // the last request that found no memory; nil: none did
}

// Parts looks at what each device of a snapshot held at its end; one that holds nothing is left out. Of an LLM server
// lines of its engine are told, not that of the program which starts it.
func Parts(s *mem.AllocatorSnapshot, file string, server bool) (all []Part) {
	for _, part := range partsOf(s) {
		if part.device != mem.HostDevice && !slices.Contains(s.Devices(), part.device) {
			continue
		}
		d := usage.FromTrace(part.of, part.device, usage.Whole)
		all = append(all, Part{Table: deviceTable(d, siteNames(d, server), file), Pinned: pinnedRounding(d, d.Moments-1),
			Failed: lastFailed(d, server)})
	}
	return all
}

func siteNames(d *usage.Device, server bool) *usage.Names {
	names := usage.NewNames(d.Stacks)
	names.LibraryFirst = server
	return names
}

// lastFailed is the last request of a device that found no memory; nil: none did.
func lastFailed(d *usage.Device, server bool) *Shortage {
	g := newGrouper(d, d.Moments-1, "site", &Options{})
	g.names = siteNames(d, server)
	oom, held := outOfDeviceMemory(d, g)
	if oom == nil {
		return nil
	}
	name := deviceName(d.Number)
	return recorded(Shortage{Record: oom, Held: held, By: g.by, Names: g.names}, d.Label, name, name)
}

const deviceLines = 20

// deviceTable lists the lines that held the device when the snapshot was taken.
func deviceTable(d *usage.Device, names *usage.Names, name string) report.Table {
	totals := d.Snapshot.Totals(d.Number)
	t := report.Table{Name: "device", Subject: report.Subject{File: name, Number: mem.Some(int64(d.Number)),
		Of: fmt.Sprintf("%s of %s", deviceName(d.Number), name)},
		Title: fmt.Sprintf("Who holds %s (%s)", deviceName(d.Number), name),
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

// devicePart is a device of a snapshot; pinned host memory is one in a snapshot of its own.
type devicePart struct {
	of     *mem.AllocatorSnapshot
	device int
}

// partsOf lists the devices of a snapshot, pinned host memory last.
func partsOf(s *mem.AllocatorSnapshot) (parts []devicePart) {
	for _, device := range s.AllDevices() {
		parts = append(parts, devicePart{s, device})
	}
	if host := s.Host(); host != nil {
		parts = append(parts, devicePart{host, mem.HostDevice})
	}
	return parts
}
