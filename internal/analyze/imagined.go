package analyze

import (
	"cmp"
	"slices"

	"hightide/internal/analyze/imagined"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// imaginedRun judges a run on imaginary GPUs; other runs it leaves alone.
func imaginedRun(in *Input, r *report.Report) {
	if !in.judged() {
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
		d := usage.FromTrace(s, device, usage.Whole)
		for _, g := range usage.Groups(usage.NewNames(d.Stacks), d.AtPeak()) {
			v.Lines = append(v.Lines, report.HeldLine{File: g.Site.File, Line: g.Site.Line, Function: g.Site.Function,
				User:  g.Site.User && g.Site.Line > 0,
				Bytes: g.Bytes, Blocks: int64(g.Blocks)})
		}
		slices.SortFunc(v.Lines, func(a, b report.HeldLine) int {
			return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
		})
		v.Lines = v.Lines[:min(len(v.Lines), 20)]
		return
	}
}
