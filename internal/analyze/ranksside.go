package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// side sets ranks beside each other in figures, with what findings say of single ones.
func (in *Input) side(r *report.Report, all []*rank) {
	out := &report.Ranks{Ranks: []report.Rank{}, Suspects: []report.Suspect{}}
	var shortest mem.Optional // of what a step takes beside a rank's own work
	for _, k := range all {
		if rest, ok := k.others(); ok && (!shortest.Known() || rest < shortest.Or(0)) {
			shortest = mem.Some(rest)
		}
	}
	for _, k := range all {
		row := report.Rank{Process: k.ID, Rank: k.number, Steps: in.Run.Totals[k.ID].Steps, RSS: k.host, Loading: k.load, Allocated: k.device,
			Reserved: in.peakOnDevices(k.ID, mem.SeriesReserved, func(p mem.DevicePeak) mem.Optional { return p.Reserved }), Device: in.maxOf(k.ID, mem.SeriesDeviceProcess),
			DeviceLabel: in.label()}
		if at, ok := k.failed.Get(); ok {
			row.Failed = mem.Some(in.since(at))
		}
		if r.Imagined == nil { // else no kernel ran, so times say nothing
			row.Step, row.Work, row.WorkError = k.step, k.work, k.workHalf
			if rest, ok := k.others(); ok {
				row.Waiting = mem.Some(rest - shortest.Or(0))
			}
		}
		row.Growth, row.GrowthError = in.growthOf(k.ID, "rss")
		row.DeviceGrowth, row.DeviceError = in.growthOf(k.ID, "device")
		out.Ranks = append(out.Ranks, row)
	}
	out.Suspects = suspects(r, all)
	out.NotCompared = in.notCompared(r, all)
	r.Ranks = out
}

// others is what a step takes beside data and forward: where ranks wait for each other.
func (k *rank) others() (int64, bool) {
	step, ok1 := k.step.Get()
	work, ok2 := k.work.Get()
	return max(step-work, 0), ok1 && ok2
}

// growthOf is what a process keeps with each step: 0 where that was looked for and is not there.
func (in *Input) growthOf(process uint32, source string) (slope, half mem.Optional) {
	if in.clockOf(process).minutes || !slices.Contains(in.tested[process], source) {
		return
	}
	for _, t := range in.totals {
		if t.process == process && t.source == source {
			return mem.Some(int64(t.Slope)), mem.Some(int64(t.Half))
		}
	}
	return mem.Some(0), mem.Optional{}
}

// suspects are the findings on single ranks. A failure comes before what may only have been slow or large.
func suspects(r *report.Report, all []*rank) []report.Suspect {
	order := []string{report.AspectFailed, report.AspectWork, report.AspectDevice, report.AspectHost}
	out := []report.Suspect{}
	for _, f := range r.Findings {
		at := slices.IndexFunc(all, func(k *rank) bool { return k.ID == f.Process })
		if f.Kind == report.KindRanks && at >= 0 {
			out = append(out, report.Suspect{Process: f.Process, Rank: all[at].number, Aspect: f.Aspect, Title: f.Title, Text: f.Text})
		}
	}
	slices.SortStableFunc(out, func(a, b report.Suspect) int {
		return cmp.Compare(slices.Index(order, a.Aspect), slices.Index(order, b.Aspect))
	})
	return out
}

// notCompared says what the ranks were not compared in.
func (in *Input) notCompared(r *report.Report, all []*rank) (out []string) {
	left, devices := notWorked(all), 0
	for _, k := range all {
		if k.device.Known() {
			devices++
		}
	}
	switch {
	case r.Imagined != nil:
		out = append(out, "Times were not compared: no kernel ran on the imaginary GPUs.")
	case len(all)-len(left) < 2:
		out = append(out, fmt.Sprintf("Work was not compared: that takes %d steps of two ranks that were observed in full.", leastObserved))
	case len(left) > 0:
		out = append(out, fmt.Sprintf("The work of these ranks was not compared, which takes %d steps that were observed in full: %s.", leastObserved, listed(left)))
	}
	if devices < 2 {
		out = append(out, "Device memory was not compared: fewer than two ranks allocated any.")
	}
	return out
}
