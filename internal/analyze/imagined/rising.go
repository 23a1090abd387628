package imagined

import (
	"hightide/internal/mem"
	"hightide/internal/report"
)

// steadyPeak is what a training did not reach that was ended although its memory rose with the steps.
const steadyPeak = "steady peak"

// farSteps is from how many steps on a training is not expected to come as far as to run out at the rate that was seen,
// as where each step keeps the number of its loss.
const farSteps = 100_000

// rising is the fastest rise that any process told of; nil: none.
func rising(unreached []mem.Unreached) *report.Rising {
	var fastest *report.Rising
	for _, u := range unreached {
		if rate, ok := u.PerStep.Get(); ok && rate > 0 && (fastest == nil || mem.Bytes(rate) > fastest.PerStep) {
			fastest = &report.Rising{PerStep: mem.Bytes(rate), Kept: u.Below.Known(), Most: u.Below}
		}
	}
	return fastest
}

// runsOut says after how many steps a program that fits so far would run out of memory, and makes its verdict
// conditional where a training may well take as many.
func runsOut(run *mem.Run, v *report.Imagined) {
	if v.Rising == nil {
		return
	}
	below := v.Rising.Most.Or(0) // until now: how far what is held lies below the peak
	v.Rising.Most = mem.Optional{}
	left, ok := v.Headroom.Get()
	if !ok || left < 0 || !v.Fits() {
		return
	}
	rate, steps := int64(v.Rising.PerStep), int64(run.StepCount())
	v.Rising.Least, v.Rising.Most = mem.Some(steps+left/rate), mem.Some(steps+(left+below)/rate)
	if v.Rising.Least.Or(0) >= farSteps {
		return
	}
	v.Verdict = mem.VerdictConditional
	for i := range v.All {
		if v.All[i].Fits() {
			v.All[i].Verdict = mem.VerdictConditional
		}
	}
}
