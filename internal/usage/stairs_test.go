package usage

import (
	"math"
	"testing"
)

// stairs is a curve with rises at moments, seen in 64 readings until the end.
func stairs(at, by []float64, end float64) (c Curve) {
	for i := range 64 {
		x, y := end*float64(i)/63, 0.0
		for k := range at {
			if x >= at[k] {
				y += by[k]
			}
		}
		c.X, c.Y = append(c.X, x), append(c.Y, y)
	}
	return c
}

const burst = 24 << 20

func bursts(n int) (at, by []float64) {
	for k := range n {
		at, by = append(at, float64(k)), append(by, burst)
	}
	return at, by
}

func burstTrend(at, by []float64, end float64) Trend {
	return TrendOf(stairs(at, by, end), Noise{Variance: 1 << 40, Grain: 512 << 10}, 1<<20)
}

// TestBurstsThatStay: rises that come evenly and are alike are a growth, wherever the first and the end lie between two.
func TestBurstsThatStay(t *testing.T) {
	for n := 6; n <= 20; n++ {
		for phase := range 10 {
			for rest := 1; rest <= 10; rest++ {
				at, by := bursts(n)
				for k := range at {
					at[k] += float64(phase) / 10
				}
				g := burstTrend(at, by, at[n-1]+float64(rest)/10)
				if !g.Steady || math.Abs(g.Slope-burst) > max(g.Half, 0.25*burst) {
					t.Errorf("%d bursts from %d0 %%, %d0 %% after the last: %+v", n, phase, rest, g)
				}
			}
		}
	}
}

// TestBurstsThatEnd: what rests at its end for longer than between two of its rises, doubles, or rises now and then by
// anything, has no rate.
func TestBurstsThatEnd(t *testing.T) {
	at, by := bursts(6)
	for name, c := range map[string]struct {
		at, by []float64
		end    float64
	}{
		"rests at its end": {at, by, 8},
		"doubles":          {at, []float64{1 << 20, 2 << 20, 4 << 20, 8 << 20, 16 << 20, 32 << 20}, 6},
		"now and then":     {[]float64{0.5, 1, 3.5, 4, 4.5, 8}, by, 9},
		"three":            {at[:3], by[:3], 3},
	} {
		if g := burstTrend(c.at, c.by, c.end); g.Steady {
			t.Errorf("%s: %+v", name, g)
		}
	}
}
