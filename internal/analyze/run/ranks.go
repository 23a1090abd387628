package run

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// ranks compares the processes of a distributed program: which works longest, takes most, failed first, and what
// loading took.
func ranks(in *Input) (r report.Part) {
	all := in.ranks()
	if len(all) < 2 {
		return r
	}
	t := report.Table{
		Name: "ranks", Title: "Ranks",
		Note: "Work is data and forward, in which no other rank is waited for. Behind is how long after the first rank " +
			"one comes to where ranks wait for each other, and waits is for the last one. Loading is the highest RSS up to " +
			"the end of the first step.",
		Columns: []report.Column{report.TextColumn("rank", "rank"), report.TextColumn("host", "process"),
			report.CountColumn("steps", "steps"), report.TimeColumn("step", "median step"),
			report.TimeColumn("work", "work / step"), report.TimeColumn("behind", "behind / step"),
			report.TimeColumn("waiting", "waits / step"), report.BytesColumn("rss", "peak RSS", mem.Measured),
			report.BytesColumn("load", "loading", mem.Measured),
			report.BytesColumn("allocated", "peak allocated", in.Label())},
	}
	for _, k := range all[:min(len(all), processesShown)] {
		t.Add(itoa(k.number), itoa(int64(k.PID)), int64(in.Run.Totals[k.ID].Steps), k.step, k.work, k.behind, k.waiting,
			k.host, k.load, k.device)
	}
	r.AddTable(t)
	in.loading(&r, all)
	if in.Verdict == nil { // else no kernel ran, so times say nothing
		in.straggler(&r, all)
	}
	in.imbalance(&r, all, "host memory", report.AspectHost, func(k *rank) mem.Optional { return k.host }, mem.Measured)
	in.imbalance(&r, all, "device memory", report.AspectDevice, func(k *rank) mem.Optional { return k.device }, in.Label())
	in.firstCause(&r, all)
	in.side(&r, all)
	return r
}

// ranks are the processes that have a rank and took steps or failed, by number.
func (in *Input) ranks() (all []*rank) {
	for _, p := range in.Run.Processes {
		number, ok := p.Rank.Get()
		failed := in.failedAt(p)
		if !ok || p.Role == "dataloader" || len(in.Steps[p.ID]) == 0 && !failed.Known() {
			continue
		}
		k := &rank{Process: p, number: number, step: in.StepTime(p.ID), host: in.ProcessPeak(p),
			device: in.AllocatedBy(p.ID), failed: failed}
		k.load, k.rest = in.loadOf(p.ID)
		all = append(all, k)
	}
	own := in.ownWork(all)
	for _, k := range all {
		k.work, k.workHalf = workOf(own[k.ID])
	}
	in.entered(all)
	slices.SortStableFunc(all, func(a, b *rank) int { return cmp.Compare(a.number, b.number) })
	if len(all) > 0 && all[0].number == all[len(all)-1].number {
		return nil // one rank, started again
	}
	return all
}

// ownWork is the time that each rank worked by itself in each step that was observed.
func (in *Input) ownWork(ranks []*rank) map[uint32]map[uint64]float64 {
	own := map[uint32]map[uint64]float64{}
	for _, k := range ranks {
		own[k.ID] = map[uint64]float64{}
	}
	if len(own) == 0 {
		return nil
	}
	for s := range in.Run.Spans.All() {
		if steps := own[s.Process]; steps != nil && (s.Phase == mem.PhaseData || s.Phase == mem.PhaseForward) {
			steps[s.Step] += float64(s.End - s.Start)
		}
	}
	return own
}

// workOf is the time of a step that a rank works by itself: the median of those that were observed, and half of its
// 95 % interval.
func workOf(own map[uint64]float64) (work, half mem.Optional) {
	delete(own, 0) // in which everything is done for the first time
	if len(own) < leastObserved {
		return mem.Optional{}, mem.Optional{}
	}
	sorted := slices.Sorted(maps.Values(own))
	middle := sorted[len(sorted)/2]
	// Ranks of order statistics, as of a binomial: no distribution is taken for granted.
	reach := int(0.98*math.Sqrt(float64(len(sorted)))) + 1
	low, high := sorted[max(len(sorted)/2-reach, 0)], sorted[min(len(sorted)/2+reach, len(sorted)-1)]
	return mem.Some(int64(middle)), mem.Some(int64(max(high-middle, middle-low)))
}

// loadOf is the highest RSS of a process up to the end of its first step, and the middle one of its later steps.
func (in *Input) loadOf(process uint32) (load, rest mem.Optional) {
	steps, rss := in.Steps[process], in.Find(process, mem.SeriesRSS)
	if len(steps) < 2 || rss == nil {
		return mem.Optional{}, mem.Optional{}
	}
	for i, at := range rss.Times {
		if at <= steps[0].Time {
			load.Raise(mem.Some(rss.Values[i]))
		}
	}
	var later []int64
	for _, s := range steps[len(steps)/2:] {
		if v, ok := s.RSS.Get(); ok {
			later = append(later, v)
		}
	}
	if len(later) > 0 {
		slices.Sort(later)
		rest = mem.Some(later[len(later)/2])
	}
	return load, rest
}

