package report

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// example is a run and a device of a snapshot in one report, with what a stranger could have put into their names.
func example() *Report {
	r := New()
	r.Run = mem.RunInfo{Command: []string{"python", "train.py", "--name=\x1b[31mred|<b>"}, Verb: "run",
		Label: mem.Measured}
	r.Headline = Headline{Duration: 4_000_000_000, Steps: 8, StepTime: mem.Some(500_000_000), ExitCode: mem.Some(1),
		Complete: true, MainSource: mem.SeriesTreeRSS, Clauses: []string{}}
	r.Headline.Say("Peak 1.50 GiB RSS (measured) in backward of step 3", "", "grows 64.0 MiB per step")
	r.Findings = []Finding{{Kind: KindLeak, Severity: Warning, Title: "a leak", Text: "`losses` keeps a_b|c.",
		Advice: "Keep the number.", File: "/home/me/train.py", Line: 61,
		BytesPerStep: mem.Some(64 << 20), Error: mem.Some(1 << 20), Label: mem.Sampled}}
	r.Series = []Series{{Name: mem.SeriesTreeRSS, Title: "RSS, all processes", Unit: mem.UnitBytes,
		XUnit: mem.UnitNanoseconds, Label: mem.Measured,
		X: []int64{0, 1e9, 2e9, 3e9, 4e9}, Y: []int64{0, 1 << 30, 3 << 29, 1 << 30, 1 << 30}}}
	r.Phases = []PhaseBar{{Phase: mem.PhaseForward, Start: 0, End: 2e9},
		{Phase: mem.PhaseBackward, Start: 2e9, End: 4e9}, {Phase: mem.PhaseModule, Start: 0, End: 4e9}}
	t := Table{Name: "sites", Title: "Lines", Note: "Estimates.",
		Columns: []Column{TextColumn("line", "line"), BytesColumn("bytes", "bytes", mem.Sampled),
			TextColumn("phase", "phase"), CountColumn("samples", "samples"), TextColumn("kind", "")}}
	t.Add("train.py:61", mem.Bytes(3<<29), mem.PhaseNone, uint64(7), "for programs")
	t.Add("a|b.py:1", mem.Optional{})
	r.AddTable(t)
	r.AddTable(Table{Name: "empty", Title: "Nothing", Columns: []Column{TextColumn("line", "line")}})
	r.AddNote("A note with \x07a bell.")
	return r
}

// device is one of a snapshot: a segment of four blocks, of which half are in use.
func device() *Allocator {
	return &Allocator{Device: 0, File: "/tmp/a.pickle", Name: "device 0", Title: "device 0", Events: 5, Last: 4,
		Label: mem.Measured, By: "site",
		Peak: TracePeak{Event: 3, Allocated: 3 << 20}, At: TracePeak{Event: 3, Allocated: 3 << 20},
		Curve: []CurvePoint{{Event: -1}, {Event: 1, Allocated: 1 << 20}, {Event: 3, Allocated: 3 << 20},
			{Event: 4, Allocated: 1 << 20}},
		Steps: &usage.Steps{Source: "inferred", Steps: []usage.Stretch{{From: 0, To: 4}},
			Phases: []usage.Phase{{Phase: mem.PhaseOptimizer, Stretch: usage.Stretch{From: 0, To: 4}}}},
		Blame: []Blame{{Name: "train.py:61", Bytes: 3 << 20, Blocks: 2}},
		Map: []SegmentMap{{Size: 4 << 20, Active: 2 << 20, Blocks: []MapBlock{{1 << 20, 1, 0, 0}, {1 << 20, 0, -1, -1},
			{1 << 20, 1, 0, 0}, {1 << 20, 0, -1, -1}}}}}
}

// TestText: what a terminal gets is in order, within its width, and never an escape sequence that is not ours.
func TestText(t *testing.T) {
	r := example()
	r.Allocators = []*Allocator{device()}
	text := r.Text(TextOptions{Width: 80})
	at := 0
	for _, want := range []string{"hightide  python train.py", "4 s · 8 steps of 500 ms · exit code 1",
		"Peak 1.50 GiB RSS", "Findings", "● train.py:61  leak  64.0 MiB per step ± 1.00 MiB (sampled)",
		"→ Keep the number.", "RSS, all processes over time (measured)", "1.50 GiB │", "└ffff", "f forward  b backward\n",
		"Allocated on device 0, event by event (measured)", "3.00 MiB │",
		"o optimizer  (inferred)", "event 0", "Segments of device 0 at the peak", "Lines (sampled)",
		"train.py:61  1.50 GiB", "Notes", "A note with a bell."} {
		found := strings.Index(text[at:], want)
		if found < 0 {
			t.Fatalf("%q does not follow in\n%s", want, text)
		}
		at += found
	}
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %q", n, line)
		}
	}
	for _, no := range []string{"\x1b", "\x07", "Nothing", "samples", "for programs"} {
		if strings.Contains(text, no) {
			t.Errorf("%q is in\n%s", no, text)
		}
	}
	if colour := r.Text(TextOptions{Color: true}); !strings.Contains(colour, "\x1b[33;1m") || strings.Contains(colour, "\x1b[31mred") {
		t.Errorf("colours: %q", colour)
	}
	for _, c := range r.Text(TextOptions{ASCII: true}) {
		if c > 126 {
			t.Errorf("%q is beyond ASCII", c)
		}
	}
	if brief := r.Text(TextOptions{Brief: true}); strings.Contains(brief, "Lines") || strings.Contains(brief, "Notes") {
		t.Errorf("brief is\n%s", brief)
	}
}

