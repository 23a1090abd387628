package matrix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// made is a result whose truth is known: each cell's true figure, and how a repeat scatters about it.
type made struct {
	axes    []Axis
	repeats int
	figure  Figure
	truth   func(values []string) float64
	scatter func(r *rand.Rand, values []string) float64 // relative to the truth
}

func (m made) result(r *rand.Rand) *Result {
	result := &Result{Version: ResultVersion, Name: "made", Axes: m.axes, Goal: Goal{Figure: m.figure},
		Machines: []Machine{{Name: "here", Processors: 2, Memory: 16 << 30}}}
	for _, values := range combinations(m.axes) {
		key := keyOf(m.axes, values)
		result.Cells = append(result.Cells, Cell{Key: key, Values: values})
		for n := range m.repeats {
			noise := 0.0
			if m.scatter != nil {
				noise = m.scatter(r, values)
			}
			value := m.truth(values) * (1 + noise)
			result.Trials = append(result.Trials, Trial{Cell: key, Repeat: n, State: Done, Run: fmt.Sprintf("%s-%d", key, n), Machine: "here",
				Figures: map[Figure]Summary{m.figure: {Max: int64(math.Round(value)), Mean: value, Median: value, Min: int64(value / 2), Count: 10, Label: mem.Measured}}})
		}
	}
	return result
}

func combinations(axes []Axis) [][]string {
	all := [][]string{{}}
	for _, a := range axes {
		var longer [][]string
		for _, values := range all {
			for _, v := range a.Values {
				longer = append(longer, append(slices.Clone(values), v))
			}
		}
		all = longer
	}
	return all
}

func keyOf(axes []Axis, values []string) string {
	var parts []string
	for i, a := range axes {
		parts = append(parts, a.Name+"="+values[i])
	}
	return strings.Join(parts, " ")
}

// seedAxes are those of a small comparison.
var seedAxes = []Axis{
	{Name: "framework", Values: []string{"pytorch", "tensorflow"}, Labels: []string{"PyTorch", "TensorFlow"}},
	{Name: "model", Values: []string{"lenet", "resnet18"}},
	{Name: "batch", Values: []string{"16", "32", "64"}},
	{Name: "mode", Values: []string{"inference", "train"}},
}

// seedTruth is a made-up memory: 200 MiB and 2 MiB an item, of TensorFlow 2.5 times as much, in training 1.2 times.
func seedTruth(values []string) float64 {
	n := (200 + 2*number(values[2])) * float64(mem.MiB)
	if values[0] == "tensorflow" {
		n *= 2.5
	}
	if values[1] == "resnet18" {
		n *= 3
	}
	if values[3] == "train" {
		n *= 1.2
	}
	return n
}

// TestIntervalsCover is the bar of honest intervals: over 200 matrices with known truth, 95 of 100 hold it.
func TestIntervalsCover(t *testing.T) {
	normal := func(spread func([]string) float64) func(*rand.Rand, []string) float64 {
		return func(r *rand.Rand, values []string) float64 { return spread(values) * r.NormFloat64() }
	}
	alike := func([]string) float64 { return 0.01 }
	differing := func(values []string) float64 { // a framework four times as noisy as the other, a mode twice
		spread := 0.002
		if values[0] == "tensorflow" {
			spread *= 4
		}
		if values[3] == "train" {
			spread *= 2
		}
		return spread
	}
	for _, test := range []struct {
		name    string
		repeats int
		scatter func(*rand.Rand, []string) float64
	}{
		{"alike, 3 repeats", 3, normal(alike)},
		{"alike, 5 repeats", 5, normal(alike)},
		{"differing, 3 repeats", 3, normal(differing)},
		{"differing, 5 repeats", 5, normal(differing)},
		{"heavy tails, 4 repeats", 4, func(r *rand.Rand, _ []string) float64 { return 0.005 * (r.ExpFloat64() - r.ExpFloat64()) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(15, uint64(test.repeats)))
			m := made{seedAxes, test.repeats, PSS, seedTruth, test.scatter}
			var held coverage
			for range 200 {
				held.count(Compare(m.result(r), Options{}), m)
			}
			for _, what := range []string{"mean", "pair", "ratio", "slope"} {
				part := float64(held.in[what]) / float64(held.of[what])
				t.Logf("%-6s %.3f of %d", what, part, held.of[what])
				slack := 2 * math.Sqrt(0.05*0.95/200) // of as many matrices, whose statements hang together
				if part < 0.93-slack/2 || part > 0.97+slack/2 {
					t.Errorf("%s: %.3f of the intervals hold the truth, want 0.93 to 0.97", what, part)
				}
			}
		})
	}
}

// coverage counts the intervals that hold the truth.
type coverage struct{ in, of map[string]int }

func (c *coverage) add(what string, i *Interval, truth float64) {
	if c.in == nil {
		c.in, c.of = map[string]int{}, map[string]int{}
	}
	c.of[what]++
	if i != nil && i.holds(truth) {
		c.in[what]++
	}
}

func (c *coverage) count(made *Comparison, m made) {
	for _, cell := range made.Cells {
		c.add("mean", cell.Figures[m.figure].Interval, m.truth(cell.Values))
	}
	for _, r := range made.Ratios {
		logs := 0.0
		for _, p := range r.Of {
			truth := m.truth(made.Cells[p.Cell].Values) / m.truth(made.Cells[p.Base].Values)
			logs += math.Log(truth)
			c.add("pair", p.Interval, truth)
		}
		c.add("ratio", r.Interval, math.Exp(logs/float64(len(r.Of))))
	}
	for _, f := range made.Fits {
		values := slices.Clone(f.Values)
		values[2] = "64"
		high := m.truth(values)
		values[2] = "16"
		c.add("slope", f.Terms[1].Interval, (high-m.truth(values))/48)
	}
}
