package usage

import (
	"math"
	"math/rand/v2"
	"testing"
)

// withinSteps is what a device holds, sampled at random moments of steps that keep one unit each and give back nine:
// most of the time it is at its lowest.
func withinSteps(rng *rand.Rand, samples int, each float64) Curve {
	var times, values []int64
	for i := range samples {
		at := each * (float64(i) + rng.Float64())
		in := at - math.Floor(at)
		held := 1000*math.Floor(at) + 2000
		if in > 0.8 {
			held += 9000
		}
		times, values = append(times, int64(at*1000)), append(values, int64(held))
	}
	return Binned(times, values, 0, times[len(times)-1], MostBins, func(t int64) float64 { return float64(t) / 1000 })
}

// TestGrowthWithinSteps: where samples fall anywhere in steps that take far more than they keep, the error of the
// growth holds the truth.
func TestGrowthWithinSteps(t *testing.T) {
	for _, each := range []float64{0.7, 4, 9} { // steps from one sample to the next
		held, seen := 0, 0
		for seed := range uint64(200) {
			g := TrendOf(withinSteps(rand.New(rand.NewPCG(seed, 1)), 50, each), Noise{}, 100)
			if !g.Steady {
				continue
			}
			seen++
			if math.Abs(g.Slope-1000) <= g.Half {
				held++
			}
			if g.Half > 500 {
				t.Errorf("%g steps apart, seed %d: %.0f ± %.0f of 1000 says nothing", each, seed, g.Slope, g.Half)
			}
		}
		if t.Logf("%g steps apart: seen in %d, held in %d", each, seen, held); seen < 180 || held < 9*seen/10 {
			t.Errorf("%g steps apart: the error holds in %d of %d", each, held, seen)
		}
	}
}

// TestRefine: levels at the ends of a few steps tell the growth that samples within steps only roughly tell.
func TestRefine(t *testing.T) {
	g := Trend{Steady: true, Slope: 1100, Half: 90, Growth: 110_000}
	g.Refine(Curve{X: []float64{2, 40, 80, 110}, Y: []float64{7000, 40_000, 80_010, 110_000}})
	if g.Slope != 1000 || g.Half <= 0 || g.Half > 2 || g.Growth != 100_000 {
		t.Errorf("%+v", g)
	}
	was := g
	for name, ends := range map[string]Curve{
		"too few":         {X: []float64{2, 90}, Y: []float64{0, 0}},
		"early ones only": {X: []float64{1, 2, 3, 4}, Y: []float64{0, 9, 18, 27}},
		"less sure":       {X: []float64{2, 40, 80, 110}, Y: []float64{0, 90_000, 20_000, 110_000}},
	} {
		if g.Refine(ends); g != was {
			t.Errorf("%s: %+v", name, g)
		}
	}
}
