package fit

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Text is the result for a terminal: the answer, the table of trials with its picture, and what
// follows from them.
func (r *Result) Text(o report.TextOptions) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("%s", strings.Join(report.Wrap(r.answer(), o.Width), "\n"))
	b.WriteString(r.Table().Text(o))
	line("")
	for _, text := range r.remarks() {
		line("  %s", strings.Join(report.Wrap(text, max(o.Width-2, 0)), "\n  "))
	}
	return b.String()
}

// answer is the result in one sentence.
func (r *Result) answer() string {
	where := "this machine's GPU"
	switch {
	case r.GPU != nil:
		where = fmt.Sprintf("an imaginary %s (%v)", r.GPU.Name, r.GPU.Total)
	case r.Device == "cpu":
		where = "this machine's CPU"
	case r.Worker.Device != "":
		where = r.Worker.Device
	}
	if r.Largest == 0 {
		return fmt.Sprintf("Not even a batch of %d fits on %s (%s).", max(r.Fails, r.Granularity), where, r.Label)
	}
	answer := fmt.Sprintf("The largest batch that fits on %s is %s", where, report.Count(int64(r.Largest)))
	if r.Fails == 0 {
		return answer + fmt.Sprintf(", the most that was tried; nothing failed (%s).", r.Label)
	}
	return answer + fmt.Sprintf("; %s does not (%s).", report.Count(int64(r.Fails)), r.Label) + r.tightly()
}

// tightly says so where the largest batch leaves less room than the figures are sure of, and which one leaves it.
func (r *Result) tightly() string {
	used, ok := r.usedAt(r.Largest)
	tight, known := r.Tight.Get()
	if left := r.Total.Or(0) - used.bytes; ok && known && left < tight {
		text := fmt.Sprintf(" It fits tightly: it leaves %v. With less than %v, it may not fit under other drivers, "+
			"settings or versions.", mem.Bytes(left), mem.Bytes(tight))
		if r.Roomy == 0 {
			return text
		}
		text += fmt.Sprintf(" A batch of %s leaves that", report.Count(int64(r.Roomy)))
		if used, ok := r.usedAt(r.Roomy); ok && r.RoomyLabel == mem.Estimated {
			return text + fmt.Sprintf(", on a line between the trials: it takes %v (%s).", mem.Bytes(used.bytes),
				labelled(r.RoomyLabel, r.RoomyError))
		}
		return text + fmt.Sprintf(" (%s).", r.RoomyLabel)
	}
	return ""
}

// labelled is a figure's label, and the error of an estimate.
func labelled(label mem.Label, most mem.Optional) string {
	if bytes, ok := most.Get(); ok {
		return fmt.Sprintf("%s ± %v", label, mem.Bytes(bytes))
	}
	return string(label)
}

// level says whether all trials were seen to take the same.
func level(all []Trial) bool {
	return all[0].Allocated.Known() && !slices.ContainsFunc(all,
		func(t Trial) bool { return t.Allocated != all[0].Allocated })
}

// remarks are what people would work out next.
func (r *Result) remarks() []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if unused, ok := r.Unused.Get(); ok && r.Largest > 0 {
		total := r.Total.Or(1)
		add("A batch of %d leaves %v (%d %%) of the device unused (%s).", r.Current, mem.Bytes(unused), unused*100/total,
			labelled(r.UnusedLabel, r.UnusedError))
	}
	if all := r.fitting(); r.Fails == 0 && len(all) > 1 && level(all) {
		add("All %d batches took the same memory, so what was tried is not a limit: the batch size may not have reached "+
			"the step.", len(all))
	}
	if r.shortened() {
		add("A reason that ends with … is cut; --json has the whole.")
	}
	if p := r.Plan; p != nil {
		add("For a batch of %d: %d samples at a time, %d accumulation steps (%d in all).", p.Target, p.Micro, p.Steps,
			p.Batch)
	}
	if c := r.Backward; c != nil {
		forward, ok1 := c.Forward.Get()
		both, ok2 := c.Both.Get()
		if ok1 && ok2 && forward > 0 {
			add("At batch %d a forward pass alone peaks at %v, with its backward pass at %v: %.2f times (%s).",
				c.Batch, mem.Bytes(forward), mem.Bytes(both), float64(both)/float64(forward), r.Label)
		}
	}
	if r.Knee > 0 && len(r.Throughput) > 1 {
		add("Beyond a batch of %d the throughput rises by less than 5 %% (measured).", r.Knee)
	}
	if m := r.MemoryMark; m != nil && m.Speedup != nil {
		add("%.2f times the samples per second of batch %d (measured).", *m.Speedup, r.Current)
	}
	if c := r.Cost; c != nil {
		seller, _, _ := strings.Cut(c.Source, ",") // what follows is where the price was found
		if c.Date != "" {
			seller += ", " + c.Date
		}
		text := fmt.Sprintf("%.2f USD an hour, %.0f a year of continuous use (%s)", c.PerHour, c.PerYear, seller)
		if c.PerRun > 0 {
			text += fmt.Sprintf("; %.3f per million samples at this batch", c.PerRun)
		}
		add("%s.", text)
	}
	if best, ok := r.best(); ok {
		for _, text := range best.Rests {
			add("It rests on this: %s.", text)
		}
	}
	if r.Label == mem.Imagined {
		add("Memory is the framework's own on an imaginary device; time is not measured there, so no speed-up is stated.")
	}
	if v := r.Worker.Versions[frameworks.Torch]; v != "" {
		add("%s in %s; torch %s of %s.", report.Counted(int64(len(r.Trials)), "trial"), report.Duration(r.Duration), v,
			r.Worker.Python)
	}
	return append(all, r.Notes...)
}
