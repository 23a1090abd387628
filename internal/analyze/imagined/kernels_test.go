package imagined

import (
	"strings"
	"testing"
)

func TestRunsOn(t *testing.T) {
	wheel := strings.Fields("sm_75 sm_80 sm_86 sm_90 sm_100 sm_120 compute_120")
	for capability, want := range map[[2]int]bool{{7, 0}: false, {7, 5}: true, {8, 0}: true, {8, 9}: true, {9, 0}: true,
		{10, 3}: true, {12, 1}: true, {13, 0}: true, {6, 1}: false} {
		if got := runsOn(wheel, capability[0], capability[1]); got != want {
			t.Errorf("%v: %v", capability, got)
		}
	}
	if runsOn([]string{"sm_90a"}, 9, 1) || !runsOn([]string{"sm_90a"}, 9, 0) || runsOn([]string{"sm_80"}, 9, 0) {
		t.Error("architecture-specific code runs elsewhere")
	}
	for _, c := range []struct {
		cuda         string
		major, minor int
		want         bool
	}{{"13.0", 7, 0, false}, {"13.0", 7, 5, true}, {"12.4", 10, 0, false}, {"12.8", 10, 0, true}, {"12.4", 6, 0, true},
		{"11.8", 9, 0, true}, {"11.7", 9, 0, false}} {
		if got := (Built{CUDA: c.cuda}).Knows(c.major, c.minor); got != c.want {
			t.Errorf("CUDA %s and %d.%d: %v", c.cuda, c.major, c.minor, got)
		}
	}
}
