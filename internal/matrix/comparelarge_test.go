package matrix

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// big is a matrix of 2,000 cells and five repeats each, with every figure.
func big() *Result {
	axes := []Axis{{Name: "framework", Values: []string{"pytorch", "tensorflow", "keras", "jax"}},
		{Name: "model", Values: []string{"a", "b", "c", "d", "e"}},
		{Name: "batch", Values: []string{"1", "2", "4", "8", "16"}}, {Name: "mode", Values: []string{"inference", "train"}},
		{Name: "dtype", Values: []string{"fp32", "bf16"}}, {Name: "seq_len",
			Values: []string{"128", "256", "512", "1024", "2048"}}}
	m := made{axes, 5, PSS, func(v []string) float64 { return 1e9 + 1e6*number(v[2])*number(v[5]) },
		func(r *rand.Rand, v []string) float64 {
			return 0.005 * r.NormFloat64()
		}}
	r := m.result(rand.New(rand.NewPCG(1, 1)))
	for i := range r.Trials {
		s := r.Trials[i].Figures[PSS]
		for _, f := range figures {
			r.Trials[i].Figures[f.Name] = s
		}
	}
	return r
}

func BenchmarkCompare(b *testing.B) {
	r := big()
	b.ReportMetric(float64(len(r.Cells)), "cells")
	for b.Loop() {
		Compare(r, Options{})
	}
}

// TestCompareIsBounded: what the page gets of 2,000 cells.
func TestCompareIsBounded(t *testing.T) {
	c := Compare(big(), Options{})
	text, err := json.Marshal(c)
	if err != nil || len(c.Cells) != 2000 || len(c.Fits) != 80 {
		t.Fatalf("%d cells, %d fits, %v", len(c.Cells), len(c.Fits), err)
	}
	pairs := 0
	for _, r := range c.Ratios {
		pairs += len(r.Of)
	}
	t.Logf("%d bytes of JSON, %d ratios with %d pairs", len(text), len(c.Ratios), pairs)
	if pairs > 8*len(c.Cells) {
		t.Errorf("%d pairs", pairs)
	}
}

// TestBaselineErrs counts how often a gate of 3 % is wrong. It fails a change that is none, lets one of 10 % pass, or
// says of one that is twice as large as allowed that it is the same.
func TestBaselineErrs(t *testing.T) {
	noisy := func(r *rand.Rand, v []string) float64 {
		if v[0] == "tensorflow" {
			return 0.02 * r.NormFloat64()
		}
		return 0.005 * r.NormFloat64()
	}
	before := made{seedAxes, 3, PSS, seedTruth, noisy}
	counts := func(change float64) (worse, same, other int) {
		r := rand.New(rand.NewPCG(3, 15))
		now := before
		now.truth = func(v []string) float64 { return seedTruth(v) * (1 + change) }
		for range 40 {
			g, err := Against(now.result(r), before.result(r), Options{}, FailOver{"": 0.03})
			if err != nil {
				t.Fatal(err)
			}
			worse, same = worse+g.Counts[Worse], same+g.Counts[Steady]
			other += len(g.Changes) - g.Counts[Worse] - g.Counts[Steady]
		}
		return worse, same, other
	}
	const all = 40 * 24
	if worse, same, other := counts(0); worse > all/500 || same < all/3 {
		t.Errorf("no change: %d worse, %d the same, %d neither", worse, same, other)
	}
	if worse, same, other := counts(0.03); worse > all*5/100 {
		t.Errorf("as much as is allowed: %d worse, %d the same, %d neither", worse, same, other)
	}
	if worse, same, other := counts(0.06); same > all*3/100 || worse < all/4 {
		t.Errorf("twice of what is allowed: %d worse, %d the same, %d neither", worse, same, other)
	}
	if worse, same, other := counts(0.15); worse < all*9/10 || same > 0 {
		t.Errorf("five times of what is allowed: %d worse, %d the same, %d neither", worse, same, other)
	}
}
