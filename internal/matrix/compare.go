package matrix

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// ComparisonVersion is the version of the JSON that a Comparison is written as.
const ComparisonVersion = 1

// Level is that of every interval.
const Level = 0.95

// Options say what is compared. The zero value compares what was asked for in the specification.
type Options struct {
	Figure    Figure            // empty: the one whose exactness was asked for, or the first known one
	Baselines map[string]string // of an axis: the value that the others are compared with
	Memory    map[string]Room   // of values of the axis "device"
	Holdings  Holdings          // what a run held at its peak; nil: no recordings are at hand
}

// Room is the memory of a device.
type Room struct {
	Total   int64 // bytes, as the framework sees them
	Context int64 // of them, what a process takes beside the framework's allocator
}

// of is what there is for a figure.
func (r Room) of(f Figure) int64 {
	if f == DeviceUsed { // has the context in it
		return r.Total
	}
	return r.Total - r.Context
}

// Comparison is what a matrix says, for people and for the page.
type Comparison struct {
	Version     int          `json:"version" doc:"The version of this form."`
	Name        string       `json:"name" doc:"The name of the matrix."`
	Figure      Figure       `json:"figure" doc:"The figure that ratios and lines lead with, of cells on the host."`
	Device      Figure       `json:"device_figure" doc:"The same of cells on a device; empty: there are none."`
	Level       float64      `json:"level" doc:"Of every interval: 0.95."`
	Axes        []Axis       `json:"axes" doc:"What was varied."`
	Figures     []FigureInfo `json:"figures" doc:"What the figures are."`
	Cells       []CellStats  `json:"cells" doc:"What is known of each cell, in the order of the result."`
	Ratios      []Ratio      `json:"ratios" doc:"How much more one value of an axis takes than another."`
	Fits        []Fit        `json:"fits" doc:"Memory by batch."`
	Differences []Difference `json:"differences" doc:"What explains the largest differences."`
	Advice      []Advice     `json:"advice" doc:"Recommendations."`
	Notes       []string     `json:"notes" doc:"What is not known, and why."`

	Regression *Regression `json:"regression,omitempty" doc:"With a baseline: what became of each cell."`

	kinds []kind // of the axes
}

// FigureInfo says what the values of a figure are.
type FigureInfo struct {
	Name      Figure    `json:"name" doc:"Its name."`
	Title     string    `json:"title" doc:"Its name for people."`
	Unit      mem.Unit  `json:"unit" doc:"Its unit."`
	Statistic string    `json:"statistic" doc:"Of a trial's samples: max, mean or median, which is averaged over trials."`
	Label     mem.Label `json:"label" doc:"Where it comes from."`
}

// CellStats is a cell with what is known of it.
type CellStats struct {
	Key     string          `json:"key" doc:"Its key."`
	Values  []string        `json:"values" doc:"A value of each axis."`
	State   State           `json:"state" doc:"done where a trial is."`
	Reason  string          `json:"reason,omitempty" doc:"Why none is."`
	Trials  int             `json:"trials" doc:"How many trials it has."`
	Done    int             `json:"done" doc:"How many of them are done."`
	Runs    []string        `json:"runs,omitempty" doc:"The recordings of those."`
	Figures map[Figure]Stat `json:"figures,omitempty" doc:"Its figures, by name."`
}

// figures lists all figures in the order of people's interest.
var figures = []FigureInfo{
	{PSS, "PSS", mem.UnitBytes, "max", ""}, {RSS, "RSS", mem.UnitBytes, "max", ""}, {VMS, "VMS", mem.UnitBytes, "max", ""},
	{Swap, "swap", mem.UnitBytes, "max", ""},
	{DeviceUsed, "device memory", mem.UnitBytes, "max", ""}, {Reserved, "reserved memory", mem.UnitBytes, "max", ""},
	{Allocated, "allocated memory", mem.UnitBytes, "max", ""},
	{StepTime, "time of a step", mem.UnitNanoseconds, "median", ""}, {CPU, "processor use", mem.UnitMilli, "mean", ""},
	{MinorFaults, "number of minor page faults", mem.UnitCount, "max", ""},
	{MajorFaults, "number of major page faults", mem.UnitCount, "max", ""},
	{Parameters, "number of parameters", mem.UnitCount, "max", ""},
}

