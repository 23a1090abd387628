package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestUnusedGraphs: the last word on each line counts. Of a line that trains, a broken step is no evaluation.
func TestUnusedGraphs(t *testing.T) {
	run := training(1).run()
	tell := func(line int, mode string, count, most, used int64) {
		must(run, mem.Event{Time: 9e9, Process: 1, Kind: mem.EventUnusedGraphs,
			Where:   &mem.Location{File: "/home/me/project/train.py", Line: line},
			Facts:   map[string]string{"class": "Net", "mode": mode},
			Numbers: map[string]int64{"count": count, "at_once": most, "used": used}})
	}
	tell(11, "train", 4, 4, 0)
	tell(11, "train", 30, 29, 0)
	tell(20, "eval", 9, 1, 0)
	tell(30, "train", 5, 9, 80)
	tell(40, "train", 3, 3, 0)
	var found []report.Finding
	for _, f := range Analyze(run, Options{}).Findings {
		if f.Kind == report.KindGraphs {
			found = append(found, f)
		}
	}
	if len(found) != 2 || found[0].Line != 11 || found[0].Severity != report.Warning ||
		!strings.Contains(found[0].Text, "30 forward passes of Net at train.py:11 ran with gradients enabled") ||
		!strings.Contains(found[0].Text, "Up to 29 such graphs were held at once") ||
		strings.Contains(found[0].Advice, "eval() alone") {
		t.Errorf("%+v", found)
	}
	if found[1].Line != 20 || found[1].Severity != report.Info ||
		!strings.Contains(found[1].Text, "at most one was held") || !strings.Contains(found[1].Advice, "eval() alone does not do that") {
		t.Errorf("%+v", found[1])
	}
}
