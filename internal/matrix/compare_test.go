package matrix

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
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
			result.Trials = append(result.Trials, Trial{Cell: key, Repeat: n, State: Done, Run: fmt.Sprintf("%s-%d", key, n),
				Machine: "here",
				Figures: map[Figure]Summary{m.figure: {Max: int64(math.Round(value)), Mean: value, Median: value,
					Min: int64(value / 2), Count: 10, Label: mem.Measured}}})
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
		{"heavy tails, 4 repeats", 4, func(r *rand.Rand,
			_ []string) float64 {
			return 0.005 * (r.ExpFloat64() - r.ExpFloat64())
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(15, uint64(test.repeats)))
			m := made{seedAxes, test.repeats, PSS, seedTruth, test.scatter}
			var held coverage
			for range 200 {
				held.count(Compare(m.result(r), Options{}), m)
			}
			held.check(t, 0.93, 0.97)
		})
	}
}

// TestStoppingCovers is of a run that repeats each cell until its interval is narrow enough. Repeats that lie close
// together by chance end it early, which must not make intervals too narrow.
func TestStoppingCovers(t *testing.T) {
	const matrices = 200
	own := map[string]float64{}
	for _, test := range []struct {
		name   string
		spread func(r *rand.Rand, values []string) float64 // of a cell, the same in all its repeats
	}{
		{"alike", func(*rand.Rand, []string) float64 { return 0.03 }},
		{"one framework three times noisier", func(_ *rand.Rand, values []string) float64 {
			if values[0] == "tensorflow" {
				return 0.03
			}
			return 0.01
		}},
		{"a noise of its own for each cell", func(r *rand.Rand, values []string) float64 {
			key := strings.Join(values, " ")
			if own[key] == 0 {
				own[key] = 0.025 * math.Exp(0.7*r.NormFloat64())
			}
			return own[key]
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(15, 3))
			m := made{seedAxes, 3, PSS, seedTruth, func(r *rand.Rand,
				values []string) float64 {
				return test.spread(r, values) * r.NormFloat64()
			}}
			var held coverage
			trials := 0
			for range matrices {
				clear(own)
				result := m.stopping(r, Goal{Figure: PSS, Within: 0.03, Least: 3, Most: 10})
				trials += len(result.Trials)
				held.count(Compare(result, Options{}), m)
			}
			t.Logf("%.1f trials a cell", float64(trials)/matrices/24)
			held.check(t, 0.93, 0.97)
		})
	}
}

// stopping is a result whose cells are repeated until their figure is known as well as a goal asks.
func (m made) stopping(r *rand.Rand, goal Goal) *Result {
	result := m.result(r)
	result.Goal = goal
	for range goal.Most - goal.Least {
		exact, more := Exactness(result, goal.Figure), false
		for _, c := range result.Cells {
			if half, ok := exact[c.Key]; ok && half <= goal.Within {
				continue
			}
			more = true
			value := m.truth(c.Values) * (1 + m.scatter(r, c.Values))
			result.Trials = append(result.Trials, Trial{Cell: c.Key, State: Done,
				Figures: map[Figure]Summary{goal.Figure: {Max: int64(value)}}})
		}
		if !more {
			break
		}
	}
	return result
}

