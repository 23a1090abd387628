package imagined

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// undecided are the reads that decide something and were not answered on request, those of several processes at one
// line added up.
func undecided(reads []mem.ReadBack) []report.Undecided {
	var all mem.Tally[mem.Location, report.Undecided]
	for i := range reads {
		if r := &reads[i]; r.Agent && r.Decides() {
			sum := all.At(mem.Location{File: r.File, Line: r.Line})
			count := sum.Count + max(r.Count, 1)
			*sum = report.Undecided{File: r.File, Line: r.Line, Function: r.Function, Number: cmp.Or(r.Number, "int"),
				Use: r.Use, UseLine: r.UseLine, Value: r.Value, Upper: r.Upper, Other: r.Other, Unsure: sum.Unsure ||
					r.Unsure, Count: count}
		}
	}
	slices.SortStableFunc(all.All, func(a, b report.Undecided) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return all.All
}

// unless makes a verdict conditional that rests on numbers which nobody computed. Where the program took the same with
// the other end of what each can be, they do not matter.
func unless(v *report.Imagined) {
	if other := v.Other; v.Verdict == mem.VerdictOOM && len(v.Undecided) == 0 && other != nil && other.Fits() {
		v.Undecided = append(v.Undecided, sizes(v)...)
	}
	if v.Verdict == mem.VerdictFailed && v.Other != nil && v.Other.Kind == mem.TryOnes {
		withOnes(v)
		return
	}
	if len(v.Undecided) == 0 {
		return
	}
	ran := v.Verdict == mem.VerdictFits || v.Verdict == mem.VerdictTight
	switch other := v.Other; {
	case ran && other != nil && bounded(v.Undecided) && other.Fits() &&
		(sameAs(v, other) || onlyCaught(v.Undecided) && other.Used.Or(0) <= v.Used.Or(0)):
		v.Indifferent, v.Undecided = v.Undecided, nil
		return
	case ran && other != nil && other.Fits() && spread(v.Undecided):
		v.Spread, v.Undecided = v.Undecided, nil
		if other.Verdict == mem.VerdictTight {
			v.Verdict = mem.VerdictTight
		}
		return
	case ran, v.Verdict == mem.VerdictOOM && other != nil && other.Fits():
		v.Verdict = mem.VerdictConditional
	default:
		return
	}
	for i := range v.All {
		if v.All[i].Fits() {
			v.All[i].Verdict = mem.VerdictConditional
		}
	}
}

func sameAs(v *report.Imagined, other *mem.Try) bool {
	return other.Used == v.Used && other.Allocated == v.Allocated && other.Reserved == v.Reserved
}

// onlyCaught says whether the numbers decide only which exceptions the program catches: mostly what is then left out.
func onlyCaught(all []report.Undecided) bool {
	return !slices.ContainsFunc(all, func(u report.Undecided) bool { return u.Use != report.UseCaught })
}

// bounded says whether both ends of each number are known: then a second run has tried the other one. Of a comparison
// of a floating-point number it has tried the other outcome; of one that becomes a size no end is known.
func bounded(all []report.Undecided) bool {
	return !slices.ContainsFunc(all, func(u report.Undecided) bool {
		return u.Unsure || !u.Upper.Known() && u.Number != "float"
	})
}

// spread says whether only the spread of a routing or a mask is not known. Each moment takes a linear function of it,
// so the peak is convex and highest at an end.
func spread(all []report.Undecided) bool {
	return !slices.ContainsFunc(all, func(u report.Undecided) bool {
		return u.Number != report.NumberSpread && u.Number != report.NumberShare
	})
}

// sizes are those that depend on data, which got their upper bounds, as numbers that are not known.
func sizes(v *report.Imagined) (all []report.Undecided) {
	for _, p := range v.Policies {
		if p.OfData() {
			all = append(all, report.Undecided{File: p.File, Line: p.Line, Number: report.NumberSize, Op: p.Op, Use: "size",
				UseLine: p.Line, Value: fmt.Sprint(p.Elements), Upper: mem.Some(p.Elements), Count: p.Count})
		}
	}
	return all
}

// conditionalSentence is the verdict where it rests on such numbers.
func conditionalSentence(v *report.Imagined, on string) []string {
	if v.Other != nil && v.Other.Kind == mem.TryOnes {
		return onesSentence(v, on)
	}
	which, given := conditionOf(v.Undecided), values(v.Undecided, false)
	holds := fmt.Sprintf("%s takes %v of %v", given, v.Taken(), v.Total)
	if v.Headroom.Known() && v.Headroom.Or(0) < int64(v.Tight) {
		holds += ", tightly"
	}
	condition := " is " + given
	switch other := v.Other; {
	case !v.Headroom.Known() && spread(v.Undecided):
		condition, holds = " is more even", given+" runs out of memory"
	case !v.Headroom.Known():
		condition, holds = " is less", given+" runs out of memory"
		if v.Undecided[0].Number == "bool" && len(v.Undecided) == 1 {
			condition = " is " + values(v.Undecided, true)
		}
	case other != nil && other.Fits() && bounded(v.Undecided):
		condition = " takes no more between its ends than at them"
	}
	if len(v.Undecided) > 1 {
		condition = strings.NewReplacer(" takes", " take", "its ends", "their ends", " is less", " are less", " is "+given,
			" are as taken").Replace(condition)
	}
	text := fmt.Sprintf("Fits on %s if %s%s: %s", on, which, condition, holds)
	if v.Other != nil {
		text += ", " + otherText(v, v.Other)
	}
	return []string{text + fmt.Sprintf(" (%s)", v.Label), v.Basis, topHolder(v)}
}

// conditionOf is "the whole number read at train.py:12, which is a size,"; of several the first is named.
func conditionOf(all []report.Undecided) string {
	u := &all[0]
	text := u.String()
	if n := len(all) - 1; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// values are what the program was given at the lines; other: at the other end.
func values(all []report.Undecided, other bool) string {
	var texts []string
	for i := range limited(all, 3) {
		u := &all[i]
		text := u.Value
		if other {
			text = otherEnd(u)
		}
		if !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(all) > 3 {
		texts = append(texts, "…")
	}
	return strings.Join(texts, ", ")
}

func otherEnd(u *report.Undecided) string {
	switch {
	case u.Number == "bool" && u.Value == "true":
		return "false"
	case u.Number == "bool":
		return "true"
	case u.Number == report.NumberSpread:
		return "spread evenly"
	case u.Number == "float":
		return cmp.Or(u.Other, "1.0")
	case !u.Upper.Known():
		return "1"
	case u.Value == "0":
		return fmt.Sprint(u.Upper.Or(0))
	}
	return "0"
}

// otherText is how the run with the other numbers ended.
func otherText(v *report.Imagined, other *mem.Try) string {
	with := values(v.Undecided, true)
	switch {
	case other.Verdict == mem.VerdictOOM:
		return with + " runs out of memory"
	case other.Fits():
		return fmt.Sprintf("%s takes %v", with, other.Taken())
	case other.Verdict == mem.VerdictNone:
		return with + " had not ended " + other.Note
	}
	return "with " + with + " the program fails for a reason of its own"
}

// undecidedNotes name each such line, and how to answer it.
func undecidedNotes(v *report.Imagined, r *report.Part) {
	for i := range limited(v.Undecided, 12) {
		u := &v.Undecided[i]
		if u.Number == report.NumberSize || u.Number == report.NumberShare {
			continue // it is told with the others of its kind
		}
		most := ""
		if upper, ok := u.Upper.Get(); ok && u.Number != "bool" && u.Number != report.NumberSpread {
			most = fmt.Sprintf(" It can be %d at most.", upper)
		}
		r.AddNote(fmt.Sprintf("The %s read at %s, %s, %s, and no kernel computed it: %s was taken.%s --read-value "+
			"%s=VALUE answers it.",
			u.Kind(), u.Place(), report.Times(u.Count), u.Decides(), u.Value, most, askedAs(u)))
	}
	if len(v.Spread) > 0 {
		r.AddNote(fmt.Sprintf("How many elements go where was made up, of a router or a mask and its opposite, and "+
			"decides something at %s: %s takes %v, %s.", places(v.Spread), values(v.Spread, false), v.Taken(),
			otherText(&report.Imagined{Undecided: v.Spread}, v.Other)))
	}
	if n := len(v.Indifferent); n > 0 {
		r.AddNote(fmt.Sprintf("Numbers that no kernel computed decide something at %s; a second run with other ones took "+
			"no more memory.", places(v.Indifferent)))
	}
}

func askedAs(u *report.Undecided) string {
	return fmt.Sprintf("%s:%d", u.File[strings.LastIndex(u.File, "/")+1:], u.Line)
}

func places(all []report.Undecided) string {
	var names []string
	for i := range limited(all, 6) {
		names = append(names, all[i].Place())
	}
	if len(all) > 6 {
		names = append(names, fmt.Sprintf("%d more", len(all)-6))
	}
	return strings.Join(names, ", ")
}

func limited[T any](all []T, n int) []T { return slices.Clone(all[:min(len(all), n)]) }
