package imagined

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// sentence is the verdict for people.
func sentence(v *report.Imagined) []string {
	on := machine(v)
	used, room := mem.Bytes(v.Used.Or(0)), mem.Bytes(v.Headroom.Or(0))
	switch v.Verdict {
	case mem.VerdictFits:
		return []string{fmt.Sprintf("Fits on %s: %v of %v in use at the peak%s; %v to spare (%s)", on, used, v.Total,
			strings.TrimSuffix(fullest(v)+peakWhen(v), ","), room, v.Label), v.Basis, topHolder(v)}
	case mem.VerdictTight:
		return []string{fmt.Sprintf("Fits on %s, but tightly: %v of %v in use at the peak%s leaves %v, less than the %v "+
			"below which other drivers, settings or versions may not fit (%s)",
			on, used, v.Total, fullest(v)+peakWhen(v), room, v.Tight, v.Label), v.Basis, topHolder(v)}
	case mem.VerdictConditional:
		return conditionalSentence(v, on)
	case mem.VerdictOOM:
		text := fmt.Sprintf("Does not fit on %s: out of memory", on)
		if step, ok := v.FailedStep.Get(); ok {
			text += fmt.Sprintf(" in step %d", step+1)
		}
		asked, knows := v.Asked.Get()
		switch {
		case knows && !v.Used.Known(): // while it runs: what was in use is told at the end
			text += fmt.Sprintf(", %v asked for of a device of %v", mem.Bytes(asked), v.Total)
		case knows && v.Shortages > 1: // the peak and the last of them are two moments
			text += fmt.Sprintf(" and %s more, %v in use of %v at most and %v asked for last", report.Times(v.Shortages-1),
				used, v.Total, mem.Bytes(asked))
		case knows:
			text += fmt.Sprintf(", %v in use of %v and %v asked for", used, v.Total, mem.Bytes(asked))
		case v.Used.Known():
			text += fmt.Sprintf(", %v in use of %v", used, v.Total)
		}
		return []string{text + fmt.Sprintf(" (%s)", v.Label), v.How, topHolder(v)}
	case mem.VerdictUnused:
		return []string{fmt.Sprintf("No verdict: the program %s, though it could see %s", cmp.Or(v.How, "touched no GPU"),
			on)}
	}
	if v.Broken != "" {
		return []string{fmt.Sprintf("No verdict on %s: what the imaginary GPUs recorded cannot be read (%s)", on, v.Broken)}
	}
	return []string{fmt.Sprintf("No verdict on %s: %s", on, cmp.Or(v.How, "the program failed for a reason of its own"))}
}

// fullest is " of rank 3", whose peak is told, where ranks take different amounts.
func fullest(v *report.Imagined) string {
	if len(v.Ranks) < 2 {
		return ""
	}
	most, least := slices.MaxFunc(v.Ranks, byUsed), slices.MinFunc(v.Ranks, byUsed)
	if rank, ok := most.Rank.Get(); ok && least.Used < most.Used && mem.Some(int64(most.Used)) == v.Used {
		return fmt.Sprintf(" of rank %d", rank)
	}
	return ""
}

func byUsed(a, b report.RankUse) int { return cmp.Compare(a.Used, b.Used) }

// machine is what the verdict is about: "8 × NVIDIA H100"; where not all ranks of the world ran, which of how many.
func machine(v *report.Imagined) string {
	var ranks []string
	world := int64(0)
	for _, r := range v.Ranks {
		if r.Rank.Known() && (r.Played || r.World.Or(0) > int64(len(v.Ranks))) {
			ranks, world = append(ranks, fmt.Sprint(r.Rank.Or(0))), r.World.Or(0)
		}
	}
	switch {
	case len(ranks) == 1:
		return fmt.Sprintf("%s as rank %s of %d", v.GPUName, ranks[0], world)
	case len(ranks) > 1:
		if left := len(ranks) - 6; left > 0 {
			ranks = append(ranks[:6], fmt.Sprintf("%d more", left))
		}
		return fmt.Sprintf("%s as each of ranks %s of %d", v.GPUName, strings.Join(ranks, ", "), world)
	case v.GPUs > 1:
		used := map[int]bool{}
		for _, r := range v.Ranks {
			used[r.Index] = true
		}
		if len(used) > 0 && len(used) < v.GPUs {
			return fmt.Sprintf("%s, %d of %d used", v.GPUName, len(used), v.GPUs)
		}
		return fmt.Sprintf("%d × %s", v.GPUs, v.GPUName)
	}
	return v.GPUName
}

