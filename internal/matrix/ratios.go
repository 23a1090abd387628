package matrix

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Ratio compares two values of an axis, over all pairs of cells that differ in nothing else.
type Ratio struct {
	Kind       string    `json:"kind" doc:"What the axis is: framework, model, batch, device, mode, sequence, or axis."`
	Axis       string    `json:"axis" doc:"The axis."`
	Value      string    `json:"value" doc:"Its value that is compared."`
	Base       string    `json:"base" doc:"The value that it is compared with."`
	Title      string    `json:"title" doc:"Both for people."`
	Figure     Figure    `json:"figure" doc:"The figure of the value."`
	BaseFigure Figure    `json:"base_figure" doc:"That of the base, which is another one where host and device are compared."`
	Ratio      float64   `json:"ratio" doc:"The geometric mean over the pairs."`
	Interval   *Interval `json:"interval,omitempty" doc:"Its 95 % interval; absent: not known."`
	Verdict    Verdict   `json:"verdict" doc:"What the interval allows to say: more, less, same or unknown."`
	Least      float64   `json:"least" doc:"The least of the pairs' ratios."`
	Most       float64   `json:"most" doc:"The most."`
	Pairs      int       `json:"pairs" doc:"How many pairs of cells differ in nothing else."`
	More       int       `json:"more" doc:"How many of them have that verdict."`
	Less       int       `json:"less" doc:"How many have that one."`
	Same       int       `json:"same" doc:"How many have that one."`
	Left       int       `json:"left" doc:"Pairs that are not in it: one side was not measured, or only once."`
	Sentence   string    `json:"sentence" doc:"The same in words."`
	Of         []Pair    `json:"of,omitempty" doc:"Of the leading figures: the pairs."`
}

// Pair is two cells that differ in one axis.
type Pair struct {
	Cell     int       `json:"cell" doc:"The place of the cell in cells."`
	Base     int       `json:"base" doc:"The place of the other."`
	Ratio    float64   `json:"ratio" doc:"Their ratio."`
	Interval *Interval `json:"interval,omitempty" doc:"Its 95 % interval; absent: not known."`
	Verdict  Verdict   `json:"verdict" doc:"What the interval allows to say: more, less, same or unknown."`
}

// Verdict is what an interval of a ratio says.
type Verdict string

// Verdicts.
const (
	More    Verdict = "more"    // the whole interval lies above 1
	Less    Verdict = "less"    // below 1
	Same    Verdict = "same"    // within sameWithin of 1
	Unknown Verdict = "unknown" // it holds 1, or there is none
)

// sameWithin is how far from 1 a ratio may be that counts as none.
const sameWithin = 0.01

func verdict(i *Interval) Verdict {
	switch {
	case i == nil:
		return Unknown
	case i.Low > 1:
		return More
	case i.High < 1:
		return Less
	case i.Low >= 1/(1+sameWithin) && i.High <= 1+sameWithin:
		return Same
	}
	return Unknown
}

// ratios compares the values of each axis with its baseline.
func (w *comparing) ratios() {
	for a, axis := range w.Axes {
		if len(axis.Values) < 2 {
			continue
		}
		base := w.baseline(a)
		for _, value := range axis.Values {
			if value == base {
				continue
			}
			if w.kinds[a] == kindDevice && isHost(base) {
				w.hostOverDevice(a, base, value)
				continue
			}
			for _, f := range w.Figures {
				w.ratio(a, value, base, f.Name, f.Name)
			}
		}
		if w.kinds[a] == kindDevice && isHost(base) {
			w.amongDevices(a)
		}
	}
}

// hostOverDevice compares what a program needs on the host with what it needs on the device, and on real ones what its
// process needs on the host beside.
func (w *comparing) hostOverDevice(a int, host, device string) {
	if w.Device != "" {
		w.ratio(a, host, device, w.Figure, w.Device)
	}
	if isImagined(device) {
		return
	}
	for _, f := range w.Figures {
		w.ratio(a, host, device, f.Name, f.Name)
	}
}

// amongDevices compares devices with the first one of them.
func (w *comparing) amongDevices(a int) {
	devices := slices.DeleteFunc(slices.Clone(w.Axes[a].Values), isHost)
	if len(devices) < 2 || w.Device == "" {
		return
	}
	for _, value := range devices[1:] {
		w.ratio(a, value, devices[0], w.Device, w.Device)
	}
}

