package analyze

import (
	"maps"
	"slices"

	"hightide/internal/analyze/trace"
	"hightide/internal/report"
)

// snapshots reads the allocator snapshots that travel in the recording. They tell who held the device's
// memory at that moment, and, where it had run out, what was asked and what was in the way.
func snapshots(in *Input, r *report.Report) {
	for _, file := range in.Run.Snapshots {
		s := in.Options.Snapshots[file.Name]
		if s == nil {
			continue
		}
		for _, part := range trace.Parts(s, file.Name) {
			r.AddTable(part.Table)
			r.AddOnce(part.Pinned)
			if part.Failed != nil {
				part.Failed.Process = file.Process
				in.failed[file.Process] = part.Failed
			}
		}
	}
	for _, process := range slices.Sorted(maps.Keys(in.failed)) { // once, however many snapshots tell of it
		if f := in.failed[process].Scattered(); f != nil {
			r.Findings = append(r.Findings, *f)
		}
	}
}