// onDevice are the figures of a device's memory, the most telling first.
var onDevice = []Figure{DeviceUsed, Reserved, Allocated}

// value of a trial: its peak, its typical step, its mean load.
func (f FigureInfo) value(s Summary) float64 {
	switch f.Statistic {
	case "mean":
		return s.Mean
	case "median":
		return s.Median
	}
	return float64(s.Max)
}

// Value is what a trial says of a figure: a peak, the time of a typical step, the mean load.
func Value(f Figure, s Summary) float64 { return info(f).value(s) }

// Exactness is how well repeats tell a figure of each cell that has an interval, by key. It is half of its width as a
// part of the mean, without the error of a figure that is estimated. It tells when to stop repeating a cell, so where
// the cell's own repeats tell, it takes their variance for no less than the median one. Those that lie close together
// by chance would end too early.
func Exactness(r *Result, f Figure) map[string]float64 {
	w := gatherCells(r, Options{})
	w.settle(info(f))
	known := map[string]float64{}
	for _, c := range w.Cells {
		if s, ok := c.Figures[f]; ok && s.Interval != nil && s.Mean > 0 {
			known[c.Key] = s.scatter(w.quantiles) / s.Mean
		}
	}
	return known
}

// Compare is pure: the same result gives the same comparison.
func Compare(r *Result, o Options) *Comparison {
	w := newComparing(r, o)
	w.ratios()
	w.fits()
	w.differences()
	w.notes()
	w.advise()
	w.round()
	return w.Comparison
}

// comparing is a comparison in the making.
type comparing struct {
	*Comparison
	result    *Result
	options   Options
	quantiles *quantiles
	at        map[string]int // cells by their values
	noise     map[Figure]noise
	paired    map[[3]string][][2]int // see sides
	beside    bool                   // trials ran beside each other on one machine
	alike     [][]string             // values of cells that differ in more than the batch and the sequence
}

func newComparing(r *Result, o Options) *comparing {
	w := gatherCells(r, o)
	for _, f := range figures {
		if label, ok := w.settle(f); ok {
			f.Label = label
			w.Figures = append(w.Figures, f)
		}
	}
	w.lead()
	return w
}

// gatherCells has the cells, before anything is made of them.
func gatherCells(r *Result, o Options) *comparing {
	w := &comparing{result: r, options: o, quantiles: newQuantiles(Level), at: map[string]int{},
		noise: map[Figure]noise{}, paired: map[[3]string][][2]int{},
		Comparison: &Comparison{Version: ComparisonVersion, Name: r.Name, Level: Level, Axes: r.Axes, Figures: []FigureInfo{},
			Cells: []CellStats{}, Ratios: []Ratio{}, Fits: []Fit{}, Differences: []Difference{}, Advice: []Advice{},
			Notes: []string{}}}
	for _, a := range r.Axes {
		w.kinds = append(w.kinds, kindOf(a.Name))
	}
	w.cells()
	w.beside = overlap(r.Trials)
	return w
}

// overlap says whether two trials ran at the same time on one machine.
func overlap(trials []Trial) bool {
	byStart := slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return t.Duration <= 0 })
	slices.SortStableFunc(byStart, func(p, q Trial) int {
		return cmp.Or(cmp.Compare(p.Machine, q.Machine), cmp.Compare(p.StartWall, q.StartWall))
	})
	for i := 1; i < len(byStart); i++ {
		p, q := byStart[i-1], byStart[i]
		if p.Machine == q.Machine && p.StartWall+p.Duration > q.StartWall {
			return true
		}
	}
	return false
}