func isImagined(device string) bool { return strings.HasPrefix(device, "imagined:") }

// speaks says whether a figure of a cell says what a program needs. The host's figures of a run on an imaginary device
// are those of a program that computes nothing, and one on the host has no device's.
func (w *comparing) speaks(cell int, f Figure) bool {
	d := w.device()
	if d < 0 || f == Parameters {
		return true
	}
	device := w.Cells[cell].Values[d]
	if slices.Contains(onDevice, f) {
		return !isHost(device)
	}
	return !isImagined(device)
}

// ratio compares a figure of the cells with a value, and one of those with the base.
func (w *comparing) ratio(a int, value, base string, f, baseFigure Figure) {
	r := Ratio{Kind: string(w.kinds[a]), Axis: w.Axes[a].Name, Value: value, Base: base, Figure: f, BaseFigure: baseFigure,
		Title: w.title(a, value, base), Verdict: Unknown}
	if w.beside && (f == StepTime || f == CPU) { // they had to share the processors
		return
	}
	var pairs []Pair
	for _, cells := range w.sides(a, value, base) {
		i, j := cells[0], cells[1]
		if !w.speaks(i, f) || !w.speaks(j, baseFigure) {
			continue
		}
		if p, ok := w.pair(i, j, f, baseFigure); ok {
			pairs = append(pairs, p)
		} else {
			r.Left++
		}
	}
	if len(pairs) == 0 {
		return
	}
	w.mean(&r, pairs)
	r.Sentence = w.sentence(a, &r)
	if f == w.Figure || f == w.Device {
		r.Of = pairs
	}
	w.Ratios = append(w.Ratios, r)
}

// sides are the pairs of cells that differ in one axis alone, by two of its values.
func (w *comparing) sides(a int, value, base string) [][2]int {
	key := [3]string{w.Axes[a].Name, value, base}
	if pairs, ok := w.paired[key]; ok {
		return pairs
	}
	var pairs [][2]int
	for i, c := range w.Cells {
		if c.Values[a] != value {
			continue
		}
		other := slices.Clone(c.Values)
		other[a] = base
		if j, ok := w.at[joinKey(other)]; ok {
			pairs = append(pairs, [2]int{i, j})
		}
	}
	w.paired[key] = pairs
	return pairs
}

// pair compares two cells; false: one of them has no figure to compare.
func (w *comparing) pair(i, j int, f, baseFigure Figure) (Pair, bool) {
	p, q := w.Cells[i].Figures[f], w.Cells[j].Figures[baseFigure]
	if p.Mean <= 0 || q.Mean <= 0 {
		return Pair{}, false
	}
	pair := Pair{Cell: i, Base: j, Ratio: p.Mean / q.Mean}
	if p.known() && q.known() {
		var s sum
		s.add(&p, p.variance)
		s.add(&q, q.variance)
		pair.Interval = around(math.Log(pair.Ratio), s.half(w.quantiles)+unsure(p)+unsure(q))
	}
	pair.Verdict = verdict(pair.Interval)
	return pair, true
}

// unsure is how far off the logarithm of an estimated mean may be.
func unsure(s Stat) float64 {
	if s.Error <= 0 {
		return 0
	}
	return -math.Log1p(-min(s.Error/s.Mean, 0.999))
}

// around is the interval of a ratio whose logarithm is known this well.
func around(logarithm, half float64) *Interval {
	return &Interval{math.Exp(logarithm - half), math.Exp(logarithm + half)}
}

// mean is the geometric mean of pairs: of those with an interval where these are half of them at least, else of all,
// and then it has none.
func (w *comparing) mean(r *Ratio, pairs []Pair) {
	certain := slices.DeleteFunc(slices.Clone(pairs), func(p Pair) bool { return p.Interval == nil })
	exact := len(certain) > 0 && len(certain)*2 >= len(pairs)
	if exact {
		r.Left += len(pairs) - len(certain)
		pairs = certain
	}
	var s sum
	var logs, errors float64
	r.Pairs, r.Least, r.Most = len(pairs), math.Inf(1), 0
	for _, pair := range pairs {
		p, q := w.Cells[pair.Cell].Figures[r.Figure], w.Cells[pair.Base].Figures[r.BaseFigure]
		s.add(&p, p.variance)
		s.add(&q, q.variance)
		logs += math.Log(pair.Ratio)
		errors += unsure(p) + unsure(q)
		r.Least, r.Most = min(r.Least, pair.Ratio), max(r.Most, pair.Ratio)
		switch pair.Verdict {
		case More:
			r.More++
		case Less:
			r.Less++
		case Same:
			r.Same++
		}
	}
	n := float64(len(pairs))
	r.Ratio = math.Exp(logs / n)
	if exact {
		r.Interval = around(logs/n, s.half(w.quantiles)/n+errors/n)
	}
	r.Verdict = verdict(r.Interval)
}

