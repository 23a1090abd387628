package analyze

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// peakLines says which lines of the program held the peak of the fullest device: the blocks alive then,
// from the history that the allocator kept. Without a snapshot there is nothing to say.
func (in *Input) peakLines(v *report.Imagined) {
	process, device := in.fullest(v)
	for _, file := range slices.Backward(in.Run.Snapshots) { // the newest has all that those before it had
		s := in.Options.Snapshots[file.Name]
		if s == nil || file.Process != process {
			continue
		}
		held := map[place]*report.HeldLine{}
		byStack := map[uint32]place{}
		for _, block := range NewHistory(s, device).Held() {
			where, ok := byStack[block.Stack]
			if !ok {
				where = in.places.search(s.Stacks.Frames(block.Stack))
				byStack[block.Stack] = where
			}
			line := held[where]
			if line == nil {
				line = &report.HeldLine{File: where.File, Line: where.Line, Function: where.Function}
				held[where] = line
			}
			line.Bytes += block.Size
			line.Blocks++
		}
		for _, line := range held {
			v.Lines = append(v.Lines, *line)
		}
		slices.SortFunc(v.Lines, func(a, b report.HeldLine) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
		v.Lines = v.Lines[:min(len(v.Lines), 20)]
		return
	}
}

// fullest is the process that had most of a device, and the index of that device.
func (in *Input) fullest(v *report.Imagined) (process uint32, device int) {
	var most mem.Bytes = -1
	for _, rank := range v.Ranks {
		if rank.Used > most {
			most, process = rank.Used, rank.Process
			device, _ = strconv.Atoi(rank.Device[strings.LastIndexByte(rank.Device, ':')+1:])
		}
	}
	return process, device
}
