package fit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/gpus"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Result is what `fit --json` prints.
type Result struct {
	Version     int            `json:"version" doc:"The version of this form."`
	Label       mem.Label      `json:"label" doc:"Where the figures come from: imagined or measured."`
	Device      string         `json:"device" doc:"Where it ran: imaginary, cuda or cpu."`
	GPU         *gpus.GPU      `json:"gpu_facts,omitempty" doc:"The row of the catalogue, of an imaginary device."`
	Slug        string         `json:"gpu,omitempty" doc:"The short name of that GPU."`
	Total       mem.Optional   `json:"total_bytes,omitzero" doc:"The memory of the device in bytes."`
	Worker      Ready          `json:"model" doc:"What was run, with which Python and versions."`
	Command     []string       `json:"command,omitempty" doc:"The command, with {batch} in it; absent: a model was built."`
	Granularity int            `json:"granularity" doc:"Only multiples of this batch were tried."`
	Largest     int            `json:"largest_batch" doc:"The largest batch that fits; 0: not even the smallest."`
	Fails       int            `json:"fails_at,omitempty" doc:"The least batch that was seen to fail; absent: none was."`
	Tight       mem.Optional   `json:"tight_below_bytes,omitzero" doc:"Room in bytes below which a fit is called tight: other drivers, settings or versions may not fit."`
	Roomy       int            `json:"largest_with_room,omitempty" doc:"Where the largest batch leaves less room than that: the largest that leaves it."`
	RoomyLabel  mem.Label      `json:"largest_with_room_label,omitempty" doc:"How that is known: estimated where that batch was not run."`
	RoomyError  mem.Optional   `json:"largest_with_room_error_bytes,omitzero" doc:"How far the memory of that batch may be off, in bytes."`
	Trials      []Trial        `json:"trials" doc:"What was tried, in that order."`
	Current     int            `json:"current_batch" doc:"The batch in use now."`
	Unused      mem.Optional   `json:"unused_at_current_bytes,omitzero" doc:"What that batch leaves of the device, in bytes."`
	UnusedLabel mem.Label      `json:"unused_at_current_label,omitempty" doc:"How that is known: estimated, where that batch was not run, from the line between those that were."`
	UnusedError mem.Optional   `json:"unused_at_current_error_bytes,omitzero" doc:"The error of an estimate in bytes: the distance to the further of the two that were run."`
	Plan        *Accumulation  `json:"accumulation,omitempty" doc:"With --grad-accum: how to reach that batch."`
	Backward    *BackwardCheck `json:"validate_backward,omitempty" doc:"With --validate-backward: the peak beside that of the forward pass alone."`
	Cost        *Cost          `json:"cost,omitempty" doc:"What the GPU costs."`
	Throughput  []Throughput   `json:"throughput,omitempty" doc:"Of measured devices: samples a second by batch."`
	Knee        int            `json:"knee_batch,omitempty" doc:"Of measured devices: beyond this batch a larger one gains little speed."`
	MemoryMark  *MemoryMark    `json:"memorymark,omitempty" doc:"The same in the fields of MemoryMark."`
	Duration    int64          `json:"duration_ns" doc:"How long the search took, in ns."`
	Notes       []string       `json:"notes" doc:"What else is to be known, for people."`
}

// Accumulation is how to reach a batch that does not fit at once.
type Accumulation struct {
	Target int `json:"target_batch" doc:"The batch asked for."`
	Micro  int `json:"micro_batch" doc:"The batch of one pass."`
	Steps  int `json:"accumulation_steps" doc:"How many passes make an optimizer step."`
	Batch  int `json:"effective_batch" doc:"Their product: at least the target, where it does not divide evenly."`
}

// BackwardCheck compares a forward pass with one that is followed by its backward pass.
type BackwardCheck struct {
	Batch   int          `json:"batch" doc:"The batch that was run."`
	Forward mem.Optional `json:"forward_peak_allocated_bytes,omitzero" doc:"The peak of the forward pass alone, in bytes."`
	Both    mem.Optional `json:"peak_allocated_bytes,omitzero" doc:"The peak of both passes, in bytes."`
}

