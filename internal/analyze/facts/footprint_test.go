package facts

import (
	"slices"
	"testing"

	"hightide/internal/mem"
)

// TestBoundPSS: the peak lies between the highest lower and the highest upper bound, and what came later bounds what
// was before. The curve reaches the peak and goes nowhere above it.
func TestBoundPSS(t *testing.T) {
	for _, test := range []struct {
		name              string
		pss, half, shared []int64
		peak, error       int64
	}{
		{"known well", []int64{1000, 4000, 3000}, []int64{0, 20, 0}, []int64{0, 0, -150}, 4000, 20},
		{"an estimate has an error", []int64{1000, 4000, 3000}, nil, nil, 4000, 20},
		{"hardly known, and nothing is shared later", []int64{1000, 6000, 5000}, []int64{0, 2000, 100}, []int64{0, 0, 0},
			6450, 1550},
		{"what is shared later was so before", []int64{1000, 6000, 5000}, []int64{0, 2000, 100}, []int64{3100, 100, 3100},
			5000, 100},
		{"some of it", []int64{1000, 6000, 5000}, []int64{0, 2000, 100}, []int64{3100, 100, 2100}, 5450, 550},
		{"a later sample contradicts", []int64{1000, 6000, 5000}, []int64{0, 0, 0}, []int64{0, 100, 500}, 5800, 200},
		{"the highest lower bound is another moment's", []int64{5000, 4500, 1000}, []int64{100, 1500, 0}, nil, 5450, 550},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := mem.NewRun()
			frames := []mem.Frame{}
			for id, s := range map[mem.Quantity][]int64{mem.SeriesTreePSS: test.pss, mem.SeriesTreePSSError: test.half,
				mem.SeriesTreeShared: test.shared} {
				def := mem.SeriesDef{ID: uint32(slices.Index(mem.Quantities, id) + 1), Name: id, Unit: mem.UnitBytes}
				frames = append(frames, def)
				for i, v := range s {
					frames = append(frames, mem.Samples{Series: def.ID, Times: []int64{int64(i+1) * 1e9}, Values: []int64{v}})
				}
			}
			slices.SortStableFunc(frames, func(a, b mem.Frame) int { return idOf(a) - idOf(b) })
			for _, f := range frames {
				if err := run.Add(f); err != nil {
					t.Fatal(err)
				}
			}
			in := Of(run, nil)
			if in.PSSPeak != (PSSPeak{test.peak, test.error}) {
				t.Errorf("peak %+v, want %d ± %d", in.PSSPeak, test.peak, test.error)
			}
			if curve := in.Find(0, mem.SeriesTreePSS); curve.Values[curve.Peak()] != test.peak {
				t.Errorf("curve %v", curve.Values)
			}
		})
	}
}

// idOf puts a definition in front of its samples.
func idOf(f mem.Frame) int {
	switch f := f.(type) {
	case mem.SeriesDef:
		return 10 * int(f.ID)
	case mem.Samples:
		return 10*int(f.Series) + 1
	}
	return 0
}
