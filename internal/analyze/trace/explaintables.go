package trace

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// tableRows is how many rows a table of a snapshot has, at most: the JSON has all.
const tableRows = 300

// tables adds what there is to read of a device.
func (a *explanation) tables(r *report.Report, o *Options) {
	tables := []report.Table{a.levelTable(o), a.blameTable()}
	if !o.Brief {
		tables = append(tables, a.flameTable(o.Flame), a.growthTable())
		// of a device that never held anything there is nothing to split
		if !a.bare && (a.Highest.Reserved.Or(0) > 0 || a.Highest.Allocated > 0) {
			tables = append(tables, a.reservedTable(), a.pinTable(), a.classTable(), a.roundingTable())
		}
		tables = append(tables, a.turnoverTable())
		if a.Events > 0 { // else there is no trace that blocks were there before
			tables = append(tables, a.startTable())
		}
		tables = append(tables, a.longTable())
	}
	for _, t := range tables {
		if len(t.Rows) > tableRows {
			t.Note = strings.TrimSpace(fmt.Sprintf("%s The first %d of %s; --json has all.", t.Note, tableRows,
				report.Count(int64(len(t.Rows)))))
			t.Rows = t.Rows[:tableRows]
		}
		if a.Filter != "" && slices.Contains(filteredTables, t.Name) {
			t.Title += fmt.Sprintf(", of what matches %q", a.Filter)
		}
		t.Subject = a.Subject()
		r.AddTable(t)
	}
}

// filteredTables go by blocks, of which a filter leaves some.
var filteredTables = []string{"blame", "flame", "growth", "turnover", "start", "longest"}

func (a *explanation) levelTable(o *Options) report.Table {
	t := report.Table{Name: "levels", Title: report.UpperFirst(a.InFile()),
		Note: fmt.Sprintf("%s, %s", report.Counted(int64(a.Events), "event"),
			report.Counted(int64(a.Stacks), "call stack")),
		Columns: []report.Column{report.TextColumn("when", "When"), a.count("event", "After event"),
			a.bytes("allocated", "Allocated"), a.bytes("active", "Active"), a.bytes("reserved", "Reserved"),
			a.bytes("requested", "Requested")}}
	if n, ok := a.Segments.Get(); ok {
		t.Note += ", " + report.Counted(n, "segment") + " at the end"
	}
	t.Note += "."
	if !o.Brief {
		t.Note += " " + a.stepsText()
	}
	row := func(when string, p report.TracePeak) {
		var event mem.Optional
		if a.Events == 0 {
			when = "the one state recorded"
		} else if p.Event < 0 {
			when += ", at the beginning"
		} else {
			event = mem.Some(int64(p.Event))
		}
		t.Add(when, event, p.Allocated, p.Active, p.Reserved, p.Requested)
	}
	row("peak"+a.among, a.Peak)
	if a.At != a.Peak {
		row("explained", a.At)
	}
	if a.oddText() != "" {
		t.Note += " " + a.oddText()
	}
	return t
}

// oddText says where the file contradicts itself; "": nowhere.
func (a *explanation) oddText() string {
	var said []string
	if a.Unplaced > 0 && !a.filtered { // what was left out held the memory between
		where := "lie where the file has no free memory, and"
		if a.bare {
			where = "lie in segments that the file does not describe, so what was reserved is not known; they"
		}
		said = append(said, fmt.Sprintf("%s allocations %s count with their rounded size.", report.Count(int64(a.Unplaced)),
			where))
	}
	if a.Strange > 0 {
		said = append(said, fmt.Sprintf("%s events contradict those before them.", report.Count(int64(a.Strange))))
	}
	if reserved, ok := a.At.Reserved.Get(); ok && !a.bare && int64(a.At.Active) > reserved {
		said = append(said, fmt.Sprintf("More is in use (%v) than is reserved (%v), which no allocator does: trust the "+
			"blocks, not what is said of segments.", a.At.Active, mem.Bytes(reserved)))
	}
	if a.noStacks {
		said = append(said, "No allocation has frames: they were not recorded (`context=None`), so neither lines nor "+
			"phases are known, and categories go by how long blocks lived.")
	}
	if a.rounds {
		said = append(said, "Blocks are rounded by roundup_power2_divisions as it was when the file was written; if the "+
			"program changed it on the way, blocks from before that were of another size.")
	}
	return strings.Join(said, " ")
}