// Cost is what the GPU costs while it is rented.
type Cost struct {
	PerHour float64 `json:"usd_per_hour" doc:"The price in USD an hour."`
	PerYear float64 `json:"usd_per_year" doc:"The price in USD of a year of continuous use."`
	PerRun  float64 `json:"usd_per_million_samples,omitempty" doc:"The price in USD of a million samples, where time was measured."`
	Source  string  `json:"source" doc:"Whose price it is."`
	Date    string  `json:"date,omitempty" doc:"Of which day it is."`
}

// Throughput of one batch size.
type Throughput struct {
	Batch     int     `json:"batch" doc:"The batch."`
	PerSecond float64 `json:"samples_per_s" doc:"Samples a second."`
}

const hoursPerYear = 365 * 24

// conclude computes what follows from the trials.
func (r *Result) conclude(o *Options) {
	r.Command = o.Command
	if r.GPU != nil {
		r.Slug = r.GPU.Slug
	}
	if total := r.total(); total > 0 {
		r.Total = mem.Some(int64(total))
	}
	if used, ok := r.usedAt(r.Current); ok && r.Total.Known() {
		r.Unused, r.UnusedLabel, r.UnusedError = mem.Some(max(0, r.Total.Or(0)-used.bytes)), used.label, used.error
	}
	r.room()
	if o.TargetBatch > 0 && r.Largest > 0 {
		r.Plan = accumulate(o.TargetBatch, r.Largest, r.Granularity)
	}
	r.throughput()
	r.cost(o.Price)
	r.MemoryMark = r.memoryMark()
}

// room finds the largest batch that leaves what a verdict needs not to be tight, where the largest that fits does
// not: one that was run, unless it is below nine tenths of one that is estimated to.
func (r *Result) room() {
	r.Tight, r.Roomy, r.RoomyError = mem.Optional{}, 0, mem.Optional{}
	total, known := int64(r.total()), r.total() > 0
	if r.GPU == nil || !known || r.Largest == 0 {
		return
	}
	tight := int64(r.GPU.Tight())
	r.Tight = mem.Some(tight)
	if used, ok := r.usedAt(r.Largest); !ok || total-used.bytes >= tight {
		return
	}
	step := max(r.Granularity, 1)
	for batch := r.Largest - step; batch >= r.fitting()[0].Batch && 10*batch >= 9*r.Roomy; batch -= step {
		used, ok := r.usedAt(batch)
		if !ok || total-used.bytes < tight {
			continue
		}
		if run := used.label != mem.Estimated; run || r.Roomy == 0 {
			r.Roomy, r.RoomyLabel, r.RoomyError = batch, used.label, used.error
			if run {
				return
			}
		}
	}
}

// accumulate plans the fewest steps that reach the target exactly; where that takes more than twice
// as many as need be, the fewest that reach at least it.
func accumulate(target, largest, granularity int) *Accumulation {
	fewest := (target + largest - 1) / largest
	for steps := fewest; steps <= 2*fewest; steps++ {
		if micro := target / steps; target%steps == 0 && micro%granularity == 0 {
			return &Accumulation{target, micro, steps, target}
		}
	}
	micro := (target + fewest - 1) / fewest
	micro = min(largest, micro+(granularity-micro%granularity)%granularity)
	steps := (target + micro - 1) / micro
	return &Accumulation{target, micro, steps, micro * steps}
}

// fitting are the trials that ran, by batch.
func (r *Result) fitting() []Trial {
	var all []Trial
	for _, t := range r.Trials {
		if t.OK {
			all = append(all, t)
		}
	}
	slices.SortFunc(all, func(a, b Trial) int { return cmp.Compare(a.Batch, b.Batch) })
	return all
}

func (r *Result) smallest() (Trial, bool) {
	all := r.fitting()
	if len(all) == 0 {
		return Trial{}, false
	}
	return all[0], true
}

func (r *Result) best() (Trial, bool) {
	all := r.fitting()
	if len(all) == 0 {
		return Trial{}, false
	}
	return all[len(all)-1], true
}

// figure is what a batch takes: as it was run, else an estimate with its error.
type figure struct {
	bytes int64
	label mem.Label
	error mem.Optional
}

