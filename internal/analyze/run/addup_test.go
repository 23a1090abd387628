package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// children is a run of 60 s whose main process starts n others of 10 MiB, each at a moment and until another.
func children(n int, from, to func(i int) float64) *mem.Run {
	run := mem.NewRun()
	must(run, mem.RunInfo{Host: mem.Host{PageSize: 4096}})
	must(run, mem.Process{ID: 1, PID: 100, Role: "main", Command: []string{"python", "serve.py"}, End: mem.Some(60e9)})
	for i := range n {
		id := uint32(2 + i)
		p := mem.Process{ID: id, PID: 100 + int(id), Parent: 1, Role: "child", Command: []string{"convert", "-"},
			Start: int64(from(i) * 1e9)}
		if end := to(i); end < 60 {
			p.End = mem.Some(int64(end * 1e9))
		}
		must(run, p)
		must(run, mem.SeriesDef{ID: id, Process: id, Name: mem.SeriesUSS, Unit: mem.UnitBytes})
		must(run, mem.Samples{Series: id, Times: []int64{p.Start + 1e8}, Values: []int64{10 << 20}})
	}
	return run
}

// forks has all processes run the main one's command, in a role.
func forks(run *mem.Run, role string) *mem.Run {
	for _, p := range run.Processes[1:] {
		p.Command, p.Role = run.Processes[0].Command, role
	}
	return run
}

// TestAddUp: processes that are started to the end of a program and do not end add up. A pool, work that ends, and
// processes that are all started early do not.
func TestAddUp(t *testing.T) {
	every := func(seconds float64) func(int) float64 { return func(i int) float64 { return 1 + seconds*float64(i) } }
	never := func(int) float64 { return 60 }
	for _, c := range []struct {
		name string
		run  *mem.Run
		want string
	}{
		{"none ends", children(20, every(2.9), never), "one every 2.9 s over the whole run, and 20 ran at once"},
		{"one of ten ends", children(20, every(2.9), func(i int) float64 {
			if i%10 == 3 {
				return every(2.9)(i) + 1
			}
			return 60
		}), "and 18 ran at once"},
		{"each ends", children(20, every(2.9), func(i int) float64 { return every(2.9)(i) + 2 }), ""},
		{"each ends after a while", children(20, every(2.9), func(i int) float64 { return every(2.9)(i) + 20 }), ""},
		{"a pool at the start", children(20, every(0.1), never), ""},
		{"a pool, and one more at the end", children(20, func(i int) float64 { return 1 + float64(i/19)*50 }, never), ""},
		{"until half of the time", children(20, every(1.5), never), ""},
		{"few", children(6, every(10), never), ""},
		{"forked", forks(children(20, every(2.9), never), "child"), "main started 20 forked processes, one every 2.9 s"},
		{"loaders", forks(children(20, every(2.9), never), "dataloader"), "main started 20 DataLoader workers, one"},
	} {
		var found []report.Finding
		for _, f := range Analyze(c.run, Options{}).Findings {
			if f.Kind == report.KindGrowth {
				found = append(found, f)
			}
		}
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].Text, c.want)) {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}
