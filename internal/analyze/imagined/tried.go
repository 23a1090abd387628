package imagined

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

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
	case v.OwnLimit.Known() && len(fits) == 0:
		return general + withoutLimit(v)
	case len(fits) == 0 && len(not) == 0:
		return general
	case len(fits) == 0:
		return "Use a GPU with more memory, or a smaller model, batch or sequence. Tried, and not enough: " +
			strings.Join(not, ", ") + "."
	}
	text := "Run it "
	if v.OwnLimit.Known() {
		text = general + withoutLimit(v) + " Or run it "
	}
	text += strings.Join(fits, ", or ") + ": "
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

// withoutLimit is what a program that limits itself takes where nothing does, if that was tried.
func withoutLimit(v *report.Imagined) string {
	at := slices.IndexFunc(v.Tries, func(t mem.Try) bool { return t.Kind == mem.TryMemory && t.Fits() && t.Used.Known() })
	if at < 0 {
		return ""
	}
	return fmt.Sprintf(" Without that limit it takes %v, as was tried; the device has %v.",
		mem.Bytes(v.Tries[at].Used.Or(0)), v.Total)
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
