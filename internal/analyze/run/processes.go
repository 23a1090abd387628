package run

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
)

const processesShown = 40

// processes shows every process of the tree: its own high-water marks and what it was for.
func processes(in *Input) (r report.Part) {
	all := slices.Clone(in.Run.Processes)
	high := map[uint32]int64{}
	for _, p := range all {
		high[p.ID] = in.ProcessPeak(p).Or(-1)
	}
	slices.SortStableFunc(all, func(a, b *mem.Process) int { return cmp.Compare(high[b.ID], high[a.ID]) })
	t := report.Table{
		Name: "processes", Title: "Processes",
		Note: "RSS counts shared pages in every process that maps them; PSS divides them among their users, USS leaves " +
			"them out; both are read seldom, and not shown where that was far from the peak. Threads are the kernel's count, " +
			"with those that hightide has in the process.",
		Columns: []report.Column{report.TextColumn("process", "process"), report.TextColumn("pid", "pid"),
			report.BytesColumn("rss", "peak RSS", mem.Measured),
			report.BytesColumn("pss", "peak PSS", mem.Measured), report.BytesColumn("uss", "peak USS", mem.Measured),
			report.BytesColumn("heap", "peak heap", in.HeapLabel()),
			report.BytesColumn("swap", "peak swap", mem.Measured),
			report.BytesColumn("allocated", "peak allocated", in.Label()),
			report.TimeColumn("cpu", "CPU"), report.CountColumn("threads", "threads"), report.TimeColumn("life", "life"),
			report.TextColumn("exit", "exit"), report.TextColumn("command", "command")},
	}
	for _, p := range all[:min(len(all), processesShown)] {
		peak, rss := in.ProcessPeak(p), in.Find(p.ID, mem.SeriesRSS)
		seldom := func(name mem.Quantity) mem.Optional { return readNearPeak(in.Find(p.ID, name), rss, peak) }
		t.Add(role(p), itoa(int64(p.PID)), peak, seldom(mem.SeriesPSS), seldom(mem.SeriesUSS), in.HeapPeak(p.ID),
			facts.NonZero(in.MaxOf(p.ID, mem.SeriesSwap)), in.AllocatedBy(p.ID),
			in.LastOf(p.ID, mem.SeriesCPU), in.MaxOf(p.ID, mem.SeriesThreads), max(p.End.Or(in.End)-p.Start, 0),
			ending(p), commandLine(p.Command))
	}
	if in.Attached() {
		t.Note += " Of a process that ran before, life is from the beginning of the recording."
	}
	if left := len(all) - processesShown; left > 0 {
		t.Note += fmt.Sprintf(" The %d that took most; %d more are left out.", processesShown, left)
	}
	r.AddTable(t)
	return r
}

// readNearPeak is the highest of readings that are taken seldom, absent where the RSS was then so much
// below its peak that they say nothing about it.
func readNearPeak(readings, rss *mem.Series, peak mem.Optional) mem.Optional {
	if readings == nil || rss == nil {
		return mem.Optional{}
	}
	highest := readings.Peak()
	if then := rss.At(readings.Times[highest]).Or(0); then < peak.Or(0)/4*3 {
		return mem.Optional{}
	}
	return mem.Some(readings.Values[highest])
}

func role(p *mem.Process) string {
	if p.Role == "dataloader" {
		return p.Role
	}
	return cmp.Or(p.RankName(), p.Role, "process")
}

func ending(p *mem.Process) string {
	if signal, ok := p.Signal.Get(); ok {
		return "signal " + itoa(signal)
	}
	if code, ok := p.ExitCode.Get(); ok {
		return itoa(code)
	}
	return ""
}

// commandLine shortens a command to what tells it from others.
func commandLine(command []string) string {
	line := mem.CommandLine(command)
	if runes := []rune(line); len(runes) > 80 {
		line = string(runes[:79]) + "…"
	}
	return line
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