// stepsText says what is known of steps and phases, and how.
func (a *explanation) stepsText() string {
	s := a.Steps
	if s == nil {
		return "Neither steps nor phases are seen."
	}
	said := "Phases are inferred from the stacks that allocate."
	if n := len(s.Steps); n > 0 {
		events := (s.Steps[n-1].To - s.Steps[0].From + 1) / n
		said = fmt.Sprintf("%d steps of about %s events (%s). ", n, report.Count(int64(events)), stepSources[s.Source]) + said
	}
	return said
}

func (a *explanation) bytes(name, title string) report.Column {
	return report.BytesColumn(name, title, a.Label)
}

func (a *explanation) count(name, title string) report.Column {
	return report.Column{Name: name, Title: title, Unit: mem.UnitCount, Label: a.Label}
}

func (a *explanation) share() report.Column {
	return report.Column{Name: "share", Title: "Share", Unit: mem.UnitMilli, Label: a.Label}
}

func (a *explanation) blameTable() report.Table {
	t := report.Table{Name: "blame", Title: fmt.Sprintf("Who holds %s, by %s", a.Title, a.By), Note: a.categoryNote() +
		a.filterNote(),
		Columns: []report.Column{report.TextColumn(a.By, report.UpperFirst(a.By)), a.bytes("bytes", "Holds"), a.share(),
			a.count("blocks", "Blocks"), report.TextColumn("category", "Category")}}
	for _, g := range a.Blame {
		if a.By == "category" {
			g.Category = ""
		}
		t.Add(g.Name, g.Bytes, report.Share(g.Bytes, a.At.Allocated), g.Blocks, g.Category)
	}
	return t
}

// filterNote says how much of what was held the filter lets through.
func (a *explanation) filterNote() string {
	if a.Filter == "" {
		return ""
	}
	return fmt.Sprintf(" %s match %q, of %v allocated.", bytesInBlocks(a.Matching, a.MatchingBlocks), a.Filter,
		a.At.Allocated)
}

func (a *explanation) categoryNote() string {
	c := a.Accuracy
	if c == nil || c.OwnedBlocks == 0 {
		return "Categories are inferred by rules over stacks, life-spans and phases." + a.beforeNote()
	}
	return fmt.Sprintf("The program itself said what %s blocks of %v are for, beside buffers; the rest is inferred by "+
		"rules over stacks, life-spans and phases, which alone are right for %d %% of those bytes.",
		report.Count(int64(c.OwnedBlocks)), c.Owned, int64(c.Agreed)*100/max(1, int64(c.Owned)))
}

// beforeNote says what the memory from before the trace may be, by its sizes.
func (a *explanation) beforeNote() string {
	switch b := a.before; {
	case b.Bytes == 0:
		return ""
	case b.Parameters():
		return fmt.Sprintf(" What was there before the trace, %v, has the sizes of the gradients, one block for each: the "+
			"parameters.", b.Bytes)
	case b.Times() >= 2:
		return fmt.Sprintf(" What was there before the trace, %v, has %d blocks for each gradient of the same size: %v "+
			"may be the parameters, the rest gradients or an optimizer's states.",
			b.Bytes, b.Times(), b.Like)
	}
	return fmt.Sprintf(" What was there before the trace, %v, may be parameters, gradients and an optimizer's states: "+
		"nothing in the file tells them apart.", a.before.Bytes)
}

func (a *explanation) flameTable(measure string) report.Table {
	if measure == "" {
		return report.Table{}
	}
	return a.tree.Set.FlameTable(measure, a.Title)
}

func (a *explanation) growthTable() report.Table {
	t := report.Table{Name: "growth", Title: "What grows from step to step on " + a.Title,
		Note: "What each line holds at the ends of steps, the first and the last left out; the lowest value still to " +
			"come counts.",
		Columns: []report.Column{report.TextColumn("site", "Site"), a.bytes("per_step", "Per step"),
			a.bytes("bytes", "In all"), a.count("steps", "Steps"), {Name: "confidence", Title: "Confidence",
				Unit: mem.UnitMilli, Label: mem.Estimated}, report.TextColumn("source", "Steps are")}}
	for _, g := range a.Growth {
		var perStep mem.Optional
		if g.Source != usage.Stretches {
			perStep = mem.Some(int64(g.PerStep))
		}
		t.Add(g.Name, perStep, g.Grown, g.Steps, int64(g.Confidence*1000), g.Source)
	}
	return t
}