// TestPanels: curves have one scale, what is reserved around one is shaded, and one that ends early says so.
// TestLineThatAsked: what another line asked for does not stand beside the one that held the most.
func TestLineThatAsked(t *testing.T) {
	f := Finding{Kind: KindOOM, Severity: Critical, Label: "measured", File: "/home/me/train.py", Line: 35,
		SiteFile: "/home/me/train.py", SiteLine: 41, Bytes: mem.Some(16 << 30), Text: "Text."}
	head := func() string {
		text := (&Report{Part: Part{Findings: []Finding{f}}}).Text(TextOptions{Width: 95})
		_, rest, _ := strings.Cut(text, "■ ")
		line, _, _ := strings.Cut(rest, "\n")
		return strings.Join(strings.Fields(line), " ")
	}
	if got := head(); got != "train.py:35 oom" {
		t.Error(got)
	}
	f.SiteLine = 35
	if got := head(); got != "train.py:35 oom 16.0 GiB (measured)" {
		t.Error(got)
	}
}

func TestPanels(t *testing.T) {
	text := Panels(TextOptions{Width: 60}, Panel{Title: "as recorded", Label: mem.Measured,
		Used: []int64{6 << 20, 6 << 20, 0, 0}, Reserved: []int64{6 << 20, 6 << 20, 6 << 20, 6 << 20}, Parts: 4},
		Panel{Title: "smaller", Label: mem.Replayed, Used: []int64{1 << 20}, Reserved: []int64{2 << 20}, Parts: 2},
		Panel{Title: "none", Label: mem.Replayed, Parts: 2})
	for _, want := range []string{"as recorded (measured; ░: reserved, not allocated)\n  6.00 MiB │████", "█░░",
		"smaller, until memory ran out (replayed", "none, until"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if n := strings.Count(text, "6.00 MiB │"); n != 3 {
		t.Errorf("%d of 3 panels have the one scale:\n%s", n, text)
	}
	if ascii := Panels(TextOptions{ASCII: true}, Panel{Title: "a", Used: []int64{0, 0}, Reserved: []int64{8, 8},
		Parts: 2}); !strings.Contains(ascii, "|....") {
		t.Errorf("in ASCII:\n%s", ascii)
	}
}

// TestMarkdown: the same facts as in a terminal, and nothing that a comment would take for its own markup.
func TestMarkdown(t *testing.T) {
	text := example().Markdown()
	for _, want := range []string{"**Peak 1.50 GiB RSS (measured) in backward of step 3; grows 64.0 MiB per step.**",
		"4 s · 8 steps of 500 ms · exit code 1", "- **warning** `train.py:61` (leak)",
		"`losses` keeps a\\_b\\|c.", "&lt;b&gt;", "| line | bytes (sampled) | samples |", "| a\\|b.py:1 |  |  |"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(text, "for programs") {
		t.Errorf("what is not for people is in\n%s", text)
	}
}

// TestAbsentIsNotZero: cells that were not given, not observed or empty are null, a zero is a zero, and a column
// without any cell goes.
func TestAbsentIsNotZero(t *testing.T) {
	var r Report
	table := Table{Name: "t", Columns: []Column{TextColumn("a", "a"), TextColumn("b", "b"), CountColumn("c", "c")}}
	table.Add("x", "", mem.Some(0))
	table.Add(mem.Label("y"), nil)
	r.AddTable(table)
	text, err := json.Marshal(r.Tables[0])
	if want := `"rows":[["x",0],["y",null]]`; err != nil || !strings.Contains(string(text), want) {
		t.Errorf("%s, want %s: %v", text, want, err)
	}
}

// TestPageHoldsWhatItDraws: maps and flame graphs go into the page, lists that only tables show do not; the report
// keeps all.
func TestPageHoldsWhatItDraws(t *testing.T) {
	r := example()
	r.Allocators = []*Allocator{device()}
	page := r.ForPage()
	if a := page.Allocators[0]; a.Blame != nil || a.Curve != nil || len(a.Map) != 1 || len(a.Map[0].Blocks) != 4 ||
		a.Title != "device 0" {
		t.Errorf("the page has %+v", a)
	}
	if a := r.Allocators[0]; a.Blame == nil || a.Curve == nil {
		t.Error("the report lost what its page does not draw")
	}
	joined := JoinedMap(r.Allocators[0].Map, 2)
	if blocks := joined[0].Blocks; len(blocks) > 3 || len(r.Allocators[0].Map[0].Blocks) != 4 {
		t.Errorf("joined blocks are %v", blocks)
	}
}

// TestNoWorkingStateIsPublic: a report is what its JSON says; nothing in it is only for whoever made it.
func TestNoWorkingStateIsPublic(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file.Name())
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file.Name(), ".go") && !strings.HasSuffix(file.Name(), "_test.go") &&
			strings.Contains(string(text), `json:"-"`) {
			t.Errorf("%s hides a field from JSON by `json:\"-\"`: keep what only the maker needs in the maker", file.Name())
		}
	}
}

// TestExplainJSONLeads: the fields at the top are of the device that the headline is of, also where more host memory
// is pinned than the device holds. And an empty list of findings says from how much on growth was looked for.
func TestExplainJSONLeads(t *testing.T) {
	r := New()
	r.Headline.Looked = "Looked for as growth: all."
	for device, held := range map[int]mem.Bytes{0: 5, 1: 7, mem.HostDevice: 100} {
		r.Allocators = append(r.Allocators, &Allocator{Device: device, Peak: TracePeak{Allocated: held}})
	}
	text, err := r.ExplainJSON()
	if err != nil || !strings.HasPrefix(string(text), `{"version":2,"device":1,`) ||
		!strings.Contains(string(text), `"looked_for":"Looked for`) {
		t.Errorf("%s, %v", text, err)
	}
}
