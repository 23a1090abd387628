package run

import (
	"encoding/json"
	"flag"
	"math/rand/v2"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/testkit"
)

var Update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	testkit.Golden(t, "runs/"+name, got, *Update)
}

// TestGolden: the report of a training that keeps its losses, in every form.
func TestGolden(t *testing.T) {
	source := map[int]string{25: "history.append(loss)  # LEAK", 40: "x = self.conv1(x).relu()"}
	r := Analyze(leakRun(), Options{Source: func(_ string, line int) string { return source[line] }})
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "leak.report.json", string(text)+"\n")
	golden(t, "leak.txt", r.Text(report.TextOptions{Width: 100}))
	golden(t, "leak.ascii.txt", r.Text(report.TextOptions{Width: 72, ASCII: true, Brief: true}))
	golden(t, "leak.color.txt", r.Text(report.TextOptions{Width: 100, Color: true, Brief: true}))
	golden(t, "leak.md", r.Markdown())
}

const digitsFile = "/home/me/examples/digits_leak.py"

// leakRun is digits_leak.py as the recorder would see it: 276 steps, two DataLoader workers, a list of
// losses that keeps 1.2 MiB a step at six lines of the forward pass.
func leakRun() *mem.Run {
	inForward := func(line int) []mem.Location {
		return []mem.Location{
			{File: "libtorch_cpu.so", Function: "+0x1a2b3c", Native: true},
			{File: "/home/me/.venv/lib/python3.12/site-packages/torch/nn/modules/conv.py", Line: 543, Function: "_conv_forward"},
			{File: "/home/me/.venv/lib/python3.12/site-packages/torch/nn/modules/module.py", Line: 1751, Function: "_call_impl"},
			{File: digitsFile, Line: line, Function: "forward"},
			{File: digitsFile, Line: 22, Function: "train"}, {File: digitsFile, Line: 52, Function: "main"},
		}
	}
	s := training(3)
	s.steps, s.stepTime = 276, 24*ms
	for i, perStep := range []mem.Bytes{512 * mem.KiB, 256 * mem.KiB, 192 * mem.KiB, 128 * mem.KiB, 96 * mem.KiB,
		48 * mem.KiB} {
		s.sources = append(s.sources, source{stack: inForward(40 + i), phase: mem.PhaseForward,
			step: leakOf(perStep, perStep/2)})
	}
	s.sources = append(s.sources, source{stack: []mem.Location{{File: "libtorch_cpu.so", Function: "+0x99",
		Native: true}}, phase: mem.PhaseBackward,
		step: func(_ int, rng *rand.Rand, alloc func(mem.Bytes, int)) { alloc(mem.Bytes(1+rng.IntN(3))*mem.MiB, 0) }})
	s.holders = []mem.Holder{
		{Time: 4e9, Step: 60, Kind: "list", Name: "history", Where: mem.Location{File: digitsFile, Line: 25,
			Function: "train"}, Items: 60, PerStep: 1, Contains: "Tensor", Tensors: mem.Some(240), Graph: true},
		{Time: 8e9, Step: 250, Kind: "list", Name: "history", Where: mem.Location{File: digitsFile, Line: 25,
			Function: "train"}, Items: 250, PerStep: 1, Contains: "Tensor", Tensors: mem.Some(1000), Graph: true},
	}
	run := s.run()
	run.Info.ID, run.Info.Name = "01k8h2m4xq7v", "digits"
	run.Info.Command = []string{"python", "examples/digits_leak.py"}
	run.Info.Cwd = "/home/me"
	run.Info.Git = &mem.Git{Commit: "f5f1579c0ffee", Branch: "main", Dirty: true}
	run.Info.Host.Name, run.Info.Host.CPU, run.Info.Host.Kernel = "box", "Intel Xeon", "6.1.0"
	addWorkers(run)
	addModel(run)
	return run
}

func addWorkers(run *mem.Run) {
	must := func(f mem.Frame) {
		if err := run.Add(f); err != nil {
			panic(err)
		}
	}
	main := run.Find(1, mem.SeriesRSS)
	for w := uint32(2); w <= 3; w++ {
		must(mem.Process{ID: w, PID: 4250 + int(w), Parent: 1, Role: "dataloader", Python: "3.12.1", Start: 3e9,
			End: mem.Some(int64(9.6e9)), ExitCode: mem.Some(0), MaxRSS: mem.Some(int64(212 * mem.MiB))})
		must(mem.SeriesDef{ID: 10 + w, Process: w, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured})
		must(mem.SeriesDef{ID: 40 + w, Process: w, Name: mem.SeriesPSS, Unit: mem.UnitBytes, Label: mem.Measured})
		must(mem.Samples{Series: 40 + w, Times: []int64{5e9}, Values: []int64{int64(70 * mem.MiB)}})
		for i, t := range main.Times {
			if i > 0 && i%4 == 0 {
				must(mem.Samples{Series: 10 + w, Times: []int64{t}, Values: []int64{int64(210*mem.MiB) + int64(i)*256}})
			}
		}
	}
	must(mem.SeriesDef{ID: 50, Process: 1, Name: mem.SeriesPSS, Unit: mem.UnitBytes, Label: mem.Measured})
	must(mem.Samples{Series: 50, Times: []int64{5e9}, Values: []int64{main.At(5e9).Or(0) - int64(120*mem.MiB)}})
	tree := run.Find(0, mem.SeriesTreeRSS)
	must(mem.SeriesDef{ID: 20, Name: mem.SeriesTreePSS, Unit: mem.UnitBytes, Label: mem.Estimated})
	must(mem.SeriesDef{ID: 21, Name: mem.SeriesTreePSSError, Unit: mem.UnitBytes, Label: mem.Estimated})
	for i, v := range tree.Values {
		if i > 0 {
			tree.Values[i] += int64(420 * mem.MiB)
		}
		must(mem.Samples{Series: 20, Times: []int64{tree.Times[i]}, Values: []int64{v + int64(90*mem.MiB)}})
		must(mem.Samples{Series: 21, Times: []int64{tree.Times[i]}, Values: []int64{int64(i%60) * int64(100*mem.KiB)}})
	}
	for id, s := range []struct {
		name mem.Quantity
		unit mem.Unit
		per  int64
	}{{mem.SeriesMinorFaults, mem.UnitCount, 2100}, {mem.SeriesMajorFaults, mem.UnitCount, 0},
		{mem.SeriesCPU, mem.UnitNanoseconds, 12 * ms}} {
		must(mem.SeriesDef{ID: uint32(30 + id), Process: 1, Name: s.name, Unit: s.unit, Label: mem.Measured})
		for i, t := range main.Times {
			must(mem.Samples{Series: uint32(30 + id), Times: []int64{t}, Values: []int64{90000 + s.per*int64(i)}})
		}
	}
}

