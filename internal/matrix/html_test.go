package matrix

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/web"
)

// examplePage is what the browser's tests open (web/test/matrix.mjs).
const examplePage = "../../testdata/matrix/seed.page.json"

// example is a measured matrix with everything that can become of a cell. Its figures are made up, and of the shape
// of real ones.
func example() *Result {
	axes := []Axis{
		{Name: "framework", Values: []string{"pytorch", "tensorflow"}, Labels: []string{"PyTorch", "TensorFlow"}},
		{Name: "model", Values: []string{"lenet", "resnet18", "transformer6"},
			Labels: []string{"LeNet", "ResNet-18", "Transformer, 6 blocks"}},
		{Name: "batch", Values: []string{"16", "32", "64"}},
		{Name: "mode", Values: []string{"inference", "train"}},
		{Name: "device", Values: []string{"cpu", "imagined:t4"}, Labels: []string{"CPU", "imaginary T4"}},
	}
	r := &Result{Version: ResultVersion, Name: "seed", StartWall: 1_790_000_000_000_000_000, Axes: axes,
		Machines: []Machine{{Name: "bench-1", Kernel: "6.1.0", Processors: 2, Memory: 24 << 30}},
		Goal:     Goal{Figure: PSS, Within: 0.03, Least: 3, Most: 10}, Spec: "name: seed\naxes:\n  batch: [16, 32, 64]\n"}
	random := rand.New(rand.NewPCG(7, 15))
	for i, values := range combinations(axes) {
		if values[0] == "tensorflow" && values[4] != "cpu" {
			continue
		}
		key := keyOf(axes, values)
		r.Cells = append(r.Cells, Cell{Key: key, Values: values})
		state, reason, repeats := fateOf(values)
		for n := range repeats {
			t := Trial{Cell: key, Repeat: n, State: state, Reason: reason, Machine: "bench-1",
				Run:       fmt.Sprintf("20261102-%06d-%02d", 100000+i*17, n),
				StartWall: r.StartWall + int64(n*40+i)*12e9, Duration: int64((4 + 6*random.Float64()) * 1e9)}
			if state == Done {
				t.Figures = exampleFigures(values, random)
			}
			r.Trials = append(r.Trials, t)
		}
	}
	return r
}

// earlier is the same matrix before: ResNet-18 took less then.
func earlier() *Result {
	r := example()
	for i := range r.Trials {
		if t := &r.Trials[i]; strings.Contains(t.Cell, "resnet18") {
			for figure, s := range t.Figures {
				s.Max, s.Mean, s.Median = s.Max*9/10, s.Mean*0.9, s.Median*0.9
				t.Figures[figure] = s
			}
		}
	}
	return r
}

// fateOf is what becomes of a cell's trials, and how many there are.
func fateOf(values []string) (State, string, int) {
	switch at := strings.Join(values, " "); at {
	case "pytorch transformer6 64 train imagined:t4":
		return OutOfMemory, "torch.OutOfMemoryError: 2.25 GiB more did not fit into 14.6 GiB at attention.py:88", 1
	case "tensorflow transformer6 64 train cpu":
		return TimedOut, "it was stopped after 2 min, in step 3 of 10", 3
	case "tensorflow resnet18 64 inference cpu":
		return Failed, "exit 1: ValueError: unexpected keyword argument 'data_format'", 3
	case "tensorflow lenet 64 train cpu":
		return Done, "", 0 // not measured yet
	default:
		return Done, "", 3
	}
}

