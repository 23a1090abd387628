package imagined

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Tell puts the verdict into tables and notes.
func Tell(run *mem.Run, v *report.Imagined) (r report.Part) {
	r.Imagined = v
	r.AddTable(gpuVerdictTable("gpus", "On each GPU, cheapest that fits first", v.All, v.GPUs))
	if v.Serving != nil {
		r.AddTable(servingTable(v))
	}
	r.AddTable(usageTable(v))
	if len(v.Categories) > 0 {
		title := "What the peak of " + v.CategoryBasis + " was made of"
		if v.CategoriesShort {
			title = "What was needed of " + v.CategoryBasis + " when memory ran out"
		}
		t := report.Table{Name: "categories", Title: title,
			Columns: []report.Column{report.TextColumn("what", "what"), report.BytesColumn("bytes", "bytes", mem.Imagined),
				{Name: "share", Title: "share", Unit: mem.UnitMilli, Label: ""}}}
		var sum mem.Bytes
		for _, c := range v.Categories {
			sum += c.Bytes
		}
		for _, c := range v.Categories {
			t.Add(c.Name, c.Bytes, c.Bytes*1000/max(sum, 1))
		}
		if v.ByStack > 0 {
			note := fmt.Sprintf("What %v of the peak is for is inferred from the stacks that allocated it alone", v.ByStack)
			if v.Serving == nil {
				note += ": the model's phases were not recorded as they were allocated"
			}
			r.Notes = append(r.Notes, note+".")
		}
		r.AddTable(t)
	}
	r.AddTable(modulesTable(v))
	r.AddTable(linesTable(v))
	r.AddTable(tryTable("tries", "What was tried", v.Tries))
	if len(v.Variations) > 0 {
		asked := mem.Try{What: "as asked for", GPUVerdict: v.GPUVerdict}
		title := "With one condition changed"
		if v.Serving != nil {
			title = "With one setting changed"
		}
		r.AddTable(tryTable("variations", title, append([]mem.Try{asked}, v.Variations...)))
	}
	r.AddTable(rankTable(v.Ranks))
	notes(run, v, &r)
	return r
}

// usageTable is the arithmetic behind the verdict.
func usageTable(v *report.Imagined) report.Table {
	t := report.Table{Name: "imagined", Title: fmt.Sprintf("Memory of %s", v.GPUName),
		Columns: []report.Column{report.TextColumn("what", "what"), report.BytesColumn("bytes", "bytes", ""),
			report.TextColumn("label", "label")}}
	row := func(what string, bytes mem.Optional, label mem.Label) {
		if b, ok := bytes.Get(); ok {
			t.Add(what, b, label)
		}
	}
	if !v.Used.Known() {
		return t
	}
	row("peak allocated by tensors", v.Allocated, mem.Imagined)
	row("peak reserved by the allocator", v.Reserved, mem.Imagined)
	row("of that, pools of CUDA graphs", v.GraphPools, mem.Imagined)
	row("beside it, or after it was last asked", besideAllocator(v), mem.Imagined)
	row("what "+v.LimitBy+" may take", v.Limit, mem.Imagined)
	for _, name := range []string{"context", "cublas", "cudnn", "nccl", "pools", "graphs", "other"} {
		var most mem.Bytes
		for _, rank := range v.Ranks {
			most = max(most, rank.Parts[name])
		}
		if most > 0 {
			row(partNames[name], mem.Some(int64(most)), mem.Estimated)
		}
	}
	row("peak in use on the device", v.Used, mem.Imagined)
	row("of that needed", v.Needed, mem.Imagined)
	has := "such a GPU has" // a real one: the catalogue tells how its memory is known
	if v.TotalLabel == mem.Imagined {
		has = "the device was given"
	}
	row(has, mem.Some(int64(v.Total)), v.TotalLabel)
	row("headroom", v.Headroom, mem.Imagined)
	return t
}