// cells gathers the trials of each cell.
func (w *comparing) cells() {
	byKey := make(map[string]int, len(w.result.Cells))
	for i, c := range w.result.Cells {
		byKey[c.Key] = i
		w.at[joinKey(c.Values)] = i
		w.Cells = append(w.Cells, CellStats{Key: c.Key, Values: c.Values, Figures: map[Figure]Stat{}})
	}
	values := make([]map[Figure][]float64, len(w.Cells))
	errors := make([]map[Figure]float64, len(w.Cells))
	for i := range values {
		values[i], errors[i] = map[Figure][]float64{}, map[Figure]float64{}
	}
	for _, t := range w.result.Trials {
		i, ok := byKey[t.Cell]
		if !ok {
			continue
		}
		w.Cells[i].add(t)
		if t.State != Done {
			continue
		}
		for _, f := range figures {
			if s, ok := t.Figures[f.Name]; ok {
				values[i][f.Name] = append(values[i][f.Name], f.value(s))
				errors[i][f.Name] = max(errors[i][f.Name], float64(s.Error))
			}
		}
	}
	least := map[Figure]int{} // repeats that each cell has which was repeated
	for i := range values {
		for f, v := range values[i] {
			if n, ok := least[f]; len(v) > 1 && (!ok || len(v) < n) {
				least[f] = len(v)
			}
		}
	}
	for i := range w.Cells {
		for f, v := range values[i] {
			s := summarise(v)
			first := summarise(v[:min(len(v), max(least[f], 2))])
			s.Error, s.first = errors[i][f], &first
			w.Cells[i].Figures[f] = s
		}
	}
}

// add counts a trial. A cell is what the best of its trials is, else its last one.
func (c *CellStats) add(t Trial) {
	c.Trials++
	switch {
	case t.State == Done:
		c.Done++
		c.State, c.Reason = Done, ""
		if t.Run != "" {
			c.Runs = append(c.Runs, t.Run)
		}
	case c.State != Done:
		c.State, c.Reason = t.State, t.Reason
	}
}

// settle finds the intervals of a figure; false: no cell has it. The label is the weakest of its values'.
func (w *comparing) settle(f FigureInfo) (mem.Label, bool) {
	stats, values := make([]*Stat, len(w.Cells)), make([][]string, len(w.Cells))
	found := false
	for i := range w.Cells {
		values[i] = w.Cells[i].Values
		if s, ok := w.Cells[i].Figures[f.Name]; ok {
			stats[i], found = &s, true
		}
	}
	if !found {
		return "", false
	}
	n := noiseOf(stats, values, len(w.Axes), w.result.Goal.Within > 0)
	w.noise[f.Name] = n
	exact := w.exact(stats)
	for i, s := range stats {
		if s == nil {
			continue
		}
		n.settle(s, values[i], s.identical() && exact[i])
		s.bound(w.quantiles)
		w.Cells[i].Figures[f.Name] = *s
	}
	return w.label(f.Name), true
}

// leastSame is how many repeats must have repeated a value before it counts as exact.
const leastSame = 10

// exact says of each cell whether repeats of cells like it never differ. These are all cells, or all that share a value
// of some axis with it, where these were repeated often enough to tell.
func (w *comparing) exact(stats []*Stat) []bool {
	type group struct{ axis, value string }
	same, varied := map[group]int{}, map[group]bool{}
	each := func(i int, do func(group)) {
		do(group{})
		for a, value := range w.Cells[i].Values {
			do(group{w.Axes[a].Name, value})
		}
	}
	for i, s := range stats {
		if s == nil || s.Count < 2 {
			continue
		}
		each(i, func(g group) {
			same[g] += s.Count - 1
			varied[g] = varied[g] || !s.identical()
		})
	}
	exact := make([]bool, len(stats))
	for i := range stats {
		each(i, func(g group) {
			exact[i] = exact[i] || !varied[g] && (same[g] >= leastSame || g == group{})
		})
	}
	return exact
}

// label is the weakest of a figure's.
func (w *comparing) label(f Figure) mem.Label {
	order := []mem.Label{"", mem.Measured, mem.Sampled, mem.Imagined, mem.Replayed, mem.Estimated}
	var weakest mem.Label
	for _, t := range w.result.Trials {
		if s, ok := t.Figures[f]; ok && t.State == Done && slices.Index(order, s.Label) > slices.Index(order, weakest) {
			weakest = s.Label
		}
	}
	return weakest
}

// lead chooses the figures that are compared in full.
func (w *comparing) lead() {
	known := func(f Figure) bool {
		return slices.ContainsFunc(w.Figures, func(i FigureInfo) bool { return i.Name == f })
	}
	for _, f := range append([]Figure{w.options.Figure, w.result.Goal.Figure}, PSS, RSS, Allocated, Reserved, DeviceUsed,
		StepTime) {
		if f != "" && known(f) {
			w.Figure = f
			break
		}
	}
	if slices.Contains(onDevice, w.Figure) ||
		!slices.ContainsFunc(w.Cells, func(c CellStats) bool { return w.away(c.Values) }) {
		return
	}
	for _, f := range onDevice {
		if known(f) {
			w.Device = f
			return
		}
	}
}