// failedAt is when a process first told of an error that ended it, or was killed.
func (in *Input) failedAt(p *mem.Process) mem.Optional {
	for _, e := range in.Run.Events {
		if e.Process == p.ID && (e.Kind == "oom" || e.Kind == "exception" || e.Kind == "kill") {
			return mem.Some(e.Time)
		}
	}
	if p.Signal.Known() {
		return p.End
	}
	return mem.Optional{}
}

// loading: several ranks had far more host memory before their first step than they need later.
func (in *Input) loading(r *report.Part, all []*rank) {
	var names []string
	var given mem.Bytes
	least := mem.Optional{}
	for _, k := range all {
		load, ok1 := k.load.Get()
		rest, ok2 := k.rest.Get()
		back := mem.Bytes(load - rest)
		if !ok1 || !ok2 || back < leastLoad || int64(back) < rest/4 {
			continue
		}
		names = append(names, itoa(k.number))
		given += back
		if !least.Known() || int64(back) < least.Or(0) {
			least = mem.Some(int64(back))
		}
	}
	if len(names) < 2 {
		return
	}
	r.Findings = append(r.Findings, report.Finding{
		Kind: report.KindLoading, Severity: report.Warning, Bytes: mem.Some(int64(given)), Label: mem.Measured,
		Title: fmt.Sprintf("Loading takes %v of host memory on %d ranks", given, len(names)),
		Text: fmt.Sprintf("Ranks %s each had at least %v more resident up to their first step than in later ones, %v "+
			"together (measured). That is what happens where every rank reads the whole checkpoint, builds the whole model "+
			"or prepares all data for itself.",
			listed(names), mem.Bytes(least.Or(0)), given),
		Advice: frameworks.LoadShared + " Build the model on the meta device.",
	})
}

// straggler: one rank works longer than the others, who wait for it.
func (in *Input) straggler(r *report.Part, all []*rank) {
	if in.lateRank(r, all) {
		return
	}
	most, middle := extreme(all, func(k *rank) mem.Optional { return k.work })
	if most == nil || most.work.Or(0) < int64(slower*float64(middle)) || most.work.Or(0)-middle < int64(leastBehind) {
		return
	}
	for _, k := range all { // as far as can be told, nobody else works as long
		if k != most && k.work.Known() && k.work.Or(0)+k.workHalf.Or(0) >= most.work.Or(0)-most.workHalf.Or(0) {
			return
		}
	}
	title := fmt.Sprintf("Rank %d is the straggler", most.number)
	if left := notWorked(all); len(left) > 0 {
		title += fmt.Sprintf(" of the %d ranks whose work was compared", len(all)-len(left))
	}
	r.Findings = append(r.Findings, report.Finding{
		Kind: report.KindRanks, Aspect: report.AspectWork, Severity: report.Info, Process: most.ID, Label: mem.Measured,
		Title: title,
		Text: fmt.Sprintf("%s: its data and forward passes take %s a step, the median rank's %s (measured, medians). When "+
			"ranks come to where they wait for each other was not seen.",
			title, report.Duration(most.work.Or(0)), report.Duration(middle)),
	})
}

// imbalance: one rank takes more than the others.
func (in *Input) imbalance(r *report.Part, all []*rank, what, aspect string, of func(*rank) mem.Optional,
	label mem.Label) {
	most, middle := extreme(all, of)
	if most == nil {
		return
	}
	high := of(most).Or(0)
	if high < int64(larger*float64(middle)) || mem.Bytes(high-middle) < leastApart {
		return
	}
	r.Findings = append(r.Findings, report.Finding{
		Kind: report.KindRanks, Aspect: aspect, Severity: report.Info, Process: most.ID, Bytes: mem.Some(high - middle),
		Label: label,
		Title: fmt.Sprintf("Rank %d takes %v more %s than the median rank", most.number, mem.Bytes(high-middle), what),
		Text: fmt.Sprintf("Rank %d takes more %s than the others: its peak is %v, the median rank's %v (%s).", most.number,
			what, mem.Bytes(high), mem.Bytes(middle), label),
	})
}

