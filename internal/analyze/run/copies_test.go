package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// forked is a run of a main process and two workers of it: what each has for itself and has resident, MiB at 8 moments.
func forked(own, resident func(at int64) int64, faults int64) *mem.Run {
	const mib = 1 << 20
	run := mem.NewRun()
	must(run, mem.RunInfo{Host: mem.Host{PageSize: 4096}})
	command := []string{"python", "train.py"}
	must(run, mem.Process{ID: 1, PID: 100, Role: "main", Command: command})
	for id := uint32(2); id < 4; id++ {
		must(run, mem.Process{ID: id, PID: 100 + int(id), Parent: 1, Role: "dataloader", Command: command, Start: 1e9})
		for i, name := range []mem.Quantity{mem.SeriesUSS, mem.SeriesRSS, mem.SeriesMinorFaults} {
			series := 10*id + uint32(i)
			must(run, mem.SeriesDef{ID: series, Process: id, Name: name, Unit: mem.UnitBytes})
			s := mem.Samples{Series: series}
			for at := range int64(8) {
				value := []int64{own(at) * mib, resident(at) * mib, faults * at / 7}[i]
				s.Times, s.Values = append(s.Times, (at+1)*1e9), append(s.Values, value)
			}
			must(run, s)
		}
	}
	return run
}

// also adds what else was read of the first worker, or of its parent, in MiB at the same moments.
func also(run *mem.Run, process uint32, name mem.Quantity, read func(at int64) int64) *mem.Run {
	series := mem.Samples{Series: 90 + process}
	must(run, mem.SeriesDef{ID: series.Series, Process: process, Name: name, Unit: mem.UnitBytes})
	for at := range int64(8) {
		series.Times, series.Values = append(series.Times, at*1e9), append(series.Values, read(at)<<20)
	}
	must(run, series)
	return run
}

// walked is a run through whose workers' heaps the agent has looked.
func walked(run *mem.Run) *mem.Run {
	for _, p := range run.Processes[1:] {
		p.SetNumber("heap_walk", 400_000)
	}
	return run
}

// inTurn is a run whose second worker began as the first had ended.
func inTurn(run *mem.Run) *mem.Run {
	run.Processes[1].End, run.Processes[2].Start, run.Processes[2].End = mem.Some(8e9), 8e9, mem.Some(16e9)
	return run
}

// TestCopies: pages that a worker took for itself while it allocated nothing are copies of its parent's, with the
// dataset's container.
func TestCopies(t *testing.T) {
	grows, still := func(at int64) int64 { return 8 + 28*at }, func(int64) int64 { return 580 }
	run := forked(grows, still, 55_000)
	must(run, mem.Event{Time: 1e9, Process: 1, Kind: "dataset", Bytes: mem.Some(int64(181 << 20)),
		Where: &mem.Location{File: "/home/me/train.py", Line: 11},
		Facts: map[string]string{"name": "Captions.rows", "kind": "list", "items": "800000", "contains": "str"}})
	for name, test := range map[string]struct {
		run  *mem.Run
		want string
	}{
		"copied": {run, "train.py:11 2 DataLoader workers copied 408 MiB of their parent's memory"},
		"copied, of what is unknown": {forked(grows, still, 55_000),
			":0 2 DataLoader workers copied 408 MiB of their parent's memory"},
		"allocated":           {forked(grows, func(at int64) int64 { return 580 + 28*at }, 55_000), ""},
		"nothing was written": {forked(grows, still, 900), ""}, // the parent let go of it: no page fault of the worker
		// until it was first read, each allocated 200 MiB
		"allocated at once": {also(forked(func(int64) int64 { return 210 }, still, 55_000), 1, mem.SeriesRSS,
			func(int64) int64 { return 380 }), ""},
		// what it let go made room for what it allocated
		"replaced": {also(forked(func(at int64) int64 { return 8 + 13*at }, still, 55_000), 2, mem.SeriesHeapLive,
			func(at int64) int64 { return 14 * at }), ":0 1 DataLoader worker copied 99.0 MiB of its parent's memory"},
		"replaced, without a heap":          {forked(grows, func(at int64) int64 { return 580 - 200*(at%2) }, 55_000), ""},
		"looked through by the agent":       {walked(forked(grows, still, 55_000)), ""},
		"as any worker, of what is unknown": {forked(func(at int64) int64 { return 8 + 7*at }, still, 55_000), ""},
		"in turn":                           {inTurn(forked(grows, still, 55_000)), ":0 1 DataLoader worker copied 204 MiB of its parent's memory"},
		"a little":                          {forked(func(at int64) int64 { return 8 + at }, still, 55_000), ""},
	} {
		got := ""
		for _, f := range Analyze(test.run, Options{}).Findings {
			if f.Kind == report.KindCopies {
				got += f.File[strings.LastIndex(f.File, "/")+1:] + ":" + itoa(int64(f.Line)) + " " + f.Title
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
