package mem

import "testing"

// TestMomentText: no moment lies in a step that there was not.
func TestMomentText(t *testing.T) {
	for _, test := range []struct {
		phase Phase
		step  Optional
		done  int64
		want  string
	}{
		{PhaseBackward, Some(1), 90, "in backward of step 2"},
		{PhaseBackward, Some(90), 90, "in backward of step 91"}, // which began, and ended the program
		{PhaseEvaluation, Some(6), 0, "in the evaluation after step 6"},
		{PhaseEvaluation, Some(0), 0, "in the evaluation before step 1"},
		{PhaseCheckpoint, Some(60), 60, "in the checkpoint after step 60"},
		{PhaseStep, Some(6), 90, "in step 7"},
		{PhaseNone, Some(90), 90, "after step 90"},
		{PhaseNone, Some(0), 0, "in step 1"},
		{PhaseEvaluation, Optional{}, 0, "in evaluation"},
		{PhaseNone, Optional{}, 0, ""},
	} {
		if got := MomentText(test.phase, test.step, test.done); got != test.want {
			t.Errorf("%q of step %v of %d: %q, want %q", test.phase, test.step, test.done, got, test.want)
		}
	}
}
