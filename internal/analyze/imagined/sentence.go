package imagined

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// sentence is the verdict for people.
func sentence(v *report.Imagined) []string {
	on := machine(v)
	if v.Serving != nil && v.Users.Known() && (v.Verdict == mem.VerdictFits || v.Verdict == mem.VerdictTight ||
		v.Verdict == mem.VerdictFew) {
		return usersSentence(v, on)
	}
	if v.Serving != nil && (v.Verdict == mem.VerdictFits || v.Verdict == mem.VerdictTight) {
		return servingSentence(v, on)
	}
	used, room := mem.Bytes(v.Used.Or(0)), mem.Bytes(v.Headroom.Or(0))
	switch v.Verdict {
	case mem.VerdictFits:
		return []string{fmt.Sprintf("Fits on %s: %s at the peak%s; %v to spare%s (%s)", on, inUse(v),
			strings.TrimSuffix(fullest(v)+peakWhen(v), ","), room, ahead(v), v.Label), v.Basis, topHolder(v)}
	case mem.VerdictTight:
		return []string{fmt.Sprintf("Fits on %s, but tightly: %s at the peak%s leaves %s, less than the %v "+
			"below which other drivers, settings or versions may not fit (%s)",
			on, inUse(v), fullest(v)+peakWhen(v), room.String()+ahead(v), v.Tight, v.Label), v.Basis, topHolder(v)}
	case mem.VerdictConditional:
		if len(v.Undecided) == 0 && v.Rising != nil {
			return risingSentence(v, on)
		}
		return conditionalSentence(v, on)
	case mem.VerdictOOM:
		if v.Serving != nil {
			return []string{fmt.Sprintf("Does not serve on %s: %s (%s)", on, refusal(v), v.Label), wholeStart(v),
				servesWith(v)}
		}
		text := fmt.Sprintf("Does not fit on %s: out of memory", on)
		if step, ok := v.FailedStep.Get(); ok {
			text += fmt.Sprintf(" in step %d", step+1)
		}
		asked, knows := v.Asked.Get()
		held, ahead := v.Allocated.Or(0), ahead(v) // of what the limit is of: without the context
		switch {
		case v.Short != nil:
			text += shortText(v) + ahead
		case knows && v.Needed.Known():
			text += fmt.Sprintf(", it used %v at most and asked for %v more,%s", mem.Bytes(held), mem.Bytes(asked), ahead)
		case v.Needed.Known():
			text += fmt.Sprintf(", it used %v at most%s", mem.Bytes(held), ahead)
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
		if limit, ok := v.OwnLimit.Get(); ok {
			text += fmt.Sprintf(", where the program limits itself to %v", mem.Bytes(limit))
		}
		return []string{text + fmt.Sprintf(" (%s)", v.Label), v.How, topHolder(v)}
	case mem.VerdictUnused:
		return []string{fmt.Sprintf("No verdict: the program %s, though it could see %s", cmp.Or(v.How, "touched no GPU"),
			on)}
	}
	if v.Broken != "" {
		return []string{fmt.Sprintf("No verdict on %s: what the imaginary GPUs recorded cannot be read (%s)", on, v.Broken)}
	}
	return []string{fmt.Sprintf("No verdict on %s: %s", on, cmp.Or(v.How, "the program failed for a reason of its own")),
		notHere(v)}
}

// risingSentence is the verdict on a program that fits for so many steps.
func risingSentence(v *report.Imagined, on string) []string {
	least, most := about(v.Rising.Least.Or(0)), about(v.Rising.Most.Or(0))
	if most != least {
		least += " to " + most
	}
	return []string{fmt.Sprintf("Fits on %s for about %s steps if it goes on like that: %s; so far %s at the peak%s (%s)",
		on, least, risingText(v.Rising), inUse(v), fullest(v), v.Label), v.Basis, topHolder(v)}
}

func risingText(r *report.Rising) string {
	if r.Kept {
		return fmt.Sprintf("each step keeps %v more", r.PerStep)
	}
	return fmt.Sprintf("its peak rises by %v a step", r.PerStep)
}

// about writes a number of steps with two digits that count.
func about(n int64) string {
	unit := int64(1)
	for n/unit >= 100 {
		unit *= 10
	}
	return report.Count(n / unit * unit)
}

// shortText is the call that found no memory, and what that needed.
func shortText(v *report.Imagined) string {
	c := v.Short
	text := fmt.Sprintf(", in %s (%s)", c.Function, mem.LineName(mem.Location{File: c.File, Line: c.Line}))
	if c.CalledFile != "" {
		text += " called at " + mem.LineName(mem.Location{File: c.CalledFile, Line: c.CalledLine})
	}
	if asked, ok := v.Asked.Get(); ok {
		text += fmt.Sprintf(": %v asked for", mem.Bytes(asked))
	} else {
		text += fmt.Sprintf(": %v of temporaries needed", c.Temporaries)
	}
	return text + fmt.Sprintf(" beside %v in use before,", mem.Bytes(c.Used.Or(0)))
}

// servingSentence is the verdict on a server that ran.
func servingSentence(v *report.Imagined, on string) []string {
	s := v.Serving
	capacity := s.Engine + " is ready" // as a model has that keeps no keys and values
	if tokens, ok := s.KVTokens.Get(); ok {
		capacity = fmt.Sprintf("%s tokens of KV cache", report.Count(tokens))
		if length, ok := s.MaxModelLen.Get(); ok && s.MaxConcurrency > 0 {
			capacity += ", " + atOnce(s, length)
		}
	}
	text := fmt.Sprintf("Serves on %s: %s (%s)", on, capacity, v.Label)
	room := fmt.Sprintf("%v of %v in use at the peak%s, %v to spare", mem.Bytes(v.Used.Or(0)), v.Total, fullest(v),
		mem.Bytes(v.Headroom.Or(0)))
	if v.Verdict == mem.VerdictTight {
		text = fmt.Sprintf("Serves on %s, but tightly: %s (%s)", on, capacity, v.Label)
		room += fmt.Sprintf(", less than the %v below which other drivers, settings or versions may not fit", v.Tight)
	}
	return []string{text, servingParts(s), room, v.Basis}
}

// usersSentence is the verdict on a server that was to serve a number of users.
func usersSentence(v *report.Imagined, on string) []string {
	s := v.Serving
	users := fmt.Sprintf("%s of %s tokens each", report.Counted(s.Users.Or(0), "user"), report.Count(s.Tokens.Or(0)))
	if v.Verdict == mem.VerdictFew {
		return []string{fmt.Sprintf("Does not serve %s on %s: %s (%s)", users, on, tooFew(v), v.Label), servesWith(v),
			servingParts(s)}
	}
	clauses := servingSentence(v, on)
	clauses[0] = fmt.Sprintf("Serves %s on %s, %s at once: %s tokens of KV cache (%s)", users, on, report.Count(v.Users.Or(0)),
		report.Count(s.KVTokens.Or(0)), v.Label)
	return clauses
}

// usersOver is the verdict over several GPUs, of which the cheapest that serves the users was looked for.
func usersOver(v *report.Imagined) []string {
	s := v.Serving
	users := fmt.Sprintf("%s of %s tokens each", report.Counted(s.Users.Or(0), "user"), report.Count(s.Tokens.Or(0)))
	started, excluded := 0, 0
	for i := range v.All {
		switch g := &v.All[i]; {
		case g.Label == mem.Imagined:
			started++
		case g.Verdict == mem.VerdictOOM:
			excluded++
		}
	}
	tried := fmt.Sprintf("started on %s, the cheapest first", report.Counted(int64(started), "GPU"))
	if excluded > 0 {
		tried += fmt.Sprintf("; %d more cannot be enough by weights and KV cache alone (computed)", excluded)
	}
	at := slices.IndexFunc(v.All, func(g mem.GPUVerdict) bool { return g.Fits() })
	if at < 0 {
		return []string{fmt.Sprintf("Does not serve %s on any of these GPUs (%s)", users, v.Label), tried}
	}
	best, price := &v.All[at], ""
	if best.Price > 0 {
		price = fmt.Sprintf(" at $%.2f an hour", best.Price*float64(max(1, v.GPUs)))
	}
	return []string{fmt.Sprintf("Serves %s on %s%s, %s at once: %s tokens of KV cache (%s)", users, best.GPUName, price,
		report.Count(best.Users.Or(0)), report.Count(best.KVTokens.Or(0)), v.Label), tried}
}

// inUse is how much of the device is in use; of a program whose framework takes memory ahead of need, what it needs.
func inUse(v *report.Imagined) string {
	if needed, ok := v.Needed.Get(); ok {
		return fmt.Sprintf("it needs %v of %v", mem.Bytes(needed), v.Total)
	}
	return fmt.Sprintf("%v of %v in use", mem.Bytes(v.Used.Or(0)), v.Total)
}

// ahead is what such a framework takes, and by which setting.
func ahead(v *report.Imagined) string {
	limit, ok := v.Limit.Get()
	if !ok {
		return ""
	}
	text := fmt.Sprintf(" of the %v that %s may take", mem.Bytes(limit), v.LimitBy)
	if how := v.Conditions["preallocation"]; how != "" {
		text += " (" + how + ")"
	}
	return text
}

// fullest is " of rank 3", whose peak is told, where ranks take different amounts.
func fullest(v *report.Imagined) string {
	if len(v.Ranks) < 2 {
		return ""
	}
	most, least := slices.MaxFunc(v.Ranks, byUsed), slices.MinFunc(v.Ranks, byUsed)
	if most.Rank.Known() && least.Used < most.Used && mem.Some(int64(most.Used)) == v.Used {
		return " of " + most.Title()
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
	if moment := mem.MomentText(v.PeakPhase, v.PeakStep, 0); moment != "" {
		return ", " + moment + ","
	}
	return ""
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
	if v.Serving != nil && v.Serving.Users.Known() {
		return usersOver(v)
	}
	if len(v.Undecided) > 0 && fits > 0 {
		return []string{fmt.Sprintf("Fits on %d of %d GPUs if %s as taken (%s)", fits, judged, conditionOf(v.Undecided),
			v.Label)}
	}
	clauses := []string{fmt.Sprintf("Fits on %d of %d GPUs (%s)", fits, judged, v.Label)}
	if v.Rising != nil && v.Verdict == mem.VerdictConditional {
		clauses[0] = fmt.Sprintf("Fits on %d of %d GPUs for as many steps as were judged (%s)", fits, judged, v.Label)
		clauses = append(clauses, risingText(v.Rising))
	}
	if cheapest != nil {
		clauses = append(clauses, fmt.Sprintf("the cheapest with room to spare is %s at $%.2f an hour", cheapest.GPU,
			cheapest.Price))
	}
	if smallest != nil && (cheapest == nil || smallest.GPU != cheapest.GPU) {
		clauses = append(clauses, fmt.Sprintf("the smallest is %s with %v", smallest.GPU, smallest.Total))
	}
	return clauses
}
