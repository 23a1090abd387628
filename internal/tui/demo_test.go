package tui

import (
	"math"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/sampler"
	"hightide/internal/store"

	tea "charm.land/bubbletea/v2"
)

// demo is a machine with two GPUs, a training of two ranks that has run for two minutes, one that ended, and a few
// other processes.
func demo(width, height int) *State {
	s := NewState()
	update(s, tea.WindowSizeMsg{Width: width, Height: height})
	update(s, Listed{Runs: demoRuns()})
	update(s, Followed{ID: "06ffnx559k", Frames: demoFrames()})
	update(s, Followed{ID: "06ffnwq3qg", Frames: []mem.Frame{mem.RunInfo{ID: "06ffnwq3qg", StartMono: 1},
		mem.End{Time: 9e9}}})
	for i := range 30 {
		update(s, Looked{Picture: demoMachine(i), Users: map[uint32]string{0: "root", 1000: "mia"},
			Now: demoStart.Add(time.Duration(120+i) * time.Second)})
	}
	return s
}

var demoStart = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

func demoRuns() []store.Run {
	return []store.Run{
		{ID: "06ffnx559k", Name: "bert-two-gpus", State: store.Running, Ended: mem.StillRunning, Verb: "run",
			Start: demoStart.UnixNano(), Tags: map[string]string{"model": "bert"},
			Command: []string{"/usr/bin/torchrun", "--nproc-per-node", "2", "train.py", "--batch-size", "48"}},
		{ID: "06ffnwq3qg", Name: "bert-too-large", State: store.Finished, Verb: "run",
			Start: demoStart.Add(-time.Hour).UnixNano(), Duration: 42e9, Steps: 12, OOMs: 1,
			Ended:    mem.Ending{Kind: mem.EndOOM, Text: "out of memory"},
			Figure:   mem.Figure{Bytes: 79 << 30, What: "reserved", Source: mem.SeriesReserved, Label: mem.Measured},
			ExitCode: mem.Some(1), Command: []string{"torchrun", "--nproc-per-node", "2", "train.py", "--batch-size", "512"}},
		{ID: "06ffnvv2a1", State: store.CutOff, Ended: mem.Ending{Kind: mem.EndCutOff, Text: "cut off"}, Verb: "run",
			Start: demoStart.Add(-5 * time.Hour).UnixNano(), Duration: 7.5e12, Steps: 18042,
			Figure:  mem.Figure{Bytes: 3 << 30, What: "RSS", Source: mem.SeriesTreeRSS, Label: mem.Measured},
			Command: []string{"python", "eval.py"}},
	}
}

func demoMachine(i int) sampler.Picture {
	gpu := func(n int, used, busy int64) sampler.Card {
		return sampler.Card{GPU: mem.GPU{Index: n, Vendor: "NVIDIA", Name: "NVIDIA H100 80GB HBM3",
			Memory: mem.Some(80 << 30)}, Device: "nvidia:0",
			Used: mem.Some(used << 30), Utilisation: mem.Some(busy), Temperature: mem.Some(61), Power: mem.Some(540000)}
	}
	process := func(pid, parent int, rss, busy int64, device mem.Optional, user uint32, command ...string) sampler.Seen {
		return sampler.Seen{PID: pid, Parent: parent, StartTicks: uint64(pid), User: user, State: "S", Threads: 24,
			RSS: rss << 20, VMS: rss << 22, CPU: int64(pid) * 1e8,
			Busy: mem.Some(busy), Device: device, Command: command, Name: command[0]}
	}
	return sampler.Picture{
		Host: "node-7", Time: int64(120+i) * 1e9, Cores: 64, Busy: mem.Some(310), Load: "18.20 16.05 9.70",
		Total: mem.Some(512 << 30), Available: mem.Some(int64(400-2*i) << 30),
		Swap: mem.Some(8 << 30), SwapFree: mem.Some(8 << 30), GPUs: []sampler.Card{gpu(0, 61, 970), gpu(1, 74, 930)},
		Processes: []sampler.Seen{
			process(4711, 4700, 4200+int64(i)*10, 1012, mem.Some(60<<30), 1000, "/usr/bin/python3", "train.py", "--batch-size",
				"48"),
			process(4712, 4700, 4180, 998, mem.Some(73<<30), 1000, "/usr/bin/python3", "train.py", "--batch-size", "48"),
			process(4700, 900, 310, 2, mem.Optional{}, 1000, "/usr/bin/torchrun", "--nproc-per-node", "2", "train.py"),
			process(900, 1, 9, 0, mem.Optional{}, 1000, "-bash"),
			process(1, 0, 12, 0, mem.Optional{}, 0, "/sbin/init"),
			process(812, 1, 140, 31, mem.Optional{}, 0, "/usr/bin/dockerd", "-H", "fd://"),
		},
	}
}