// TestScalingFindsTheForm is of memory with a known form, from exact figures and from noisy ones.
func TestScalingFindsTheForm(t *testing.T) {
	axes := []Axis{{Name: "batch", Values: []string{"2", "4", "8", "16"}},
		{Name: "seq_len", Values: []string{"128", "256", "512", "1024"}}}
	for _, test := range []struct {
		form  string
		truth func(batch, seq float64) float64
		last  float64
	}{
		{"a + b × batch", func(b, _ float64) float64 { return 3e9 + 7e7*b }, 7e7},
		{"a + b × batch × seq", func(b, s float64) float64 { return 3e9 + 5e5*b*s }, 5e5},
		{"a + b × batch × seq²", func(b, s float64) float64 { return 3e9 + 900*b*s*s }, 900},
		{"a + b × batch + c × batch × seq²", func(b, s float64) float64 { return 3e9 + 8e7*b + 900*b*s*s }, 900},
		{"a + b × batch × seq + c × batch × seq²", func(b, s float64) float64 { return 3e9 + 5e5*b*s + 900*b*s*s }, 900},
	} {
		for _, spread := range []float64{0, 0.002} {
			m := made{axes, 3, PSS, func(v []string) float64 { return test.truth(number(v[0]), number(v[1])) },
				func(r *rand.Rand, _ []string) float64 { return spread * r.NormFloat64() }}
			found, held := 0, 0
			const times = 40
			r := rand.New(rand.NewPCG(1, 9))
			for range times {
				f := Compare(m.result(r), Options{}).Fits[0]
				if f.Form != test.form {
					continue
				}
				found++
				i := *f.Terms[len(f.Terms)-1].Interval
				if spread == 0 { // rounded to bytes
					i.Low, i.High = i.Low*(1-1e-6), i.High*(1+1e-6)
				}
				if holdsValue(&i, test.last) {
					held++
				}
			}
			if found < times/2 || float64(held) < 0.85*float64(found) {
				t.Errorf("%s, runs that scatter by %g: the form is found in %d of %d, its coefficient lies in the interval in %d",
					test.form, spread, found, times, held)
			}
		}
	}
}

// TestLargestBatch is of a limit whose truth is known.
func TestLargestBatch(t *testing.T) {
	axes := []Axis{{Name: "batch", Values: []string{"8", "16", "32", "64"}}}
	m := made{axes, 4, PSS, func(v []string) float64 { return float64(1<<30) + 100*float64(mem.MiB)*number(v[0]) },
		func(r *rand.Rand, _ []string) float64 { return 0.003 * r.NormFloat64() }}
	truth := int64((16<<30 - 1<<30) / (100 << 20)) // of the 16 GiB of the machine
	r := rand.New(rand.NewPCG(3, 3))
	held, times := 0, 200
	for range times {
		l := Compare(m.result(r), Options{}).Fits[0].Limit
		if l.Low <= truth && truth <= *l.High {
			held++
		}
		if l.Batch < l.Low || l.Batch > *l.High {
			t.Fatalf("%+v does not hold itself", l)
		}
	}
	if held < times*93/100 {
		t.Errorf("the largest batch lies in its interval in %d of %d", held, times)
	}
	flat := m
	flat.truth, flat.scatter = func([]string) float64 { return 1 << 30 }, nil
	if l := Compare(flat.result(r), Options{}).Fits[0].Limit; !l.Unlimited {
		t.Errorf("memory that does not grow has a limit: %+v", l)
	}
	small := m
	small.truth = func(v []string) float64 { return float64(20<<30) + number(v[0]) }
	small.scatter = nil
	if l := Compare(small.result(r), Options{}).Fits[0].Limit; l.Batch != 0 {
		t.Errorf("what needs more than there is has a batch: %+v", l)
	}
}

// coverage counts the intervals that hold the truth.
type coverage struct{ in, of map[string]int }

func (c *coverage) add(what string, i *Interval, truth float64) {
	if c.in == nil {
		c.in, c.of = map[string]int{}, map[string]int{}
	}
	c.of[what]++
	if i != nil && holdsValue(i, truth) {
		c.in[what]++
	}
}

