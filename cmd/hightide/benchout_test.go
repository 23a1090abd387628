package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hightide/internal/matrix"
)

// judged says what bench ends with, and all that it said.
func (s *session) judged(args ...string) (code int, said string) {
	out, err := s.command(append([]string{"bench", "m.yaml"}, args...)...).CombinedOutput()
	if status, ok := err.(*exec.ExitError); ok {
		code = status.ExitCode()
	} else if err != nil {
		s.t.Fatal(err)
	}
	return code, string(out)
}

// TestBenchAgainstBaseline: a matrix that was measured, beside results of which it is known how it stands, in every
// form that CI reads. It is measured once: the later commands find every trial in the journal.
func TestBenchAgainstBaseline(t *testing.T) {
	s := newSession(t)
	write(t, s.dir, "m.yaml",
		"axes: {batch: [1, 2]}\nrepeats: {least: 2, most: 2, figure: rss}\ncommand: sleep 0.4{batch}\n")
	if code, said := s.judged("--baseline", "none.json"); code != 3 || !strings.Contains(said, "none.json") {
		t.Errorf("a baseline that is not there: %d, %s", code, said)
	}
	if code, said := s.judged("--strict"); code != 2 || !strings.Contains(said, "--baseline") {
		t.Errorf("--strict alone: %d, %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "data", "matrices")); err == nil {
		t.Error("something was measured before that was said")
	}
	code, said := s.judged("--json=now.json", "--csv", "cells.csv", "--parquet", "trials.parquet", "--seed-csv",
		"seed.csv", "--seed-results", "results", "--quiet")
	if code != 0 {
		t.Fatalf("%d, %s", code, said)
	}
	if code, said := s.judged("--reports"); code != 2 || !strings.Contains(said, "--html") {
		t.Errorf("--reports alone: %d, %s", code, said)
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "seed.csv")); err != nil || !strings.HasPrefix(string(text),
		"framework,model_size,batch_size,mode,device,mean,max,min,std,median,count\n,,1,,,") {
		t.Errorf("%s, %v", text, err)
	}
	checkSeedResults(t, filepath.Join(s.dir, "results"))
	for _, test := range []struct {
		name  string
		times int64 // that the baseline's RSS is of what was measured; 0: less than a thousandth
		args  []string
		code  int
		says  []string
	}{
		{"less", 3, nil, 0, []string{"better"}},
		{"more", 0, []string{"--junit", "m.xml", "--github", "--markdown", "m.md", "--html", "m.html", "--reports"}, 1,
			[]string{"::error file=m.yaml,title=More memory than the baseline::batch=1: peak RSS", "2 worse"}},
	} {
		r := readResult(t, filepath.Join(s.dir, "now.json"))
		for i := range r.Trials {
			one, ok := r.Trials[i].Figures[matrix.RSS]
			if !ok {
				t.Fatalf("nothing was measured of %+v", r.Trials[i])
			}
			one.Max = one.Max*test.times + 1024
			r.Trials[i].Figures[matrix.RSS] = one
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		write(t, s.dir, "base.json", string(text))
		code, said := s.judged(append(test.args, "--baseline", "base.json", "--fail-over", "5%")...)
		if code != test.code {
			t.Errorf("%s: exit code %d, want %d: %s", test.name, code, test.code, said)
		}
		for _, want := range test.says {
			if !strings.Contains(said, want) {
				t.Errorf("%s: want %q in %s", test.name, want, said)
			}
		}
	}
	reports, err := filepath.Glob(filepath.Join(s.dir, "m-cells", "*.html"))
	if err != nil || len(reports) != 2 {
		t.Errorf("the reports of two cells: %q, %v", reports, err)
	}
	for file, want := range map[string]string{"m.xml": `failures="2"`, "m.md": "2 worse",
		"m.html": `id="hightide-matrix">H4sI`} {
		if text, err := os.ReadFile(filepath.Join(s.dir, file)); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s has no %q: %s, %v", file, want, text, err)
		}
	}
	write(t, s.dir, "base.json", `{"version": 1, "axes": [{"name": "dtype", "values": ["a", "b"]}]}`)
	if code, said := s.judged("--baseline", "base.json"); code != 3 || !strings.Contains(said, "the baseline has no axis batch") {
		t.Errorf("another matrix's: %d, %s", code, said)
	}
}