func (a *explanation) reservedTable() report.Table {
	f := a.Fragmentation
	released, note := "cached, empty_cache returns it", fmt.Sprintf("empty_cache would have given back most, %v, %s.",
		f.EmptyCache.Most, report.AfterEvent(f.EmptyCache.Event))
	if a.Device == mem.HostDevice {
		released, note = "cached, for what is pinned next",
			"PyTorch rounds what it pins up to a power of two, and keeps what is freed."
	}
	t := report.Table{Name: "reserved", Title: "Where the reserved memory of " + a.Title + " goes", Note: note,
		Columns: []report.Column{report.TextColumn("part", "Part"), a.bytes("bytes", "Bytes"), a.share()}}
	row := func(name string, bytes mem.Bytes) { t.Add(name, bytes, report.Share(bytes, f.Reserved)) }
	if requested, known := f.Requested.Get(); known {
		row("asked for by blocks in use", mem.Bytes(requested))
		row("lost to rounding in them", mem.Bytes(f.Rounding.Or(0)))
	} else {
		row("blocks in use, with what rounding added", a.At.Allocated)
	}
	row("freed, but another stream uses it", f.Waiting)
	row(released, f.Releasable)
	if f.Pooled > 0 { // most programs have no such pool
		row("cached in private pools, while these live", f.Pooled)
	}
	row("cached beside blocks in use", f.Stuck)
	return t
}

func (a *explanation) pinTable() report.Table {
	t := report.Table{Name: "pins", Title: "What keeps mostly empty segments of " + a.Title,
		Note: "Segments with at most a quarter in use, each attributed to its largest block.",
		Columns: []report.Column{report.TextColumn("site", "Site"), a.bytes("pinned", "Keeps cached"),
			a.bytes("bytes", "With blocks of"), a.count("blocks", "Blocks")}}
	for _, p := range a.Pins {
		t.Add(p.Name, p.Pinned, p.Bytes, p.Blocks)
	}
	return t
}

func (a *explanation) classTable() report.Table {
	t := report.Table{Name: "classes", Title: "Cached pieces beside blocks in use (inactive split) of " + a.Title +
		", by size",
		Columns: []report.Column{report.TextColumn("from", "Pieces from"), a.bytes("bytes", "Bytes"),
			a.count("pieces", "Pieces")}}
	for _, c := range slices.Backward(a.Fragmentation.Classes) {
		t.Add(fmt.Sprintf("%v to %v", c.From, 2*c.From), c.Bytes, c.Pieces)
	}
	return t
}

func (a *explanation) roundingTable() report.Table {
	t := report.Table{Name: "rounding", Title: "What rounding costs " + a.Title + ", by site",
		Columns: []report.Column{report.TextColumn("site", "Site"), a.bytes("bytes", "Lost"), a.count("blocks", "Blocks")}}
	for _, w := range a.Fragmentation.ByRounding {
		t.Add(w.Name, w.Waste, w.Blocks)
	}
	return t
}

func (a *explanation) turnoverTable() report.Table {
	t := report.Table{Name: "turnover", Title: "What comes and goes on " + a.Title + ", by site",
		Columns: []report.Column{report.TextColumn("site", "Site"), a.bytes("churn", "Freed again"),
			a.count("allocations", "Allocations"), a.bytes("average", "Held on average")}}
	for _, u := range a.Turnover {
		if u.Allocations > 0 {
			t.Add(u.Name, u.Churn, u.Allocations, u.Average)
		}
	}
	return t
}

func (a *explanation) startTable() report.Table {
	t := report.Table{Name: "start", Title: "Alive on " + a.Title + " from before the trace to its end, by site",
		Columns: []report.Column{report.TextColumn("site", "Site"), a.bytes("bytes", "Bytes"), a.count("blocks", "Blocks")}}
	for _, u := range a.Turnover {
		if u.SinceStart > 0 {
			t.Add(u.Name, u.SinceStart, u.StartBlocks)
		}
	}
	slices.SortStableFunc(t.Rows, func(p, q []report.Cell) int { return int(q[1].(int64)>>20) - int(p[1].(int64)>>20) })
	return t
}

func (a *explanation) longTable() report.Table {
	t := report.Table{Name: "longest", Title: "Largest life-spans (bytes × time) on " + a.Title,
		Columns: []report.Column{report.TextColumn("site", "Site"), a.bytes("bytes", "Each"), a.count("blocks", "Blocks"),
			a.count("from", "From event"), report.TextColumn("to", "To event"),
			report.Column{Name: "life", Title: "Life", Unit: mem.UnitNanoseconds, Label: a.Label},
			report.TextColumn("category", "Category")}}
	for _, l := range a.Longest {
		var from, life mem.Optional
		to := "the end"
		if l.Allocated >= 0 {
			from = mem.Some(int64(l.Allocated))
		}
		if l.Freed != nil {
			to = report.Count(int64(*l.Freed))
		}
		if l.Span > 0 {
			life = mem.Some(l.Span)
		}
		t.Add(l.Name, l.Bytes, l.Blocks, from, to, life, l.Category)
	}
	return t
}
