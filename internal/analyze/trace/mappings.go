package trace

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// held is what a line or the mappings of a file hold.
type held struct {
	name  string
	bytes int64
	count int64
}

// maxMappingNames is how many of a process's files are told one by one; thousands of tensors in shared memory have a
// file each.
const maxMappingNames = 10_000

// OfMappings adds what Linux says of a process's address space: what is resident, by file and kind. top bounds
// the names; 0: all but the smallest of very many, less than 0: all.
func OfMappings(r *report.Report, m *mem.Mappings, file string, top int) {
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
	slices.SortFunc(m.List, func(p, q *mem.Mapping) int {
		return cmp.Or(cmp.Compare(q.RSS.Or(0), p.RSS.Or(0)), cmp.Compare(p.Name, q.Name))
	})
	add := func(name string, of *mem.Mapping) {
		row := []any{name, mem.Some(of.Count)}
		if m.Rollup { // of how many it is the sum is not told
			row[1] = mem.Optional{}
		}
		for _, c := range columns {
			row = append(row, c.of(of))
		}
		t.Add(row...)
	}
	shown := first(m.List, cmp.Or(top, maxMappingNames)) // which takes less than 0 for all
	for _, of := range shown {
		add(mappingName(of, m.Rollup), of)
	}
	if rest := m.List[len(shown):]; top == 0 && len(rest) > 0 {
		var sum mem.Mapping
		for _, of := range rest {
			sum.Count += of.Count
			sum.RSS, sum.PSS = sum.RSS.Plus(of.RSS), sum.PSS.Plus(of.PSS)
			sum.PrivateDirty, sum.Swap = sum.PrivateDirty.Plus(of.PrivateDirty), sum.Swap.Plus(of.Swap)
		}
		add(fmt.Sprintf("%s smaller ones together", report.Count(int64(len(rest)))), &sum)
	}
	whole := mem.Optional{}
	for i := range m.List {
		whole = whole.Plus(m.List[i].RSS)
	}
	if !whole.Known() {
		r.AddTable(t)
		if r.Headline.Verdict == "" {
			r.Headline.Say(file + " does not say what is resident")
		}
		return
	}
	largest := held{name: mappingName(m.List[0], m.Rollup), bytes: m.List[0].RSS.Or(0)}
	addForeign(r, t, file, "is resident with", mem.Measured, whole.Or(0), []held{largest})
}

// mappingName is what a stretch of address space is called: its file, or what the kernel says it is for.
func mappingName(m *mem.Mapping, rollup bool) string {
	switch {
	case rollup:
		return "the whole process"
	case m.Name == "":
		return "anonymous memory"
	}
	return m.Name
}

// first are the largest of what is sorted; top 0: all.
func first[T any](all []T, top int) []T {
	if top > 0 {
		return all[:min(top, len(all))]
	}
	return all
}

// addForeign adds a table of what is held, and a sentence where no other file has given one.
func addForeign(r *report.Report, t report.Table, file, holds string, label mem.Label, whole int64, all []held) {
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
