package analyze

import (
	"slices"

	"hightide/internal/analyze/imagined"
	"hightide/internal/report"
)

// imaginedRun judges a run on imaginary GPUs; other runs it leaves alone.
func imaginedRun(in *Input, r *report.Report) {
	if in.Verdict == nil {
		return
	}
	r.Imagined = in.Verdict
	in.peakLines(r.Imagined)
	imagined.Tell(in.Run, r.Imagined, r)
}

// peakLines gives a verdict the lines that held the peak of the fullest device. Without a snapshot there is nothing to
// say.
func (in *Input) peakLines(v *report.Imagined) {
	process, device := imagined.Fullest(v)
	for _, file := range slices.Backward(in.Run.Snapshots) { // the newest has all that those before it had
		if s := in.Options.Snapshots[file.Name]; s != nil && file.Process == process {
			v.Lines = imagined.Lines(s, device)
			return
		}
	}
}
