package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// What processes must show, so that they are said to add up.
const (
	leastAddUp   = 8               // that ran at once at the end
	mostEnded    = 0.125           // of those that were started
	lastStarts   = 0.75            // of the parent's time, after which some were started
	leastAddUpOf = 16 * mem.MiB    // held by all of them
	leastStarts  = 5 * time.Second // from the first to the last
)

// addUp finds processes that a program starts one after the other, to its end, and that do not end: each holds as much
// as before, so that no process grows, and the memory of all does.
func addUp(in *Input) (r report.Part) {
	started := map[string][]*mem.Process{}
	var kinds []string
	for _, p := range in.Run.Processes {
		if p.Parent == 0 || len(p.Command) == 0 {
			continue
		}
		kind := fmt.Sprintf("%d %s", p.Parent, mem.CommandLine(p.Command))
		if started[kind] == nil {
			kinds = append(kinds, kind)
		}
		started[kind] = append(started[kind], p)
	}
	for _, kind := range kinds {
		if f, ok := in.addUpFinding(started[kind]); ok {
			r.Findings = append(r.Findings, f)
		}
	}
	return r
}

// addUpFinding is that of processes of one command that one process started; ok where they add up.
func (in *Input) addUpFinding(started []*mem.Process) (f report.Finding, ok bool) {
	parent := in.Run.Process(started[0].Parent)
	if parent == nil {
		return f, false
	}
	slices.SortStableFunc(started, func(a, b *mem.Process) int { return cmp.Compare(a.Start, b.Start) })
	end := parent.Bye.Or(parent.End.Or(in.End))
	first, last := started[0].Start, started[len(started)-1].Start
	whole := float64(end - max(parent.Start, in.Start))
	if last-first < int64(leastStarts) || float64(last-first) < lastStarts*whole || !evenly(started) {
		return f, false
	}
	alive := slices.DeleteFunc(slices.Clone(started), func(p *mem.Process) bool { return p.End.Or(in.End) <= last })
	ended := len(started) - len(alive)
	if len(alive) < leastAddUp || float64(ended) > mostEnded*float64(len(started)) {
		return f, false
	}
	held, what := in.heldByAll(alive)
	if held < leastAddUpOf {
		return f, false
	}
	each := (last - first) / int64(len(started)-1)
	rate := mem.Rounded(float64(held) / float64(len(alive)) / float64(each) * 60e9)
	them, times := kindOf(parent, started[0]), report.Count(int64(len(started)))
	f = report.Finding{Kind: report.KindGrowth, Severity: report.Warning, Process: parent.ID, Bytes: mem.Some(int64(held)),
		Label: mem.Measured, Confidence: 0.8,
		Title: fmt.Sprintf("%s %s add up: one more every %s", report.Count(int64(len(alive))), them, report.Duration(each))}
	f.Text = fmt.Sprintf("%s started %s %s, one every %s over the whole run, and %s ran at once when the last was "+
		"started. Together they held %v (measured: %s), %v more per minute. No process needs to grow for that. A program "+
		"that only starts what it needs looks the same.", in.ProcessName(parent.ID), times, them,
		report.Duration(each), report.Count(int64(len(alive))), held, what, rate)
	f.Advice = "End each process when it is no longer needed, and wait for it: `with subprocess.Popen(…)`, or terminate() " +
		"and wait() or join(). Or start a pool of a fixed number once, and give the work to that."
	if started[0].Role == "dataloader" {
		f.Advice = "Drop an iterator of a DataLoader before the next is made: each has workers of its own, which live as " +
			"long as it does. With persistent_workers=True one loader keeps its workers, so make each loader once."
	}
	return f, true
}

// kindOf is what processes of one command that a process started are called. One that was forked has its parent's
// command.
func kindOf(parent, one *mem.Process) string {
	switch {
	case one.Role == "dataloader":
		return "DataLoader workers"
	case mem.CommandLine(one.Command) == mem.CommandLine(parent.Command):
		return "forked processes"
	}
	return "processes of `" + commandLine(one.Command) + "`"
}

// evenly says whether processes, in the order of their starts, were started through all of the time: in each quarter of
// it, and in none more than half of them.
func evenly(started []*mem.Process) bool {
	var quarters [4]int
	first, last := started[0].Start, started[len(started)-1].Start
	for _, p := range started {
		quarters[min(4*(p.Start-first)/max(last-first, 1), 3)]++
	}
	return slices.Min(quarters[:]) > 0 && 2*slices.Max(quarters[:]) <= len(started)
}

// heldByAll is what processes held when they were read last, all by the same measure, and which that is.
func (in *Input) heldByAll(all []*mem.Process) (held mem.Bytes, what string) {
	sum := func(name mem.Quantity) (sum int64, ok bool) {
		for _, p := range all {
			s := in.Find(p.ID, name)
			if s == nil || len(s.Values) == 0 {
				return 0, false
			}
			sum += s.Values[s.Peak()]
		}
		return sum, true
	}
	if uss, ok := sum(mem.SeriesUSS); ok {
		return mem.Bytes(uss), "USS, pages that no other process uses"
	}
	rss, _ := sum(mem.SeriesRSS)
	return mem.Bytes(rss), "RSS, where pages that several use count in each"
}
