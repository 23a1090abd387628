package matrix

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/format"
	"hightide/internal/mem"
)

// Export is a way to write a matrix for other programs.
type Export struct {
	Name   string
	Writes string // for help
	Binary bool   // not for a terminal
	Write  func(w io.Writer, r *Result, c *Comparison) error
}

// Exports lists them all. Add yours here.
var Exports = []Export{
	{"json", "everything; what --baseline reads", false, WriteJSON},
	{"csv", "a row for each cell and figure, with its interval", false, writeCells},
	{SeedCSV, "a row for each cell: " + strings.Join(seedColumns, ","), false, writeSeed},
	{"parquet", "a row for each trial and figure", true, writeTrials},
	{"markdown", "the comparison, for people", false, func(w io.Writer, _ *Result, c *Comparison) error {
		_, err := io.WriteString(w, c.Markdown())
		return err
	}},
}

// SeedCSV is the name of the form that one other project's dashboard reads: it has no column for every axis.
const SeedCSV = "seed-csv"

// Compared is a result, with what it says beside it.
type Compared struct {
	*Result
	Comparison *Comparison `json:"comparison,omitempty" doc:"What it says."`
}

// WriteJSON writes a result, with what it says beside it.
func WriteJSON(w io.Writer, r *Result, c *Comparison) error {
	text, err := json.Marshal(Compared{r, c})
	if err != nil {
		return fmt.Errorf("write the matrix as JSON: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// maxResult bounds what is read of a result's file, in bytes.
const maxResult = 1 << 30

// ReadJSON reads a result that WriteJSON wrote, and checks that it is one.
func ReadJSON(from io.Reader) (*Result, error) {
	var r Result
	text, err := io.ReadAll(io.LimitReader(from, maxResult+1))
	switch {
	case err != nil:
		return nil, err
	case len(text) > maxResult:
		return nil, fmt.Errorf("it has more than %v", mem.Bytes(maxResult))
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("it is not a result of a matrix: %w", err)
	}
	if r.Version != ResultVersion {
		if r.Version > ResultVersion {
			return nil, fmt.Errorf("a newer hightide wrote it (version %d, this one reads %d)", r.Version, ResultVersion)
		}
		return nil, errors.New("it is not a result of a matrix: it has no version")
	}
	return &r, r.check()
}

// check names what makes a result one that nothing can be said of.
func (r *Result) check() error {
	for _, a := range r.Axes {
		if len(a.Values) == 0 {
			return fmt.Errorf("axis %q has no values", a.Name)
		}
	}
	known := make(map[string]bool, len(r.Cells))
	for _, c := range r.Cells {
		if len(c.Values) != len(r.Axes) {
			return fmt.Errorf("cell %q has %d values of %d axes", c.Key, len(c.Values), len(r.Axes))
		}
		if known[c.Key] {
			return fmt.Errorf("cell %q is there twice", c.Key)
		}
		known[c.Key] = true
	}
	for _, t := range r.Trials {
		if !known[t.Cell] {
			return fmt.Errorf("a trial is of cell %q, which is not there", t.Cell)
		}
	}
	return nil
}

// axisColumns are the axes', under names of their own: some file's reader takes no column twice.
func axisColumns(axes []Axis, others []format.Column) []format.Column {
	var all []format.Column
	for _, a := range axes {
		name := a.Name
		if slices.ContainsFunc(others, func(c format.Column) bool { return c.Name == name }) {
			name = "axis_" + name
		}
		all = append(all, format.Column{Name: name, Kind: format.Text})
	}
	return append(all, others...)
}

// writeCells writes what is known of each cell, with empty fields where nothing is.
func writeCells(w io.Writer, _ *Result, c *Comparison) error {
	names := []string{"state", "reason", "trials", "done", "figure", "unit", "statistic", "label", "count", "mean",
		"median", "std", "min", "max", "low", "high", "basis"}
	var others []format.Column
	for _, n := range names {
		others = append(others, format.Column{Name: n})
	}
	out := csv.NewWriter(w)
	var header []string
	for _, column := range axisColumns(c.Axes, others) {
		header = append(header, column.Name)
	}
	if err := out.Write(header); err != nil {
		return err
	}
	for _, cell := range c.Cells {
		head := append(slices.Clone(cell.Values), string(cell.State), cell.Reason, strconv.Itoa(cell.Trials),
			strconv.Itoa(cell.Done))
		if len(cell.Figures) == 0 {
			if err := out.Write(append(head, make([]string, 13)...)); err != nil {
				return err
			}
		}
		for _, f := range c.Figures {
			s, ok := cell.Figures[f.Name]
			if !ok {
				continue
			}
			low, high := "", ""
			if s.Interval != nil {
				low, high = plain(s.Interval.Low), plain(s.Interval.High)
			}
			deviation := plain(s.StdDev)
			if s.Count < 2 {
				deviation = ""
			}
			row := append(slices.Clone(head), string(f.Name), string(f.Unit), f.Statistic, string(f.Label),
				strconv.Itoa(s.Count), plain(s.Mean),
				plain(s.Median), deviation, plain(s.Min), plain(s.Max), low, high, string(s.Basis))
			if err := out.Write(row); err != nil {
				return err
			}
		}
	}
	out.Flush()
	return out.Error()
}

func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// trialColumns of Parquet, after the axes.
var trialColumns = []format.Column{{Name: "cell"}, {Name: "repeat", Kind: format.Integer}, {Name: "state"},
	{Name: "reason"}, {Name: "run"},
	{Name: "machine"}, {Name: "start_wall_ns", Kind: format.Integer}, {Name: "duration_ns", Kind: format.Integer},
	{Name: "figure"}, {Name: "unit"}, {Name: "label"}, {Name: "max", Kind: format.Integer},
	{Name: "min", Kind: format.Integer},
	{Name: "mean", Kind: format.Real}, {Name: "median", Kind: format.Real}, {Name: "std_dev", Kind: format.Real},
	{Name: "count", Kind: format.Integer}, {Name: "error", Kind: format.Integer}}

// writeTrials writes each figure of each trial; a trial without any has one row.
func writeTrials(w io.Writer, r *Result, _ *Comparison) error {
	about := struct {
		Name     string    `json:"name"`
		Axes     []Axis    `json:"axes"`
		Machines []Machine `json:"machines"`
		Spec     string    `json:"spec"`
	}{r.Name, r.Axes, r.Machines, r.Spec}
	cells := make(map[string]Cell, len(r.Cells))
	for _, c := range r.Cells {
		cells[c.Key] = c
	}
	return format.WriteRows(w, "trials", axisColumns(r.Axes, trialColumns), "hightide.matrix", about,
		func(add func([]any) error) error {
			for _, t := range r.Trials {
				var head []any
				for _, v := range cells[t.Cell].Values {
					head = append(head, v)
				}
				head = append(head, t.Cell, int64(t.Repeat), string(t.State), orNil(t.Reason), orNil(t.Run), orNil(t.Machine),
					t.StartWall, t.Duration)
				if len(t.Figures) == 0 {
					if err := add(append(head, make([]any, 10)...)); err != nil {
						return err
					}
				}
				for _, f := range figures {
					s, ok := t.Figures[f.Name]
					if !ok {
						continue
					}
					row := append(slices.Clone(head), string(f.Name), string(f.Unit), orNil(string(s.Label)), s.Max, s.Min, s.Mean,
						s.Median, s.StdDev, int64(s.Count), s.Error)
					if err := add(row); err != nil {
						return err
					}
				}
			}
			return nil
		})
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// seedColumns are those of the summary that the dashboard of YaxitaAmin/Virtual_memory_profiling_MLmodels saves. Sizes
// are in MB of 2^20 bytes, as psutil's figures are there; its dashboard divides them by 1024 once more.
var seedColumns = []string{"framework", "model_size", "batch_size", "mode", "device", "mean", "max", "min", "std",
	"median", "count"}

// seedWords are what that project calls what has another name here.
var seedWords = map[string]string{"lenet": "small", "resnet18": "medium", "transformer6-base": "large",
	"transformer6": "large", "cuda": "gpu"}

// seedWord is what that project calls a value, unless another value of the axis is called so too.
func seedWord(a Axis, value string) string {
	word, ok := seedWords[value]
	if !ok || slices.ContainsFunc(a.Values, func(v string) bool {
		return v != value &&
			(v == word || seedWords[v] == word)
	}) {
		return value
	}
	return word
}

// writeSeed writes resident memory in the seed's columns: of all samples of all trials of a cell. The median is that of
// the trials' medians.
func writeSeed(w io.Writer, r *Result, c *Comparison) error {
	at, err := seedAxesOf(r.Axes)
	if err != nil {
		return err
	}
	out := csv.NewWriter(w)
	if err := out.Write(seedColumns); err != nil {
		return err
	}
	samples := map[string][]Summary{}
	for _, t := range r.Trials {
		if s, ok := t.Figures[RSS]; ok && t.State == Done {
			samples[t.Cell] = append(samples[t.Cell], s)
		}
	}
	if len(samples) == 0 {
		return fail.Input("--csv has every figure that was measured", "seed-csv holds RSS, which was measured for no cell")
	}
	for _, cell := range c.Cells {
		all := samples[cell.Key]
		if len(all) == 0 {
			continue
		}
		row := seedRow(r.Axes, at, cell.Values)
		s := together(all)
		for _, n := range []float64{s.Mean, float64(s.Max), float64(s.Min), s.StdDev, s.Median} {
			row = append(row, plain(n/float64(mem.MiB)))
		}
		if s.Count < 2 {
			row[8] = "" // as pandas writes it
		}
		if err := out.Write(append(row, strconv.Itoa(s.Count))); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// CheckSeedCSV says why a matrix with these axes has no form in the seed's columns.
func CheckSeedCSV(axes []Axis) error {
	_, err := seedAxesOf(axes)
	return err
}

// seedRow are the values of a cell in the seed's columns and words; empty where there is no such axis.
func seedRow(axes []Axis, at [5]int, values []string) []string {
	row := make([]string, len(at))
	for i, a := range at {
		if a >= 0 {
			row[i] = seedWord(axes[a], values[a])
		}
	}
	return row
}

// seedAxesOf are the places of the seed's columns among the axes; -1: there is none. No other axis may vary.
func seedAxesOf(axes []Axis) ([5]int, error) {
	at := [5]int{-1, -1, -1, -1, -1}
	for i, a := range axes {
		n := slices.Index([]kind{kindFramework, kindModel, kindBatch, kindMode, kindDevice}, kindOf(a.Name))
		switch {
		case n >= 0 && at[n] < 0:
			at[n] = i
		case len(a.Values) > 1:
			return at, fail.Usage("--csv has a column for every axis",
				"seed-csv has no column for axis %s, which has %d values", a.Name, len(a.Values))
		}
	}
	return at, nil
}

// together is one summary of the samples of several.
func together(all []Summary) Summary {
	s := Summary{Max: math.MinInt64, Min: math.MaxInt64}
	var medians []float64
	for _, one := range all {
		s.Max, s.Min = max(s.Max, one.Max), min(s.Min, one.Min)
		s.Mean += one.Mean * float64(one.Count)
		s.Count += one.Count
		medians = append(medians, one.Median)
	}
	s.Mean /= float64(max(s.Count, 1))
	squares := 0.0
	for _, one := range all {
		n := float64(one.Count)
		squares += max(n-1, 0)*one.StdDev*one.StdDev + n*(one.Mean-s.Mean)*(one.Mean-s.Mean)
	}
	if s.Count > 1 {
		s.StdDev = math.Sqrt(squares / float64(s.Count-1))
	}
	s.Median = summarise(medians).Median
	return s
}
