package main

import (
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// toySession has an installed agent with one file and one line more: the adapter of a toy framework.
type toySession struct {
	*session
	cache string
}

func newToySession(t *testing.T) *toySession {
	s := &toySession{newSession(t), filepath.Join(t.TempDir(), "cache")}
	for _, name := range []string{"toy.py", "train.py"} {
		write(t, s.dir, name, readFile(t, filepath.Join("testdata", "adapter", name)))
	}
	s.hightide("run", "-q", "--", "true") // puts the agent into the cache
	lists, err := filepath.Glob(filepath.Join(s.cache, "hightide", "helpers", "*", "agent", "hightide_agent", "adapters",
		"__init__.py"))
	if err != nil || len(lists) != 1 {
		t.Fatalf("the agent is in %q, %v; want one place", lists, err)
	}
	write(t, filepath.Dir(lists[0]), "toy.py", readFile(t, filepath.Join("testdata", "adapter", "adapter.py")))
	list := readFile(t, lists[0])
	before, after, found := strings.Cut(list, "    \"torch\": \"torch\",\n")
	if !found {
		t.Fatalf("no list of adapters in %s", list)
	}
	// As long as the line that it takes the place of: files of another size are not hightide's, and unpacked anew.
	write(t, filepath.Dir(lists[0]), "__init__.py", before+"    \"toy\": \"toy\",    \n"+after)
	return s
}

// hightide runs a command to its end, whatever its exit code, and returns what it wrote.
func (s *toySession) hightide(args ...string) string {
	s.t.Helper()
	c := s.command(args...)
	c.Env = append(c.Env, "XDG_CACHE_HOME="+s.cache)
	out, err := c.CombinedOutput()
	if c.ProcessState == nil {
		s.t.Fatal(err)
	}
	return string(out)
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestToyFramework: every analysis, picture and table shows a framework that one file and one line brought. The
// program leaks until its device is full.
func TestToyFramework(t *testing.T) {
	t.Parallel()
	s := newToySession(t)
	out := s.hightide("run", "--alert", "allocated > 8GiB", "--", pythonPath(t), "train.py")
	run := s.last()
	steps := run.Totals[1].Steps
	if steps < 150 || run.Process(1).Frameworks["toy"] != "1.0" {
		t.Fatalf("%d steps, frameworks %v: %s", steps, run.Process(1).Frameworks, out)
	}
	for _, q := range []mem.Quantity{mem.SeriesAllocated, mem.SeriesReserved, mem.SeriesInactiveSplit} {
		if c := run.Find(1, q); c == nil || c.Framework != "toy" || c.Device != "toy:0" || c.Unit != mem.UnitBytes ||
			len(c.Values) < 10 {
			t.Errorf("series %s: %+v", q, c)
		}
	}
	var r report.Report
	if err := json.Unmarshal([]byte(s.hightide("report", "last", "--json")), &r); err != nil {
		t.Fatal(err)
	}
	checkToyHeadline(t, &r, steps)
	checkToyFindings(t, &r)
	checkToyTables(t, &r)
	checkToyPicture(t, &r)
	checkToyTexts(t, s, out)
}

const toyLeak = 256 << 20 // bytes a step that train.py keeps

// nearly says whether a growth is within a fiftieth of the truth, although most samples fall within steps, which give
// back nine times of what they keep.
func nearly(got mem.Optional, want int64) bool {
	v, ok := got.Get()
	return ok && max(v-want, want-v) <= want/50
}

func checkToyHeadline(t *testing.T, r *report.Report, steps uint64) {
	t.Helper()
	h := r.Headline
	if h.MainSource != mem.SeriesReserved || h.Steps != steps ||
		!strings.Contains(h.Verdict, "reserved on the device") ||
		!strings.Contains(h.Verdict, "Out of memory: toy could not get") {
		t.Errorf("headline %+v", h)
	}
	// no step is known of a peak behind the last one
	if p := h.Peak; p.Allocated.Or(0) < 40<<30 || p.Allocated.Or(0) > 48<<30 || p.Reserved.Or(0) < p.Allocated.Or(0) ||
		p.Process != 1 || p.Step.Or(100) < 100 {
		t.Errorf("peak %+v", h.Peak)
	}
	if !nearly(h.Growth, toyLeak) {
		t.Errorf("it grows by %d a step, want %d", h.Growth.Or(0), toyLeak)
	}
}

func checkToyFindings(t *testing.T, r *report.Report) {
	t.Helper()
	line := lineOf(readFile(t, filepath.Join("testdata", "adapter", "train.py")), "# LEAK")
	found := map[string]report.Finding{}
	for _, f := range r.Findings {
		found[f.Kind] = f
	}
	if f := found["leak"]; filepath.Base(f.File) != "train.py" || f.Line != line || !nearly(f.BytesPerStep, toyLeak) {
		t.Errorf("leak %+v: want train.py:%d", f, line)
	}
	if f := found["oom"]; f.Bytes.Or(0) < 256<<20 || !strings.Contains(f.Text, "toy:0 has no") ||
		strings.Contains(f.Text, "step 0") {
		t.Errorf("oom %+v", f)
	}
	if f := found["fragmentation"]; f.Bytes.Or(0) < 8<<30 || !strings.Contains(f.Title, "toy:0") || f.Advice != "" {
		t.Errorf("fragmentation %+v", f)
	}
	if f := found["alert"]; f.Bytes.Or(0) < 8<<30 {
		t.Errorf("alert %+v", f)
	}
}

// rows are a table's by the text of their first cell, each by the names of the columns.
func rows(r *report.Report, table string) map[string]map[string]any {
	all := map[string]map[string]any{}
	for _, t := range r.Tables {
		if t.Name != table {
			continue
		}
		for _, cells := range t.Rows {
			row := map[string]any{}
			for i, c := range t.Columns {
				row[c.Name] = cells[i]
			}
			first, _ := cells[0].(string)
			all[first] = row
		}
	}
	return all
}

func checkToyTables(t *testing.T, r *report.Report) {
	t.Helper()
	at := func(table, row, column string) float64 {
		v, _ := rows(r, table)[row][column].(float64)
		return v
	}
	for _, phase := range []string{"step", "data", "forward", "backward", "optimizer"} {
		if at("phases", phase, "count") < 8 || at("phases", phase, "device_peak") < 1<<30 {
			t.Errorf("phase %s: %v", phase, rows(r, "phases")[phase])
		}
	}
	for module, bytes := range map[string]float64{"encoder": 1 << 30, "head": 1 << 28} {
		if at("modules", module, "parameters") != bytes || at("modules", module, "device_peak") < 1<<30 {
			t.Errorf("module %s: %v", module, rows(r, "modules")[module])
		}
	}
	if d := rows(r, "devices")["toy:0"]; d["framework"] != "toy" || at("devices", "toy:0", "allocated") < 40<<30 ||
		at("devices", "toy:0", "reserved") < at("devices", "toy:0", "allocated") ||
		at("devices", "toy:0", "inactive") < 8<<30 {
		t.Errorf("device %v", d)
	}
	if at("processes", "main", "allocated") < 40<<30 {
		t.Errorf("process %v", rows(r, "processes")["main"])
	}
}

func checkToyPicture(t *testing.T, r *report.Report) {
	t.Helper()
	titles := map[string]bool{}
	for i := range r.Series {
		titles[r.Series[i].FullTitle()] = r.Series[i].Framework == "toy"
	}
	for _, title := range []string{"allocated, main on toy:0 (toy)", "reserved, main on toy:0 (toy)",
		"unusable gaps, main on toy:0 (toy)"} {
		if !titles[title] {
			t.Errorf("no curve %q in %v", title, titles)
		}
	}
	for _, phase := range []mem.Phase{"data", "forward", "backward", "optimizer"} {
		if !slices.ContainsFunc(r.Phases, func(b report.PhaseBar) bool { return b.Phase == phase }) {
			t.Errorf("no bar of %s", phase)
		}
	}
	if !slices.ContainsFunc(r.Steps, func(p report.StepPoint) bool { return p.Device.Or(0) > 1<<30 }) {
		t.Error("no step says what the device held")
	}
	for _, kind := range []string{"oom", "alert", "peak"} {
		if !slices.ContainsFunc(r.Marks, func(m report.Mark) bool { return m.Kind == kind }) {
			t.Errorf("no mark of %s", kind)
		}
	}
}

// checkToyTexts: what a person reads has it, too, and so has what other programs read.
func checkToyTexts(t *testing.T, s *toySession, out string) {
	t.Helper()
	page := filepath.Join(s.dir, "page.html")
	s.hightide("report", "last", "--html", page)
	for what, test := range map[string]struct{ text, want string }{
		"summary":  {out, "reserved on the device"},
		"terminal": {s.hightide("show", "last"), "toy:0   main     toy"},
		"markdown": {s.hightide("report", "last", "--markdown"), "toy could not get"},
		"page":     {pageData(t, page), `"framework":"toy"`},
		"list":     {s.hightide("ls", "--json"), `"peak_allocated_bytes": `},
		"samples": {s.hightide("export", "last", "--csv", "--table", "samples"),
			",toy:0,toy,allocator.allocated,bytes,measured,"},
	} {
		if !strings.Contains(test.text, test.want) {
			t.Errorf("%s: no %q in %.2000s", what, test.want, test.text)
		}
	}
}

// pageData is the report that a page holds.
func pageData(t *testing.T, page string) string {
	t.Helper()
	_, data, _ := strings.Cut(readFile(t, page), `id="hightide-report">`)
	data, _, _ = strings.Cut(data, "<")
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(data)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDocumentedAdapter: the page that says how to write an adapter shows the one that is tested.
func TestDocumentedAdapter(t *testing.T) {
	page := readFile(t, filepath.Join("..", "..", "docs", "adapters.md"))
	for _, name := range []string{"adapter.py", "toy.py", "train.py"} {
		if !strings.Contains(page, "```python\n"+readFile(t, filepath.Join("testdata", "adapter", name))+"```") {
			t.Errorf("docs/adapters.md does not show testdata/adapter/%s as it is", name)
		}
	}
}
