package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// snapshots reads the allocator snapshots that travel in the recording: who held the device's
// memory at that moment, and, where it had run out, what was asked and what was in the way.
func snapshots(in *Input, r *report.Report) {
	for _, file := range in.Run.Snapshots {
		s := in.Options.Snapshots[file.Name]
		if s == nil {
			continue
		}
		for _, device := range s.Devices() {
			holders := in.deviceHolders(s, device)
			r.AddTable(deviceTable(s, device, file.Name, holders))
			if oom, ok := lastOOM(s, device); ok {
				in.explainOOM(r, file.Process, s, device, oom, holders)
			}
		}
	}
}

// deviceHolder is all that one line of the program holds on a device.
type deviceHolder struct {
	place
	stack  uint32
	bytes  mem.Bytes
	blocks int64
	most   mem.Bytes
}

// deviceHolders sums the blocks in use by line, largest first.
func (in *Input) deviceHolders(s *mem.AllocatorSnapshot, device int) []deviceHolder {
	byLine := map[place]*deviceHolder{}
	byStack := map[uint32]place{}
	for _, segment := range s.Segments {
		if segment.Device != device {
			continue
		}
		for _, b := range segment.Blocks {
			if b.State == mem.BlockInactive {
				continue
			}
			where, ok := byStack[b.Stack]
			if !ok {
				where = in.places.search(s.Stacks.Frames(b.Stack))
				byStack[b.Stack] = where
			}
			h := byLine[where]
			if h == nil {
				h = &deviceHolder{place: where}
				byLine[where] = h
			}
			h.bytes += b.Size
			h.blocks++
			if b.Size > h.most {
				h.most, h.stack = b.Size, b.Stack
			}
		}
	}
	var all []deviceHolder
	for _, h := range byLine {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(a, b deviceHolder) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all
}

func deviceTable(s *mem.AllocatorSnapshot, device int, name string, holders []deviceHolder) report.Table {
	totals := s.Totals(device)
	t := report.Table{Name: "device", Subject: report.Subject{File: name, Number: mem.Some(int64(device)), Of: fmt.Sprintf("device %d of %s", device, name)}, Title: fmt.Sprintf("Who holds device %d (%s)", device, name),
		Note: fmt.Sprintf("Allocated %v in %d blocks; reserved %v in %d segments; cached and split %v; largest free block %v.",
			totals.Allocated, totals.Blocks, totals.Reserved, totals.Segments, totals.InactiveSplit, totals.LargestFree),
		Columns: []report.Column{report.TextColumn("site", "Line"), report.TextColumn("function", "Function"), report.BytesColumn("bytes", "Holds", s.Label), report.CountColumn("blocks", "Blocks")}}
	for _, h := range holders[:min(len(holders), 20)] {
		t.Rows = append(t.Rows, []report.Cell{report.LineName(h.Location), report.TextCell(h.Function), int64(h.bytes), h.blocks})
	}
	return t
}

// oomEvent is a request that failed.
type oomEvent struct {
	asked, deviceFree mem.Bytes
	stack             uint32
}

func lastOOM(s *mem.AllocatorSnapshot, device int) (oomEvent, bool) {
	for _, t := range s.Traces {
		if t.Device != device {
			continue
		}
		for i := t.Len() - 1; i >= 0; i-- {
			if t.Action[i] == mem.ActionOOM {
				return oomEvent{t.Size[i], mem.Bytes(t.Address[i]), t.Stack[i]}, true
			}
		}
	}
	return oomEvent{}, false
}

// explainOOM completes the finding that the event of the same process made, or makes one, and says
// where the memory would have sufficed had it been in one piece.
func (in *Input) explainOOM(r *report.Report, process uint32, s *mem.AllocatorSnapshot, device int, oom oomEvent, holders []deviceHolder) {
	totals := s.Totals(device)
	i := slices.IndexFunc(r.Findings, func(f report.Finding) bool { return f.Kind == report.KindOOM && f.Process == process })
	if i < 0 {
		i = len(r.Findings)
		r.Findings = append(r.Findings, report.Finding{Kind: report.KindOOM, Severity: "critical", Process: process, Label: s.Label,
			Title: fmt.Sprintf("Device %d ran out of memory", device)})
	}
	f := &r.Findings[i]
	asking := in.places.search(s.Stacks.Frames(oom.stack))
	who := "What has " + report.NoFrames
	if asking.File != report.UnknownPlace {
		f.SiteFile, f.SiteLine, f.SiteFunction, who = asking.File, asking.Line, asking.Function, report.LineName(asking.Location)
	}
	f.Stack = s.Stacks.Frames(oom.stack)
	f.Bytes = mem.Some(int64(oom.asked))
	f.Text = fmt.Sprintf("%s asked for %v; the device had %v free, the allocator held %v of which %v were in use (largest free block %v).",
		who, oom.asked, oom.deviceFree, totals.Reserved, totals.Active, totals.LargestFree)
	if len(holders) > 0 {
		h := holders[0]
		by := "what has " + report.NoFrames
		if h.File != report.UnknownPlace {
			f.File, f.Line, by = h.File, h.Line, report.LineName(h.Location)
		}
		f.Text += fmt.Sprintf(" Most of it is held by %s: %v in %d blocks.", by, h.bytes, h.blocks)
	}
	cached := totals.Reserved - totals.Active
	if cached+oom.deviceFree >= oom.asked && totals.LargestFree < oom.asked {
		r.Findings = append(r.Findings, report.Finding{Kind: report.KindFragmentation, Severity: "warning", Process: process, Label: s.Label,
			Title: "Enough memory was free, but not in one piece", Bytes: mem.Some(int64(cached)),
			Text: fmt.Sprintf("%v were cached and unused and %v free on the device, more than the %v asked for; the largest piece was %v.",
				cached, oom.deviceFree, oom.asked, totals.LargestFree),
			Advice: "Try PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True."})
	}
}