// exampleFigures are one trial's: a base, and bytes for each item of a batch.
func exampleFigures(values []string, random *rand.Rand) map[Figure]Summary {
	base := map[string]float64{"lenet": 240, "resnet18": 420, "transformer6": 610}[values[1]]
	item := map[string]float64{"lenet": 0.35, "resnet18": 9,
		"transformer6": 14}[values[1]] * map[string]float64{"inference": 1, "train": 2.2}[values[3]]
	if values[0] == "tensorflow" {
		base, item = base*1.9+80, item*1.15
	}
	mebibytes := (base + item*number(values[2])) * (1 + 0.006*random.NormFloat64())
	pages := func(mib float64) int64 { return int64(mib*256) * 4096 }
	sampled := func(peak int64, label mem.Label) Summary {
		share := func(part float64) float64 { return math.Round(float64(peak) * (part + 0.01*random.Float64())) }
		return Summary{Max: peak, Min: int64(share(0.4)) &^ 4095, Mean: share(0.8), Median: share(0.85), StdDev: share(0.1),
			Count: 240, Label: label}
	}
	once := func(v int64) Summary {
		return Summary{Max: v, Min: v, Mean: float64(v), Median: float64(v), Count: 1, Label: mem.Measured}
	}
	steps := Summary{Count: 8, Label: mem.Measured, Median: (20 + item*number(values[2])/9) * 1e6 * (1 +
		0.02*random.NormFloat64())}
	steps.Mean, steps.Max, steps.Min, steps.StdDev = steps.Median*1.02, int64(steps.Median*1.2),
		int64(steps.Median*0.95), steps.Median*0.05
	figures := map[Figure]Summary{
		PSS: sampled(pages(mebibytes)+1024, mem.Estimated), RSS: sampled(pages(mebibytes*1.07), mem.Measured),
		VMS:  sampled(pages(mebibytes*4+9000), mem.Measured),
		Swap: once(0), MinorFaults: once(int64(mebibytes * 300)), MajorFaults: once(int64(random.IntN(4))),
		CPU: {Max: 2000, Min: 100, Mean: 1700 + 100*random.Float64(), Median: 1800, StdDev: 200, Count: 240,
			Label: mem.Measured},
		Parameters: once(map[string]int64{"lenet": 61_706, "resnet18": 11_689_512, "transformer6": 18_914_304}[values[1]]),
	}
	if values[4] == "cpu" {
		figures[StepTime] = steps
		return figures
	}
	for figure, share := range map[Figure]float64{DeviceUsed: 1.3, Reserved: 1, Allocated: 0.8} {
		figures[figure] = sampled(pages((item*number(values[2])*3+300)*share), mem.Imagined)
	}
	return figures
}

// TestExamplePage holds the file that the browser's tests open to what is packed now: each of its keys is
// still written.
func TestExamplePage(t *testing.T) {
	var err error
	r := example()
	c := Compare(r, Options{Memory: map[string]Room{"imagined:t4": {Total: 15_655_829_504}}})
	over, _ := ParseFailOver(nil)
	if c.Regression, err = Against(r, earlier(), Options{}, over); err != nil {
		t.Fatal(err)
	}
	page := pack(r, c, details[0])
	page.Reports = map[string]string{r.Trials[0].Run: "cells/" + r.Trials[0].Run + ".html"}
	text, err := json.Marshal(page)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(examplePage, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(examplePage)
	if err != nil {
		t.Fatal(err)
	}
	now := keysOf(t, text)
	for key := range keysOf(t, kept) {
		if !now[key] {
			t.Errorf("%s has %s, which a page has no more: see what web/src/matrix reads of it, then write the file again "+
				"with -update", examplePage, key)
		}
	}
}

// keysOf are the paths of all keys in a JSON text.
func keysOf(t *testing.T, text []byte) map[string]bool {
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				keys[path+"."+k] = true
				walk(path+"."+k, inner)
			}
		case []any:
			for _, inner := range v {
				walk(path+"[]", inner)
			}
		}
	}
	walk("", value)
	return keys
}

// TestPackedFigures reads trials back from their columns: exact where six digits say it, and within them elsewhere.
func TestPackedFigures(t *testing.T) {
	r := example()
	for _, d := range details {
		p := pack(r, nil, d)
		for figure, c := range p.Trials.Figures {
			for i, at := range c.Trial {
				trial := r.Trials[at]
				want := trial.Figures[figure]
				if r.Cells[p.Trials.Cell[at]].Key != trial.Cell || p.Trials.Run[at] != trial.Run {
					t.Fatalf("trial %d is of %s", at, r.Cells[p.Trials.Cell[at]].Key)
				}
				near := func(what string, got, want float64) {
					if math.Abs(got-want) > float64(c.Unit)*1.01 {
						t.Errorf("%s of %s in %s with %d digits: %g, want %g", what, figure, trial.Cell, d.digits, got, want)
					}
				}
				unit := float64(c.Unit)
				near("max", float64(c.Max[i])*unit, float64(want.Max))
				near("mean", float64(c.Max[i]-c.Mean[i])*unit, want.Mean)
				if d.brief {
					continue
				}
				near("min", float64(c.Max[i]-c.Min[i])*unit, float64(want.Min))
				near("median", float64(c.Max[i]-c.Median[i])*unit, want.Median)
				if got := c.StdDev[i] * unit; math.Abs(got-want.StdDev) > want.StdDev*0.051 {
					t.Errorf("deviation of %s in %s: %g, want %g", figure, trial.Cell, got, want.StdDev)
				}
				if want.Max > 0 && float64(c.Unit) > max(1, float64(want.Max)*math.Pow10(1-d.digits)) && c.Unit > 4096 {
					t.Errorf("%s of %s with %d digits comes in units of %d", figure, trial.Cell, d.digits, c.Unit)
				}
			}
		}
		if pss := p.Trials.Figures[PSS]; d.digits >= 6 &&
			(pss.Unit != 1024 || pss.Max[0]*1024 != r.Trials[pss.Trial[0]].Figures[PSS].Max) {
			t.Errorf("PSS comes in units of %d, the first is %d", pss.Unit, pss.Max[0])
		}
	}
}

