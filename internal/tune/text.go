package tune

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hightide/internal/levers"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// sentence is the recommendation.
func (r *Result) sentence() string {
	p, host := r.Recommended, r.onHost()
	if p == nil && slices.ContainsFunc(r.Points, func(p *Point) bool { return p.Host.Known() }) {
		return host
	}
	if p == nil {
		if least := r.least(); least != nil {
			return fmt.Sprintf("No plan that was run reaches the goal on %s: the smallest peak is %v of %v, with %s.",
				r.GPUName, mem.Bytes(least.Verdict.Used.Or(0)), r.Total, least.What)
		}
		if least := r.Smallest; least != nil {
			return fmt.Sprintf("No plan that was run fits on %s: with %s, which save most, the program takes %v, "+
				"and %v are there.", r.GPUName, least.What, mem.Bytes(least.Verdict.Used.Or(0)), r.Total)
		}
		return fmt.Sprintf("No plan that was run fits on %s, and none is known to take less than the program as it is.", r.GPUName)
	}
	if len(p.Levers) == 0 {
		return fmt.Sprintf("It fits on %s as it is: %v of %v at the peak.%s", r.GPUName, p.Planned.Used, r.Total, host)
	}
	if p.Framework() == levers.JAX {
		return fmt.Sprintf("Use %s: the allocator then gives at most %v, on %s of %v.%s", p.Changes(), p.Planned.Allocated,
			r.GPUName, r.Total, host)
	}
	cost := ""
	for _, part := range ofSize(p) {
		cost += ", and " + part
	}
	return fmt.Sprintf("Use %s: the peak is then %v of %v on %s%s.%s", p.Changes(), p.Planned.Used, r.Total,
		r.GPUName, cost, host)
}

// onHost says of a plan what it takes of the host; "": that was not asked for.
func (r *Result) onHost() string {
	if r.Host == 0 {
		return ""
	}
	var least *Point
	for _, p := range r.Points {
		if !p.Host.Known() {
			continue
		}
		if p.Chosen {
			return fmt.Sprintf(" All processes take %s of the host's %v.", p.ofHost(), r.Host)
		}
		if least == nil || p.Host.Or(0) < least.Host.Or(0) {
			least = p
		}
	}
	if least == nil {
		return " The host's memory was not looked at."
	}
	return fmt.Sprintf("No plan that was run takes at most %v of the host: the smallest is %s, with %s.", r.Host,
		least.ofHost(), least.What)
}

func (p *Point) ofHost() string {
	return fmt.Sprintf("%v ± %v (PSS)", mem.Bytes(p.Host.Or(0)), mem.Bytes(p.Off.Or(0)))
}

// ofSize is what a plan costs that grows with the model or the batch.
func ofSize(p *levers.Plan) (parts []string) {
	if p.Planned.Recomputed > 0 {
		parts = append(parts, percent(p.Planned.Recomputed)+" of the forward pass is computed again")
	}
	if p.Planned.Moved > 0 {
		parts = append(parts, fmt.Sprintf("%v a step go to the host and back", p.Planned.Moved))
	}
	return parts
}

