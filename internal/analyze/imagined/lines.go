package imagined

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// mostLines is how many lines of the peak a verdict names.
const mostLines = 20

// Held says which lines of the program held a device's peak, those that held most first: the blocks alive then, from
// the history that the allocator kept. Of several, none of which need have the peak, it is the one that goes highest.
// Of a server they are lines of its engine, and its modules are told besides. What is in the block of a program that XLA
// compiled is told by that, if it is among those.
func Held(v *report.Imagined, histories []*mem.AllocatorSnapshot, programs []*mem.Profile, device int) {
	var lines []report.HeldLine
	for _, s := range histories {
		d := usage.FromTrace(s, device, usage.Whole)
		if of := heldLines(s, d, programs, v.Serving != nil); heldBytes(of) > heldBytes(lines) {
			lines, v.LinesAsked = of, heldBytes(of)-unasked(d)
		}
	}
	v.LinesHeld = heldBytes(lines)
	if v.Serving != nil {
		v.Modules = modules(lines)
	}
	v.Lines = lines[:min(len(lines), mostLines)]
}

// modules puts lines together by the modules of Python that they are in.
func modules(lines []report.HeldLine) []report.HeldModule {
	var all mem.Tally[string, report.HeldModule]
	for _, l := range lines {
		m := all.At(moduleName(&l))
		m.Module, m.Bytes, m.Blocks = moduleName(&l), m.Bytes+l.Bytes, m.Blocks+l.Blocks
	}
	slices.SortStableFunc(all.All, func(a, b report.HeldModule) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return all.All[:min(len(all.All), mostLines)]
}

// moduleName is the name by which Python imports a library's file; of another file, its name.
func moduleName(l *report.HeldLine) string {
	_, inside, ok := strings.Cut(l.File, "/site-packages/")
	if !ok || l.User {
		return cmp.Or(path.Base(l.File), mem.NoFrames)
	}
	return strings.ReplaceAll(strings.TrimSuffix(strings.TrimSuffix(inside, ".py"), "/__init__"), "/", ".")
}

// unasked is what the blocks alive at the peak were given beyond what was asked for, where the history tells.
func unasked(d *usage.Device) (sum mem.Bytes) {
	given := map[uint64]mem.Bytes{}
	for i, asked := range d.Trace.Asked[:min(len(d.Trace.Asked), d.Peak.Moment+1)] {
		at := d.Trace.Address[i]
		sum -= given[at]
		delete(given, at)
		if d.Trace.Action[i] == mem.ActionAlloc && asked > 0 {
			given[at] = d.Trace.Size[i] - asked
			sum += given[at]
		}
	}
	return sum
}

func heldLines(s *mem.AllocatorSnapshot, d *usage.Device, programs []*mem.Profile, server bool) (lines []report.HeldLine) {
	names := usage.NewNames(d.Stacks)
	names.LibraryFirst = server
	uses := d.AtPeak()
	for _, p := range programs {
		var within bool
		if uses, within = without(uses, d, temporariesOf(p)); within {
			lines = append(lines, linesOf(p, temporaries, isTemporary)...)
		}
	}
	for _, g := range usage.Groups(names, uses) {
		lines = append(lines, heldLine(&g, s.Format))
	}
	return holdingMost(lines)
}

// heldLine is what a site held; of an operation whose line is not known it has the name. Of what functions take that
// XLA compiled, TensorFlow tells no operation.
func heldLine(g *usage.Group, format string) report.HeldLine {
	l := report.HeldLine{File: g.Site.File, Line: g.Site.Line, Function: g.Site.Function,
		User: g.Site.User && g.Site.Line > 0, Bytes: g.Bytes, Blocks: int64(g.Blocks)}
	switch {
	case l.Line > 0 || l.Function != "":
	case g.Site.Name == mem.NoFrames && format == mem.HistoryFormat:
		l.File, l.Function = "", "no operation: compiled by XLA"
	case l.File == "":
		l.Function = g.Site.Name
	}
	return l
}

func heldBytes(lines []report.HeldLine) (sum mem.Bytes) {
	for _, l := range lines {
		sum += l.Bytes
	}
	return sum
}

// What lines of arrays hold.
const arrays, temporaries = "arrays", "temporaries"

// LinesOfArrays says the same of a framework that tells of arrays by line, and of the temporaries of the program that
// ran at the peak, if any is told: alive are all arrays of all devices.
func LinesOfArrays(alive, program *mem.Profile, device string) (lines []report.HeldLine) {
	lines = linesOf(alive, arrays, func(labels map[string]string) bool {
		return labels["kind"] != "executable" && labels["device"] == device
	})
	if program != nil {
		lines = append(lines, linesOf(program, temporaries, isTemporary)...)
	}
	return holdingMost(lines)
}

func isTemporary(labels map[string]string) bool { return labels["kind"] == "temporary" }

// linesOf are the lines of a profile's samples that are wanted.
func linesOf(p *mem.Profile, what string, wants func(labels map[string]string) bool) (lines []report.HeldLine) {
	var uses []usage.Use
	counts := p.Counts()
	for _, s := range p.Samples {
		if !wants(s.Labels) {
			continue
		}
		use := usage.Use{Stack: s.Stack, Bytes: mem.Bytes(s.Values[p.Default])}
		if counts >= 0 {
			use.Blocks = uint64(max(0, s.Values[counts]))
		}
		uses = append(uses, use)
	}
	for _, g := range usage.Groups(usage.NewNames(&p.Stacks), uses) {
		l := report.HeldLine{File: g.Site.File, Line: g.Site.Line, Function: g.Site.Function, What: what,
			User: g.Site.User && g.Site.Line > 0, Bytes: g.Bytes, Blocks: int64(g.Blocks)}
		if l.Line == 0 && l.Function == "" && g.Site.Name != l.File { // an operation, or what XLA has no line of
			l.Function = g.Site.Name
		}
		lines = append(lines, l)
	}
	return lines
}

// temporariesOf is what the temporaries of a program take.
func temporariesOf(p *mem.Profile) (sum mem.Bytes) {
	for _, s := range p.Samples {
		if isTemporary(s.Labels) {
			sum += mem.Bytes(s.Values[p.Default])
		}
	}
	return sum
}

// without takes from what stacks held at the peak one block for which so much was asked, if there is one.
func without(uses []usage.Use, d *usage.Device, asked mem.Bytes) ([]usage.Use, bool) {
	alive := map[uint64]int{}
	for i, action := range d.Trace.Action[:min(len(d.Trace.Action), d.Peak.Moment+1)] {
		if action == mem.ActionOOM {
			continue
		}
		delete(alive, d.Trace.Address[i])
		if action == mem.ActionAlloc {
			alive[d.Trace.Address[i]] = i
		}
	}
	for _, i := range slices.Sorted(maps.Values(alive)) {
		given := d.Trace.Size[i]
		if of := d.Trace.Asked; asked <= 0 || given != asked && (i >= len(of) || of[i] != asked) {
			continue
		}
		at := slices.IndexFunc(uses, func(u usage.Use) bool { return u.Stack == d.Trace.Stack[i] && u.Bytes >= given })
		if at >= 0 {
			uses = slices.Clone(uses)
			uses[at].Bytes -= asked
			if given == asked {
				uses[at].Blocks = max(uses[at].Blocks, 1) - 1
			}
			if uses[at].Bytes == 0 {
				uses = slices.Delete(uses, at, at+1)
			}
			return uses, true
		}
	}
	return uses, false
}

// holdingMost are the lines that held most.
func holdingMost(lines []report.HeldLine) []report.HeldLine {
	slices.SortFunc(lines, func(a, b report.HeldLine) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.What, b.What))
	})
	return lines
}

