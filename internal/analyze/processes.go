package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

const processesShown = 40

// processes shows every process of the tree: its own high-water marks and what it was for.
func processes(in *Input, r *report.Report) {
	all := slices.Clone(in.Run.Processes)
	high := map[uint32]int64{}
	for _, p := range all {
		high[p.ID] = in.processPeak(p).Or(-1)
	}
	slices.SortStableFunc(all, func(a, b *mem.Process) int { return cmp.Compare(high[b.ID], high[a.ID]) })
	t := report.Table{
		Name: "processes", Title: "Processes",
		Note: "RSS counts shared pages in every process that maps them; PSS divides them among their users, USS leaves " +
			"them out; both are read seldom, and not shown where that was far from the peak.",
		Columns: []report.Column{report.TextColumn("process", "process"), report.TextColumn("pid", "pid"),
			report.BytesColumn("rss", "peak RSS", mem.Measured),
			report.BytesColumn("pss", "peak PSS", mem.Measured), report.BytesColumn("uss", "peak USS", mem.Measured),
			report.BytesColumn("heap", "peak heap", mem.Sampled), report.BytesColumn("swap", "peak swap", mem.Measured),
			report.BytesColumn("allocated", "peak allocated", in.label()),
			report.TimeColumn("cpu", "CPU"), report.CountColumn("threads", "threads"), report.TimeColumn("life", "life"),
			report.TextColumn("exit", "exit"), report.TextColumn("command", "command")},
	}
	for _, p := range all[:min(len(all), processesShown)] {
		peak, rss := in.processPeak(p), in.find(p.ID, mem.SeriesRSS)
		seldom := func(name mem.Quantity) mem.Optional { return readNearPeak(in.find(p.ID, name), rss, peak) }
		t.Add(role(p), itoa(int64(p.PID)), peak, seldom(mem.SeriesPSS), seldom(mem.SeriesUSS), in.heapPeak(p.ID),
			nonZero(in.maxOf(p.ID, mem.SeriesSwap)), in.allocatedBy(p.ID),
			in.lastOf(p.ID, mem.SeriesCPU), in.maxOf(p.ID, mem.SeriesThreads), max(p.End.Or(in.end)-p.Start, 0),
			ending(p), commandLine(p.Command))
	}
	if in.attached() {
		t.Note += " Of a process that ran before, life is from the beginning of the recording."
	}
	if left := len(all) - processesShown; left > 0 {
		t.Note += fmt.Sprintf(" The %d that took most; %d more are left out.", processesShown, left)
	}
	r.AddTable(t)
}

// allocatedBy is what a process allocated on its devices, each at its peak: as the process itself said at the end
// of an imagined run, else the highest sample. A process that used no device has none.
func (in *Input) allocatedBy(process uint32) mem.Optional {
	return in.peakOnDevices(process, mem.SeriesAllocated, func(p mem.DevicePeak) mem.Optional { return p.Allocated })
}

// peakOnDevices sums the peaks of a quantity over the devices of a process.
func (in *Input) peakOnDevices(process uint32, name mem.Quantity,
	imagined func(mem.DevicePeak) mem.Optional) mem.Optional {
	peaks := map[string]mem.Optional{}
	for _, s := range in.Run.Series {
		if s.Process == process && s.Name == name && len(s.Values) > 0 {
			peaks[s.Device] = mem.Some(peaks[s.Device].Or(0) + s.Values[s.Peak()]) // each framework's allocator has its own
		}
	}
	for _, p := range in.Run.Imagined.Peaks {
		if p.Process == process {
			peak := peaks[p.Device]
			peak.Raise(imagined(p))
			peaks[p.Device] = peak
		}
	}
	var sum mem.Optional
	for _, peak := range peaks {
		sum = sum.Plus(peak)
	}
	return nonZero(sum)
}

// processPeak is the highest RSS of a process: of the samples, and the kernel's own mark.
func (in *Input) processPeak(p *mem.Process) mem.Optional {
	high := p.MaxRSS
	high.Raise(in.maxOf(p.ID, mem.SeriesRSS))
	return high
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

// nonZero leaves out a zero that says nothing.
func nonZero(o mem.Optional) mem.Optional {
	if o.Or(0) == 0 {
		return mem.Optional{}
	}
	return o
}

func role(p *mem.Process) string {
	if rank, ok := p.Rank.Get(); ok && p.Role != "dataloader" {
		return "rank " + itoa(rank)
	}
	return cmp.Or(p.Role, "process")
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
