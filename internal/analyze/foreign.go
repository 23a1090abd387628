package analyze

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// held is what a line or a mapping holds.
type held struct {
	name  string
	bytes int64
	count int64
	cells []any
}

// ExplainProfile adds what a memory profile of another tool says: who holds how much, by line. top bounds the lines; 0: all.
func ExplainProfile(r *report.Report, p *mem.Profile, file string, top int) {
	if len(p.Kinds) == 0 {
		r.Headline.Say(file + " holds no figures")
		return
	}
	kind, counts := p.Kinds[p.Default], countKind(p)
	var uses []usage.Use
	whole := int64(0)
	for _, s := range p.Samples {
		use := usage.Use{Stack: s.Stack, Bytes: mem.Bytes(s.Values[p.Default])}
		if counts >= 0 {
			use.Blocks = uint64(s.Values[counts])
		}
		whole += s.Values[p.Default]
		uses = append(uses, use)
	}
	var all []held
	for _, g := range usage.Groups(usage.NewNames(&p.Stacks), uses) {
		all = append(all, held{name: g.Site.Name, bytes: int64(g.Bytes), count: int64(g.Blocks)})
	}
	t := report.Table{Name: "blame", Subject: report.Subject{File: file, Of: file}, Title: fmt.Sprintf("Who holds what in %s, by line", file), Note: strings.Join(p.Notes, " "),
		Columns: []report.Column{report.TextColumn("site", "Site"), {Name: "bytes", Title: report.UpperFirst(kind.Name), Unit: kind.Unit, Label: p.Label}, {Name: "share", Title: "Share", Unit: mem.UnitMilli, Label: p.Label}}}
	if counts >= 0 {
		t.Columns = append(t.Columns, report.Column{Name: "count", Title: report.UpperFirst(p.Kinds[counts].Name), Unit: mem.UnitCount, Label: p.Label})
	}
	for _, of := range all {
		t.Add([]any{of.name, of.bytes, report.Share(mem.Bytes(of.bytes), mem.Bytes(whole)), of.count}[:len(t.Columns)]...)
	}
	holds := "holds"
	if strings.HasPrefix(kind.Name, "alloc") && strings.HasSuffix(kind.Name, "_space") { // what was freed again too
		holds = "allocated in all"
		t.Title = fmt.Sprintf("Who allocated how much in %s, by line", file)
	}
	addForeign(r, t, file, holds, p.Label, whole, all, top)
}

// ExplainMappings adds what Linux says of a process's address space: what is resident, by file and kind.
func ExplainMappings(r *report.Report, m *mem.Mappings, file string, top int) {
	columns := []struct {
		name, title string
		of          func(*mem.Mapping) mem.Optional
	}{
		{"rss", "RSS", func(m *mem.Mapping) mem.Optional { return m.RSS }},
		{"pss", "PSS", func(m *mem.Mapping) mem.Optional { return m.PSS }},
		{"dirty", "Private, written", func(m *mem.Mapping) mem.Optional { return m.PrivateDirty }},
		{"swap", "Swapped", func(m *mem.Mapping) mem.Optional { return m.Swap }},
	}
	t := report.Table{Name: fmt.Sprintf("mappings-%d", len(r.Tables)), Title: "What is resident in " + file,
		Note:    "RSS counts pages that other processes share in full, PSS divides them among their users.",
		Columns: []report.Column{report.TextColumn("what", "What"), report.CountColumn("mappings", "Mappings")}}
	for _, c := range columns {
		t.Columns = append(t.Columns, report.BytesColumn(c.name, c.title, mem.Measured))
	}
	var by mem.Tally[string, held]
	whole := int64(0)
	for i := range m.List {
		name := mappingName(&m.List[i], m.Rollup)
		of := by.At(name)
		if of.name = name; of.cells == nil {
			of.cells = make([]any, len(columns))
		}
		of.count++
		for j, c := range columns {
			n, ok := c.of(&m.List[i]).Get()
			if !ok {
				continue
			}
			if j == 0 {
				of.bytes += n
				whole += n
			}
			sum, _ := of.cells[j].(int64)
			of.cells[j] = sum + n
		}
	}
	all := by.All
	slices.SortFunc(all, func(p, q held) int { return cmp.Or(cmp.Compare(q.bytes, p.bytes), cmp.Compare(p.name, q.name)) })
	for _, of := range all {
		count := mem.Some(of.count)
		if m.Rollup { // of how many it is the sum is not told
			count = mem.Optional{}
		}
		t.Add(append([]any{of.name, count}, of.cells...)...)
	}
	addForeign(r, t, file, "is resident with", mem.Measured, whole, all, top)
}

// mappingName is what a stretch of address space is called: its file, or what the kernel says it is for.
func mappingName(m *mem.Mapping, rollup bool) string {
	switch {
	case rollup:
		return "the whole process"
	case m.Path == "":
		return "anonymous memory"
	case strings.HasPrefix(m.Path, "["):
		return m.Path
	}
	return path.Base(m.Path)
}

// addForeign adds a table of what is held, and a sentence where no other file has given one.
func addForeign(r *report.Report, t report.Table, file, holds string, label mem.Label, whole int64, all []held, top int) {
	if top > 0 {
		t.Rows = t.Rows[:min(top, len(t.Rows))]
	}
	r.AddTable(t)
	if r.Headline.Verdict != "" {
		return
	}
	r.Headline.NotLooked = "Growth and failed requests were not looked for: the file records one moment."
	largest := ""
	if len(all) > 0 && all[0].bytes > 0 {
		largest = fmt.Sprintf("the largest part, %v, is of `%s`", mem.Bytes(all[0].bytes), all[0].name)
	}
	r.Headline.Say(fmt.Sprintf("%s %s %v (%s)", file, holds, mem.Bytes(whole), label), largest)
}
