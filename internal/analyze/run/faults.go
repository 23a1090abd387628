package run

import (
	"fmt"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// What a page fault costs, for an estimate. A minor one zeroes a 4 KiB page (0.25 µs to 1 µs on
// current servers, of which the kernel's own path is the larger part). A major one reads a disk.
const (
	minorFaultCost = 500 * time.Nanosecond
	majorFaultCost = 100 * time.Microsecond
)

// faults tells the story of page faults and swap.
func faults(in *Input) (r report.Part) {
	t := report.Table{
		Name: "faults", Title: "Page faults and swap",
		Note: fmt.Sprintf("The time is an estimate: %v a minor fault, %v a major one.", minorFaultCost, majorFaultCost),
		Columns: []report.Column{report.TextColumn("process", "process"), report.CountColumn("minor", "minor faults"),
			report.CountColumn("minor_per_step", "minor / step"),
			report.CountColumn("major", "major faults"), report.BytesColumn("swap", "peak swap", mem.Measured),
			{Name: "cost", Title: "time lost", Unit: mem.UnitNanoseconds, Label: mem.Estimated}},
	}
	for _, p := range in.Run.Processes {
		minor, major := in.LastOf(p.ID, mem.SeriesMinorFaults), in.LastOf(p.ID, mem.SeriesMajorFaults)
		if !minor.Known() && !major.Known() || len(t.Rows) >= processesShown {
			continue
		}
		var rate mem.Optional
		perStep, ok := in.faultsPerStep(p.ID)
		if ok {
			rate = mem.Some(int64(perStep))
		}
		swap := in.MaxOf(p.ID, mem.SeriesSwap)
		cost := minor.Or(0)*int64(minorFaultCost) + major.Or(0)*int64(majorFaultCost)
		t.Add(role(p), minor, rate, major, swap, cost)
		in.swapFinding(&r, p, swap)
		in.majorFinding(&r, p, major)
		if ok && p.ID == in.Leader {
			in.refaultNote(&r, p, perStep)
		}
	}
	r.AddTable(t)
	return r
}

// faultsPerStep is the rate of minor faults over the later half of the steps, after warm-up.
func (in *Input) faultsPerStep(process uint32) (float64, bool) {
	c, s := in.ClockOf(process), in.Find(process, mem.SeriesMinorFaults)
	if c.Minutes || s == nil {
		return 0, false
	}
	to := c.Times[len(c.Times)-1]
	from := c.Times[len(c.Times)/2]
	a, ok1 := s.At(from).Get()
	b, ok2 := s.At(to).Get()
	steps := c.At(to) - c.At(from)
	if !ok1 || !ok2 || steps < 5 || b < a {
		return 0, false
	}
	return float64(b-a) / steps, true
}

// refaultNote: memory that is given back and faulted in again every step.
func (in *Input) refaultNote(r *report.Part, p *mem.Process, perStep float64) {
	step, ok := in.StepTime(in.Leader).Get()
	if !ok || perStep < 1000 || step <= 0 {
		return
	}
	cost := perStep * float64(minorFaultCost)
	page := int64(max(in.Run.Info.Host.PageSize, 4096))
	if cost < 0.03*float64(step) {
		return
	}
	advice := "MALLOC_MMAP_THRESHOLD_=1073741824 MALLOC_TRIM_THRESHOLD_=4294967296 in the environment, or jemalloc, keeps it."
	if _, _, _, holes := in.manyHoles(p); holes { // their finding advises the contrary
		advice = "What keeps it for the next step makes more holes of the kind that is told above: time and memory are weighed here."
	}
	r.AddNote(fmt.Sprintf("Every step touches %v of fresh pages (%d minor faults): memory that is given back to the "+
		"kernel and faulted in again, about %.0f %% of the step's time (estimated). %s",
		mem.Bytes(perStep*float64(page)), int64(perStep), min(100*cost/float64(step), 99), advice))
}

const leastSwap = 64 * mem.MiB

func (in *Input) swapFinding(r *report.Part, p *mem.Process, swap mem.Optional) {
	s := in.Find(p.ID, mem.SeriesSwap)
	if s == nil || mem.Bytes(swap.Or(0)-s.Values[0]) < leastSwap {
		return
	}
	at := s.Times[s.Peak()]
	phase, step := in.PhaseAt(p.ID, at)
	where := ""
	if n, ok := step.Get(); ok {
		where = fmt.Sprintf(" in step %d", n+1)
	}
	r.Findings = append(r.Findings, report.Finding{
		Kind: report.KindSwap, Severity: report.Warning, Process: p.ID, Phase: phase, Bytes: swap, Label: mem.Measured,
		Title: fmt.Sprintf("%v of %s went to swap", mem.Bytes(swap.Or(0)), in.ProcessName(p.ID)),
		Text: fmt.Sprintf("%v of %s was swapped out%s (measured): the machine had no room left, and every touch of it "+
			"waits for the disk.",
			mem.Bytes(swap.Or(0)), in.ProcessName(p.ID), where),
		Advice: "Give the job more memory, or take less: a smaller batch, fewer DataLoader workers, or the lines listed " +
			"below.",
	})
}

// majorFinding: major faults that go on after the program was loaded from disk.
func (in *Input) majorFinding(r *report.Part, p *mem.Process, major mem.Optional) {
	s := in.Find(p.ID, mem.SeriesMajorFaults)
	if s == nil || len(s.Times) < 20 {
		return
	}
	half := len(s.Values) / 2
	late := s.Values[len(s.Values)-1] - s.Values[half]
	span := s.Times[len(s.Times)-1] - s.Times[half]
	if late < 500 || span <= 0 || float64(late)*float64(majorFaultCost) < 0.05*float64(span) {
		return
	}
	r.Findings = append(r.Findings, report.Finding{
		Kind: report.KindFaults, Severity: report.Warning, Process: p.ID, Label: mem.Measured,
		Title: fmt.Sprintf("%s keeps waiting for pages from disk", in.ProcessName(p.ID)),
		Text: fmt.Sprintf("%s (measured), %s of them in the later half of the run. Pages are read from disk again and "+
			"again, as when mapped files or swapped memory do not fit.",
			report.Counted(major.Or(0), "major page fault"), report.Count(late)),
		Advice: "Leave more memory for the page cache, or read the data in the order in which it lies on disk.",
	})
}
