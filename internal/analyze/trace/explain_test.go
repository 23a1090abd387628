package trace

import (
	"encoding/json"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/testkit"
	"hightide/internal/usage"
)

var update = flag.Bool("update", false, "write the golden files anew")

func explained(t testing.TB, s *mem.AllocatorSnapshot, o Options) *explanation {
	t.Helper()
	a, err := explainDevice(s, 0, "a.pickle", nil, &o)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// reported is the report of one file.
func reported(t testing.TB, s *mem.AllocatorSnapshot, file string, o Options) *report.Report {
	t.Helper()
	x := Explaining{Report: report.New(), Options: o}
	if err := x.Add(File{AllocatorSnapshot: s, Name: file}); err != nil {
		t.Fatal(err)
	}
	if err := x.Finish(); err != nil {
		t.Fatal(err)
	}
	return x.Report
}

// TestExplainedRun: what two snapshots of one process tell is told once, and where a trace shows a leak nobody says
// that none was looked for.
func TestExplainedRun(t *testing.T) {
	x := Explaining{Report: report.New(), Options: Options{Several: true}}
	x.Report.Headline.Say("Does not fit")
	x.Report.Headline.Peak.Allocated = mem.Some(1)
	x.Report.Headline.NotLooked = "Leaks were not looked for: too few steps were imagined to tell a growth from a warm-up."
	for name, process := range map[string]uint32{"oom-1-rank0-4711.pickle": 1, "exit-rank0-4711.pickle": 1,
		"exit-rank1-4712.pickle": 2} {
		if err := x.Add(File{testkit.Snapshot(t, "imagined/leak-a10.pickle"), name, nil, process}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Finish(); err != nil {
		t.Fatal(err)
	}
	leaks := 0
	for _, f := range x.Report.Findings {
		if f.Kind == report.KindLeak {
			leaks++
		}
	}
	if leaks != 2 {
		t.Errorf("%d findings of a leak that two processes have", leaks)
	}
	if said := x.Report.Headline.NotLooked; !strings.HasPrefix(said,
		"Outside the traces of devices, leaks were not looked for: too few steps") {
		t.Errorf("%q", said)
	}
}

var realFiles = []string{"h100-lm-ctx128-train-step.pickle", "h100-lm-ctx256-forward-bf16.pickle"}

// TestExplainGolden is the report of two files as the page gets it; web/test draws it.
func TestExplainGolden(t *testing.T) {
	x := Explaining{Report: report.New(), Options: Options{Pictures: true, Columns: 120, Several: true}}
	for _, name := range []string{"leak-a10.pickle", "oom-a10-pieces.pickle"} {
		if err := x.Add(File{AllocatorSnapshot: testkit.Snapshot(t, "imagined/"+name), Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := x.Finish(); err != nil {
		t.Fatal(err)
	}
	r := x.Report
	r.Run.Name = "leak-a10.pickle oom-a10-pieces.pickle"
	text, err := json.Marshal(r.ForPage())
	if err != nil {
		t.Fatal(err)
	}
	testkit.Golden(t, "runs/explain.report.json", string(text)+"\n", *update)
	testkit.Golden(t, "runs/explain.txt", r.Text(report.TextOptions{Width: 100}), *update)
}

func TestStepsAndTheirLeakAreInferred(t *testing.T) {
	a := explained(t, testkit.Snapshot(t, "imagined/leak-a10.pickle"), Options{})
	if a.Steps == nil || a.Steps.Source != "inferred" || len(a.Steps.Steps) != 8 {
		t.Fatalf("steps %+v, want 8", a.Steps)
	}
	if len(a.Growth) != 1 || a.Growth[0].Name != "leak-a10.py:15" || a.Growth[0].PerStep != 128*mem.KiB ||
		a.Growth[0].Confidence < 0.9 {
		t.Errorf("growth %+v, want 128 KiB a step at line 15", a.Growth)
	}
	// Layers and tensors of one step repeat as well, and are not steps.
	for _, name := range realFiles {
		a := explained(t, testkit.Snapshot(t, "real/"+name), Options{})
		if len(a.Steps.Steps) != 0 || len(a.Growth) != 0 {
			t.Errorf("%s: %d steps and %d that grow in one step", name, len(a.Steps.Steps), len(a.Growth))
		}
		var seen []string
		for _, p := range a.Steps.Phases {
			seen = append(seen, string(p.Phase))
		}
		if got := strings.Join(seen, " "); got != "forward backward optimizer" && got != "forward" {
			t.Errorf("%s: phases %s", name, got)
		}
	}
}

// Reserved memory is divided up without a rest, and what empty_cache would return is what lies in segments
// without a block, counted anew.
func TestReservedMemoryAddsUp(t *testing.T) {
	for _, name := range realFiles {
		s := testkit.Snapshot(t, "real/"+name)
		for _, at := range []string{"peak", "end", "event 0", "event 3000"} {
			a := explained(t, s, Options{At: at})
			f := a.Fragmentation
			if sum := mem.Bytes(f.Requested.Or(0)+f.Rounding.Or(0)) + f.Waiting + f.Releasable + f.Pooled + f.Stuck; sum != f.Reserved {
				t.Errorf("%s at %s: parts have %d bytes of %d", name, at, sum, f.Reserved)
			}
			var empty, mapped, split, classes mem.Bytes
			for _, m := range a.Map {
				var sum mem.Bytes
				for _, b := range m.Blocks {
					sum += mem.Bytes(b[0])
					if b[1] == 0 && len(m.Blocks) > 1 {
						split += mem.Bytes(b[0])
					}
				}
				if sum != m.Size {
					t.Fatalf("%s at %s: blocks of a segment have %d bytes of %d", name, at, sum, m.Size)
				}
				if mapped += m.Size; m.Active == 0 {
					empty += m.Size
				}
			}
			for _, c := range f.Classes {
				classes += c.Bytes
			}
			if empty != f.Releasable || mapped != f.Reserved || split != f.InactiveSplit || classes != split {
				t.Errorf("%s at %s: empty %d of %d, reserved %d of %d, split %d of %d in classes of %d", name, at, f.Releasable,
					empty, f.Reserved, mapped, f.InactiveSplit, split, classes)
			}
			if at == "end" && (empty != f.EmptyCache.End || mem.Some(int64(f.InactiveSplit)) != a.InactiveSplit) {
				t.Errorf("%s: at the end %d would be returned, want %d", name, f.EmptyCache.End, empty)
			}
		}
	}
}

func TestTimelineAddsUpToWhatWasAllocated(t *testing.T) {
	for _, name := range realFiles {
		s := testkit.Snapshot(t, "real/"+name)
		d := usage.FromTrace(s, 0, usage.Whole)
		line := explained(t, s, Options{Pictures: true, Columns: 50}).Timeline
		top := mem.Bytes(0)
		for i, event := range line.Events {
			want := d.LevelsAt(event).Allocated
			top = max(top, want)
			for by, bands := range map[string][]usage.Band{"category": line.Category, "site": line.Site} {
				var sum mem.Bytes
				for _, band := range bands {
					sum += band.Bytes[i]
				}
				if sum != want {
					t.Fatalf("%s event %d by %s: %d bytes, want %d", name, event, by, sum, want)
				}
			}
		}
		if top != d.PeakLevels.Allocated {
			t.Errorf("%s: the highest column has %d, the peak %d", name, top, d.PeakLevels.Allocated)
		}
	}
}

func TestFlameMeasures(t *testing.T) {
	s := testkit.Snapshot(t, "real/"+realFiles[0])
	a := explained(t, s, Options{Flame: "bytes"})
	allocations := int64(0)
	for _, action := range s.Traces[0].Action {
		if action == mem.ActionAlloc {
			allocations++
		}
	}
	for _, measure := range a.tree.Set.Measures {
		sum := measure.Rest
		for _, use := range a.tree.Set.Stacks {
			sum += use.Measure(measure.Name)
		}
		if sum != measure.Total {
			t.Errorf("%s: stacks have %d of %d", measure.Name, sum, measure.Total)
		}
	}
	if got := a.tree.Set.Measures[2].Total; got != allocations || a.tree.Set.Measures[0].Total != int64(a.Peak.Allocated) {
		t.Errorf("%d allocations, want %d; %d bytes, want %d", got, allocations, a.tree.Set.Measures[0].Total,
			a.Peak.Allocated)
	}
	for _, measure := range report.Flames {
		if table := a.flameTable(measure); len(table.Rows) < 5 || table.Rows[0][2] != report.Cell(int64(1000)) {
			t.Errorf("%s: %v", measure, table.Rows)
		}
	}
}

// A joined map has the same segments and as many bytes, and fewer blocks.
func TestPageIsLight(t *testing.T) {
	r := reported(t, testkit.Snapshot(t, "real/"+realFiles[0]), "a", Options{Pictures: true})
	joined := report.JoinedMap(r.Allocators[0].Map, 500)
	blocks := 0
	for i, m := range joined {
		var sum mem.Bytes
		for _, b := range m.Blocks {
			sum += mem.Bytes(b[0])
		}
		if blocks += len(m.Blocks); sum != r.Allocators[0].Map[i].Size {
			t.Fatalf("segment %d: %d bytes of %d", i, sum, m.Size)
		}
	}
	text, err := json.Marshal(r.ForPage())
	if err != nil || len(text) > 700_000 || blocks > 1500 {
		t.Errorf("%d bytes, %d blocks: %v", len(text), blocks, err)
	}
}

// Rounding follows the settings of the file.
func TestRoundingToPartsOfPowersOfTwo(t *testing.T) {
	s := &mem.AllocatorSnapshot{Settings: map[string]string{"PYTORCH_CUDA_ALLOC_CONF": "roundup_power2_divisions:4"},
		Segments: []mem.Segment{{Address: 1 << 30, Size: 20 * mem.MiB, Large: true, Blocks: []mem.Block{
			{Address: 1 << 30, Size: 5 * mem.MiB, Requested: 4*mem.MiB + 512, State: mem.BlockAllocated},
			{Address: 1<<30 + 5<<20, Size: 15 * mem.MiB}}}},
		Traces: []mem.Trace{{Action: []mem.Action{mem.ActionSegmentAlloc, mem.ActionAlloc},
			Address: []uint64{1 << 30, 1 << 30}, Size: []mem.Bytes{20 * mem.MiB, 4*mem.MiB + 512},
			Stream: []uint64{0, 0}, Stack: []uint32{0, 0}, Time: []int64{1, 2}}}}
	a := explained(t, s, Options{})
	if a.Peak.Allocated != 5*mem.MiB || a.Fragmentation.Rounding != mem.Some(int64(mem.MiB-512)) ||
		a.Unplaced+a.Strange != 0 {
		t.Errorf("%+v %+v", a.Peak, a.Fragmentation)
	}
}

// TestFramesOfTheInterpreterAreNoLinesOfTheProgram: PyTorch 2.15 writes the place in a library as a line, earlier
// ones that of its source.
func TestFramesOfTheInterpreterAreNoLinesOfTheProgram(t *testing.T) {
	for _, version := range []string{"2.6", "2.9", "2.15"} {
		a := explained(t, testkit.Snapshot(t, "imagined/every-field-"+version+".pickle"), Options{})
		if a.Blame[0].Name != "every-field.py:35" || a.Blame[0].Bytes != 20*mem.MiB {
			t.Errorf("torch %s: %v by %q, want 20 MiB by the line of the pool", version, a.Blame[0].Bytes, a.Blame[0].Name)
		}
		for _, b := range a.Blame {
			if strings.Contains(b.Name, ".c:") || strings.Contains(b.Name, ".so") || strings.Contains(b.Name, "clone3") {
				t.Errorf("torch %s: %q is a site", version, b.Name)
			}
		}
	}
}

// TestFilteredTablesSaySo, and the others do not.
func TestFilteredTablesSaySo(t *testing.T) {
	r := reported(t, testkit.Snapshot(t, "imagined/leak-a10.pickle"), "a.pickle",
		Options{Filter: regexp.MustCompile("leak"), Flame: "churn", Pictures: true})
	said := 0
	for _, table := range r.Tables {
		if strings.Contains(table.Title, `of what matches "leak"`) {
			said++
		}
	}
	// nothing lived throughout
	if said != len(filteredTables)-1 || !strings.Contains(r.Stacks[0].Title, `only what matches "leak"`) {
		t.Errorf("%d of %d tables say what is filtered, and the flame graph says %q", said, len(r.Tables), r.Stacks[0].Title)
	}
}

func TestNothingToExplainTakesNoTime(t *testing.T) {
	r := reported(t, &mem.AllocatorSnapshot{}, "a.pickle", Options{})
	for _, text := range []string{r.Text(report.TextOptions{}), r.Markdown()} {
		if strings.Contains(text, "0 ns") || !strings.Contains(text, "hold no device memory") {
			t.Errorf("a snapshot without memory reads\n%s", text)
		}
	}
}

// TestLongLivesAreGrouped: the 100 MiB weights of the model are one row, not the whole table.
func TestLongLivesAreGrouped(t *testing.T) {
	a := explained(t, testkit.Snapshot(t, "real/"+realFiles[0]), Options{})
	first := a.Longest[0]
	if first.Blocks != 96 || first.Bytes != 100*mem.MiB || first.Allocated != -1 || first.Freed != nil {
		t.Errorf("the longest lives are %+v, want 96 blocks of 100 MiB alive throughout", first)
	}
	for i := range a.Longest {
		for j := range i {
			if sameLife(&a.Longest[i], &a.Longest[j]) {
				t.Errorf("rows %d and %d are both %+v", j, i, a.Longest[i])
			}
		}
	}
	if len(a.Longest) != longLives {
		t.Errorf("%d rows, want %d", len(a.Longest), longLives)
	}
}

func TestBlameAddsUpToThePeak(t *testing.T) {
	for _, name := range []string{"h100-lm-ctx128-train-step.pickle", "h100-lm-ctx256-forward-bf16.pickle",
		"mosaic-synthetic.pickle"} {
		s := testkit.Snapshot(t, "real/"+name)
		for _, by := range Groupings {
			a, err := OfDevice(s, 0, name, Options{By: by})
			if err != nil {
				t.Fatal(err)
			}
			var sum mem.Bytes
			for _, g := range a.Blame {
				sum += g.Bytes
			}
			if sum != a.Peak.Allocated {
				t.Errorf("%s by %s: groups have %d bytes, the peak %d", name, by, sum, a.Peak.Allocated)
			}
			if by == "category" {
				for _, g := range a.Blame {
					t.Log(name, g.Name, g.Bytes, g.Blocks)
				}
			}
		}
	}
}

// TestKindsAreSummedBeforeOneIsLargest: optimizer state that two lines hold in equal parts is more than the
// parameters of one.
func TestKindsAreSummedBeforeOneIsLargest(t *testing.T) {
	for _, test := range []struct{ file, by, want string }{
		{realFiles[0], "site",
			"the largest part, 25.4 GiB in 582 blocks, is optimizer state: 12.7 GiB of it was allocated by `optimizers.py:82`"},
		{realFiles[1], "site",
			"the largest part, 13.6 GiB in 1,288 blocks, is activations: 8.35 GiB of it was allocated by `transformer.py:22`"},
		{realFiles[0], "category", "the largest part, 25.4 GiB in 582 blocks, is optimizer state"},
		{"../imagined/oom-a10-pieces.pickle", "site",
			"the largest part, 19.6 GiB in 26 blocks (mostly unknown), was allocated by `oom-a10-pieces.py:14`"},
	} {
		r := reported(t, testkit.Snapshot(t, "real/"+test.file), test.file, Options{By: test.by})
		if got := r.Headline.Verdict; !strings.Contains(got, test.want+".") {
			t.Errorf("%s by %s: %q, want %q and no more of it", test.file, test.by, got, test.want)
		}
	}
	two := []group{{Blame: report.Blame{Name: "a.py:1", Category: "parameters", Bytes: 3, Blocks: 1}},
		{Blame: report.Blame{Name: "b.py:1", Category: "gradients", Bytes: 2, Blocks: 1}},
		{Blame: report.Blame{Name: "b.py:2", Category: "gradients", Bytes: 2, Blocks: 1}}}
	if got := heldText(two, "site"); got != " The largest part was gradients, 4 B in 2 blocks: 2 B of it was held by b.py:1." {
		t.Error(got)
	}
	unknown := append(two, group{Blame: report.Blame{Name: "c.py:1", Category: usage.UnknownCategory, Bytes: 1, Blocks: 1}})
	if got := heldText(unknown, "site"); !strings.HasPrefix(got, " The largest part was gradients, at least 4 B in 2 blocks:") {
		t.Error(got)
	}
}

// TestWhatWasNotLookedForIsSaid: no growth is "none" only where steps or enough events let it be seen.
func TestWhatWasNotLookedForIsSaid(t *testing.T) {
	for name, want := range map[string]string{
		"imagined/leak-a10.pickle":              "",
		"imagined/oom-a10-pieces.pickle":        "179 events are too few",
		"real/h100-lm-ctx128-train-step.pickle": "within one step",
	} {
		r := reported(t, testkit.Snapshot(t, name), "x", Options{})
		if said := r.Headline.NotLooked; (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("%s: %q, want %q", name, said, want)
		}
	}
	s := testkit.Snapshot(t, "imagined/leak-a10.pickle")
	trace := s.Traces[0]
	for i := range trace.Size { // the 128 KiB of each step become a block of 512 B
		if f := s.Stacks.Frames(trace.Stack[i]); len(f) > 0 && f[0].File == "leak-a10.py" && f[0].Line == 15 {
			trace.Size[i] = 512
		}
	}
	small := reported(t, s, "x", Options{})
	if f := small.Findings; len(f) != 1 || f[0].BytesPerStep != mem.Some(512) || f[0].Severity != report.Info {
		t.Errorf("%+v", f)
	}
	none := reported(t, s, "x", Options{Filter: regexp.MustCompile(`leak-a10\.py:6`)})
	if said := none.Headline.Looked; len(none.Findings) != 0 || !strings.Contains(said, "64.0 KiB") || !strings.Contains(said, "what matches `leak") || !strings.Contains(strings.Join(strings.Fields(none.Text(report.TextOptions{})), " "), "fragmentation was found. "+said) {
		t.Errorf("%q, %+v", said, none.Findings)
	}
	s.Traces = nil
	r := reported(t, s, "x", Options{})
	if when := r.Tables[0].Rows[0][0]; !strings.Contains(r.Headline.NotLooked, "one state") ||
		fmt.Sprint(when) != "the one state recorded" {
		t.Errorf("%q, %v", r.Headline.NotLooked, when)
	}
	if r := reported(t, testkit.Snapshot(t, "imagined/leak-a10.pickle"), "x", Options{Brief: true}); !strings.Contains(r.Headline.NotLooked, "brief") {
		t.Errorf("%q", r.Headline.NotLooked)
	}
}

// TestPrivatePoolsAreNotFragments: what a captured graph's pool has cached lies there while the graph lives, beside
// blocks in use or not.
func TestPrivatePoolsAreNotFragments(t *testing.T) {
	s := &mem.AllocatorSnapshot{Versions: mem.Versions{First: mem.Version{Major: 2, Minor: 15}}}
	for i, pool := range []mem.PoolID{{1, 0}, {1, 0}, {}} {
		address := uint64(1<<40) + uint64(i)<<32
		g := mem.Segment{Address: address, Size: 200 * mem.MiB, Large: true, Pool: pool}
		used := mem.Bytes(i) * mem.MiB // the first has none
		if used > 0 {
			g.Blocks = append(g.Blocks, mem.Block{Address: address, Size: used, Requested: used, State: mem.BlockAllocated})
		}
		g.Blocks = append(g.Blocks, mem.Block{Address: address + uint64(used), Size: g.Size - used})
		s.Segments = append(s.Segments, g)
	}
	a := explained(t, s, Options{})
	f := a.Fragmentation
	if f.Pooled != 399*mem.MiB || f.Stuck != 198*mem.MiB || f.Releasable != 0 ||
		f.Reserved != mem.Bytes(f.Requested.Or(0)+f.Rounding.Or(0))+f.Waiting+f.Releasable+f.Pooled+f.Stuck ||
		len(a.Pins) != 1 {
		t.Errorf("%+v, pins %+v", f, a.Pins)
	}
}

// TestWithoutHistory: of a snapshot that was written without a memory history it is said how to record one; of one
// that has only the stacks of its state it is not.
func TestWithoutHistory(t *testing.T) {
	s := testkit.Snapshot(t, "imagined/leak-a10.pickle")
	s.Traces = nil
	for _, f := range reported(t, s, "x", Options{}).Findings {
		if f.Kind == report.KindGap {
			t.Errorf("its blocks have stacks: %+v", f)
		}
	}
	for i := range s.Segments {
		s.Segments[i].Stack = 0
		for j := range s.Segments[i].Blocks {
			s.Segments[i].Blocks[j].Stack = 0
		}
	}
	r := reported(t, s, "x", Options{})
	if len(r.Findings) != 1 || !strings.Contains(r.Findings[0].Advice,
		"torch.cuda.memory._record_memory_history(max_entries=100000)") ||
		!strings.Contains(r.Headline.Verdict, "no memory history was recorded") {
		t.Errorf("%s %+v", r.Headline.Verdict, r.Findings)
	}
	for _, blame := range r.Allocators[0].Blame {
		if blame.Name == usage.BeforeTrace {
			t.Errorf("there is no trace: %+v", blame)
		}
	}
}
