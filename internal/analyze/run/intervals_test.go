package run

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"hightide/internal/mem"
)

// TestIntervals: of short and long runs, of few and many frames, the interval that is told holds the truth as often
// as it says, for what is kept per step and for what is kept by the end.
func TestIntervals(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	for _, test := range []struct {
		name  string
		steps int
		time  int64 // ns a step
		pace  int64
		heap  bool
		noise float64 // of RSS
		churn mem.Bytes
		least float64
	}{
		{"20 steps of 100 ms", 20, 100 * ms, 100 * ms, true, 200e3, 0, 0.9},
		{"40 steps of 100 ms", 40, 100 * ms, 100 * ms, true, 200e3, 0, 0.9},
		{"60 steps of 16 ms", 60, 16 * ms, 100 * ms, true, 200e3, 0, 0.9},
		{"300 steps of 5 ms", 300, 5 * ms, 100 * ms, true, 200e3, 0, 0.9},
		{"300 steps of 30 ms, seldom read", 300, 30 * ms, 1500 * ms, true, 200e3, 0, 0.9},
		{"20 steps, RSS alone, of which 12 are warm-up", 20, 100 * ms, 100 * ms, false, 1e6, 0, 0.85},
		{"60 steps, RSS alone", 60, 100 * ms, 100 * ms, false, 1e6, 0, 0.9},
		{"300 steps, RSS alone", 300, 16 * ms, 100 * ms, false, 1e6, 0, 0.9},
		{"60 steps, RSS alone, with caches that come and go", 60, 100 * ms, 100 * ms, false, 1e6, 8 * mem.MiB, 0.9},
		{"300 steps, RSS alone, with caches that come and go", 300, 16 * ms, 100 * ms, false, 1e6, 8 * mem.MiB, 0.9},
	} {
		t.Run(test.name, func(t *testing.T) {
			const perStep = 2 * mem.MiB
			told, rate, kept := 0, 0, 0
			for seed := range seeds {
				s := training(5000+seed, source{stack: userLine(leakLine), phase: mem.PhaseForward,
					step: leakOf(perStep, 128*mem.KiB)})
				if test.churn > 0 {
					s.sources = append(s.sources, source{stack: userLine(70),
						step: func(_ int, rng *rand.Rand, alloc func(mem.Bytes, int)) {
							alloc(mem.Bytes(rng.Int64N(int64(test.churn))), 1+rng.IntN(3))
						}})
				}
				s.steps, s.stepTime, s.pace, s.noHeap, s.rssNoise = test.steps, test.time, test.pace, !test.heap, test.noise
				for _, f := range leaks(Analyze(s.run(), Options{})) {
					told++
					if math.Abs(float64(f.BytesPerStep.Or(0)-int64(perStep))) <= float64(f.Error.Or(0)) {
						rate++
					}
					if math.Abs(float64(f.Bytes.Or(0)-int64(perStep)*int64(test.steps))) <= float64(f.Error.Or(0))*float64(test.steps)+float64(perStep) {
						kept++
					}
				}
			}
			said := fmt.Sprintf("told in %d of %d; the rate is within its error in %d, what is kept in %d", told, seeds, rate,
				kept)
			if t.Log(said); float64(rate) < test.least*float64(told) || float64(kept) < test.least*float64(told) {
				t.Error(said)
			}
		})
	}
}
