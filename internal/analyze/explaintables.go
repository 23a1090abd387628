package analyze

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// tableRows is how many rows a table of a snapshot has, at most: the JSON has all.
const tableRows = 300

// tables adds what there is to read of a device; number tells devices of several files apart.
func (a *Allocator) tables(r *Report, number int, o *ExplainOptions) {
	tables := []Table{a.levelTable(o), a.blameTable()}
	if !o.Brief {
		tables = append(tables, a.flameTable(o.Flame), a.growthTable())
		if !a.bare {
			tables = append(tables, a.reservedTable(), a.pinTable(), a.classTable(), a.roundingTable())
		}
		tables = append(tables, a.turnoverTable(), a.startTable(), a.longTable())
	}
	for _, t := range tables {
		if len(t.Rows) > tableRows {
			t.Note = strings.TrimSpace(fmt.Sprintf("%s The first %d of %s; --json has all.", t.Note, tableRows, Count(int64(len(t.Rows)))))
			t.Rows = t.Rows[:tableRows]
		}
		if a.Filter != "" && slices.Contains(filteredTables, t.Name) {
			t.Title += fmt.Sprintf(", of what matches %q", a.Filter)
		}
		t.Name = fmt.Sprintf("%s-%d", t.Name, number)
		r.table(t)
	}
}

// filteredTables go by blocks, of which a filter leaves some.
var filteredTables = []string{"blame", "flame", "growth", "turnover", "start", "longest"}

// of is "device 0", and of which file where there are several.
func (a *Allocator) of() string {
	if a.alone {
		return a.Name
	}
	return a.inFile()
}

func (a *Allocator) inFile() string {
	return fmt.Sprintf("%s of %s", a.Name, baseName(a.File))
}

func baseName(file string) string { return file[strings.LastIndexByte(file, '/')+1:] }