// TestWorkflowExample runs the step that measures, of the workflow that we ship, as GitHub does: first without a result
// of main, then with one.
func TestWorkflowExample(t *testing.T) {
	text, err := os.ReadFile("../../examples/github-actions.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Uses, Run string }
		}
	}
	if err := yaml.Unmarshal(text, &workflow); err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, step := range workflow.Jobs["memory"].Steps {
		if step.Name == "Measure" {
			script = step.Run
		}
	}
	s := newSession(t)
	write(t, s.dir, "memory.yaml",
		"axes: {batch: [1]}\nrepeats: {least: 2, most: 2, figure: rss}\ncommand: sleep 0.4{batch}\n")
	for _, file := range []string{"", "memory.xml"} {
		c := s.command()
		c.Args, c.Path = []string{"bash", "-e", "-o", "pipefail", "-c", script}, "/bin/bash"
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		for _, written := range []string{"now.json", "memory.html", "memory.md", file} {
			if _, err := os.Stat(filepath.Join(s.dir, written)); err != nil {
				t.Error(err)
			}
		}
		if err := os.Rename(filepath.Join(s.dir, "now.json"), filepath.Join(s.dir, "baseline.json")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestBenchExplainsDifferences: what a larger batch needs more is read from the recordings, with its line.
func TestBenchExplainsDifferences(t *testing.T) {
	s := newSession(t)
	write(t, s.dir, "prog.py", "import sys\n\nkept = bytearray(b'x') * (int(sys.argv[1]) << 20)\n")
	write(t, s.dir, "m.yaml",
		"axes: {batch: [8, 96]}\nrepeats: {least: 2, most: 2, figure: rss}\ncommand: python3 prog.py {batch}\n")
	if code, said := s.judged("--json=now.json", "--quiet"); code != 0 {
		t.Fatalf("%d, %s", code, said)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "now.json"))
	if err != nil {
		t.Fatal(err)
	}
	var result struct{ Comparison matrix.Comparison }
	if err := json.Unmarshal(text, &result); err != nil {
		t.Fatal(err)
	}
	for _, d := range result.Comparison.Differences {
		for _, p := range d.Parts {
			// A program that ends as soon as its memory is filled may have been looked at half-way, where processors are busy.
			if explained := (p.Cell - p.Base) >> 20; p.By == "line" && p.Name == "prog.py:3" && explained >= 80 &&
				explained <= 96 {
				return
			}
		}
	}
	t.Errorf("prog.py:3 holds 88 MiB more, which explains nothing here: %+v\n%+v", result.Comparison.Differences,
		result.Comparison.Ratios)
}

// checkSeedResults: a folder for each cell, with five words in its name, samples in the columns of the one whose idea
// it is, and what it was.
func checkSeedResults(t *testing.T, dir string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "__b[12]__", "memory_data.csv"))
	if err != nil || len(found) != 2 {
		t.Fatalf("%v, %v", found, err)
	}
	text, err := os.ReadFile(found[1])
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) < 2 || strings.Join(rows[0],
		",") != "timestamp,rss,vms,page_faults,major_faults,minor_faults,swap,cpu_percent" {
		t.Fatalf("%s, %v", text, err)
	}
	most := 0.0
	for i, row := range rows[1:] {
		var figures [8]float64
		for k, cell := range row {
			if figures[k], err = strconv.ParseFloat(cell, 64); err != nil || figures[k] < 0 {
				t.Fatalf("row %d: %v", i, row)
			}
		}
		if figures[3] != figures[4]+figures[5] {
			t.Errorf("faults of row %d: %v", i, row)
		}
		most = max(most, figures[1])
	}
	if most < 0.5 || most > 100 {
		t.Errorf("sleep needs %v MB", most)
	}
	var metadata struct {
		Batch int `json:"batch_size"`
	}
	if text, err := os.ReadFile(filepath.Join(filepath.Dir(found[1]), "metadata.json")); err != nil || json.Unmarshal(text, &metadata) != nil || metadata.Batch != 2 {
		t.Errorf("%s, %v", text, err)
	}
}

func readResult(t *testing.T, path string) *matrix.Result {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := matrix.ReadJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