// besideAllocator is what the device had given out at its peak beyond what the framework's allocator reserved at most:
// buffers that an extension or an engine takes from CUDA itself. A process that ran out of memory, or was killed, may not
// have said what its allocator reserved last. Absent below 1 MiB, and where memory was missing.
func besideAllocator(v *report.Imagined) mem.Optional {
	if !v.Fits() {
		return mem.Optional{}
	}
	var most mem.Bytes
	for _, rank := range v.Ranks {
		if reserved, ok := rank.Reserved.Get(); ok {
			most = max(most, rank.Parts["allocated"]+rank.Parts["mapped"]-mem.Bytes(reserved))
		}
	}
	if most < mem.MiB {
		return mem.Optional{}
	}
	return mem.Some(int64(most))
}

var partNames = map[string]string{"context": "context and libraries, beside the allocator",
	"cublas": "cuBLAS, beside the allocator",
	"cudnn":  "cuDNN, beside the allocator", "nccl": "NCCL buffers", "pools": "stream-ordered pools",
	"graphs": "nodes of CUDA graphs, kept by the driver",
	"other":  "other device memory"}

// gpuVerdictTable has a row for each GPU, of which `count` are used together; prices are of one.
func gpuVerdictTable(name, title string, all []mem.GPUVerdict, count int) report.Table {
	t := report.Table{Name: name, Title: title, Columns: []report.Column{report.TextColumn("gpu", "gpu"),
		report.TextColumn("verdict", "verdict"), report.BytesColumn("memory", "memory", ""),
		report.BytesColumn("used", "peak used", ""), neededColumn, report.BytesColumn("headroom", "headroom", ""), tokensColumn,
		usersColumn, report.TextColumn("price", "$/h"), report.TextColumn("capacity", "$/h per M tokens"),
		report.TextColumn("label", "label"), report.TextColumn("note", "note")}}
	for _, g := range all {
		cost := ""
		if g.Price > 0 {
			cost = fmt.Sprintf("%.2f", g.Price)
		}
		capacity := ""
		if tokens, ok := g.KVTokens.Get(); ok && g.Price > 0 && tokens > 0 {
			capacity = fmt.Sprintf("%.2f", float64(max(1, count))*g.Price*1e6/float64(tokens))
		}
		t.Add(g.GPU, verdictWord(g.Verdict), g.Total, g.Used, neededBy(&g), g.Headroom, g.KVTokens, g.Users, cost,
			capacity, g.Label, g.Note)
	}
	return ofServer(t)
}

func tryTable(name, title string, tries []mem.Try) report.Table {
	t := report.Table{Name: name, Title: title, Columns: []report.Column{report.TextColumn("what", "what"),
		report.TextColumn("verdict", "verdict"), report.BytesColumn("allocated", "allocated", ""),
		report.BytesColumn("reserved", "reserved", ""), report.BytesColumn("used", "peak used", ""),
		neededColumn, report.BytesColumn("headroom", "headroom", ""), tokensColumn, usersColumn, report.TextColumn("label", "label"),
		report.TextColumn("note", "note")}}
	for _, try := range tries {
		word := verdictWord(try.Verdict)
		if try.Kind == mem.TryMemory && try.Fits() {
			word = "would run"
		}
		t.Add(try.What, word, try.Allocated, try.Reserved, try.Used, neededBy(&try.GPUVerdict), try.Headroom,
			try.KVTokens, try.Users, try.Label, try.Note)
	}
	return ofServer(t)
}

// tokensColumn is what an LLM server holds.
var tokensColumn = report.Column{Name: "kv_tokens", Title: "KV tokens", Unit: mem.UnitCount, Label: mem.Imagined}

// neededColumn is what a program needs whose framework takes memory ahead of need.
var neededColumn = report.BytesColumn("needed", "needed", "")

// neededBy is that of one that ran: what ran out of memory needs more than it had.
func neededBy(v *mem.GPUVerdict) mem.Optional {
	if !v.Fits() {
		return mem.Optional{}
	}
	return v.Needed
}

// usersColumn is how many of its users, where a number of them was asked for.
var usersColumn = report.Column{Name: "users", Title: "users", Unit: mem.UnitCount, Label: mem.Imagined}