func (r *Ratio) round() {
	roundAll(&r.Ratio, &r.Least, &r.Most)
	r.Interval.round()
	for i := range r.Of {
		roundAll(&r.Of[i].Ratio)
		r.Of[i].Interval.round()
	}
}

// title is "TensorFlow / PyTorch", "batch 64 / 16".
func (w *comparing) title(a int, value, base string) string {
	return w.named(a, value) + " / " + w.shown(a, base)
}

// named is a value with what it is of, unless it says that itself: "batch 64", "PyTorch".
func (c *Comparison) named(axis int, value string) string {
	switch c.kinds[axis] {
	case kindFramework, kindModel, kindDevice, kindMode:
		return c.shown(axis, value)
	}
	return c.Axes[axis].Name + " " + c.shown(axis, value)
}

// sentence says what a ratio says and no more.
func (w *comparing) sentence(a int, r *Ratio) string {
	of, base := w.subject(r.Figure, w.named(a, r.Value)), "that of "+w.named(a, r.Base)
	if r.Figure != r.BaseFigure {
		base = w.subject(r.BaseFigure, w.named(a, r.Base))
	}
	over := ""
	if r.Pairs > 1 {
		over = fmt.Sprintf(", the geometric mean of %d pairs of cells from %s to %s", r.Pairs, Times(r.Least), Times(r.Most))
	}
	if r.Left > 0 {
		over += fmt.Sprintf(" (%d more could not be compared)", r.Left)
	}
	switch {
	case r.Interval == nil:
		return report.UpperFirst(fmt.Sprintf("%s is %s times %s%s; there are single runs in it, so how exact that is, is "+
			"not known.", of, Times(r.Ratio), base, over))
	case r.Verdict == Unknown:
		return fmt.Sprintf("Whether %s is more or less than %s is not known: %s times%s%s.", of, base, Times(r.Ratio),
			r.Interval.times(), over)
	case r.Verdict == Same:
		return report.UpperFirst(fmt.Sprintf("%s is %s within 1 %%: %s times%s%s.", of, base, Times(r.Ratio),
			r.Interval.times(), over))
	}
	return report.UpperFirst(fmt.Sprintf("%s is %s times %s%s%s.", of, Times(r.Ratio), base, r.Interval.times(), over))
}

// subject is a figure of something: "peak PSS of PyTorch".
func (c *Comparison) subject(f Figure, of string) string {
	about := info(f)
	if about.Unit == mem.UnitBytes {
		return "peak " + about.Title + " of " + of
	}
	return about.Title + " of " + of
}

// times is the interval of a ratio in words.
func (i *Interval) times() string {
	if i.Low == i.High {
		return " (identical in all runs)"
	}
	return " (95 %: " + i.span() + ")"
}

// span is an interval of a ratio, with the digits that tell its ends apart.
func (i *Interval) span() string {
	decimals := 0
	if wide := i.High - i.Low; wide > 0 && i.High < 1e6 {
		decimals = min(max(-int(math.Floor(math.Log10(wide))), 2), 6)
	}
	if i.Low == i.High {
		return Times(i.Low)
	}
	return fmt.Sprintf("%.*f to %.*f", decimals, i.Low, decimals, i.High)
}

// Times writes a ratio: two decimals, more where it is near 1.
func Times(ratio float64) string {
	off := math.Abs(ratio - 1)
	switch {
	case ratio >= 100:
		return fmt.Sprintf("%.0f", ratio)
	case ratio >= 10:
		return fmt.Sprintf("%.1f", ratio)
	case off > 0 && off < 0.0005:
		return fmt.Sprintf("%.5f", ratio)
	case off > 0 && off < 0.05:
		return fmt.Sprintf("%.3f", ratio)
	case ratio < 0.1:
		return fmt.Sprintf("%.2g", ratio)
	}
	return fmt.Sprintf("%.2f", ratio)
}