// info describes a figure.
func info(f Figure) FigureInfo {
	for _, i := range figures {
		if i.Name == f {
			return i
		}
	}
	return FigureInfo{Name: f, Title: string(f)}
}

// device is the place of the axis that says where a cell computes; -1: there is none.
func (c *Comparison) device() int { return c.axis(kindDevice) }

// axis is the place of the first axis of a kind; -1: there is none.
func (c *Comparison) axis(k kind) int {
	return slices.Index(c.kinds, k)
}

// away says that a cell's memory is that of a device, not the host's.
func (c *Comparison) away(values []string) bool {
	d := c.device()
	return d >= 0 && !isHost(values[d])
}

func isHost(device string) bool { return device == "cpu" || device == "host" }

// shown is a value as people read it.
func (c *Comparison) shown(axis int, value string) string {
	a := c.Axes[axis]
	if i := slices.Index(a.Values, value); i >= 0 && i < len(a.Labels) && a.Labels[i] != "" {
		return a.Labels[i]
	}
	return value
}

// kind of an axis, by its name: what its ratio is called, and which value the others are compared with.
type kind string

const (
	kindFramework kind = "framework"
	kindModel     kind = "model"
	kindBatch     kind = "batch"
	kindDevice    kind = "device"
	kindMode      kind = "mode"
	kindSequence  kind = "sequence"
	kindOther     kind = "axis"
)

func kindOf(axis string) kind {
	switch strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(axis)) {
	case "framework":
		return kindFramework
	case "model", "model_size":
		return kindModel
	case "batch", "batch_size":
		return kindBatch
	case "device", "hardware":
		return kindDevice
	case "mode":
		return kindMode
	case "seq", "seq_len", "seqlen", "sequence", "sequence_length":
		return kindSequence
	}
	return kindOther
}

// baseline is the value of an axis that others are compared with.
func (w *comparing) baseline(axis int) string {
	a := w.Axes[axis]
	if value, ok := w.options.Baselines[a.Name]; ok && slices.Contains(a.Values, value) {
		return value
	}
	usual := map[kind]string{kindFramework: Frameworks[0], kindMode: "inference", kindDevice: "cpu"}[w.kinds[axis]]
	if slices.Contains(a.Values, usual) {
		return usual
	}
	if numbers, ok := numbersOf(a.Values); ok {
		return a.Values[slices.Index(numbers, slices.Min(numbers))]
	}
	return a.Values[0]
}

// numbersOf are the values of an axis where all of them are numbers.
func numbersOf(values []string) ([]float64, bool) {
	numbers := make([]float64, len(values))
	for i, v := range values {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return nil, false
		}
		numbers[i] = n
	}
	return numbers, len(values) > 0
}

// joinKey makes a key of values, which hold any character but this.
func joinKey(values []string) string { return strings.Join(values, "\x00") }

// digits of figures in the JSON.
const digits = 7

// round leaves figures with the digits that they are worth.
func (w *comparing) round() {
	for i := range w.Cells {
		for f, s := range w.Cells[i].Figures {
			s.round()
			w.Cells[i].Figures[f] = s
		}
	}
	for i := range w.Ratios {
		w.Ratios[i].round()
	}
}

func (s *Stat) round() {
	roundAll(&s.Mean, &s.Median, &s.StdDev, &s.Error)
	s.Interval.round()
}

func (i *Interval) round() {
	if i != nil {
		roundAll(&i.Low, &i.High)
	}
}

func roundAll(values ...*float64) {
	for _, v := range values {
		if *v == 0 || math.IsInf(*v, 0) || math.IsNaN(*v) {
			continue
		}
		scale := math.Pow(10, digits-1-math.Floor(math.Log10(math.Abs(*v))))
		if rounded := math.Round(*v*scale) / scale; !math.IsInf(rounded, 0) && !math.IsNaN(rounded) {
			*v = rounded
		}
	}
}
