package matrix

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"hightide/internal/mem"
	"hightide/internal/report"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it):\n%s", name, got)
	}
}

// mixed is a result with all that may become of cells. They are measured on the host and on an imaginary device, out
// of memory, not to be run here, run once, identical in all runs.
func mixed() *Result {
	axes := []Axis{
		{Name: "framework", Values: []string{"pytorch", "tensorflow"}, Labels: []string{"PyTorch", "TensorFlow"}},
		{Name: "batch", Values: []string{"16", "32", "64"}},
		{Name: "device", Values: []string{"cpu", "imagined:t4"}, Labels: []string{"", "T4"}},
	}
	m := made{axes, 3, PSS, func(values []string) float64 {
		n := (300 + 3*number(values[1])) * float64(mem.MiB)
		if values[0] == "tensorflow" {
			n *= 1.8
		}
		return n
	}, func(r *rand.Rand, _ []string) float64 { return 0.003 * r.NormFloat64() }}
	r := m.result(rand.New(rand.NewPCG(7, 7)))
	r.Name, r.Goal = "mixed", Goal{Figure: PSS, Within: 0.005, Least: 3, Most: 10}
	for i := range r.Trials {
		t := &r.Trials[i]
		values := strings.Fields(t.Cell)
		t.Figures[StepTime] = Summary{Max: 2e8, Min: 1e8, Mean: 1.2e8, Median: 1.1e8 + float64(i)*1e5, StdDev: 1e7,
			Count: 10, Label: mem.Measured}
		t.Figures[RSS] = Summary{Max: t.Figures[PSS].Max + 1<<20, Min: 1 << 20, Mean: 2 << 20, Median: 3 << 20,
			StdDev: 4096, Count: 10, Label: mem.Measured}
		switch {
		case values[0] == "framework=tensorflow" && values[2] == "device=imagined:t4":
			t.State, t.Reason, t.Figures, t.Run = Unavailable, "TensorFlow runs on no imaginary GPU", nil, ""
		case values[2] == "device=imagined:t4" && values[1] == "batch=64":
			t.State, t.Reason, t.Figures = OutOfMemory, "the T4 has no 96.0 MiB left", nil
		case values[2] == "device=imagined:t4":
			batch, _ := strconv.ParseInt(strings.TrimPrefix(values[1], "batch="), 10, 64)
			t.Figures[Reserved] = Summary{Max: 2<<30 + batch<<27, Min: 0, Mean: 1 << 30, Median: 1 << 30, Count: 10,
				Label: mem.Imagined}
		case values[0] == "framework=tensorflow" && values[1] == "batch=64" && t.Repeat > 0:
			t.State, t.Reason, t.Figures = Failed, "ended with exit code 1", nil
		}
	}
	return r
}

func mixedOptions() Options {
	return Options{Memory: map[string]Room{"imagined:t4": {Total: 16 << 30, Context: 1 << 30}},
		Holdings: func(run string, _ bool) ([]Holding, bool) {
			if strings.Contains(run, "tensorflow") {
				return []Holding{{"category", "arena", 400 << 20, mem.Sampled}, {"category", "parameters", 44 << 20, mem.Sampled}},
					true
			}
			return []Holding{{"category", "activations", 90 << 20, mem.Sampled},
				{"category", "parameters", 44 << 20, mem.Sampled}}, true
		}}
}

func TestText(t *testing.T) {
	c := Compare(mixed(), mixedOptions())
	golden(t, "mixed.txt", c.Text(report.TextOptions{Width: 110}))
	golden(t, "mixed.md", c.Markdown())
	ascii := c.Text(report.TextOptions{Width: 110, ASCII: true})
	if at := strings.IndexFunc(ascii, func(r rune) bool { return r > 126 }); at >= 0 {
		t.Errorf("a terminal of ASCII gets %q", ascii[max(0, at-20):at+20])
	}
}