func addModel(run *mem.Run) {
	frames := []mem.Frame{
		mem.ModelUse{Process: 1, Step: 100, Device: "cpu", Parameters: mem.Some(424 << 10), Gradients: mem.Some(424 << 10),
			Optimizer: mem.Some(848 << 10)},
		mem.Module{Process: 1, Name: "", Class: "Net", Parameters: 424 << 10},
		mem.Module{Process: 1, Name: "conv1", Class: "Conv2d", Parameters: 40 << 10},
		mem.Module{Process: 1, Name: "head", Class: "Linear", Parameters: 384 << 10},
		mem.Event{Time: 9e9, Process: 1, Kind: "alert", Text: "alert host.rss > 1GiB: it is 1.01 GiB",
			Facts: map[string]string{"alert": "host.rss > 1GiB"}, Step: mem.Some(240), Bytes: mem.Some(1084479242)},
	}
	for _, p := range []struct {
		phase      mem.Phase
		name       string
		count      uint64
		total      int64
		peak, rise mem.Bytes
	}{
		{mem.PhaseStep, "", 276, 276 * 24 * ms, 0, 40 * mem.MiB}, {mem.PhaseData, "", 276, 276 * 2 * ms, 0, 2 * mem.MiB},
		{mem.PhaseForward, "", 276, 276 * 7 * ms, 0, 22 * mem.MiB},
		{mem.PhaseBackward, "", 276, 276 * 12 * ms, 0, 38 * mem.MiB},
		{mem.PhaseOptimizer, "", 276, 276 * 2 * ms, 0, 1 * mem.MiB},
		{mem.PhaseEvaluation, "", 24, 24 * 60 * ms, 0, 9 * mem.MiB},
		{mem.PhaseModule, "conv1", 300, 300 * 3 * ms, 0, 12 * mem.MiB},
		{mem.PhaseModule, "head", 300, 300 * ms, 0, 4 * mem.MiB},
	} {
		frames = append(frames, mem.PhaseStats{Process: 1, Phase: p.phase, Name: p.name, Count: p.count, Total: p.total,
			Max:     4 * p.total / int64(p.count),
			RSSPeak: mem.Some(int64(700*mem.MiB + p.rise)), RSSMaxRise: mem.Some(int64(p.rise)),
			RSSNet: mem.Some(int64(p.rise) * 3)})
	}
	for _, f := range frames {
		if err := run.Add(f); err != nil {
			panic(err)
		}
	}
}

// TestTextIsClean: a recording cannot smuggle control sequences into a terminal, or mark-up into a
// comment, and no line is wider than asked.
func TestTextIsClean(t *testing.T) {
	run := leakRun()
	run.Info.Command = []string{"python", "\x1b]0;owned\x07", "a\u202eb", "<script>"}
	run.Events = append(run.Events, mem.Event{Time: 5e9, Process: 1, Kind: "oom", Text: "no\x1b[2J memory",
		Facts: map[string]string{"source": "torch.cpu"}})
	got := Analyze(run, Options{})
	for _, width := range []int{50, 72, 100, 160} {
		text := got.Text(report.TextOptions{Width: width})
		for _, line := range strings.Split(text, "\n") {
			if n := len([]rune(line)); n > width {
				t.Errorf("line of %d columns where %d were asked: %s", n, width, line)
			}
		}
		if strings.ContainsAny(text, "\x1b\x07\u202e") {
			t.Error("a control character came through")
		}
	}
	if md := got.Markdown(); strings.Contains(md, "<script>") || strings.ContainsRune(md, '\x1b') {
		t.Error("mark-up came through")
	}
	for _, r := range got.Text(report.TextOptions{ASCII: true}) {
		if r > 126 {
			t.Fatalf("%q in plain ASCII", r)
		}
	}
}

// TestEmpty: a run of which nothing was seen still has a report.
func TestEmpty(t *testing.T) {
	for name, run := range map[string]*mem.Run{"nothing": mem.NewRun(), "one process": func() *mem.Run {
		r := mem.NewRun()
		_ = r.Add(mem.Process{ID: 1, PID: 7, Role: "main"})
		return r
	}()} {
		got := Analyze(run, Options{})
		if got.Headline.Verdict == "" || len(got.Findings) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
		_, _ = got.Text(report.TextOptions{}), got.Markdown()
		if text, err := json.Marshal(got); err != nil || strings.Contains(string(text), `:null`) {
			t.Errorf("%s: %v %s", name, err, text)
		}
	}
}