// ofServer leaves that column out where no program is a server; of one, what its allocator has says less than that.
func ofServer(t report.Table) report.Table {
	if !told(&t, neededColumn.Name) {
		t = withoutColumns(t, neededColumn.Name)
	}
	if !told(&t, tokensColumn.Name) {
		return withoutColumns(t, tokensColumn.Name, usersColumn.Name, "capacity")
	}
	return withoutColumns(t, "allocated", "reserved")
}

func told(t *report.Table, column string) bool {
	at := columnAt(t, column)
	return slices.ContainsFunc(t.Rows, func(row []report.Cell) bool { return row[at] != nil })
}

func columnAt(t *report.Table, name string) int {
	return slices.IndexFunc(t.Columns, func(c report.Column) bool { return c.Name == name })
}

func withoutColumns(t report.Table, names ...string) report.Table {
	for _, name := range names {
		at := columnAt(&t, name)
		if at < 0 {
			continue
		}
		t.Columns = slices.Delete(t.Columns, at, at+1)
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], at, at+1)
		}
	}
	return t
}

func verdictWord(verdict mem.Verdict) string {
	switch verdict {
	case mem.VerdictFew:
		return "too few users"
	case mem.VerdictOOM:
		return "out of memory"
	case mem.VerdictNone:
		return "not usable"
	case mem.VerdictUnused:
		return "no GPU used"
	}
	return string(verdict)
}

// rankTable is what each process took of each device, where there are several of either.
func rankTable(ranks []report.RankUse) report.Table {
	t := report.Table{Name: "ranks", Title: "Memory by rank",
		Columns: []report.Column{report.TextColumn("rank", "rank"), report.TextColumn("device", "device"),
			report.BytesColumn("allocated", "allocated", mem.Imagined),
			report.BytesColumn("reserved", "reserved", mem.Imagined), report.BytesColumn("used", "peak used", mem.Imagined),
			report.TextColumn("how", "how")}}
	if !slices.ContainsFunc(ranks, func(r report.RankUse) bool { return r.Rank.Known() }) {
		t.Title, t.Columns[0].Title = "Memory by device", "process"
	}
	if len(ranks) < 2 && (len(ranks) == 0 || !ranks[0].Played) {
		return t
	}
	for _, rank := range ranks {
		name, how := "process "+fmt.Sprint(rank.Process), "started"
		if n, ok := rank.Rank.Get(); ok {
			name = cmp.Or(rank.Name, fmt.Sprint(n))
			if world, ok := rank.World.Get(); ok && rank.Name == "" {
				name += " of " + fmt.Sprint(world)
			}
		}
		if rank.Played {
			how = "played alone"
		}
		t.Add(name, rank.Device, rank.Allocated, rank.Reserved, rank.Used, how)
	}
	return t
}

// modulesTable is of a server, whose lines few know.
func modulesTable(v *report.Imagined) report.Table {
	t := report.Table{Name: "peak-modules", Columns: []report.Column{report.TextColumn("module", "module"),
		report.BytesColumn("bytes", "held", mem.Imagined), {Name: "blocks", Title: "blocks", Unit: mem.UnitCount,
			Label: mem.Imagined}}}
	if len(v.Modules) > 0 {
		t.Title = "Modules of the server that held the peak"
	}
	for _, m := range v.Modules {
		t.Add(m.Module, m.Bytes, m.Blocks)
	}
	return t
}

func linesTable(v *report.Imagined) report.Table {
	lines, title, held := v.Lines, "Lines that held the peak", "held"
	if v.CategoriesShort {
		title, held = "Lines that need most of what was lacking", "needs"
	}
	t := report.Table{Name: "peak-lines", Title: title,
		Columns: []report.Column{report.TextColumn("site", "line"), report.TextColumn("function", "function"),
			report.BytesColumn("bytes", held, mem.Imagined), {Name: "blocks", Title: "blocks", Unit: mem.UnitCount,
				Label: mem.Imagined}}}
	told := slices.ContainsFunc(lines, func(l report.HeldLine) bool { return l.What != "" })
	if told {
		t.Columns = append(t.Columns, report.TextColumn("what", "what"))
	}
	for _, l := range lines {
		row := []any{lineName(&l), l.Function, l.Bytes, l.Blocks}
		if told {
			row = append(row, l.What)
		}
		t.Add(row...)
	}
	return t
}