func (c *coverage) check(t *testing.T, least, most float64) {
	t.Helper()
	for _, what := range []string{"mean", "pair", "ratio", "slope"} {
		part := float64(c.in[what]) / float64(c.of[what])
		t.Logf("%-6s %.3f of %d", what, part, c.of[what])
		const slack = 0.015 // one standard deviation of 200 statements, each of another matrix
		if part < least-slack || part > most+slack {
			t.Errorf("%s: %.3f of the intervals hold the truth, want %g to %g", what, part, least, most)
		}
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

// TestVerdicts is of pairs of cells of which it is known what can be said.
func TestVerdicts(t *testing.T) {
	axes := []Axis{{Name: "mode", Values: []string{"inference", "train"}},
		{Name: "batch", Values: []string{"1", "2", "4", "8"}}}
	ratio := func(train float64, spread float64, repeats int) Ratio {
		m := made{axes, repeats, PSS, func(v []string) float64 {
			if v[0] == "train" {
				return train * float64(mem.GiB)
			}
			return float64(mem.GiB)
		}, func(r *rand.Rand, _ []string) float64 { return spread * r.NormFloat64() }}
		return Compare(m.result(rand.New(rand.NewPCG(1, 1))), Options{}).Ratios[0]
	}
	for _, test := range []struct {
		name          string
		train, spread float64
		repeats       int
		want          Verdict
		says          string
	}{
		{"more", 1.3, 0.01, 3, More, "Peak PSS of train is 1.3"},
		{"less", 0.8, 0.01, 3, Less, "times that of inference (95 %: 0.7"},
		{"lost in the noise", 1.005, 0.05, 3, Unknown,
			"Whether peak PSS of train is more or less than that of inference is not known"},
		{"the same, exactly", 1, 0, 3, Same, "(identical in all runs)"},
		{"the same, as far as runs tell", 1, 0.001, 5, Same, "within 1 %"},
		{"one run each", 1.5, 0.01, 1, Unknown, "there are single runs in it, so how exact that is, is not known"},
		{"more, exactly", 2, 0, 2, More, "2.00 times that of inference (identical in all runs)"},
	} {
		r := ratio(test.train, test.spread, test.repeats)
		if r.Verdict != test.want || !strings.Contains(r.Sentence, test.says) || (r.Interval == nil) != (test.repeats == 1) {
			t.Errorf("%s: %s, %v: %s", test.name, r.Verdict, r.Interval, r.Sentence)
		}
		if r.Kind != "mode" || r.Value != "train" || r.Base != "inference" || r.Title != "train / inference" || r.Pairs != 4 {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// TestAdviceIsTrue asks of each kind of recommendation in which matrix it would be false, and that it is not made
// there.
func TestAdviceIsTrue(t *testing.T) {
	advised := func(truth func(v []string) float64, spread float64, change func(*Result)) string {
		m := made{seedAxes, 4, PSS, truth, func(r *rand.Rand, _ []string) float64 { return spread * r.NormFloat64() }}
		r := m.result(rand.New(rand.NewPCG(2, 2)))
		if change != nil {
			change(r)
		}
		var all []string
		for _, a := range Compare(r, Options{}).Advice {
			all = append(all, a.Sentence)
		}
		return strings.Join(all, "\n")
	}
	scaled := func(tensorflow func(v []string) float64) func(v []string) float64 {
		return func(v []string) float64 {
			plain := seedTruth([]string{"pytorch", v[1], v[2], v[3]})
			if v[0] == "tensorflow" {
				return plain * tensorflow(v)
			}
			return plain
		}
	}
	for _, test := range []struct {
		name      string
		truth     func(v []string) float64
		spread    float64
		change    func(*Result)
		has, hasn []string
	}{
		{"as the seed says", seedTruth, 0.003, nil,
			[]string{"PyTorch needs less than TensorFlow in each of 12 pairs",
				"Batch 16 needs less than batch 64 in each of 8 pairs", "Inference needs less than train in each of 12 pairs",
				"costs most with TensorFlow, resnet18, train"}, nil},
		{"more on average, less for one model", scaled(func(v []string) float64 {
			if v[1] == "lenet" {
				return 0.9
			}
			return 3
		}), 0.003, nil, []string{"Neither of TensorFlow and PyTorch needs less everywhere", "more in 6, less in 6", "0.9"}, []string{"PyTorch needs less than TensorFlow"}},
		{"more in one cell alone", scaled(func(v []string) float64 {
			if v[1] == "lenet" && v[2] == "16" && v[3] == "train" {
				return 1.2
			}
			return 1
		}), 0.003, nil, []string{"more in 1"}, []string{"needs less than TensorFlow", "needs less than PyTorch"}},
		{"no difference", scaled(func([]string) float64 { return 1 }), 0, nil,
			[]string{"TensorFlow and PyTorch need the same within 1 % in each of 12 pairs"}, []string{"PyTorch needs less"}},
		{"nothing but noise", scaled(func([]string) float64 { return 1.01 }), 0.1, nil,
			[]string{"Whether PyTorch or TensorFlow needs less is not known in any of 12 pairs"},
			[]string{"TensorFlow in each", "PyTorch in each", "the same within 1 % in each"}},
		{"memory that does not grow with the batch",
			func(v []string) float64 { return seedTruth([]string{v[0], v[1], "16", v[3]}) }, 0.002, nil,
			nil, []string{"One more item", "needs less than batch 64", "The first to fill"}},
		{"one run each", seedTruth, 0.003, func(r *Result) {
			r.Trials = slices.DeleteFunc(r.Trials, func(t Trial) bool { return t.Repeat > 0 })
		}, nil, []string{"needs less", "the same", "scatter too much"}},
		{"one framework does not run", seedTruth, 0.003, func(r *Result) {
			for i := range r.Trials {
				if strings.HasPrefix(r.Trials[i].Cell, "framework=tensorflow") {
					r.Trials[i].State, r.Trials[i].Figures = Unavailable, nil
				}
			}
		}, []string{"costs most with PyTorch"}, []string{"TensorFlow"}},
		{"a batch that should fit did not", seedTruth, 0.003, func(r *Result) {
			for i := range r.Trials {
				if strings.Contains(r.Trials[i].Cell, "resnet18 batch=64") {
					r.Trials[i].State, r.Trials[i].Figures = OutOfMemory, nil
				}
			}
		}, []string{"Of 4 kinds of cells, by peak PSS one more item of a batch costs most with TensorFlow, lenet",
			"Of 4 kinds of cells, the first to fill", "Of 4 more that is not known."},
			[]string{"The first to fill the 16.0 GiB of here as the batch grows is TensorFlow, resnet18"}},
		{"exact enough", seedTruth, 0.001, func(r *Result) { r.Goal.Within = 0.01 }, nil, []string{"scatter too much"}},
		{"not exact enough", seedTruth, 0.05, func(r *Result) { r.Goal.Within = 0.01 },
			[]string{"Of 24 cells, 24 scatter too much in peak PSS for the ±1 % asked for"}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			said := advised(test.truth, test.spread, test.change)
			for _, want := range test.has {
				if !strings.Contains(said, want) {
					t.Errorf("want %q in\n%s", want, said)
				}
			}
			for _, not := range test.hasn {
				if strings.Contains(said, not) {
					t.Errorf("it is not true that %q:\n%s", not, said)
				}
			}
		})
	}
}

// TestIdenticalRuns is of what may be said where runs do not differ.
func TestIdenticalRuns(t *testing.T) {
	m := made{seedAxes, 3, PSS, seedTruth, func(r *rand.Rand, v []string) float64 {
		if v[0] == "pytorch" {
			return 0
		}
		return 0.01 * r.NormFloat64()
	}}
	r := m.result(rand.New(rand.NewPCG(1, 1)))
	c := Compare(r, Options{})
	first, last := c.Cells[0].Figures[PSS], c.Cells[len(c.Cells)-1].Figures[PSS]
	if first.Basis != Identical || first.Interval.Low != first.Interval.High {
		t.Errorf("a cell of which none like it ever varied: %+v", first)
	}
	if last.Basis != Pooled || last.Interval.Low == last.Interval.High {
		t.Errorf("one that varies: %+v", last)
	}
	for i := range r.Trials { // TensorFlow's runs of one cell happen to be the same
		if r.Trials[i].Cell == c.Cells[len(c.Cells)-1].Key {
			r.Trials[i].Figures = r.Trials[len(r.Trials)-1].Figures
		}
	}
	c = Compare(r, Options{})
	if s := c.Cells[len(c.Cells)-1].Figures[PSS]; s.StdDev != 0 || s.Interval.Low == s.Interval.High {
		t.Errorf("three equal runs, of a framework whose runs vary, are taken for exact: %+v", s)
	}
}

// TestEstimatedFigures have their error in the interval: repeats do not average it out.
func TestEstimatedFigures(t *testing.T) {
	m := made{seedAxes, 3, PSS, seedTruth, nil}
	r := m.result(nil)
	for i := range r.Trials {
		s := r.Trials[i].Figures[PSS]
		s.Error, s.Label = 10<<20, mem.Estimated
		r.Trials[i].Figures[PSS] = s
	}
	r.Goal.Within = 0.01
	c := Compare(r, Options{})
	if said := c.Advice[len(c.Advice)-1].Sentence; !strings.Contains(said, "against which repeats do not help") {
		t.Errorf("%s", said)
	}
	if half := Exactness(r, PSS)[r.Cells[0].Key]; half != 0 {
		t.Errorf("repeats are to tell what they cannot: ±%v", half)
	}
	s := c.Cells[0].Figures[PSS]
	if width := s.Interval.High - s.Interval.Low; math.Abs(width-20<<20) > 1000 || c.Figures[0].Label != mem.Estimated {
		t.Errorf("%+v is %v wide, want 20 MiB", s, mem.Bytes(width))
	}
	p := c.Ratios[0].Of[0]
	truth := c.Cells[p.Cell].Figures[PSS].Mean + 9<<20
	if truth /= c.Cells[p.Base].Figures[PSS].Mean - 9<<20; !holdsValue(p.Interval, truth) {
		t.Errorf("%v does not hold %v, which the errors allow", p.Interval, truth)
	}
}

// TestCompareChangesNothing: it is pure, and the same every time.
func TestCompareChangesNothing(t *testing.T) {
	r, again := mixed(), mixed()
	first, second := Compare(r, mixedOptions()), Compare(r, mixedOptions())
	if !reflect.DeepEqual(r, again) {
		t.Error("the result was changed")
	}
	p, err := json.Marshal(first)
	q, _ := json.Marshal(second)
	if err != nil || string(p) != string(q) {
		t.Errorf("two comparisons differ, %v", err)
	}
	for _, empty := range []*Result{{}, {Axes: seedAxes}, {Axes: seedAxes, Cells: r.Cells[:0], Trials: r.Trials}} {
		if _, err := json.Marshal(Compare(empty, Options{})); err != nil {
			t.Errorf("%+v: %v", empty, err)
		}
	}
}

// TestBesideEachOther: times of trials that had to share the processors are not compared.
func TestBesideEachOther(t *testing.T) {
	r := mixed()
	for i := range r.Trials {
		r.Trials[i].StartWall, r.Trials[i].Duration = int64(i)*10, 10
	}
	timed := func() (ratios int, said string) {
		c := Compare(r, mixedOptions())
		for _, ratio := range c.Ratios {
			if ratio.Figure == StepTime {
				ratios++
			}
		}
		return ratios, strings.Join(c.Notes, "\n")
	}
	if n, said := timed(); n == 0 || strings.Contains(said, "beside each other") {
		t.Errorf("one after the other: %d ratios of times; %s", n, said)
	}
	r.Trials[3].Duration = 11
	if n, said := timed(); n > 0 || !strings.Contains(said, "beside each other") {
		t.Errorf("two at once: %d ratios of times; %s", n, said)
	}
	r.Trials[3].Machine = "another"
	if n, _ := timed(); n == 0 {
		t.Error("two at once on two machines share nothing")
	}
}

func holdsValue(i *Interval, value float64) bool { return i.Low <= value && value <= i.High }

// One is one: a sentence of a single kind of cells says so.
func TestOfKinds(t *testing.T) {
	for _, test := range []struct {
		known, all int
		want       string
	}{
		{1, 4, "Of 1 kind of cells, the first fits. Of 3 more that is not known."},
		{2, 4, "Of 2 kinds of cells, the first fits. Of 2 more that is not known."},
		{4, 4, "The first fits."},
	} {
		if got := ofKinds(test.known, test.all, "the first fits."); got != test.want {
			t.Errorf("ofKinds(%d, %d): %q, want %q", test.known, test.all, got, test.want)
		}
	}
}
