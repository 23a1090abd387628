package run

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

const (
	programRows   = 20
	leastDonation = 16 * mem.MiB
)

// program is what a compiler said that a function's largest program needs.
type program struct {
	where                                mem.Location
	device, arguments                    string
	count                                int64
	argument, output, alias, temp, needs int64
	code                                 mem.Optional // of all its programs; absent: the compiler did not say
}

// programs tells what each compiled function needs at once, by kind, and which could do with less.
func programs(in *Input) (r report.Part) {
	all := in.programs()
	t := report.Table{
		Name: "programs", Title: "What compiled functions need",
		Note: "As XLA says, for one call of the largest program of each: needed at once are arguments, outputs and " +
			"temporaries, less the outputs that lie in donated arguments. Functions that need less than 1.00 MiB are left out.",
		Columns: []report.Column{report.TextColumn("function", "function"), report.TextColumn("line", "line"),
			report.CountColumn("count", "programs"),
			report.BytesColumn("needs", "needs", in.Label()), report.BytesColumn("temp_bytes", "temporaries", in.Label()),
			report.BytesColumn("argument_bytes", "arguments", in.Label()),
			report.BytesColumn("output_bytes", "outputs", in.Label()),
			report.BytesColumn("alias_bytes", "in donated", in.Label()),
			report.BytesColumn("code_bytes", "code of all", in.Label()),
			report.TextColumn("device", "device"), report.TextColumn("arguments", "")},
	}
	for _, p := range all[:min(len(all), programRows)] {
		t.Add(p.where.Function, in.Names.Search([]mem.Location{p.where}).Name, p.count, p.needs, p.temp, p.argument,
			p.output, p.alias, p.code, p.device, p.arguments)
	}
	r.AddTable(t)
	for _, e := range in.Run.Events {
		if e.Kind == "donation" && e.Where != nil && mem.Bytes(e.Bytes.Or(0)) >= leastDonation {
			r.Findings = append(r.Findings, in.donation(e))
		}
	}
	return r
}

// programs are the largest of each function, those that need most first.
func (in *Input) programs() []*program {
	type key struct {
		process, line    uint32
		function, device string
		file             string
	}
	known := map[key]*program{}
	var all []*program
	for _, e := range in.Run.Events {
		if e.Kind != "program" || e.Where == nil {
			continue
		}
		k := key{e.Process, uint32(e.Where.Line), e.Where.Function, e.Facts["device"], e.Where.File}
		p := known[k]
		if p == nil {
			p = &program{}
			known[k] = p
			all = append(all, p)
		}
		size := func(name string) int64 { return max(0, e.Numbers[name]) }
		*p = program{where: *e.Where, device: k.device, arguments: e.Facts["arguments"], count: size("count"),
			argument: size("argument_bytes"), output: size("output_bytes"), alias: size("alias_bytes"), temp: size("temp_bytes")}
		p.needs = p.argument + p.output - p.alias + p.temp
		if code := size("code_total_bytes"); code > 0 { // on the CPU XLA says 0 of any program
			p.code = mem.Some(code)
		}
	}
	slices.SortStableFunc(all, func(a, b *program) int { return cmp.Compare(b.needs, a.needs) })
	return all
}

// donation tells of arguments that a program could have written its outputs over.
func (in *Input) donation(e mem.Event) report.Finding {
	bytes, function, argument := mem.Bytes(e.Bytes.Or(0)), e.Where.Function, e.Facts["argument"]
	arrays := fmt.Sprintf("an array of %v", bytes)
	if count := e.Numbers["count"]; count > 1 {
		arrays = fmt.Sprintf("%d arrays of together %v", count, bytes)
	}
	return report.Finding{
		Kind: report.KindDonation, Severity: report.Info, Title: fmt.Sprintf("%s could write %v over its arguments",
			function, bytes),
		Text: fmt.Sprintf("The old and the new are both held while %s runs. It takes %s (%s; on the %s) of the same "+
			"shapes and types as outputs, which were let go of as the result came. That was seen at the call that "+
			"compiled it: nothing but the result's assignment ran between (%s). Donated, it needs up to %v less.",
			function, arrays, cmp.Or(argument, "argument without a name"), strings.ToUpper(e.Facts["device"]),
			in.Label(), bytes),
		Advice: frameworks.Donate(function, quotedNames(argument)), Process: e.Process, File: e.Where.File,
		Line: e.Where.Line, Bytes: e.Bytes, Label: in.Label(),
	}
}

// quotedNames writes names, of which there may be several with commas, as Python takes them.
func quotedNames(names string) string {
	if names == "" {
		return ""
	}
	all := strings.Split(names, ", ")
	for i := range all {
		all[i] = strconv.Quote(all[i])
	}
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, ", ") + ")"
}
