package tune

import (
	"context"
	"strings"
	"testing"

	"hightide/internal/levers"
	"hightide/internal/mem"
)

// loading is a training that fits the device as it is, and whose processes take 2000 MiB of the host.
type loading struct {
	program
	saves    map[string]mem.Bytes // of the host, by lever
	together []string
}

func (l *loading) try(ctx context.Context, runs []Run) []*Outcome {
	outcomes := l.program.try(ctx, runs)
	for i, run := range runs {
		if !run.Apart || outcomes[i].Refused != "" {
			continue
		}
		if len(runs) > 1 {
			l.together = append(l.together, run.Plan.Changes())
		}
		host := 2000 * mem.MiB
		for name, settings := range run.Plan.Levers {
			if host -= l.saves[name]; name == levers.Workers {
				host -= mem.Bytes(4-settings.Workers) * 100 * mem.MiB
			}
		}
		outcomes[i].Host, outcomes[i].HostError = mem.Some(int64(host)), mem.Some(int64(10*mem.MiB))
	}
	return outcomes
}

// TestHostMemory: the cheapest levers of the host that bring all processes under what they may take, error included; of
// several, those that are needed.
func TestHostMemory(t *testing.T) {
	for _, test := range []struct {
		host    mem.Bytes
		want    string // what is recommended
		exact   bool
		refuses map[string]string
	}{
		{2010 * mem.MiB, "no change", true, nil},
		{2009 * mem.MiB, "malloc settings", true, map[string]string{levers.SharedData: "no workers"}},
		{1500 * mem.MiB, "one copy of the data set", true, nil},
		{1300 * mem.MiB, "one copy of the data set, one batch ahead", true, nil},
		{1250 * mem.MiB, "one copy of the data set, malloc settings, one batch ahead", true, nil},
		{1100 * mem.MiB, "one copy of the data set, one batch ahead, fewer workers, 2 at most", false, nil},
		{900 * mem.MiB, "", false, nil},
		{1300 * mem.MiB, "", false, map[string]string{levers.SharedData: "no workers"}},
	} {
		l := &loading{
			program: program{recorded: &Recorded{}, model: "Net 10", total: 1 << 30, tight: mem.MiB, refuses: test.refuses},
			saves: map[string]mem.Bytes{levers.SharedData: 600 * mem.MiB, levers.Ahead: 120 * mem.MiB,
				levers.Malloc: 60 * mem.MiB}}
		o := Options{Command: []string{"python"}, GPU: "a10", Goal: "fit", Host: test.host}
		r, err := Find(t.Context(), o, Host{Try: l.try})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.together) > 0 {
			t.Errorf("%v: %v ran beside others", test.host, l.together)
		}
		if test.want == "" {
			if r.Recommended != nil || !strings.HasPrefix(r.Answer, "No plan that was run takes at most") {
				t.Errorf("%v, without %v: %q", test.host, test.refuses, r.Answer)
			}
			continue
		}
		if r.Recommended == nil {
			t.Errorf("%v: %s", test.host, r.Answer)
			continue
		}
		highest := r.Recommended.Planned.Host + 10*mem.MiB
		if got := r.Recommended.Changes(); got != test.want || r.Recommended.Exact() != test.exact || highest > test.host {
			t.Errorf("%v: %q takes %v, want %q; exact: %v", test.host, got, highest, test.want, r.Recommended.Exact())
		}
		if !strings.Contains(r.Answer, "(PSS) of the host's") {
			t.Errorf("%v: %q", test.host, r.Answer)
		}
	}
}