func (a *Allocator) levelTable(o *ExplainOptions) Table {
	t := Table{Name: "levels", Title: upperFirst(a.inFile()),
		Note:    fmt.Sprintf("%s, %s", Counted(int64(a.Events), "event"), Counted(int64(a.Stacks), "call stack")),
		Columns: []Column{text("when", "When"), countColumn("event", "After event"), a.bytes("allocated", "Allocated"), a.bytes("active", "Active"), a.bytes("reserved", "Reserved"), a.bytes("requested", "Requested")}}
	if n, ok := a.Segments.Get(); ok {
		t.Note += ", " + Counted(n, "segment") + " at the end"
	}
	t.Note += "."
	if !o.Brief {
		t.Note += " " + a.stepsText()
	}
	row := func(when string, p TracePeak) {
		event := Cell(nil)
		if p.Event < 0 {
			when += ", at the beginning"
		} else {
			event = int64(p.Event)
		}
		t.Rows = append(t.Rows, []Cell{when, event, int64(p.Allocated), int64(p.Active), cell(p.Reserved), cell(p.Requested)})
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
func (a *Allocator) oddText() string {
	var said []string
	if a.Unplaced > 0 && !a.filtered { // what was left out held the memory between
		where := "lie where the file has no free memory, and"
		if a.bare {
			where = "lie in segments that the file does not tell of, so what was reserved is not known; they"
		}
		said = append(said, fmt.Sprintf("%s allocations %s count with their rounded size.", Count(int64(a.Unplaced)), where))
	}
	if a.Strange > 0 {
		said = append(said, fmt.Sprintf("%s events contradict those before them.", Count(int64(a.Strange))))
	}
	if reserved, ok := a.At.Reserved.Get(); ok && !a.bare && int64(a.At.Active) > reserved {
		said = append(said, fmt.Sprintf("More is in use (%v) than is reserved (%v), which no allocator does: trust the blocks, not what is said of segments.", a.At.Active, mem.Bytes(reserved)))
	}
	return strings.Join(said, " ")
}

// stepsText says what is known of steps and phases, and how.
func (a *Allocator) stepsText() string {
	s := a.Steps
	if s == nil {
		return "Neither steps nor phases are seen."
	}
	said := "Phases are inferred from the stacks that allocate."
	if n := len(s.Steps); n > 0 {
		events := (s.Steps[n-1].To - s.Steps[0].From + 1) / n
		how := map[string]string{"inferred": "inferred from what repeats", "annotations": "as annotated", "recorded": "as recorded"}[s.Source]
		said = fmt.Sprintf("%d steps of about %s events (%s). ", n, Count(int64(events)), how) + said
	}
	return said
}

func (a *Allocator) bytes(name, title string) Column { return bytesColumn(name, title, a.Label) }

func (a *Allocator) share() Column { return Column{"share", "Share", mem.UnitMilli, a.Label} }

func share(part, whole mem.Bytes) Cell {
	return int64(math.Round(float64(part) * 1000 / float64(max(1, whole))))
}

func (a *Allocator) blameTable() Table {
	t := Table{Name: "blame", Title: fmt.Sprintf("Who holds %s, by %s", a.of(), a.By), Note: a.categoryNote() + a.filterNote(),
		Columns: []Column{text(a.By, upperFirst(a.By)), a.bytes("bytes", "Holds"), a.share(), countColumn("blocks", "Blocks"), text("category", "Category")}}
	if a.By == "category" {
		t.Columns = t.Columns[:4]
	}
	for _, g := range a.Blame {
		t.Rows = append(t.Rows, []Cell{g.Name, int64(g.Bytes), share(g.Bytes, a.At.Allocated), int64(g.Blocks), g.Category}[:len(t.Columns)])
	}
	return t
}

// filterNote says how much of what was held the filter lets through.
func (a *Allocator) filterNote() string {
	if a.Filter == "" {
		return ""
	}
	return fmt.Sprintf(" %s match %q, of %v allocated.", bytesInBlocks(a.Matching, a.MatchingBlocks), a.Filter, a.At.Allocated)
}

// bytesInBlocks is "2.00 GiB in 3 blocks".
func bytesInBlocks(bytes mem.Bytes, blocks int) string {
	if blocks == 1 {
		return fmt.Sprintf("%v in 1 block", bytes)
	}
	return fmt.Sprintf("%v in %s blocks", bytes, Count(int64(blocks)))
}

func (a *Allocator) categoryNote() string {
	c := a.Accuracy
	if c == nil || c.OwnedBlocks == 0 {
		return "Categories are inferred by rules over stacks, life-spans and phases."
	}
	return fmt.Sprintf("The program itself said what %s blocks of %v are for, beside buffers; the rest is inferred by rules over stacks, life-spans and phases, which alone are right for %d %% of those bytes.",
		Count(int64(c.OwnedBlocks)), c.Owned, int64(c.Agreed)*100/max(1, int64(c.Owned)))
}

func (a *Allocator) growthTable() Table {
	t := Table{Name: "growth", Title: "What grows from step to step on " + a.of(),
		Note:    "What each line holds at the ends of steps, the first and the last left out; the lowest value still to come counts.",
		Columns: []Column{text("site", "Site"), a.bytes("per_step", "Per step"), a.bytes("bytes", "In all"), countColumn("steps", "Steps"), {"confidence", "Confidence", mem.UnitMilli, mem.Estimated}, text("source", "Steps are")}}
	for _, g := range a.Growth {
		perStep := Cell(int64(g.PerStep))
		if g.Source == "stretches" {
			perStep = nil
		}
		t.Rows = append(t.Rows, []Cell{g.Name, perStep, int64(g.Grown), int64(g.Steps), int64(g.Confidence * 1000), g.Source})
	}
	return t
}

func (a *Allocator) reservedTable() Table {
	f := a.Fragmentation
	t := Table{Name: "reserved", Title: "Where the reserved memory of " + a.of() + " goes",
		Note:    fmt.Sprintf("empty_cache would have given back most, %v, %s.", f.EmptyCache.Most, afterEvent(f.EmptyCache.Event)),
		Columns: []Column{text("part", "Part"), a.bytes("bytes", "Bytes"), a.share()}}
	for _, part := range []struct {
		name  string
		bytes mem.Bytes
	}{{"asked for by blocks in use", f.Requested}, {"lost to rounding in them", f.Rounding}, {"freed, but another stream uses it", f.Waiting},
		{"cached, empty_cache returns it", f.Releasable}, {"cached beside blocks in use", f.Stuck}} {
		t.Rows = append(t.Rows, []Cell{part.name, int64(part.bytes), share(part.bytes, f.Reserved)})
	}
	return t
}

func afterEvent(event int) string {
	if event < 0 {
		return "at the beginning"
	}
	return "after event " + Count(int64(event))
}

func (a *Allocator) pinTable() Table {
	t := Table{Name: "pins", Title: "What keeps mostly empty segments of " + a.of(),
		Note:    "Segments with at most a quarter in use, each attributed to its largest block.",
		Columns: []Column{text("site", "Site"), a.bytes("pinned", "Keeps cached"), a.bytes("bytes", "With blocks of"), countColumn("blocks", "Blocks")}}
	for _, p := range a.Pins {
		t.Rows = append(t.Rows, []Cell{p.Name, int64(p.Pinned), int64(p.Bytes), int64(p.Blocks)})
	}
	return t
}

func (a *Allocator) classTable() Table {
	t := Table{Name: "classes", Title: "Cached pieces beside blocks in use (inactive split) of " + a.of() + ", by size",
		Columns: []Column{text("from", "Pieces from"), a.bytes("bytes", "Bytes"), countColumn("pieces", "Pieces")}}
	for _, c := range slices.Backward(a.Fragmentation.Classes) {
		t.Rows = append(t.Rows, []Cell{fmt.Sprintf("%v to %v", c.From, 2*c.From), int64(c.Bytes), int64(c.Pieces)})
	}
	return t
}

func (a *Allocator) roundingTable() Table {
	t := Table{Name: "rounding", Title: "What rounding costs " + a.of() + ", by site",
		Columns: []Column{text("site", "Site"), a.bytes("bytes", "Lost"), countColumn("blocks", "Blocks")}}
	for _, w := range a.Fragmentation.ByRounding {
		t.Rows = append(t.Rows, []Cell{w.Name, int64(w.Waste), int64(w.Blocks)})
	}
	return t
}

func (a *Allocator) turnoverTable() Table {
	t := Table{Name: "turnover", Title: "What comes and goes on " + a.of() + ", by site",
		Columns: []Column{text("site", "Site"), a.bytes("churn", "Freed again"), countColumn("allocations", "Allocations"), a.bytes("average", "Held on average")}}
	for _, u := range a.Turnover {
		if u.Allocations > 0 {
			t.Rows = append(t.Rows, []Cell{u.Name, int64(u.Churn), int64(u.Allocations), int64(u.Average)})
		}
	}
	return t
}

func (a *Allocator) startTable() Table {
	t := Table{Name: "start", Title: "Alive on " + a.of() + " from before the trace to its end, by site",
		Columns: []Column{text("site", "Site"), a.bytes("bytes", "Bytes"), countColumn("blocks", "Blocks")}}
	for _, u := range a.Turnover {
		if u.SinceStart > 0 {
			t.Rows = append(t.Rows, []Cell{u.Name, int64(u.SinceStart), int64(u.StartBlocks)})
		}
	}
	slices.SortStableFunc(t.Rows, func(p, q []Cell) int { return int(q[1].(int64)>>20) - int(p[1].(int64)>>20) })
	return t
}

func (a *Allocator) longTable() Table {
	t := Table{Name: "longest", Title: "Largest life-spans (bytes × time) on " + a.of(),
		Columns: []Column{text("site", "Site"), a.bytes("bytes", "Each"), countColumn("blocks", "Blocks"), countColumn("from", "From event"), text("to", "To event"), nsColumn("life", "Life"), text("category", "Category")}}
	for _, l := range a.Longest {
		to, life := "the end", Cell(nil)
		if l.Freed != nil {
			to = Count(int64(*l.Freed))
		}
		if l.Span > 0 {
			life = l.Span
		}
		from := Cell(nil)
		if l.Allocated >= 0 {
			from = int64(l.Allocated)
		}
		t.Rows = append(t.Rows, []Cell{l.Name, int64(l.Bytes), int64(l.Blocks), from, to, life, l.Category})
	}
	return t
}