// usedAt is the device memory in use at a batch: as it was run, else on the line between the trials
// around it. That a larger batch takes no less bounds the error of the estimate between two of them; below
// the smallest one it is the whole difference to that.
func (r *Result) usedAt(batch int) (figure, bool) {
	return r.between(batch, func(t Trial) mem.Optional { return t.Used })
}

func (r *Result) between(batch int, of func(Trial) mem.Optional) (figure, bool) {
	all := slices.DeleteFunc(r.fitting(), func(t Trial) bool { return !of(t).Known() })
	i := slices.IndexFunc(all, func(t Trial) bool { return t.Batch >= batch })
	switch {
	case i >= 0 && all[i].Batch == batch:
		return figure{of(all[i]).Or(0), all[i].Label, mem.Optional{}}, true
	case i < 0 || len(all) < 2:
		return figure{}, false
	case i == 0:
		i = 1
	}
	a, b := all[i-1], all[i]
	low, high := of(a).Or(0), of(b).Or(0)
	bytes := max(0, low+(high-low)*int64(batch-a.Batch)/int64(b.Batch-a.Batch))
	most := max(low-bytes, bytes-low)
	if batch > a.Batch {
		most = max(most, high-bytes, bytes-high)
	}
	return figure{bytes, mem.Estimated, mem.Some(most)}, true
}

// throughput fills what measured times say; the knee is the smallest batch within 5 % of the fastest.
func (r *Result) throughput() {
	best := 0.0
	for _, t := range r.fitting() {
		if ns, ok := t.StepTime.Get(); ok && ns > 0 {
			rate := float64(t.Batch) * 1e9 / float64(ns)
			r.Throughput = append(r.Throughput, Throughput{t.Batch, rate})
			best = max(best, rate)
		}
	}
	for _, t := range r.Throughput {
		if t.PerSecond >= 0.95*best {
			r.Knee = t.Batch
			return
		}
	}
}

func (r *Result) rate(batch int) (float64, bool) {
	i := slices.IndexFunc(r.Throughput, func(t Throughput) bool { return t.Batch == batch })
	if i < 0 {
		return 0, false
	}
	return r.Throughput[i].PerSecond, true
}

func (r *Result) cost(price float64) {
	c := &Cost{PerHour: price, Source: "--price"}
	if price == 0 && r.GPU != nil {
		c.PerHour, c.Source, c.Date = r.GPU.Price, r.GPU.PriceSource, r.GPU.PriceDate
	}
	if c.PerHour <= 0 {
		return
	}
	c.PerYear = c.PerHour * hoursPerYear
	if rate, ok := r.rate(r.Largest); ok {
		c.PerRun = c.PerHour / 3600 * 1e6 / rate
	}
	r.Cost = c
}

// Table lists the trials by batch, with a bar of what each takes of the device.
func (r *Result) Table() *report.Table {
	bytes := func(name, title string) report.Column {
		return report.Column{Name: name, Title: title, Unit: mem.UnitBytes, Label: r.Label}
	}
	t := &report.Table{Name: "fit", Title: "Memory against batch",
		Columns: []report.Column{{Name: "batch", Title: "Batch", Unit: mem.UnitCount}, bytes("allocated", "Peak allocated"),
			bytes("reserved", "Peak reserved"), bytes("used", "Peak used")}}
	timed := len(r.Throughput) > 0
	if timed {
		t.Columns = append(t.Columns, report.Column{Name: "rate", Title: "Samples/s", Unit: mem.UnitCount,
			Label: mem.Measured})
	}
	t.Columns = append(t.Columns, report.Column{Name: "picture", Title: "of the device"})
	sorted := slices.SortedFunc(slices.Values(r.Trials), func(a, b Trial) int { return cmp.Compare(a.Batch, b.Batch) })
	for _, trial := range sorted {
		row := []any{trial.Batch, trial.Allocated, trial.Reserved, trial.Used}
		if timed {
			var cell mem.Optional
			if rate, ok := r.rate(trial.Batch); ok {
				cell = mem.Some(int64(rate + 0.5))
			}
			row = append(row, cell)
		}
		t.Add(append(row, r.picture(trial))...)
	}
	return t
}

const pictureWidth = 24

