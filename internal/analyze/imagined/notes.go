package imagined

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

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
	if v.Serving != nil {
		return gainText(v)
	}
	low, high, changed, ran := v.Taken(), v.Taken(), 0, 0
	for _, try := range v.Variations {
		if try.Verdict == mem.VerdictNone {
			continue
		}
		ran++
		if try.Used.Known() && try.Fits() {
			low, high = min(low, try.Taken()), max(high, try.Taken())
		}
		if try.Fits() != v.Fits() {
			changed++
		}
	}
	if ran == 0 || low == 0 {
		return ""
	}
	what := "is in use"
	if v.Needed.Known() {
		what = "the program needs"
	}
	text := fmt.Sprintf("With one condition changed at a time, what %s at the peak lies between %v and %v (%s).",
		what, low, high, v.Label)
	if changed > 0 {
		text += fmt.Sprintf(" In %d of %d variations the verdict is another one.", changed, ran)
	}
	return text
}

// unseen is what the agent says of a server that it could not look at; guarded of serving.py has the words.
const unseen = "could not look at the server: "

// unseenTexts are the errors over which figures of a server may be missing.
func unseenTexts(run *mem.Run) (texts []string) {
	for i := range run.Events {
		why, is := strings.CutPrefix(run.Events[i].Text, unseen)
		if text := "The server could not be looked at, so figures of it may be missing: " + why; is &&
			run.Events[i].Kind == "log" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return texts
}

// cachedText says how much of the answer rests on the allocator's settings, where those are the default and it is
// much. The script that starts a real job often sets others, and the program that it starts does not show them.
func cachedText(v *report.Imagined) string {
	reserved, cached := v.Reserved.Or(0), v.Reserved.Or(0)-v.Allocated.Or(v.Reserved.Or(0))
	if v.Limit.Known() || v.Conditions["allocator setting"] != "default" || cached < int64(mem.GiB) || cached*20 < reserved {
		return ""
	}
	return fmt.Sprintf("The allocator reserved %v more at its peak than tensors took at theirs, under its default "+
		"settings. Where the script that starts the real job sets PYTORCH_CUDA_ALLOC_CONF, imagine that script, or say "+
		"--alloc-conf: other settings keep more or less.",
		mem.Bytes(cached))
}

// nodesText says what was counted for the nodes of CUDA graphs, and how far that is known; or that nothing was.
func nodesText(run *mem.Run, v *report.Imagined) string {
	s := &run.Imagined.Setup
	if r := v.GraphNodesRange; r != nil {
		most := mem.Bytes(v.GraphNodes.Or(0))
		return fmt.Sprintf("For %s of CUDA graphs %v are counted, %v for each: what a driver keeps. Published figures are "+
			"%v to %v, which would be %v to %v; hightide about imagine says more.",
			report.Counted(int64(most/s.GraphNode), "node"), most, s.GraphNode, s.GraphNodes.Low, s.GraphNodes.High, r.Low, r.High)
	}
	if s.GraphNode > 0 {
		return "" // none was there at the peak
	}
	graphs := v.GraphPools.Or(0)
	if v.Serving != nil {
		graphs = max(graphs, v.Serving.Graphs.Or(0))
	}
	if graphs <= 0 {
		return ""
	}
	return "What a driver keeps for each node of a CUDA graph is not known, and in no figure: on a real GPU graphs take more, " +
		"and less is to spare."
}

// untoldText says so where the framework whose allocator it is told nothing of what was held, or of another moment.
func untoldText(v *report.Imagined) string {
	const lines, unknown = "Which lines held the peak", "is not known: %s told nothing of it."
	switch peak := v.Allocated.Or(0); {
	case v.LimitBy == "":
	case len(v.Categories) == 0 && len(v.Lines) == 0:
		return fmt.Sprintf(lines+", and what it was for, "+unknown, v.LimitBy)
	case len(v.Lines) == 0:
		return fmt.Sprintf(lines+" "+unknown, v.LimitBy)
	case v.LinesHeld > 0 && int64(v.LinesHeld) < peak-peak/100:
		return fmt.Sprintf("The lines are of a moment with %v in use, the highest that %s told of; the peak was at "+
			"another.", v.LinesHeld, v.LimitBy)
	}
	return ""
}

// unaskedText says how much of the peak is no tensor's: what the allocator gave beyond what was asked for.
func unaskedText(v *report.Imagined) string {
	more := v.LinesHeld - v.LinesAsked
	if v.LimitBy == "" || v.LinesAsked == 0 || more*50 < v.LinesHeld {
		return ""
	}
	return fmt.Sprintf("%v of %v was not asked for: %s's allocator does not split a block that is less than twice as "+
		"large, so what it gives depends on the order of operations.", more, v.LinesHeld, v.LimitBy)
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
	for _, text := range []string{spreadText(v), promiseText(v), overText(v), cachedText(v), untoldText(v), nodesText(run, v),
		unaskedText(v)} {
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
		place := "at " + b.Place()
		if b.File == "" { // the framework copied it in a thread of its own
			place = "in a thread of the framework's, which has no line"
			what = "a line that was seen to decide something by it is named for itself."
		}
		r.AddNote(fmt.Sprintf("The host read %v, %s, that no kernel computed, %s: %s", b.Bytes, report.Times(b.Count), place,
			what))
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
		if n.Perhaps {
			note = "Perhaps not reached: " + n.What + where
		}
		if n.Text != "" {
			note += ". " + report.UpperFirst(report.FirstLine(n.Text, 160))
		}
		r.AddNote(note + ".")
	}
	if text := stoppedText(run, v); text != "" {
		r.AddNote(text)
	}
	if seen := run.Imagined.Setup.Contexts; seen.High > 0 && v.Used.Or(0) > 0 {
		r.AddNote(fmt.Sprintf("Of the context beside the allocator %v were taken; what was seen on such GPUs lies between "+
			"%v and %v, by driver, loaded modules and libraries. --context says what yours takes.",
			run.Imagined.Setup.Context, seen.Low, seen.High))
	}
	for _, text := range unseenTexts(run) {
		r.AddNote(text)
	}
	r.AddNote("Kernels were not run: values are zeros, and times say nothing about the GPU.")
}

// stoppedText says why the program was ended before its end; empty: it was not.
func stoppedText(run *mem.Run, v *report.Imagined) string {
	switch v.StoppedFor {
	case "steady":
		return "Stopped early: the peak had not risen for three optimizer steps or more."
	case mem.StopReady:
		if text := loadText(run, v); text != "" {
			return "Stopped once requests were answered. " + text
		}
		if v.Serving != nil && !v.Serving.KVTokens.Known() && v.Serving.LoadRefused == "" {
			return "Stopped once the server was ready. It sets nothing aside for requests: what each keeps in the KV cache " +
				"comes on top of these figures. --load plays some."
		}
		if v.Serving != nil && v.Serving.LoadRefused != "" {
			return ""
		}
		return "Stopped once the server was ready. No requests were played: these figures have what the engine sets aside for them."
	case report.StoppedForDuration:
		return "Stopped early, after the time of --duration: what the program would take later is not in these figures."
	}
	return ""
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