// peakWhen is ", in backward of step 2", "" where it is not known.
func peakWhen(v *report.Imagined) string {
	step, stepped := v.PeakStep.Get()
	switch {
	case v.PeakPhase == mem.PhaseEvaluation && stepped && step > 0:
		return fmt.Sprintf(", in the evaluation after step %d,", step)
	case v.PeakPhase == mem.PhaseEvaluation && stepped:
		return ", in the evaluation before step 1,"
	case v.PeakPhase != "" && v.PeakPhase != mem.PhaseStep && stepped:
		return fmt.Sprintf(", in %s of step %d,", v.PeakPhase, step+1)
	case stepped:
		return fmt.Sprintf(", in step %d,", step+1)
	case v.PeakPhase != "":
		return fmt.Sprintf(", in %s,", v.PeakPhase)
	}
	return ""
}

// topHolder is what held most at the peak, and if that is none of the program's lines, the first of those.
func topHolder(v *report.Imagined) string {
	if len(v.Lines) == 0 {
		return ""
	}
	most := v.Lines[0]
	text := fmt.Sprintf("%s held the most: %v", heldName(&most), most.Bytes)
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
	return "what has " + cmp.Or(l.Function, mem.NoFrames)
}

// lineName is a line for people: of a library with its folder, as model.py says little and litgpt/model.py does.
func lineName(l *report.HeldLine) string {
	if _, inside, ok := strings.Cut(l.File, "/site-packages/"); ok && !l.User && l.Line > 0 {
		return fmt.Sprintf("%s:%d", inside, l.Line)
	}
	return mem.LineName(mem.Location{File: l.File, Line: l.Line})
}

// callsText is "cusparseSpMM (3 times) and 2 more".
func callsText(v *report.Imagined, names []string) string {
	const most = 8
	var shown []string
	for _, name := range limited(names, most) {
		shown = append(shown, fmt.Sprintf("%s (%s)", name, report.Times(int64(v.Calls[name]))))
	}
	text := strings.Join(shown, ", ")
	if left := len(names) - len(shown); left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}

// Sentence is the verdict in clauses, over a catalogue where there is one.
func Sentence(v *report.Imagined) []string {
	fits, judged := 0, 0
	var cheapest, smallest *mem.GPUVerdict
	for i := range v.All {
		g := &v.All[i]
		if g.Verdict == mem.VerdictNone || g.Verdict == mem.VerdictFailed || g.Verdict == mem.VerdictUnused {
			continue
		}
		judged++
		if !g.Fits() {
			continue
		}
		fits++
		if g.Verdict == mem.VerdictFits && g.Price > 0 && (cheapest == nil || g.Price < cheapest.Price) {
			cheapest = g
		}
		if smallest == nil || g.Total < smallest.Total {
			smallest = g
		}
	}
	if judged == 0 {
		return sentence(v)
	}
	if len(v.Undecided) > 0 && fits > 0 {
		return []string{fmt.Sprintf("Fits on %d of %d GPUs if %s as taken (%s)", fits, judged, conditionOf(v.Undecided),
			v.Label)}
	}
	clauses := []string{fmt.Sprintf("Fits on %d of %d GPUs (%s)", fits, judged, v.Label)}
	if cheapest != nil {
		clauses = append(clauses, fmt.Sprintf("the cheapest with room to spare is %s at $%.2f an hour", cheapest.GPU,
			cheapest.Price))
	}
	if smallest != nil && (cheapest == nil || smallest.GPU != cheapest.GPU) {
		clauses = append(clauses, fmt.Sprintf("the smallest is %s with %v", smallest.GPU, smallest.Total))
	}
	return clauses
}

// Tell puts the verdict into tables and notes.
func Tell(run *mem.Run, v *report.Imagined) (r report.Part) {
	r.Imagined = v
	r.AddTable(gpuVerdictTable("gpus", "On every GPU of the catalogue, cheapest that fits first", v.All))
	r.AddTable(usageTable(v))
	if len(v.Categories) > 0 {
		t := report.Table{Name: "categories", Title: "What the peak of " + v.CategoryBasis + " was made of",
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
			r.Notes = append(r.Notes, fmt.Sprintf("What %v of the peak is for is inferred from the stacks that allocated it "+
				"alone: no step had shown the model's phases yet.", v.ByStack))
		}
		r.AddTable(t)
	}
	r.AddTable(linesTable(v.Lines))
	r.AddTable(tryTable("tries", "What was tried", v.Tries))
	if len(v.Variations) > 0 {
		asked := mem.Try{What: "as asked for", GPUVerdict: v.GPUVerdict}
		r.AddTable(tryTable("variations", "With one condition changed", append([]mem.Try{asked}, v.Variations...)))
	}
	r.AddTable(rankTable(v.Ranks))
	notes(run, v, &r)
	return r
}