// firstCause: of several ranks that failed, the one that did first; what the others say may only follow from it.
func (in *Input) firstCause(r *report.Part, all []*rank) {
	failed := slices.DeleteFunc(slices.Clone(all), func(k *rank) bool { return !k.failed.Known() })
	if len(failed) < 2 {
		return
	}
	slices.SortStableFunc(failed, func(a, b *rank) int { return cmp.Compare(a.failed.Or(0), b.failed.Or(0)) })
	first, ahead := failed[0], failed[1].failed.Or(0)-failed[0].failed.Or(0)
	if ahead < int64(together) {
		return
	}
	r.Findings = append(r.Findings, report.Finding{
		Kind: report.KindRanks, Aspect: report.AspectFailed, Severity: report.Warning, Process: first.ID, Label: mem.Measured,
		Title: fmt.Sprintf("Rank %d failed first", first.number),
		Text: fmt.Sprintf("%d ranks failed. Rank %d did %s before the next one (measured), so the others' errors may only "+
			"follow from its own.",
			len(failed), first.number, report.Duration(ahead)),
	})
}

// notWorked are the numbers of the ranks whose work is not known: too few of their steps were observed.
func notWorked(all []*rank) (names []string) {
	for _, k := range all {
		if !k.work.Known() {
			names = append(names, itoa(k.number))
		}
	}
	return names
}

// extreme is the rank with the highest value, and the median of all; nil where fewer than two have one.
func extreme(all []*rank, of func(*rank) mem.Optional) (most *rank, middle int64) {
	var values []int64
	for _, k := range all {
		if v, ok := of(k).Get(); ok {
			values = append(values, v)
			if most == nil || v > of(most).Or(0) {
				most = k
			}
		}
	}
	if len(values) < 2 {
		return nil, 0
	}
	slices.Sort(values)
	return most, values[(len(values)-1)/2]
}

// listed is "0, 1 and 2".
func listed(names []string) string {
	if len(names) > 8 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:8], ", "), len(names)-8)
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// side sets ranks beside each other in figures, with what findings say of single ones.
func (in *Input) side(r *report.Part, all []*rank) {
	out := &report.Ranks{Ranks: []report.Rank{}, Suspects: []report.Suspect{}}
	for _, k := range all {
		row := report.Rank{Process: k.ID, Rank: k.number, Steps: in.Run.Totals[k.ID].Steps, RSS: k.host, Loading: k.load,
			Allocated:   k.device,
			Reserved:    in.PeakOnDevices(k.ID, mem.SeriesReserved, func(p mem.DevicePeak) mem.Optional { return p.Reserved }),
			Device:      in.MaxOf(k.ID, mem.SeriesDeviceProcess),
			DeviceLabel: in.Label()}
		if at, ok := k.failed.Get(); ok {
			row.Failed = mem.Some(in.Since(at))
		}
		if in.Verdict == nil { // else no kernel ran, so times say nothing
			row.Step, row.Work, row.WorkError = k.step, k.work, k.workHalf
			row.Behind, row.Waiting = k.behind, k.waiting
		}
		row.Growth, row.GrowthError = in.grown.OfProcess(k.ID, "rss")
		row.DeviceGrowth, row.DeviceError = in.grown.OfProcess(k.ID, "device")
		out.Ranks = append(out.Ranks, row)
	}
	out.Suspects = suspects(r, all)
	out.NotCompared = in.notCompared(all)
	r.Ranks = out
}

// suspects are the findings on single ranks. A failure comes before what may only have been slow or large.
func suspects(r *report.Part, all []*rank) []report.Suspect {
	order := []string{report.AspectFailed, report.AspectWork, report.AspectDevice, report.AspectHost}
	out := []report.Suspect{}
	for _, f := range r.Findings {
		at := slices.IndexFunc(all, func(k *rank) bool { return k.ID == f.Process })
		if f.Kind == report.KindRanks && at >= 0 {
			out = append(out, report.Suspect{Process: f.Process, Rank: all[at].number, Aspect: f.Aspect, Title: f.Title,
				Text: f.Text})
		}
	}
	slices.SortStableFunc(out, func(a, b report.Suspect) int {
		return cmp.Compare(slices.Index(order, a.Aspect), slices.Index(order, b.Aspect))
	})
	return out
}

// notCompared says what the ranks were not compared in.
func (in *Input) notCompared(all []*rank) (out []string) {
	left, devices := notWorked(all), 0
	for _, k := range all {
		if k.device.Known() {
			devices++
		}
	}
	switch {
	case in.Verdict != nil:
		out = append(out, "Times were not compared: no kernel ran on the imaginary GPUs.")
	case len(all)-len(left) < 2:
		out = append(out, fmt.Sprintf("Work was not compared: that takes %d steps of two ranks that were observed in full.",
			leastObserved))
	case len(left) > 0:
		out = append(out, fmt.Sprintf("The work of these ranks was not compared, which takes %d steps that were observed "+
			"in full: %s.", leastObserved, listed(left)))
	}
	if in.Verdict == nil && !slices.ContainsFunc(all, func(k *rank) bool { return k.behind.Known() }) {
		out = append(out, fmt.Sprintf("Who waits for whom was not told: that takes %d steps of each rank in which it was "+
			"seen to come to a collective.", leastObserved))
	}
	if devices < 2 {
		out = append(out, "Device memory was not compared: fewer than two ranks allocated any.")
	}
	return out
}