// picture is a bar of the device's memory with the share in use filled.
func (r *Result) picture(t Trial) string {
	if !t.OK {
		return "✗ " + Why(t.Problem)
	}
	total, ok := r.Total.Get()
	used, known := t.Used.Get()
	if !ok || !known || total <= 0 {
		return "✓"
	}
	eighths := int(min(used, total) * pictureWidth * 8 / total)
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	bar += strings.Repeat("·", pictureWidth-len([]rune(bar)))
	text := fmt.Sprintf("%s %3d %%", bar, (used*100+total/2)/total)
	if tight, ok := r.Tight.Get(); ok && total-used < tight {
		text += " tight"
	}
	return text
}

// Why is a problem without what PyTorch adds to every such message; a cut is marked, and the trial has the whole.
func Why(problem string) string {
	problem = strings.TrimPrefix(problem, "CUDA ")
	first, rest, cut := strings.Cut(problem, ". ")
	if strings.Contains(first, "out of memory") {
		var asked string
		if asked, _, cut = strings.Cut(rest, ". "); asked != "" {
			first += ". " + asked
		}
	}
	if cut {
		first += " …"
	}
	return first
}

// shortened says whether the table shows only the beginning of why a batch did not fit.
func (r *Result) shortened() bool {
	return slices.ContainsFunc(r.Trials, func(t Trial) bool { return strings.HasSuffix(Why(t.Problem), " …") })
}

// What a run of the command says as a trial.

// MeasuredTrial reads a trial off a recording of this machine, whose report is nil where it cannot be read.
func MeasuredTrial(batch int, id string, r *report.Report, exitCode mem.Optional) (Trial, error) {
	t := Trial{Batch: batch, Label: mem.Measured}
	if r == nil {
		return t, &TrialError{Text: "the trial's recording could not be read"}
	}
	peak := r.Headline.Peak
	t.Allocated, t.Reserved, t.Used, t.StepTime = peak.Allocated, peak.Reserved, peak.DeviceUsed, r.Headline.StepTime
	for _, f := range r.Findings {
		if f.Kind == report.KindOOM {
			t.Problem = f.Title
			return t, nil
		}
	}
	if code := exitCode.Or(1); code != 0 {
		return t, &TrialError{Text: fmt.Sprintf("the command ended with exit code %d and not for lack of memory; hightide "+
			"show %s", code, id)}
	}
	t.OK = true
	return t, nil
}

// ImaginedTrial reads a trial off an imagined run and the last words of its output.
func ImaginedTrial(batch int, v *report.Imagined, said string) (Trial, error) {
	t := Trial{Batch: batch, OK: v.Fits(), Allocated: v.Allocated, Reserved: v.Reserved, Used: v.Used,
		Total: mem.Some(int64(v.Total)), Label: mem.Imagined}
	if t.OK && v.Needed.Known() {
		t.Used = v.Needed
	}
	if r := v.Rising; r != nil && r.Least.Known() && v.Verdict == mem.VerdictConditional {
		t.Rests = append(t.Rests, fmt.Sprintf("each step took %v more when it was ended: memory runs out after about %s "+
			"steps if it goes on like that", r.PerStep, report.Count(r.Least.Or(0))))
	}
	for i := range v.Undecided {
		u := &v.Undecided[i]
		t.Rests = append(t.Rests, fmt.Sprintf("%s was taken as %s, and no kernel computed it", u, u.Value))
	}
	switch {
	case t.OK && v.Shortages > 0: // it went on with less than this batch, or without some of its steps
		t.OK, t.Problem = false, fmt.Sprintf("it ran out of memory, which it caught %s", report.Times(v.Shortages))
	case t.OK:
		if used, ok := v.Used.Get(); ok && v.Reserved.Known() {
			t.Capacity = mem.Some(int64(v.Total) - used + v.Reserved.Or(0))
		}
	case v.Verdict == mem.VerdictOOM:
		t.Problem = cmp.Or(v.Note, "out of memory")
	default:
		text := fmt.Sprintf("the command gave no verdict: %s", cmp.Or(v.How, string(v.Verdict)))
		if said != "" && !strings.Contains(text, said) {
			text += "; its last output: " + said
		}
		return t, &TrialError{Text: text}
	}
	return t, nil
}