// TestTypical: the trial in the middle stands for a cell, and one that failed for a cell that has no other.
func TestTypical(t *testing.T) {
	r := &Result{Cells: []Cell{{Key: "a"}, {Key: "b"}, {Key: "c"}, {Key: "d"}}}
	add := func(cell, run string, state State, pss int64) {
		r.Trials = append(r.Trials, Trial{Cell: cell, Run: run, State: state, Figures: map[Figure]Summary{PSS: {Max: pss}}})
	}
	add("a", "a1", Done, 30)
	add("b", "b1", Failed, 0)
	add("a", "a2", Failed, 20)
	add("a", "a3", Done, 10)
	add("b", "b2", OutOfMemory, 0)
	add("a", "a4", Done, 20)
	add("c", "", Unavailable, 0)
	if got, want := Typical(r, PSS), []string{"a4", "b2"}; !slices.Equal(got, want) {
		t.Errorf("%q stand for their cells, want %q", got, want)
	}
}

// many is a matrix of 2,000 cells with three trials and everything measured.
func many() *Result {
	axes := []Axis{{Name: "framework", Values: []string{"pytorch", "tensorflow"}},
		{Name: "model", Values: []string{"lenet", "resnet18", "transformer6"}}, {Name: "batch"},
		{Name: "mode", Values: []string{"inference", "train"}},
		{Name: "device", Values: []string{"cpu"}}, {Name: "version"}}
	for i := range 14 {
		axes[2].Values = append(axes[2].Values, strconv.Itoa(8*(i+1)))
	}
	for i := range 12 {
		axes[5].Values = append(axes[5].Values, fmt.Sprintf("2.%d", i))
	}
	r := &Result{Version: ResultVersion, Name: "many", StartWall: 1_790_000_000_000_000_000, Axes: axes,
		Goal:     Goal{Figure: PSS, Least: 3, Most: 3},
		Machines: []Machine{{Name: "here", Processors: 2, Memory: 24 << 30}}}
	random := rand.New(rand.NewPCG(1, 2))
	for _, values := range combinations(axes) {
		key := keyOf(axes, values)
		r.Cells = append(r.Cells, Cell{Key: key, Values: values})
		for n := range 3 {
			r.Trials = append(r.Trials, Trial{Cell: key, Repeat: n, State: Done, Machine: "here",
				Run: fmt.Sprintf("2026-%08x", random.Uint32()), StartWall: r.StartWall + random.Int64N(9e12),
				Duration: random.Int64N(9e9), Figures: exampleFigures(values, random)})
		}
	}
	return r
}

// TestPageOfManyCells is the bar of the page: 2,000 cells in a megabyte, none left out.
func TestPageOfManyCells(t *testing.T) {
	r := many()
	var page bytes.Buffer
	if err := HTML(&page, r, Compare(r, Options{}), nil); errors.Is(err, web.ErrNotBuilt) {
		t.Skip("web/dist is not built: make web")
	} else if err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) < 2000 || page.Len() > pageMost {
		t.Errorf("%d cells make a page of %d bytes, want at least 2,000 in %d", len(r.Cells), page.Len(), pageMost)
	}
}

// BenchmarkHTML is what the comparison of 2,000 cells and their page take.
func BenchmarkHTML(b *testing.B) {
	r := many()
	for b.Loop() {
		var page bytes.Buffer
		if err := HTML(&page, r, Compare(r, Options{}), nil); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(page.Len()), "bytes/page")
	}
}