// conditionNames are in the order people read them: what most often changes the answer first.
func conditionNames(conditions map[string]string) []string {
	first := []string{frameworks.Torch, "allocator setting", "attention", "compile cache", "data-dependent sizes",
		"values read back", "matmul precision"}
	names := slices.DeleteFunc(slices.Clone(first), func(name string) bool { return conditions[name] == "" })
	for _, name := range slices.Sorted(maps.Keys(conditions)) {
		if !slices.Contains(first, name) {
			names = append(names, name)
		}
	}
	return names
}

// spreadText is what changing the conditions changed, over the variations that ran.
func spreadText(v *report.Imagined) string {
	low, high, changed, ran := v.Used.Or(0), v.Used.Or(0), 0, 0
	for _, try := range v.Variations {
		if try.Verdict == mem.VerdictNone {
			continue
		}
		ran++
		if used, ok := try.Used.Get(); ok && try.Fits() {
			low, high = min(low, used), max(high, used)
		}
		if try.Fits() != v.Fits() {
			changed++
		}
	}
	if ran == 0 || low == 0 {
		return ""
	}
	text := fmt.Sprintf("With one condition changed at a time, what is in use at the peak lies between %v and %v (%s).",
		mem.Bytes(low), mem.Bytes(high), v.Label)
	if changed > 0 {
		text += fmt.Sprintf(" In %d of %d variations the verdict is another one.", changed, ran)
	}
	return text
}

// cachedText says how much of the answer rests on the allocator's settings, where those are the default and it is
// much. The script that starts a real job often sets others, and the program that it starts does not show them.
func cachedText(v *report.Imagined) string {
	reserved, cached := v.Reserved.Or(0), v.Reserved.Or(0)-v.Allocated.Or(v.Reserved.Or(0))
	if v.Conditions["allocator setting"] != "default" || cached < int64(mem.GiB) || cached*20 < reserved {
		return ""
	}
	return fmt.Sprintf("The allocator reserved %v more at its peak than tensors took at theirs, under its default "+
		"settings. Where the script that starts the real job sets PYTORCH_CUDA_ALLOC_CONF, imagine that script, or say "+
		"--alloc-conf: other settings keep more or less.",
		mem.Bytes(cached))
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
	for _, name := range []string{"context", "cublas", "cudnn", "nccl", "pools", "other"} {
		var most mem.Bytes
		for _, rank := range v.Ranks {
			most = max(most, rank.Parts[name])
		}
		if most > 0 {
			row(partNames[name], mem.Some(int64(most)), mem.Estimated)
		}
	}
	row("peak in use on the device", v.Used, mem.Imagined)
	has := "such a GPU has" // a real one: the catalogue tells how its memory is known
	if v.TotalLabel == mem.Imagined {
		has = "the device was given"
	}
	row(has, mem.Some(int64(v.Total)), v.TotalLabel)
	row("headroom", v.Headroom, mem.Imagined)
	return t
}

var partNames = map[string]string{"context": "context and libraries, beside the allocator",
	"cublas": "cuBLAS, beside the allocator",
	"cudnn":  "cuDNN, beside the allocator", "nccl": "NCCL buffers", "pools": "stream-ordered pools",
	"other": "other device memory"}

func gpuVerdictTable(name, title string, all []mem.GPUVerdict) report.Table {
	t := report.Table{Name: name, Title: title, Columns: []report.Column{report.TextColumn("gpu", "gpu"),
		report.TextColumn("verdict", "verdict"), report.BytesColumn("memory", "memory", ""),
		report.BytesColumn("used", "peak used", ""), report.BytesColumn("headroom", "headroom", ""),
		report.TextColumn("price", "$/h"), report.TextColumn("label", "label"), report.TextColumn("note", "note")}}
	for _, g := range all {
		cost := ""
		if g.Price > 0 {
			cost = fmt.Sprintf("%.2f", g.Price)
		}
		t.Add(g.GPU, verdictWord(g.Verdict), g.Total, g.Used, g.Headroom, cost, g.Label, g.Note)
	}
	return t
}

