package run

import (
	"fmt"
	"strings"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const arrayLines = 20

// readProfiles finds which lines made the arrays that were alive when a framework wrote a profile of its devices.
func readProfiles(in *facts.Facts, profiles map[string]*mem.Profile) profiled {
	all := profiled{alive: map[uint32]string{}}
	for _, file := range in.Run.Snapshots {
		p := profiles[file.Name]
		if p == nil || len(p.Kinds) == 0 || file.Format == mem.ProgramFormat || file.AtPeak() {
			continue
		}
		uses, code := buffers(p)
		groups := usage.Groups(usage.NewNames(&p.Stacks), uses)
		whole, count := mem.Bytes(0), uint64(0)
		for _, g := range groups {
			whole, count = whole+g.Bytes, count+g.Blocks
		}
		label := p.Label
		if in.Label() == mem.Imagined {
			label = mem.Imagined // no array was there
		}
		t := report.Table{Name: "arrays", Subject: report.Subject{Process: file.Process, File: file.Name, Of: file.Name},
			Title: fmt.Sprintf("Arrays that were alive after %s (%s)", report.Duration(in.Since(file.Time)), file.Name),
			Note: fmt.Sprintf("%v in %d arrays; programs hold %v besides. As the framework's own profile of its devices has "+
				"it.", whole, count, code),
			Columns: []report.Column{report.TextColumn("site", "Line"), report.TextColumn("function", "Function"),
				report.BytesColumn("bytes", "Holds", label),
				report.CountColumn("arrays", "Arrays")}}
		for _, g := range groups[:min(len(groups), arrayLines)] {
			t.Add(g.Site.Name, g.Site.Function, g.Bytes, g.Blocks)
		}
		all.tables = append(all.tables, t)
		if strings.HasPrefix(file.Name, "oom") && len(groups) > 0 && groups[0].Bytes > 0 {
			all.alive[file.Process] = fmt.Sprintf(" Of %v in arrays that were alive or asked for then, most is of %s: %v.", whole,
				groups[0].Site.Name, groups[0].Bytes)
		}
	}
	return all
}

// arrays shows those lines.
func arrays(in *Input) (r report.Part) {
	for _, t := range in.profiled.tables {
		r.AddTable(t)
	}
	return r
}

// buffers are the arrays of a profile by stack; what compiled programs hold of the devices is apart.
func buffers(p *mem.Profile) (uses []usage.Use, code mem.Bytes) {
	counts := p.Counts()
	for _, s := range p.Samples {
		bytes := mem.Bytes(s.Values[p.Default])
		if s.Labels["kind"] == "executable" {
			code += bytes
			continue
		}
		use := usage.Use{Stack: s.Stack, Bytes: bytes}
		if counts >= 0 {
			use.Blocks = uint64(max(0, s.Values[counts]))
		}
		uses = append(uses, use)
	}
	return uses, code
}
