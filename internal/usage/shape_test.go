package usage

import (
	"math/rand/v2"
	"testing"
)

// TestShapeOf: curves of known kinds, each with noise of its own, at 100 ms for two minutes.
func TestShapeOf(t *testing.T) {
	const mib, second, n = 1 << 20, int64(1e9), 1200
	tests := []struct {
		name, kind string
		value      func(i int, r *rand.Rand) float64 // MiB
		check      func(Shape) bool
	}{
		{"flat", Steady, func(i int, r *rand.Rand) float64 { return 500 + 3*r.NormFloat64() }, nil},
		{"a start", WarmUp, func(i int, r *rand.Rand) float64 { return min(100+4*float64(i), 900) + 5*r.NormFloat64() },
			func(s Shape) bool { return s.At > 10*second && s.At < 30*second }},
		{"epochs", SawTooth, func(i int, r *rand.Rand) float64 { return 300 + 4*float64(i%150) + 5*r.NormFloat64() },
			func(s Shape) bool { return s.Period > 14*second && s.Period < 16*second }},
		{"now and then", SawTooth, func(i int, r *rand.Rand) float64 {
			from := 0
			for _, at := range []int{30, 60, 400, 430, 1000, 1010, 1180} {
				if i >= at {
					from = at
				}
			}
			return 300 + 4*float64(min(i-from, 100)) + 5*r.NormFloat64()
		}, func(s Shape) bool { return s.Period == 0 }},
		{"a moment in each epoch", Spikes, func(i int, r *rand.Rand) float64 {
			if i%150 < 9 {
				return 1500
			}
			return 500 + 5*r.NormFloat64()
		}, func(s Shape) bool { return s.Times == 8 && s.Lasts == 8*9*second/10 }},
		{"a leak under epochs", Growth, func(i int, r *rand.Rand) float64 {
			return 300 + float64(i)/2 + 4*float64(i%150) +
				5*r.NormFloat64()
		}, nil},
		{"a leak in noise", Growth, func(i int, r *rand.Rand) float64 { return 300 + float64(i)/4 + 100*r.Float64() }, nil},
		{"a leak that stopped", WarmUp, func(i int, r *rand.Rand) float64 {
			return 300 + float64(min(i, 500)) +
				5*r.NormFloat64()
		}, nil},
		{"what an evaluation left", NotBack, func(i int, r *rand.Rand) float64 {
			return []float64{300, 900, 690, 690}[i/300] + 5*r.NormFloat64()
		}, func(s Shape) bool {
			return s.First > 290*mib && s.First < 310*mib && s.Last > 680*mib && s.Last < 700*mib
		}},
		{"a moment", Spikes, func(i int, r *rand.Rand) float64 {
			if i >= 700 && i < 708 {
				return 2000
			}
			return 500 + 5*r.NormFloat64()
		}, func(s Shape) bool { return s.At >= 70*second && s.At < 71*second && s.Lasts == 8*second/10 }},
		{"a leak", Growth, func(i int, r *rand.Rand) float64 { return 300 + float64(i) + 10*r.NormFloat64() }, nil},
		{"a leak that gets faster", Growth, func(i int, r *rand.Rand) float64 {
			return 300 + float64(i*i)/1000 +
				5*r.NormFloat64()
		}, nil},
		{"a late rise", Uneven, func(i int, r *rand.Rand) float64 { return 300 + 200*float64(i/900) + 5*r.NormFloat64() },
			func(s Shape) bool {
				return len(s.Levels) == 2 && s.Levels[1].From > 89*second && s.Levels[1].From < 91*second
			}},
		{"stairs", Staircase, func(i int, r *rand.Rand) float64 { return 300 + 200*float64(i/300) + 5*r.NormFloat64() },
			func(s Shape) bool {
				return len(s.Levels) == 4 && s.Levels[1].From > 29*second && s.Levels[1].From < 31*second &&
					s.Levels[2].Value > 695*mib && s.Levels[2].Value < 705*mib
			}},
		{"up and down", Uneven, func(i int, r *rand.Rand) float64 {
			return []float64{300, 800, 500, 350}[i/300] + 5*r.NormFloat64()
		}, func(s Shape) bool { return len(s.Levels) == 4 }},
	}
	for _, test := range tests {
		for seed := range uint64(20) {
			r := rand.New(rand.NewPCG(seed, 1))
			times, values := make([]int64, n), make([]int64, n)
			for i := range n {
				times[i], values[i] = int64(i)*second/10, int64(mib*test.value(i, r))
			}
			s := ShapeOf(times, values)
			if s.Kind != test.kind || test.check != nil && !test.check(s) {
				t.Errorf("%s, seed %d: %+v", test.name, seed, s)
				break
			}
		}
	}
	if s := ShapeOf(make([]int64, 5), make([]int64, 5)); s.Kind != "" {
		t.Errorf("five samples have a shape: %+v", s)
	}
	if s := ShapeOf(make([]int64, 50), make([]int64, 50)); s.Kind != Steady {
		t.Errorf("zeros at one moment: %+v", s)
	}
}
