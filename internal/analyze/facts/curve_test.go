package facts

import (
	"math/rand/v2"
	"slices"
	"testing"

	"hightide/internal/mem"
)

// TestBetween: of any curve, window and number of points, what is kept are points of the curve in its order, no more
// than were asked for. With both ends come the lowest and the highest value of the window.
func TestBetween(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		run, s := &mem.Run{Info: mem.RunInfo{StartMono: 1000}},
			&mem.Series{SeriesDef: mem.SeriesDef{ID: 1, Name: mem.SeriesRSS}}
		at := int64(1000)
		for range random.IntN(300) {
			at += random.Int64N(20) * random.Int64N(20)
			s.Times, s.Values = append(s.Times, at), append(s.Values, random.Int64N(50))
		}
		from, to, n := random.Int64N(8000)-1000, random.Int64N(8000)-1000, random.IntN(60)
		curve := Between(run, s, from, to, n)
		if len(curve.X) != len(curve.Y) || len(curve.X) > max(n, leastThinned) || !slices.IsSorted(curve.X) ||
			curve.X == nil {
			t.Fatalf("%d points of at most %d", len(curve.X), n)
		}
		var low, high []int64
		for i, time := range s.Times {
			if x := time - 1000; x >= from && x <= to {
				low, high = append(low, s.Values[i]), append(high, s.Values[i])
			}
		}
		for i, x := range curve.X {
			if !slices.ContainsFunc(at64(s, x+1000), func(v int64) bool { return v == curve.Y[i] }) {
				t.Fatalf("point %d, %d is not of the curve", x, curve.Y[i])
			}
		}
		if len(low) > 0 && (slices.Min(curve.Y) > slices.Min(low) || slices.Max(curve.Y) < slices.Max(high)) {
			t.Fatalf("from %d to %d kept %v of %v at %v", from, to, curve.Y, s.Values, s.Times)
		}
	}
}

// at64 are the values of a series at a moment.
func at64(s *mem.Series, time int64) (values []int64) {
	for i, t := range s.Times {
		if t == time {
			values = append(values, s.Values[i])
		}
	}
	return values
}

// TestThin: however a curve is thinned, its highest, lowest, first and last value stay, and time
// runs on.
func TestThin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 1999, 2000, 2001, 50000} {
		times, values := make([]int64, n), make([]int64, n)
		at := int64(0)
		for i := range times {
			at += rng.Int64N(1000)
			times[i], values[i] = at, rng.Int64N(1e9)
		}
		x, y := thin(times, values, 2000)
		if len(x) != len(y) || len(x) > 2000 || !slices.IsSorted(x) {
			t.Fatalf("%d samples: %d points", n, len(x))
		}
		if n == 0 {
			continue
		}
		if slices.Max(y) != slices.Max(values) || slices.Min(y) != slices.Min(values) || x[0] != times[0] ||
			x[len(x)-1] != times[n-1] {
			t.Errorf("%d samples: a peak or an end was lost", n)
		}
	}
}
