package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// distributed is a run of four ranks; each has loaded `load` MiB, needs `rest` later and works `work` ms of each step.
func distributed(load, rest, work [4]int64) *mem.Run {
	const mib, ms = 1 << 20, int64(1e6)
	run := mem.NewRun()
	run.Add(mem.RunInfo{})
	for i := range uint32(4) {
		id := i + 1
		run.Add(mem.Process{ID: id, PID: 100 + int(id), Role: "main", Rank: mem.Some(int64(i))})
		run.Add(mem.SeriesDef{ID: id, Process: id, Name: mem.SeriesRSS, Unit: mem.UnitBytes})
		s := mem.Samples{Series: id}
		for at := range int64(20) {
			value := rest[i]
			if at < 5 {
				value = load[i]
			}
			s.Times, s.Values = append(s.Times, at*100*ms), append(s.Values, value*mib)
		}
		run.Add(s)
		var steps mem.Steps
		for n := range int64(10) {
			steps = append(steps, mem.Step{Process: id, Number: uint64(n + 1), Time: (600 + n*100) * ms, Duration: 100 * ms,
				RSS: mem.Some(rest[i] * mib)})
		}
		run.Add(steps)
		var spans mem.Spans
		for n := range int64(40) { // two passes a step, on a machine with other work
			for pass := range int64(2) {
				from := (600 + 50*n + 20*pass) * ms
				took := work[i]*ms/2 + (n*7919+pass*104729+int64(i)*31)%(8*ms)
				spans = append(spans, mem.Span{Process: id, Phase: mem.PhaseForward, Step: uint64(n), Start: from, End: from +
					took})
			}
		}
		if work[i] > 0 { // else nobody saw its passes
			run.Add(spans)
		}
	}
	return run
}

func rankFindings(run *mem.Run) (titles []string) {
	for _, f := range Analyze(run, Options{}).Findings {
		if f.Kind == report.KindRanks || f.Kind == report.KindLoading {
			titles = append(titles, f.Title)
		}
	}
	return titles
}

