package usage

import (
	"testing"

	"hightide/internal/mem"
)

// TestSlowsAtEnd: a cache that became full at four fifths of the steps, after which memory creeps on a little; a leak
// whose pace varies goes on.
func TestSlowsAtEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		at     func(x float64) float64
		steady bool
	}{
		{"full, creeps on", func(x float64) float64 { return 0.55*min(x, 280) + 0.1*max(x-280, 0) }, false},
		{"steady", func(x float64) float64 { return 0.55 * x }, true},
		{"ever slower", func(x float64) float64 { return 0.55*x - 0.0005*x*x }, true},
		{"slower at the end", func(x float64) float64 { return 0.55*min(x, 280) + 0.35*max(x-280, 0) }, true},
	} {
		curve := Curve{}
		for i := range 39 {
			x, jitter := float64(i)*9, float64(i*7%5)/5
			curve.X, curve.Y = append(curve.X, x), append(curve.Y, (380+c.at(x)+jitter)*float64(mem.MiB))
		}
		if got := TrendOf(curve, Noise{}, float64(16*mem.MiB)); got.Steady != c.steady {
			t.Errorf("%s: steady %v (%s), want %v", c.name, got.Steady, got.Why, c.steady)
		}
	}
}