// TestCellsWithoutFigures: trials that end before the first reading are said to be so, under a title that ends.
func TestCellsWithoutFigures(t *testing.T) {
	r := &Result{Name: "m", Axes: []Axis{{Name: "batch", Values: []string{"1"}}},
		Cells:  []Cell{{Key: "batch=1", Values: []string{"1"}}},
		Trials: []Trial{{Cell: "batch=1", State: Done}}}
	text := Compare(r, Options{}).Text(report.TextOptions{Width: 100})
	for _, want := range []string{"\nCells\n",
		"1 cell without figures: each trial ended before its memory was first read."} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestRegressionText(t *testing.T) {
	before, now := mixed(), mixed()
	for i := range now.Trials {
		trial := &now.Trials[i]
		if s, ok := trial.Figures[PSS]; ok && strings.Contains(trial.Cell, "batch=32") {
			s.Max = s.Max * 106 / 100
			trial.Figures[PSS] = s
		}
		if strings.HasPrefix(trial.Cell, "framework=pytorch batch=64 device=cpu") {
			trial.State, trial.Reason, trial.Figures = OutOfMemory, "the kernel ended it", nil
		}
	}
	now.Machines[0].Processors = 8
	g, err := Against(now, before, mixedOptions(), FailOver{"": 0.03})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "worse.txt", g.Text(report.TextOptions{Width: 110}))
	golden(t, "worse.md", g.Markdown())
	var junit, annotations bytes.Buffer
	if err := g.JUnit(&junit); err != nil {
		t.Fatal(err)
	}
	if err := g.Annotations(&annotations, "examples/matrix.yaml"); err != nil {
		t.Fatal(err)
	}
	golden(t, "worse.xml", junit.String())
	golden(t, "worse.github", annotations.String())
	var suite struct {
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &suite); err != nil || suite.Failures != g.Counts[Worse] || suite.Failures != 3 {
		t.Errorf("JUnit has %d failures, %v, want 3, which is %d worse", suite.Failures, err, g.Counts[Worse])
	}
	if g.ExitCode(false) != ExitWorse {
		t.Error("what is worse ends with 0")
	}
}

// TestExportsRoundTrip reads back every export, and finds in it what the result has.
func TestExportsRoundTrip(t *testing.T) {
	r := mixed()
	c := Compare(r, mixedOptions())
	read := map[string]func(*testing.T, []byte){
		"json": func(t *testing.T, text []byte) {
			again, err := ReadJSON(bytes.NewReader(text))
			if err != nil || !reflect.DeepEqual(again, r) {
				t.Errorf("read back as %+v, %v", again, err)
			}
			var whole struct{ Comparison Comparison }
			if err := json.Unmarshal(text, &whole); err != nil || len(whole.Comparison.Ratios) != len(c.Ratios) {
				t.Errorf("the comparison beside it: %v, %d ratios", err, len(whole.Comparison.Ratios))
			}
		},
		"csv": func(t *testing.T, text []byte) {
			rows := readCSV(t, text)
			figures, states := 0, map[string]bool{}
			for _, cell := range c.Cells {
				figures += max(len(cell.Figures), 1)
			}
			for _, row := range rows {
				states[row["state"]] = true
				i := slices.IndexFunc(c.Cells, func(c CellStats) bool {
					return slices.Equal(c.Values, []string{row["framework"], row["batch"], row["device"]})
				})
				if row["figure"] == "" {
					continue
				}
				s := c.Cells[i].Figures[Figure(row["figure"])]
				if mean, err := strconv.ParseFloat(row["mean"], 64); err != nil || mean != s.Mean {
					t.Errorf("%v: mean %v, want %v", row, mean, s.Mean)
				}
				if (row["low"] == "") != (s.Interval == nil) {
					t.Errorf("%v: interval %v", row, s.Interval)
				}
			}
			if len(rows) != figures || len(states) != 3 {
				t.Errorf("%d rows of states %v, want %d", len(rows), states, figures)
			}
		},
		"seed-csv": func(t *testing.T, text []byte) {
			const header = "framework,model_size,batch_size,mode,device,mean,max,min,std,median,count\n"
			if !strings.HasPrefix(string(text), header) {
				t.Fatalf("%.100s", text)
			}
			row := readCSV(t, text)[0]
			if row["framework"] != "pytorch" || row["batch_size"] != "16" || row["device"] != "cpu" || row["mean"] != "2" ||
				row["median"] != "3" || row["min"] != "1" || row["count"] != "30" {
				t.Errorf("the first row is %v", row)
			}
		},
		"parquet": func(t *testing.T, text []byte) {
			file, err := parquet.OpenFile(bytes.NewReader(text), int64(len(text)))
			if err != nil {
				t.Fatal(err)
			}
			about, _ := file.Lookup("hightide.matrix")
			rows := readParquet(t, file)
			figures := 0
			for _, trial := range r.Trials {
				figures += max(len(trial.Figures), 1)
			}
			first := rows[0]
			if len(rows) != figures || !strings.Contains(about, `"name":"mixed"`) || first["figure"] != "pss" ||
				first["max"] != r.Trials[0].Figures[PSS].Max ||
				first["mean"] != r.Trials[0].Figures[PSS].Mean || first["framework"] != "pytorch" || first["reason"] != nil {
				t.Errorf("%d rows, want %d; about %s; the first is %v", len(rows), figures, about, first)
			}
		},
		"markdown": func(t *testing.T, text []byte) {
			if string(text) != c.Markdown() {
				t.Errorf("%s", text)
			}
		},
	}
	for _, e := range Exports {
		t.Run(e.Name, func(t *testing.T) {
			var out bytes.Buffer
			if err := e.Write(&out, r, c); err != nil {
				t.Fatal(err)
			}
			read[e.Name](t, out.Bytes())
			if err := e.Write(refuses{}, r, c); err == nil {
				t.Error("a full disk goes unseen")
			}
		})
	}
}

