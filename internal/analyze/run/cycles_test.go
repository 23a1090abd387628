package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// collected adds what Python's collector freed at most, MiB, and how often.
func collected(run *mem.Run, host, device int64, often string) {
	must(run, mem.Event{Time: 9e9, Process: 1, Kind: mem.EventGarbage, Bytes: mem.Some(host << 20),
		Facts: map[string]string{
			"often": often, "device_bytes": itoa(device << 20), "device_often": often, "stack": "1", "longest_ns": "120000000"}})
}

func cyclesOf(r *report.Report) (found []report.Finding) {
	for _, f := range r.Findings {
		if f.Kind == report.KindCycles {
			found = append(found, f)
		}
	}
	return found
}

// TestCycles: what the collector freed at once is told with its line, the class and what leads back to it.
func TestCycles(t *testing.T) {
	run := training(1).run()
	collected(run, 286, 0, "4")
	must(run, mem.Event{Time: 9.1e9, Process: 1, Kind: "cycle",
		Where: &mem.Location{File: "/home/me/project/train.py", Line: 6},
		Facts: map[string]string{"class": "Node", "name": "Node.children[…].parent"}})
	found := cyclesOf(Analyze(run, Options{}))
	if len(found) != 1 || found[0].Line != 6 || found[0].Severity != report.Warning ||
		!strings.Contains(found[0].Text, "286 MiB of host memory at once (sampled), and a quarter of that or more 4 times") ||
		!strings.Contains(found[0].Advice, "`Node.children[…].parent` a weakref.ref(…)") ||
		!strings.Contains(found[0].Advice, "took 120 ms") {
		t.Errorf("%+v", found)
	}
	run = training(1).run()
	collected(run, 4, 300, "3")
	if found = cyclesOf(Analyze(run, Options{})); len(found) != 1 || !strings.Contains(found[0].Title, "300 MiB of device memory") {
		t.Errorf("%+v", found)
	}
	run = training(1).run()
	collected(run, 4, 2, "300") // as any program's collector does
	if found = cyclesOf(Analyze(run, Options{})); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestLeakOfCycles: a growth that the last collection freed is told as one finding: what to change is the cycle.
func TestLeakOfCycles(t *testing.T) {
	run := training(1, source{stack: userLine(leakLine), step: leakOf(1*mem.MiB, 1*mem.MiB)}).run()
	stack := ""
	for id := uint32(1); id < 40; id++ {
		if f := run.Stacks.Frames(id); len(f) > 0 && f[0].Line == leakLine {
			stack = itoa(int64(id))
		}
	}
	must(run, mem.Event{Time: 9e9, Process: 1, Kind: mem.EventGarbage, Bytes: mem.Some(int64(290 << 20)),
		Facts: map[string]string{"often": "1", "stack": stack}})
	r := Analyze(run, Options{})
	found := leaks(r)
	if len(cyclesOf(r)) != 0 || len(found) != 1 ||
		!strings.Contains(found[0].Text, "by the end (sampled), in reference cycles. Objects that refer") ||
		strings.Contains(found[0].Text, "never freed") || !strings.Contains(found[0].Advice, "Break the cycle") {
		t.Errorf("%+v", found)
	}
	if !strings.Contains(r.Headline.Verdict, "it waits in reference cycles") {
		t.Error(r.Headline.Verdict)
	}
}