func TestRanks(t *testing.T) {
	even, loaded := [4]int64{1000, 1000, 1000, 1000}, [4]int64{3000, 3000, 3000, 3000}
	work := [4]int64{60, 60, 60, 60}
	failing := distributed(even, even, work)
	failing.Add(mem.Event{Time: 1.5e9, Process: 3, Kind: "oom", Text: "CUDA out of memory"})
	failing.Add(mem.Event{Time: 1.9e9, Process: 1, Kind: "exception", Text: "connection closed by peer"})
	once := distributed(even, even, work)
	once.Add(mem.Event{Time: 1.5e9, Process: 3, Kind: "oom", Text: "caught"})
	tests := []struct {
		name string
		run  *mem.Run
		want []string
	}{
		{"even", distributed(even, even, work), nil},
		{"each loads", distributed(loaded, even, work), []string{"Loading takes 7.81 GiB of host memory on 4 ranks"}},
		{"one loads", distributed([4]int64{3000, 1000, 1000, 1000}, even, work),
			[]string{"Rank 0 takes 1.95 GiB more host memory than the median rank"}},
		{"one is slow", distributed(even, even, [4]int64{60, 60, 95, 60}), []string{"Rank 2 is the straggler"}},
		{"one is slow, one was not observed", distributed(even, even, [4]int64{60, 0, 95, 60}),
			[]string{"Rank 2 is the straggler of the 3 ranks whose work was compared"}},
		{"a little slow", distributed(even, even, [4]int64{60, 60, 65, 60}), nil},
		{"one fails first", failing, []string{"Rank 2 failed first"}},
		{"one fails alone", once, nil},
	}
	for _, test := range tests {
		if got := rankFindings(test.run); strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestRanksSide: ranks as figures, and who of them is suspected first.
func TestRanksSide(t *testing.T) {
	even, work := [4]int64{1000, 1000, 1000, 1000}, [4]int64{60, 60, 95, 60}
	run := distributed([4]int64{3000, 1000, 1000, 1000}, even, work)
	for i := range run.Steps {
		run.Steps[i].Duration = 120e6
	}
	run.Add(mem.Event{Time: 1.5e9, Process: 2, Kind: "oom", Text: "CUDA out of memory"})
	run.Add(mem.Event{Time: 1.9e9, Process: 1, Kind: "exception", Text: "connection closed by peer"})
	meet(run, mem.SeriesEnteredBackward, 40, func(rank, _ int64) int64 { return work[rank] })
	side := Analyze(run, Options{}).Ranks
	if side == nil || len(side.Ranks) != 4 {
		t.Fatalf("%+v", side)
	}
	var who []string
	for _, s := range side.Suspects {
		who = append(who, s.Aspect+" "+itoa(s.Rank))
	}
	if got := strings.Join(who, ", "); got != "failed 1, work 2, host 0" {
		t.Errorf("suspects %s", got)
	}
	for i, k := range side.Ranks {
		waiting, ok := k.Waiting.Get()
		if slow := i == 2; k.Rank != int64(i) || !k.Work.Known() || !ok || (waiting == 0) != slow ||
			slow != (k.Work.Or(0) > 85e6) || slow != (k.Behind.Or(0) > 30e6) {
			t.Errorf("rank %d: %+v", i, k)
		}
		if k.Failed.Known() != (i < 2) || k.Allocated.Known() || k.Device.Known() {
			t.Errorf("rank %d: %+v", i, k)
		}
	}
	if got := strings.Join(side.NotCompared, " "); !strings.HasPrefix(got, "Device memory was not compared") {
		t.Errorf("not compared: %s", got)
	}
	side = Analyze(distributed(even, even, [4]int64{60, 0, 95, 60}), Options{}).Ranks
	if got := strings.Join(side.NotCompared, " "); !strings.HasPrefix(got, "The work of these ranks was not compared") ||
		!strings.Contains(got, "in full: 1. Who waits for whom was not told") {
		t.Errorf("not compared: %s", got)
	}
	if one := Analyze(mem.NewRun(), Options{}).Ranks; one != nil {
		t.Errorf("a run without ranks has %+v", one)
	}
}

// meet has four ranks come to where they meet in each step, `late` ms after it began.
func meet(run *mem.Run, gate mem.Quantity, steps int64, late func(rank, step int64) int64) {
	const ms = int64(1e6)
	for rank := range int64(4) {
		id := uint32(50 + len(run.Series))
		run.Add(mem.SeriesDef{ID: id, Process: uint32(rank) + 1, Name: gate, Unit: mem.UnitCount})
		s := mem.Samples{Series: id}
		for n := range steps {
			s.Times, s.Values = append(s.Times, (600+100*n+late(rank, n))*ms), append(s.Values, n)
		}
		run.Add(s)
	}
}

// TestWhoWaits: who waits follows from when each comes to where ranks meet, and not from how long each works before.
func TestWhoWaits(t *testing.T) {
	even, work := [4]int64{1000, 1000, 1000, 1000}, [4]int64{60, 60, 60, 60}
	for name, test := range map[string]struct {
		late func(rank, step int64) int64
		want string
	}{
		"one sleeps outside of all phases": {func(rank, _ int64) int64 { return 10 + 50*(rank%2)*(rank/3) },
			"Rank 3 is the straggler"},
		"all come together": {func(rank, step int64) int64 { return 10 + (rank*7+step*13)%4 }, ""},
		"each is last in turn": {func(rank, step int64) int64 {
			return 10 +
				50*max(0, 1-(rank-step%4)*(rank-step%4))
		}, ""},
		"one is last now and then": {func(rank, step int64) int64 {
			return 10 +
				50*max(0, 1-rank)*max(0, 1-step%8)
		}, ""},
		"two are late together": {func(rank, _ int64) int64 { return 10 + 50*(rank/2) }, ""},
	} {
		run := distributed(even, even, work)
		meet(run, mem.SeriesEnteredCollective, 40, test.late)
		if got := strings.Join(rankFindings(run), ", "); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	// What was waited for at one gate is not waited for again at the next: the gate counts at which they are furthest
	// apart.
	run := distributed(even, even, work)
	meet(run, mem.SeriesEnteredForward, 40, func(rank, _ int64) int64 { return 10 + 50*max(0, 1-rank) })
	meet(run, mem.SeriesEnteredBackward, 40, func(rank, _ int64) int64 { return 70 + rank })
	r := Analyze(run, Options{})
	if got := strings.Join(rankFindings(run), ", "); got != "Rank 0 is the straggler" || r.Ranks.Ranks[0].Waiting.Or(-1) != 0 || r.Ranks.Ranks[3].Waiting.Or(0) != 50e6 {
		t.Errorf("%s %+v", got, r.Ranks.Ranks)
	}
}