// demoFrames are what the recording of the running one has so far.
func demoFrames() []mem.Frame {
	frames := []mem.Frame{
		mem.RunInfo{ID: "06ffnx559k", Name: "bert-two-gpus", Version: "0.1.0", Label: mem.Measured, StartMono: 30e9,
			Options: map[string]string{"interval": "100ms"}},
		mem.Process{ID: 1, PID: 4700, StartTicks: 4700, Role: "launcher", Start: 30e9, Command: []string{"torchrun"}},
		mem.Event{Time: 30e9 + 1e6, Kind: "start", Text: "torchrun --nproc-per-node 2 train.py"},
	}
	for rank := range int64(2) {
		id := uint32(2 + rank)
		frames = append(frames, mem.Process{ID: id, PID: int(4711 + rank), StartTicks: uint64(4711 + rank), Role: "rank",
			Rank: mem.Some(rank), Start: 32e9,
			Frameworks: map[string]string{"torch": "2.15.0+cu132"},
			Facts:      map[string]string{"amp": "bfloat16", "compile": "yes"}, Command: []string{"python3", "train.py"}})
		frames = append(frames, mem.ModelUse{Process: id, Step: 3, Device: "cuda:0", Parameters: mem.Some(417 << 20),
			Gradients: mem.Some(417 << 20), Optimizer: mem.Some(835 << 20)})
		frames = append(frames, demoSeries(id, rank)...)
		frames = append(frames, demoSteps(id, rank)...)
	}
	return append(frames, tree(),
		mem.Samples{Series: 1, Times: times(90), Values: wave(90, 8<<30, 1<<28)},
		mem.Event{Time: 100e9, Kind: "alert", Text: "device nvidia:1 > 90%: 74.0 GiB of 80.0 GiB"},
		mem.Event{Time: 40e9, Kind: "unobserved", Text: "PSS and USS of some processes: permission denied"},
		mem.SeriesDef{ID: 2, Name: mem.SeriesOwnCPU, Unit: mem.UnitNanoseconds, Label: mem.Measured},
		mem.Samples{Series: 2, Times: times(90), Values: wave(90, 4e8, 0)})
}

func tree() mem.Frame {
	return mem.SeriesDef{ID: 1, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes, Label: mem.Measured}
}

func demoSeries(id uint32, rank int64) (frames []mem.Frame) {
	for i, q := range []struct {
		name  mem.Quantity
		base  int64
		swing int64
	}{{mem.SeriesRSS, 4 << 30, 1 << 27}, {mem.SeriesAllocated, (52 + 12*rank) << 30, 6 << 30},
		{mem.SeriesReserved, (60 + 13*rank) << 30, 0}, {mem.SeriesRetries, rank * 3, 0}} {
		def := mem.SeriesDef{ID: id*10 + uint32(i), Process: id, Name: q.name, Unit: mem.UnitBytes, Label: mem.Measured}
		if q.name.OfDevice() {
			def.Device, def.Framework = "cuda:0", "torch"
		}
		if q.name == mem.SeriesRetries {
			def.Unit = mem.UnitCount
		}
		frames = append(frames, def, mem.Samples{Series: def.ID, Times: times(90), Values: wave(90, q.base, q.swing)})
	}
	return frames
}