// topHolder is what held most at the peak, and if that is none of the program's lines, the first of those.
func topHolder(v *report.Imagined) string {
	if len(v.Lines) == 0 {
		return ""
	}
	most := v.Lines[0]
	verb := "held"
	if v.CategoriesShort {
		verb = "needs"
	}
	text := fmt.Sprintf("%s %s the most: %v", heldName(&most), verb, most.Bytes)
	own := slices.IndexFunc(v.Lines, func(l report.HeldLine) bool { return l.User })
	if own > 0 {
		text += fmt.Sprintf(", and of the program's lines %s: %v", heldName(&v.Lines[own]), v.Lines[own].Bytes)
	}
	return text
}

func heldName(l *report.HeldLine) string {
	if l.Line > 0 {
		return lineName(l)
	}
	switch {
	case l.Function == "" || l.Function == mem.NoFrames:
		return "what has " + mem.NoFrames
	case l.File != "":
		return fmt.Sprintf("what is of %s, %s,", l.File, l.Function)
	}
	return "what is of " + l.Function
}

// lineName is a line for people: of a library with its folder, as model.py says little and litgpt/model.py does.
func lineName(l *report.HeldLine) string {
	if _, inside, ok := strings.Cut(l.File, "/site-packages/"); ok && !l.User && l.Line > 0 {
		return fmt.Sprintf("%s:%d", inside, l.Line)
	}
	return mem.LineName(mem.Location{File: l.File, Line: l.Line})
}