// costs is all that a plan costs, in words.
func costs(p *levers.Plan) string {
	parts := ofSize(p)
	for _, lever := range levers.All {
		_, on := p.Levers[lever.Name]
		said := lever.Name == levers.Checkpoint && p.Planned.Recomputed > 0 ||
			(lever.Name == levers.Offload || lever.Name == levers.Hosted) && p.Planned.Moved > 0
		if on && !said && lever.Costs != "nothing" {
			parts = append(parts, lever.Costs)
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, "; ")
}

// least is the point with the smallest peak of those that ran.
func (r *Result) least() *Point {
	var least *Point
	for _, p := range r.Points {
		if p.Verdict.Fits() && (least == nil || p.Verdict.Used.Or(0) < least.Verdict.Used.Or(0)) {
			least = p
		}
	}
	return least
}

// left says of the unchanged program's peak what no lever makes smaller, and what the rest is; nothing where that is not
// known. The optimizer's state is of the rest where it can wait on the host.
func (o *Outcome) left(hosted bool) []string {
	used, reserved, allocated := o.Used.Or(0), o.Reserved.Or(0), o.Allocated.Or(0)
	weights, states := o.Weights.Or(0), o.States.Or(0)
	rest := allocated - weights - states
	if !o.Weights.Known() || !o.States.Known() || rest < 0 || used < reserved || reserved < allocated {
		return nil
	}
	part := func(bytes int64) string {
		return fmt.Sprintf("%v (%s)", mem.Bytes(bytes), percent(float64(bytes)/float64(used)))
	}
	fixed, others := "the optimizer's state "+part(states)+", ", ""
	if hosted {
		fixed, others = "", "the optimizer's state, "+part(states)+", "
	}
	return []string{fmt.Sprintf("of the %v that the program takes as it is, no lever makes these smaller: weights %s, "+
		"%sand what a process takes beside the allocator %s. The rest are %sgradients, activations and "+
		"temporary tensors, %s, and what the allocator keeps idle, %s", mem.Bytes(used), part(weights), fixed,
		part(used-reserved), others, part(rest), part(reserved-allocated))}
}

func percent(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// Table is the frontier, the cheapest first: the program as it is, and each plan than which no other takes less at no
// more cost.
func (r *Result) Table() *report.Table {
	bytes := func(name, title string) report.Column {
		return report.Column{Name: name, Title: title, Unit: mem.UnitBytes, Label: r.Label}
	}
	t := &report.Table{Name: "tune", Title: "Peak against cost",
		Columns: []report.Column{{Name: "plan", Title: "Plan"}, {Name: "verdict", Title: "Verdict"},
			bytes("used", "Peak used"), bytes("allocated", "Peak allocated"), {Name: "again", Title: "Computed again"},
			bytes("moved", "To the host"), {Name: "best", Title: ""}}}
	if r.Host > 0 {
		t.Columns = slices.Insert(t.Columns, len(t.Columns)-1, bytes("host", "Host PSS"))
	}
	for i, p := range r.Points {
		if i > 0 && !p.Best && p.Plan != r.Recommended && !p.Host.Known() {
			continue
		}
		again, mark := "", ""
		if names := p.Plan.Levers[levers.Checkpoint].Blocks; len(names) > 0 {
			again = fmt.Sprintf("%d of %d blocks", len(names), r.Blocks)
			if p.Plan.Planned.Recomputed > 0 {
				again += ", " + percent(p.Plan.Planned.Recomputed)
			}
		}
		var moved mem.Optional
		if p.Plan.Planned.Moved > 0 {
			moved = mem.Some(int64(p.Plan.Planned.Moved))
		}
		switch {
		case p.Plan == r.Recommended:
			mark = "← recommended"
		}
		row := []any{p.What, string(p.Verdict.Verdict), p.Verdict.Used, p.Verdict.Allocated, again, moved}
		if r.Host > 0 {
			row = append(row, p.Host)
		}
		t.Add(append(row, mark)...)
	}
	return t
}

// Text is the table, what could not be used, and the recommendation as the last sentence.
func (r *Result) Text(o report.TextOptions) string {
	if r.Server != nil {
		return r.Server.text(r, o)
	}
	var b strings.Builder
	b.WriteString(r.Table().Text(o))
	for _, name := range slices.Sorted(maps.Keys(r.Refused)) {
		fmt.Fprintf(&b, "Not used: %s: %s.\n", name, report.Clean(r.Refused[name]))
	}
	if need, ok := r.Need.Get(); ok {
		fmt.Fprintf(&b, "As it is, the program takes %v where there is plenty.\n", mem.Bytes(need))
	}
	fmt.Fprintf(&b, "%s in %s.\n", report.Counted(int64(r.Runs), "imagined run"), report.Duration(r.Duration))
	for _, note := range r.Notes {
		fmt.Fprintf(&b, "Note: %s.\n", report.Clean(strings.TrimSuffix(note, ".")))
	}
	fmt.Fprintf(&b, "\n%s\n", report.Clean(r.Answer))
	if r.File != "" && len(r.Recommended.Levers) > 0 {
		fmt.Fprintf(&b, "hightide run --plan %s -- %s\n", r.File, report.Clean(mem.CommandLine(r.Command)))
	}
	if p := r.Patch; p != nil {
		b.WriteString("\n")
		b.WriteString(cleanLines(p.Text))
		fmt.Fprintf(&b, "%s\n", report.Clean(p.Says))
		if p.File != "" {
			fmt.Fprintf(&b, "In %s: git apply %s, or patch -p1 < %s\n", p.Folder, p.File, p.File)
		}
	}
	return b.String()
}

// cleanLines are lines of the program that a terminal may show.
func cleanLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(report.Clean(strings.TrimRight(line, "\r\n")) + "\n")
	}
	return b.String()
}
