package run

import (
	"testing"

	"hightide/internal/mem"
)

// TestOneReadingIsNoCurve: PSS of a process that was read once says nothing of its highest.
func TestOneReadingIsNoCurve(t *testing.T) {
	for readings, want := range map[int]bool{1: false, 2: true} {
		run := training(1).run()
		must(run, mem.SeriesDef{ID: 170, Process: 1, Name: mem.SeriesPSS, Unit: mem.UnitBytes, Label: mem.Measured})
		pss := mem.Samples{Series: 170}
		for i := range readings {
			pss.Times, pss.Values = append(pss.Times, run.Steps[i].Time), append(pss.Values, int64(mem.MiB))
		}
		must(run, pss)
		shown := false
		for _, s := range Analyze(run, Options{}).Series {
			shown = shown || s.Name == mem.SeriesPSS
		}
		if shown != want {
			t.Errorf("%d readings: shown %v", readings, shown)
		}
	}
}
