package imagined

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// mostLines is how many lines of the peak a verdict names.
const mostLines = 20

// Lines says which lines of the program held a device's peak, those that held most first: the blocks alive then, from
// the history that the allocator kept.
func Lines(s *mem.AllocatorSnapshot, device int) (lines []report.HeldLine) {
	d := usage.FromTrace(s, device, usage.Whole)
	for _, g := range usage.Groups(usage.NewNames(d.Stacks), d.AtPeak()) {
		lines = append(lines, report.HeldLine{File: g.Site.File, Line: g.Site.Line, Function: g.Site.Function,
			User: g.Site.User && g.Site.Line > 0, Bytes: g.Bytes, Blocks: int64(g.Blocks)})
	}
	slices.SortFunc(lines, func(a, b report.HeldLine) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return lines[:min(len(lines), mostLines)]
}
