package run

import (
	"slices"

	"hightide/internal/analyze/imagined"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// imaginedRun tells the verdict of a run on imaginary GPUs; of other runs it has nothing to say.
func imaginedRun(in *Input) (r report.Part) {
	if in.Verdict == nil {
		return r
	}
	r = imagined.Tell(in.Run, in.Verdict)
	for i := range in.taken.held {
		if held := &in.taken.held[i]; in.besidePeak(held) {
			held.beside(r.Table("peak-lines"))
		}
	}
	return r
}

// heldAtPeak tells the lines that held the peak of the fullest device of an imagined run. Without a snapshot there is
// nothing to say.
func heldAtPeak(run *mem.Run, v *report.Imagined, snapshots map[string]*mem.AllocatorSnapshot) {
	process, device := imagined.Fullest(v)
	for _, file := range slices.Backward(run.Snapshots) { // the newest has all that those before it had
		if s := snapshots[file.Name]; s != nil && file.Process == process {
			imagined.Held(v, s, device)
			return
		}
	}
}