func demoSteps(id uint32, rank int64) []mem.Frame {
	var spans mem.Spans
	var steps mem.Steps
	for n := range int64(85) {
		at := int64(35e9) + n*1e9
		for i, phase := range []mem.Phase{mem.PhaseData, mem.PhaseForward, mem.PhaseBackward, mem.PhaseOptimizer} {
			spans = append(spans, mem.Span{Process: id, Phase: phase, Step: uint64(n), Start: at + int64(i)*25e7, End: at +
				int64(i+1)*25e7})
		}
		steps = append(steps, mem.Step{Process: id, Number: uint64(n + 1), Time: at + 1e9, Duration: 1e9 + rank*2e8})
	}
	frames := []mem.Frame{spans, steps, mem.StepTotal{Process: id, Steps: 85}}
	for i, phase := range []mem.Phase{mem.PhaseData, mem.PhaseForward, mem.PhaseBackward, mem.PhaseOptimizer} {
		frames = append(frames, mem.PhaseStats{Process: id, Phase: phase, Count: 85, Total: int64(10+10*i) * 1e9,
			RSSPeak: mem.Some(4 << 30), DevicePeak: mem.Some(int64(40+8*i) << 30)})
	}
	return frames
}

func times(n int) (out []int64) {
	for i := range n {
		out = append(out, 31e9+int64(i)*1e9)
	}
	return out
}

func wave(n int, base, swing int64) (out []int64) {
	for i := range n {
		out = append(out, base+int64(float64(swing)*math.Sin(float64(i)/4)))
	}
	return out
}

// demoReport is what the engine says of the running one.
func demoReport() *report.Report {
	r := report.New()
	r.Headline.Verdict = "Peak 74.0 GiB on GPU 1 (measured) in backward of step 61; it grows by 12.0 MiB per step."
	r.Findings = []report.Finding{
		{Kind: report.KindLeak, Severity: report.Warning, Title: "Trainer.history grows",
			Text:   "The list Trainer.history at train.py:88 gains one item a step, and each holds an autograd graph of 12.0 MiB.",
			Advice: "Keep loss.item() instead of loss.", File: "/home/mia/train.py", Line: 88,
			BytesPerStep: mem.Some(12 << 20), Bytes: mem.Some(1 << 30), Label: mem.Measured},
		{Kind: report.KindRanks, Severity: report.Info, Title: "rank 1 takes more",
			Text: "Rank 1 holds 13.0 GiB more than rank 0.", Bytes: mem.Some(13 << 30), Label: mem.Measured},
	}
	r.Stacks = []report.StackSet{{Name: "device", Title: "Device at its highest", Label: mem.Measured, Total: 60 << 30,
		Frames: []report.FramePlace{
			{Location: mem.Location{File: "/home/mia/train.py", Line: 40, Function: "main"}, User: true},
			{Location: mem.Location{File: "/home/mia/train.py", Line: 88, Function: "Trainer.step"}, User: true},
			{Location: mem.Location{File: "/usr/lib/python3/torch/nn/modules/linear.py", Line: 125, Function: "Linear.forward"}},
			{Location: mem.Location{File: "/usr/lib/python3/torch/optim/adamw.py", Line: 201, Function: "AdamW.step"}},
		},
		Parents: []int{-1, 0, 1, 0}, Places: []int{0, 1, 2, 3},
		Stacks: []report.StackUse{{Node: 2, Bytes: 44 << 30, Count: 812}, {Node: 3, Bytes: 10 << 30, Count: 400},
			{Node: 1, Bytes: 6 << 30, Count: 90}},
	}}
	return r
}
