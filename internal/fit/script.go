package fit

import (
	"cmp"
	"fmt"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// What a run of the command says as a trial.

// MeasuredTrial reads a trial off a recording of this machine, whose report is nil where it cannot be read.
func MeasuredTrial(batch int, id string, r *report.Report, exitCode mem.Optional) (Trial, error) {
	t := Trial{Batch: batch, Label: mem.Measured}
	if r == nil {
		return t, &TrialError{Text: "the trial's recording could not be read"}
	}
	peak := r.Headline.Peak
	t.Allocated, t.Reserved, t.Used, t.StepTime = peak.Allocated, peak.Reserved, peak.DeviceUsed, r.Headline.StepTime
	for _, f := range r.Findings {
		if f.Kind == report.KindOOM {
			t.Problem = f.Title
			return t, nil
		}
	}
	if code := exitCode.Or(1); code != 0 {
		return t, &TrialError{Text: fmt.Sprintf("the command ended with exit code %d and not for lack of memory; hightide show %s", code, id)}
	}
	t.OK = true
	return t, nil
}

// ImaginedTrial reads a trial off an imagined run and the last words of its output.
func ImaginedTrial(batch int, v *report.Imagined, said string) (Trial, error) {
	t := Trial{Batch: batch, OK: v.Fits(), Allocated: v.Allocated, Reserved: v.Reserved, Used: v.Used,
		Total: mem.Some(int64(v.Total)), Label: mem.Imagined}
	for i := range v.Undecided {
		t.Rests = append(t.Rests, fmt.Sprintf("%s was taken as %s", &v.Undecided[i], v.Undecided[i].Value))
	}
	switch {
	case t.OK && v.Shortages > 0: // it went on with less than this batch, or without some of its steps
		t.OK, t.Problem = false, fmt.Sprintf("it ran out of memory, which it caught %s", report.Times(v.Shortages))
	case t.OK:
		if used, ok := v.Used.Get(); ok && v.Reserved.Known() {
			t.Capacity = mem.Some(int64(v.Total) - used + v.Reserved.Or(0))
		}
	case v.Verdict == mem.VerdictOOM:
		t.Problem = cmp.Or(v.Note, "out of memory")
	default:
		text := fmt.Sprintf("the command gave no verdict: %s", cmp.Or(v.How, string(v.Verdict)))
		if said != "" && !strings.Contains(text, said) {
			text += "; its last output: " + said
		}
		return t, &TrialError{Text: text}
	}
	return t, nil
}