func tryTable(name, title string, tries []mem.Try) report.Table {
	t := report.Table{Name: name, Title: title, Columns: []report.Column{report.TextColumn("what", "what"),
		report.TextColumn("verdict", "verdict"), report.BytesColumn("allocated", "allocated", ""),
		report.BytesColumn("reserved", "reserved", ""), report.BytesColumn("used", "peak used", ""),
		report.BytesColumn("headroom", "headroom", ""), report.TextColumn("label", "label"),
		report.TextColumn("note", "note")}}
	for _, try := range tries {
		word := verdictWord(try.Verdict)
		if try.Kind == mem.TryMemory && try.Fits() {
			word = "would run"
		}
		t.Add(try.What, word, try.Allocated, try.Reserved, try.Used, try.Headroom, try.Label, try.Note)
	}
	return t
}

func verdictWord(verdict mem.Verdict) string {
	switch verdict {
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
			name = fmt.Sprint(n)
			if world, ok := rank.World.Get(); ok {
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

func linesTable(lines []report.HeldLine) report.Table {
	t := report.Table{Name: "peak-lines", Title: "Lines that held the peak",
		Columns: []report.Column{report.TextColumn("site", "line"), report.TextColumn("function", "function"),
			report.BytesColumn("bytes", "held", mem.Imagined), {Name: "blocks", Title: "blocks", Unit: mem.UnitCount,
				Label: mem.Imagined}}}
	for _, l := range lines {
		t.Add(lineName(&l), l.Function, l.Bytes, l.Blocks)
	}
	return t
}

// notes name what the answer rests on and what it leaves open.
func notes(run *mem.Run, v *report.Imagined, r *report.Part) {
	if len(v.Conditions) > 0 {
		var parts []string
		for _, key := range conditionNames(v.Conditions) {
			parts = append(parts, key+" "+v.Conditions[key])
		}
		r.AddNote("Conditions of this answer: " + strings.Join(parts, ", ") + ".")
	}
	for _, text := range []string{spreadText(v), cachedText(v)} {
		if text != "" {
			r.AddNote(text)
		}
	}
	for _, p := range limited(v.Policies, 12) {
		r.AddNote(fmt.Sprintf("The size of %s at %s depends on data that was never computed: %s was taken, %s.", p.Op,
			mem.LineName(mem.Location{File: p.File, Line: p.Line}), policyWords(p.Policy), report.Times(p.Count)))
	}
	for _, b := range limited(v.ReadBacks, 8) {
		what := "nothing was seen there that it decides."
		if b.Check > 0 {
			what = fmt.Sprintf("line %d raises unless a number passes that follows from it, and which one does is not known. "+
				"--read-value %s=VALUE answers it.", b.Check, b.Place())
		}
		r.AddNote(fmt.Sprintf("The host read %v, %s, that no kernel computed, at %s: %s", b.Bytes, report.Times(b.Count),
			b.Place(), what))
	}
	undecidedNotes(v, r)
	if v.Verdict == mem.VerdictFailed && len(v.ReadBacks) > 0 && v.Other == nil {
		r.AddNote("If it failed over such a value, as a loss of zero: --read-value 1 has it read ones.")
	}
	if text := tooManyRanks(run, v); text != "" {
		r.AddNote(text)
	}
	answered := slices.DeleteFunc(slices.Sorted(maps.Keys(v.Calls)),
		func(name string) bool { return slices.Contains(v.Refused, name) })
	if len(answered) > 0 {
		r.AddNote("Calls that were answered without being modelled: " + callsText(v, answered) + ".")
	}
	if len(v.Refused) > 0 {
		r.AddNote("Calls that failed by name, because their output is not modelled: " + callsText(v, v.Refused) + ".")
	}
	for _, f := range limited(v.FakeWeights, 6) {
		r.AddNote(fmt.Sprintf("Weights made up in the right shapes: %s by %s.", f.Name, f.What))
	}
	if len(v.Redirected) > 0 {
		r.AddNote("Writes that went to the sandbox: " + strings.Join(limited(v.Redirected, 5), ", ") + ".")
	}
	for _, n := range limited(v.NotReached, 8) {
		where := ""
		if n.File != "" {
			where = " (" + mem.LineName(mem.Location{File: n.File, Line: n.Line}) + ")"
		}
		note := "Not reached: " + n.What + where
		if n.Text != "" {
			note += ". " + report.UpperFirst(report.FirstLine(n.Text, 160))
		}
		r.AddNote(note + ".")
	}
	switch v.StoppedFor {
	case "steady":
		r.AddNote("Stopped early: the peak was steady over three optimizer steps.")
	case report.StoppedForDuration:
		r.AddNote("Stopped early, after the time of --duration: what the program would take later is not in these figures.")
	}
	if seen := run.Imagined.Setup.Contexts; seen.High > 0 && v.Used.Or(0) > 0 {
		r.AddNote(fmt.Sprintf("Of the context beside the allocator %v were taken; what was seen on such GPUs lies between "+
			"%v and %v, by driver, loaded modules and libraries. --context says what yours takes.",
			run.Imagined.Setup.Context, seen.Low, seen.High))
	}
	r.AddNote("Kernels were not run: values are zeros, and times say nothing about the GPU.")
}

func policyWords(policy string) string {
	switch policy {
	case "upper":
		return "its upper bound"
	case "zero":
		return "nothing"
	}
	return policy + " of its upper bound"
}

func limited[T any](all []T, n int) []T { return slices.Clone(all[:min(len(all), n)]) }

// Exact raises high-water marks to those that the devices' tables tell, where samples are lower: a peak between two
// samples is no less one. Where the verdict does not say in which phase the peak was, the samples do.
func Exact(v *report.Imagined, peak *report.Peak) {
	var allocated, reserved, used mem.Optional
	for _, rank := range v.Ranks {
		allocated, reserved = allocated.Plus(rank.Allocated), reserved.Plus(rank.Reserved)
	}
	for _, d := range v.Devices {
		used = used.Plus(mem.Some(int64(d.Used)))
	}
	peak.Allocated.Raise(allocated)
	peak.Reserved.Raise(reserved)
	peak.DeviceUsed.Raise(used)
	if v.PeakPhase == "" {
		v.PeakPhase, v.PeakStep = peak.Phase, peak.Step
	}
}

// Tried puts what was tried into the advice of findings on imaginary devices. v: nil where none was used.
func Tried(v *report.Imagined, findings []report.Finding) {
	for i := range findings {
		switch f := &findings[i]; {
		case v == nil || f.Label != mem.Imagined:
		case f.Kind == report.KindOOM:
			f.Advice = triedAdvice(v, f.Advice)
		case f.Kind == report.KindFragmentation:
			triedPieces(v, f)
		}
	}
}

// triedAdvice is what was tried and found to fit; where nothing did, that is said.
func triedAdvice(v *report.Imagined, general string) string {
	var fits, not []string
	for _, try := range v.Tries {
		switch {
		case try.Kind == mem.TryMemory:
		case try.Fits():
			fits = append(fits, fittingTry(&try))
		case try.Verdict == mem.VerdictOOM:
			not = append(not, try.What)
		}
	}
	switch {
	case len(fits) == 0 && len(not) == 0:
		return general
	case len(fits) == 0:
		return "Use a GPU with more memory, or a smaller model, batch or sequence. Tried, and not enough: " +
			strings.Join(not, ", ") + "."
	}
	text := "Run it " + strings.Join(fits, ", or ") + ": "
	if len(fits) == 1 {
		text += "that was tried and fits."
	} else {
		text += "each was tried and fits."
	}
	if len(not) > 0 {
		text += " Tried, and not enough: " + strings.Join(not, ", ") + "."
	}
	return text
}

// fittingTry is what to run the program with, or on, and what that leaves.
func fittingTry(try *mem.Try) string {
	text := try.What
	if !strings.HasPrefix(text, "on ") && !strings.HasPrefix(text, "without ") {
		text = "with " + text
	}
	room, ok := try.Headroom.Get()
	if !ok {
		return text
	}
	left := fmt.Sprintf("%v to spare)", mem.Bytes(room))
	if try.Verdict != mem.VerdictFits {
		left = verdictWord(try.Verdict) + ", " + left
	}
	if priced, ok := strings.CutSuffix(text, ")"); ok {
		return priced + "; " + left
	}
	return text + " (" + left
}

// triedPieces is the advice against fragmentation, as far as it was tried.
func triedPieces(v *report.Imagined, f *report.Finding) {
	at := slices.IndexFunc(v.Tries, func(t mem.Try) bool { return t.Kind == "allocator" })
	switch {
	case at < 0:
	case v.Tries[at].Fits():
		f.Advice = strings.TrimSuffix(f.Advice, ".") + ": that was tried and fits."
	case v.Tries[at].Verdict == mem.VerdictOOM:
		f.Advice = ""
		f.Text += " With " + v.Tries[at].What + " memory ran out too, as was tried."
	}
}
