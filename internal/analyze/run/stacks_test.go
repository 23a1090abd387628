package run

import (
	"maps"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestStacks: the tree holds every byte of the peak, its stacks are those of the recording, and
// nothing of hightide's own is in it.
func TestStacks(t *testing.T) {
	run := leakRun()
	for id := range uint32(run.Stacks.Len()) {
		if stack := run.Stacks.Frames(id); stack != nil {
			if err := run.Stacks.Define(id, append(stack, mem.Location{File: "/x/hightide_agent/start.py", Line: 3,
				Function: "start"})); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := Analyze(run, Options{})
	if len(r.Stacks) == 0 {
		t.Fatal("no stacks")
	}
	for _, set := range r.Stacks {
		sum := set.Rest
		for _, s := range set.Stacks {
			sum += s.Bytes
		}
		if peak := run.Heap[set.Process].Peak; sum != set.Total || set.Total != peak.Live {
			t.Errorf("process %d: stacks and rest %d, total %d, peak %d", set.Process, sum, set.Total, peak.Live)
		}
		for i, parent := range set.Parents {
			if parent >= i || parent < -1 {
				t.Errorf("node %d has parent %d", i, parent)
			}
		}
		var path []string
		for node := set.Stacks[0].Node; node >= 0; node = set.Parents[node] {
			path = append(path, set.Frames[set.Places[node]].Function)
		}
		if got := strings.Join(path, " "); got != "+0x1a2b3c _conv_forward _call_impl forward train main" {
			t.Errorf("largest stack: %s", got)
		}
	}
}

// TestSparsePhases: a table that counts a part of the steps says so.
func TestSparsePhases(t *testing.T) {
	run := leakRun()
	if note := table(t, Analyze(run, Options{}), "phases").Note; strings.Contains(note, "were observed in full") {
		t.Errorf("all steps were observed: %s", note)
	}
	total := run.Totals[1]
	total.Steps = 12345
	run.Totals[1] = total
	for _, name := range []string{"phases", "modules"} {
		if note := table(t, Analyze(run, Options{}), name).Note; !strings.Contains(note, "276 of the 12,345 steps were observed") || !strings.Contains(note, "steps are short") {
			t.Errorf("%s: %s", name, note)
		}
	}
	for i := range run.Steps {
		run.Steps[i].Duration = 35e8
	}
	if note := table(t, Analyze(run, Options{}), "phases").Note; !strings.Contains(note, "276 of the 12,345") || strings.Contains(note, "short") {
		t.Errorf("of steps of 3.5 s: %s", note)
	}
}

func table(t *testing.T, r *report.Report, name string) *report.Table {
	t.Helper()
	for i := range r.Tables {
		if r.Tables[i].Name == name {
			return &r.Tables[i]
		}
	}
	t.Fatalf("no table %s", name)
	return nil
}

// TestStacksAtTheEnd: what was held before the interpreter freed all, and what was freed before, import machinery
// left out.
func TestStacksAtTheEnd(t *testing.T) {
	for _, test := range []struct {
		name  string
		bye   mem.Optional
		title string
		end   map[string]mem.Bytes
		freed map[string]mem.Bytes
	}{
		{"ended in good order", mem.Some(int64(35)), "bytes held at the last reading before the program ended",
			map[string]mem.Bytes{"keep": 40}, map[string]mem.Bytes{"work": 900}},
		{"killed", mem.Optional{}, "bytes held at the last reading", map[string]mem.Bytes{},
			map[string]mem.Bytes{"keep": 40, "work": 900}},
		{"ended before the first reading", mem.Some(int64(5)), "", nil, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			run := mem.NewRun()
			work := mem.Location{File: "train.py", Line: 9, Function: "<module>"}
			frames := []mem.Frame{mem.Process{ID: 1, PID: 7, Start: 1, Bye: test.bye, End: mem.Some(int64(45))}}
			for id, name := range []string{"keep", "work"} {
				frames = append(frames, mem.StackDef{ID: uint32(id + 1),
					Locations: []mem.Location{{File: "data.py", Line: id + 1, Function: name},
						{File: "<frozen importlib._bootstrap>", Line: 241, Function: "_call_with_frames_removed"}, work}})
			}
			at := func(time int64, peak bool, keep, worked, allocated mem.Bytes) {
				frames = append(frames, mem.HeapUse{Process: 1, Time: time, Live: keep + worked, Peak: peak, Sites: []mem.SiteUse{
					{Stack: 1, Live: keep, Allocated: 40}, {Stack: 2, Live: worked, Allocated: allocated}}})
			}
			at(10, false, 20, 0, 0)
			at(20, true, 40, 100, 500)
			at(30, false, 40, 0, 900)
			at(40, false, 0, 0, 900)
			for _, f := range frames {
				if err := run.Add(f); err != nil {
					t.Fatal(err)
				}
			}
			set := Analyze(run, Options{}).Stacks[0]
			end, freed := map[string]mem.Bytes{}, map[string]mem.Bytes{}
			for _, use := range set.Stacks {
				name := set.Frames[set.Places[use.Node]].Function
				if use.End > 0 {
					end[name] = use.End
				}
				if use.Churn > 0 {
					freed[name] = use.Churn
				}
			}
			if test.title == "" {
				if len(set.Measures) != 1 || set.Total != 140 {
					t.Errorf("figures of an end that was not read: %v", set.Measures)
				}
				return
			}
			if set.Measures[1].Title != test.title || !maps.Equal(end, test.end) || !maps.Equal(freed, test.freed) {
				t.Errorf("%q: at the end %v, freed %v", set.Measures[1].Title, end, freed)
			}
			for _, f := range set.Frames {
				if strings.Contains(f.File, "importlib") {
					t.Errorf("a frame of importing: %v", f.Location)
				}
			}
		})
	}
}
