package run

import (
	"fmt"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// readings adds readings of something that is counted to a synthetic run, at every step.
func readings(run *mem.Run, process uint32, name mem.Quantity, unit mem.Unit, of func(step int) int64) {
	id := uint32(100 + len(run.Series))
	must(run, mem.SeriesDef{ID: id, Process: process, Name: name, Unit: unit, Label: mem.Measured})
	s := mem.Samples{Series: id}
	for i, step := range run.Steps {
		s.Times, s.Values = append(s.Times, step.Time), append(s.Values, of(i))
	}
	must(run, s)
}

func must(run *mem.Run, f mem.Frame) {
	if err := run.Add(f); err != nil {
		panic(err)
	}
}

func resources(r *report.Report) (found []report.Finding) {
	for _, f := range r.Findings {
		if f.Kind == report.KindResource {
			found = append(found, f)
		}
	}
	return found
}

// TestFirstDeadline: of all that grows, what ends the program first is the headline, with its pace and the limit's
// source.
func TestFirstDeadline(t *testing.T) {
	for _, stepTime := range []int64{5 * ms, 16 * ms, 100 * ms} {
		s := training(1, source{stack: userLine(leakLine), step: leakOf(1*mem.MiB, 1*mem.MiB)})
		s.steps, s.stepTime = 276, stepTime
		run := s.run()
		readings(run, 1, mem.SeriesFiles, mem.UnitCount, func(step int) int64 { return 24 + 2*int64(step) })
		readings(run, 1, mem.SeriesFilesLimit, mem.UnitCount, func(int) int64 { return 1024 })
		r := Analyze(run, Options{})
		for _, want := range []string{"open files run out first, in about 230 steps (estimated): 574 of 1,024 that the " +
			"process may have (`ulimit -n`), and 2 more per step (measured)", "grows "} {
			if !strings.Contains(r.Headline.Verdict, want) {
				t.Errorf("%d ms: %s\nlacks %s", stepTime/ms, r.Headline.Verdict, want)
			}
		}
		if strings.Contains(r.Headline.Verdict, "out of memory") {
			t.Errorf("it will not live to see memory run out: %s", r.Headline.Verdict)
		}
		if found := resources(r); len(found) != 1 || found[0].Severity != report.Critical {
			t.Errorf("%+v", found)
		}
	}
}

// TestMemoryFirst: descriptors that last longer than memory are told, below it.
func TestMemoryFirst(t *testing.T) {
	run := training(1, source{stack: userLine(leakLine), step: leakOf(8*mem.MiB, 1*mem.MiB)}).run()
	readings(run, 1, mem.SeriesFiles, mem.UnitCount, func(step int) int64 { return 24 + int64(step) })
	readings(run, 1, mem.SeriesFilesLimit, mem.UnitCount, func(int) int64 { return 1 << 20 })
	r := Analyze(run, Options{})
	if v := r.Headline.Verdict; strings.Contains(v, "run out first") || !strings.Contains(v, "out of memory in about") ||
		!strings.Contains(v, "of the machine's memory were left") {
		t.Error(v)
	}
	if found := resources(r); len(found) != 1 || found[0].Severity != report.Warning ||
		!strings.Contains(found[0].Text, "about 1,000,000 steps") {
		t.Errorf("%+v", found)
	}
}

// TestSoonIsInSteps: how soon a supply ends is counted in steps, as of memory, also where much of a short run was its
// start and end.
func TestSoonIsInSteps(t *testing.T) {
	training := training(1)
	training.steps, training.stepTime = 276, 5*ms
	run := training.run()
	readings(run, 1, mem.SeriesFiles, mem.UnitCount, func(step int) int64 { return 24 + 2*int64(step) })
	readings(run, 1, mem.SeriesFilesLimit, mem.UnitCount, func(int) int64 { return 20_000 })
	run.End.Time += 6e9
	if found := resources(Analyze(run, Options{})); len(found) != 1 || found[0].Severity != report.Warning {
		t.Errorf("%+v", found)
	}
}

// TestAddressSpaceGone: where an allocation that failed ended the program, its limit was reached, and not "in 40 ms".
func TestAddressSpaceGone(t *testing.T) {
	run := training(1).run()
	end := run.End.Time
	readings(run, 1, mem.SeriesVMS, mem.UnitBytes, func(step int) int64 { return int64(step) * 10 << 20 })
	last := run.Series[len(run.Series)-1]
	limit := last.Values[len(last.Values)-1] + 1<<20
	readings(run, 1, mem.SeriesVMSLimit, mem.UnitBytes, func(int) int64 { return limit })
	must(run, mem.Event{Time: end - 10*ms, Process: 1, Kind: "oom", Bytes: mem.Some(32 << 20), Facts: map[string]string{
		"source": "python", "limit": fmt.Sprint(limit), "mapped": fmt.Sprint(limit - 1<<20)}})
	must(run, mem.Event{Time: end - 5*ms, Process: 1, Kind: "exception", Facts: map[string]string{"class": "MemoryError"}})
	found := resources(Analyze(run, Options{}))
	if len(found) != 1 || !strings.Contains(found[0].Title, "the program ran out of address space") ||
		strings.Contains(found[0].Text, "At this pace") {
		t.Errorf("%+v", found)
	}
}

// TestNoDeadline: what is opened once, comes and goes, or stopped growing well before the end, is no finding.
func TestNoDeadline(t *testing.T) {
	for name, of := range map[string]func(int) int64{
		"once":     func(step int) int64 { return 24 + 300*int64(min(step, 1)) },
		"saw":      func(step int) int64 { return 24 + int64(step%40) },
		"stopped":  func(step int) int64 { return 24 + int64(min(step, 60)) },
		"a little": func(step int) int64 { return 24 + int64(step/20) },
	} {
		run := training(1).run()
		readings(run, 1, mem.SeriesFiles, mem.UnitCount, of)
		readings(run, 1, mem.SeriesFilesLimit, mem.UnitCount, func(int) int64 { return 1024 })
		r := Analyze(run, Options{})
		if found := resources(r); len(found) != 0 || strings.Contains(r.Headline.Verdict, "first") {
			t.Errorf("%s: %+v %s", name, found, r.Headline.Verdict)
		}
	}
}

// TestDescriptors: which descriptors they are, and the container that keeps them.
func TestDescriptors(t *testing.T) {
	s := training(1)
	s.holders = []mem.Holder{{Kind: "list", Name: "handles",
		Where: mem.Location{File: "/home/me/project/train.py", Line: 12}, Items: 300, PerStep: 1, Contains: "TextIOWrapper",
		Time: 11e9}}
	run := s.run()
	readings(run, 1, mem.SeriesFiles, mem.UnitCount, func(step int) int64 { return 24 + int64(step) })
	must(run, mem.Event{Time: 2e9, Process: 1, Kind: mem.EventDescriptors,
		Facts: map[string]string{"1": "280 /data/*.txt", "2": "3 socket"}})
	found := resources(Analyze(run, Options{}))
	if len(found) != 1 || found[0].Line != 12 || found[0].Holder != "handles" ||
		!strings.Contains(found[0].Text, "Most of them, 280, were files /data/*.txt") ||
		!strings.Contains(found[0].Text, "The limit is not known") || !strings.Contains(found[0].Advice, "with open(") {
		t.Errorf("%+v", found)
	}
}

// TestDescriptorAdvice: only PyTorch's own blocks of shared memory are told as what a loader's worker sent.
func TestDescriptorAdvice(t *testing.T) {
	for kind, word := range map[string]string{
		"/dev/shm/torch_* (deleted)": "clone()",
		"/dev/shm/psm_* (deleted)":   "keeps its memory while it is open",
		"/dev/shm/* (deleted)":       "keeps its memory while it is open",
		"socket":                     "one session",
		"/data/*.txt":                "with open(",
	} {
		if got := descriptorAdvice(kind); !strings.Contains(got, word) {
			t.Errorf("%s: %s", kind, got)
		}
	}
}

// TestThreads: of the user's, the control group's and the machine's limit the nearest counts.
func TestThreads(t *testing.T) {
	run := training(1).run()
	readings(run, 0, mem.SeriesTreeThreads, mem.UnitCount, func(step int) int64 { return 4 + int64(step) })
	readings(run, 0, mem.SeriesSystemThreads, mem.UnitCount, func(step int) int64 { return 200 + int64(step) })
	readings(run, 0, mem.SeriesSystemThreadsLimit, mem.UnitCount, func(int) int64 { return 32768 })
	readings(run, 0, mem.SeriesCgroupThreads, mem.UnitCount, func(step int) int64 { return 7 + int64(step) })
	readings(run, 0, mem.SeriesCgroupThreadsLimit, mem.UnitCount, func(int) int64 { return 600 })
	r := Analyze(run, Options{})
	if v := r.Headline.Verdict; !strings.Contains(v, "threads run out first, in about ") ||
		!strings.Contains(v, "of 600 that the control group may have (pids.max), and 1 more per step") {
		t.Error(v)
	}
	if found := resources(r); len(found) != 1 || !strings.Contains(found[0].Text, "The threads of the run's processes") ||
		!strings.Contains(found[0].Text, " in the control group at the last reading") {
		t.Errorf("%+v", found)
	}
}

// TestThreadsGoWithTheirProcess: what the machine counts after the program's end has none of its threads any more.
func TestThreadsGoWithTheirProcess(t *testing.T) {
	run := training(1).run()
	readings(run, 0, mem.SeriesTreeThreads, mem.UnitCount, func(step int) int64 { return 4 + int64(step) })
	readings(run, 0, mem.SeriesSystemThreads, mem.UnitCount, func(step int) int64 { return 200 + int64(step) })
	readings(run, 0, mem.SeriesSystemThreadsLimit, mem.UnitCount, func(int) int64 { return 32768 })
	p := run.Processes[0]
	p.End = mem.Some(run.Steps[len(run.Steps)-1].Time + 1)
	for _, s := range run.Series {
		if s.Name == mem.SeriesSystemThreads {
			s.Times, s.Values = append(s.Times, p.End.Or(0)+1e6), append(s.Values, 200)
		}
	}
	run.End.Time = p.End.Or(0) + 2e6
	found := resources(Analyze(run, Options{}))
	if len(found) != 1 || !strings.Contains(found[0].Text, " 499 on the machine at the") {
		t.Errorf("%+v", found)
	}
}

// TestSharedMemory: a block a step in /dev/shm that nobody maps takes no process's memory. It ends with the file
// system's room, or the machine's where that has less.
func TestSharedMemory(t *testing.T) {
	run := training(1).run()
	readings(run, 0, mem.SeriesShmUsed, mem.UnitBytes, func(step int) int64 { return int64(step) << 20 })
	readings(run, 0, mem.SeriesShmTotal, mem.UnitBytes, func(int) int64 { return 1 << 30 })
	r := Analyze(run, Options{})
	if found := resources(r); len(found) != 1 || !strings.Contains(found[0].Advice, "unlink()") ||
		!strings.Contains(found[0].Text, "of the machine, whichever program has it, grows by") ||
		!strings.Contains(found[0].Title, "grows 1.00 MiB per step: 299 MiB of 1.00 GiB") {
		t.Errorf("%+v", found)
	}
}

// TestRanOut: a program that ended as it could open no more is told so, however short the run.
func TestRanOut(t *testing.T) {
	run := training(1).run()
	readings(run, 1, mem.SeriesFiles, mem.UnitCount, func(step int) int64 { return 24 + int64(step)*990/300 })
	readings(run, 1, mem.SeriesFilesLimit, mem.UnitCount, func(int) int64 { return 1024 })
	must(run, mem.Event{Time: 9e9, Process: 1, Kind: "exception", Text: "[Errno 24] Too many open files: 'x.txt'",
		Facts: map[string]string{"class": "OSError"}})
	r := Analyze(run, Options{})
	if v := r.Headline.Verdict; !strings.Contains(v, "it ran out of open files: 1,024 that the process may have") {
		t.Error(v)
	}
}