// refuses takes nothing.
type refuses struct{}

func (refuses) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func readCSV(t *testing.T, text []byte) (rows []map[string]string) {
	t.Helper()
	records, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, name := range records[0] {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	return rows
}

func readParquet(t *testing.T, file *parquet.File) (rows []map[string]any) {
	t.Helper()
	names := file.Schema().Columns()
	for _, group := range file.RowGroups() {
		reader := group.Rows()
		buffer := make([]parquet.Row, 16)
		for {
			n, err := reader.ReadRows(buffer)
			for _, values := range buffer[:n] {
				row := map[string]any{}
				for _, v := range values {
					name := names[v.Column()][0]
					switch v.Kind() {
					case parquet.Int64:
						row[name] = v.Int64()
					case parquet.Double:
						row[name] = v.Double()
					case parquet.ByteArray:
						row[name] = string(v.ByteArray())
					default:
						row[name] = nil
					}
				}
				rows = append(rows, row)
			}
			if err != nil {
				break
			}
		}
		_ = reader.Close()
	}
	return rows
}

func TestSeedWords(t *testing.T) {
	a := Axis{Values: []string{"lenet", "transformer6", "transformer6-base", "mine"}}
	for value, want := range map[string]string{"lenet": "small", "transformer6": "transformer6",
		"transformer6-base": "transformer6-base", "mine": "mine"} {
		if got := seedWord(a, value); got != want {
			t.Errorf("%s is called %s, want %s", value, got, want)
		}
	}
}

func TestSeedCSVRefuses(t *testing.T) {
	r := mixed()
	r.Axes = append(r.Axes, Axis{Name: "dtype", Values: []string{"fp32", "bf16"}})
	for i := range r.Cells {
		r.Cells[i].Values = append(slices.Clone(r.Cells[i].Values), "fp32")
	}
	if err := writeSeed(io.Discard, r, Compare(r, Options{})); err == nil || !strings.Contains(err.Error(), "dtype") {
		t.Errorf("an axis without a column: %v", err)
	}
}

// TestReadJSONRefuses is of files that are not results, each with a reason that a person can act on.
func TestReadJSONRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                "not a result of a matrix",
		"[]":              "not a result of a matrix",
		`{"peak": 1}`:     "it has no version",
		`{"version": 99}`: "newer hightide",
		`{"version": 1, "axes": [{"name": "a", "values": []}]}`:                                                                             "no values",
		`{"version": 1, "axes": [{"name": "a", "values": ["1"]}], "cells": [{"key": "a=1", "values": []}]}`:                                 "0 values of 1 axes",
		`{"version": 1, "axes": [{"name": "a", "values": ["1"]}], "cells": [{"key": "k", "values": ["1"]}, {"key": "k", "values": ["1"]}]}`: "twice",
		`{"version": 1, "axes": [], "cells": [], "trials": [{"cell": "x"}]}`:                                                                "not there",
	} {
		if r, err := ReadJSON(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want %q", text, r, err, want)
		}
	}
}
