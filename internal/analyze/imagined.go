package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/analyze/imagined"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// imaginedRun judges a run on imaginary GPUs; other runs it leaves alone.
func imaginedRun(in *Input, r *report.Report) {
	if in.label() != mem.Imagined || in.Run.Info.Verb != "imagine" {
		return
	}
	r.Imagined = imagined.Judge(in.Run)
	in.peakLines(r.Imagined)
	imagined.Tell(in.Run, r.Imagined, r)
}

// peakLines says which lines of the program held the peak of the fullest device: the blocks alive then,
// from the history that the allocator kept. Without a snapshot there is nothing to say.
func (in *Input) peakLines(v *report.Imagined) {
	process, device := imagined.Fullest(v)
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
				line = &report.HeldLine{File: where.File, Line: where.Line, Function: where.Function, User: where.user && where.Line > 0}
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
