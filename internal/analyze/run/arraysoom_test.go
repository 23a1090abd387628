package run

import (
	"strings"
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
)

// TestAliveThen: arrays that were alive then are those of the profile of that moment, whatever is written at the exit.
func TestAliveThen(t *testing.T) {
	profile := func(bytes int64) *mem.Profile {
		p := &mem.Profile{Kinds: []mem.ProfileKind{{Name: "space", Unit: mem.UnitBytes}}, Label: mem.Measured}
		stack := p.Stacks.Add([]uint32{p.Stacks.Location(mem.Location{File: "train.py", Line: 7, Function: "main"})})
		p.Samples = []mem.ProfileSample{{Stack: stack, Values: []int64{bytes}}}
		return p
	}
	run := mem.NewRun()
	profiles := map[string]*mem.Profile{}
	for i, name := range []string{"oom-1-rank0-5.pb.gz", "exit-rank0-5.pb.gz"} {
		run.Add(mem.Snapshot{Process: 1, Name: name, Format: mem.ProfileFormat, Last: true})
		profiles[name] = profile(int64(3-i) << 30)
	}
	in := facts.Of(run, nil)
	if got := readProfiles(in, profiles).alive[1]; !strings.Contains(got, "3.00 GiB") {
		t.Errorf("%q", got)
	}
	delete(profiles, "oom-1-rank0-5.pb.gz")
	if got := readProfiles(in, profiles).alive[1]; got != "" {
		t.Errorf("of the exit alone: %q", got)
	}
}
