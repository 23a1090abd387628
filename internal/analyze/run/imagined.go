package run

import (
	"fmt"
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

// heldAtPeak tells the lines that held the peak of the fullest device of an imagined run. Without a file of the
// framework's that tells there is nothing to say.
func heldAtPeak(run *mem.Run, v *report.Imagined, snapshots map[string]*mem.AllocatorSnapshot,
	profiles map[string]*mem.Profile) {
	process, device := imagined.Fullest(v)
	var alive, program *mem.Profile
	var all []*mem.Profile // of TensorFlow, which does not tell which of them ran
	for _, file := range run.Snapshots {
		switch p := profiles[file.Name]; {
		case p == nil || file.Process != process || !file.AtPeak():
		case file.Format == mem.ProgramFormat:
			program, all = p, append(all, p)
		default:
			alive = p
		}
	}
	if alive != nil {
		v.Lines = imagined.LinesOfArrays(alive, program, fmt.Sprintf("cuda:%d", device))
		return
	}
	var histories []*mem.AllocatorSnapshot
	for _, file := range slices.Backward(run.Snapshots) {
		if s := snapshots[file.Name]; s != nil && file.Process == process {
			histories = append(histories, s)
			if !file.AtPeak() {
				break // the newest has all that those before it had
			}
		}
	}
	if len(histories) > 0 {
		imagined.Held(v, histories, all, device)
	}
}
