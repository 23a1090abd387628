package matrix

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/report"
)

// FailOver is how much more than the baseline a figure may be before that counts as worse, as a part of it: 0.03 is 3
// %. The one of the empty figure is for those that lead the comparison.
type FailOver map[Figure]float64

// ExitWorse is the exit code where a cell is worse than the baseline.
const ExitWorse = 1

// ParseFailOver reads what --fail-over says: "3%", "step_time=10%".
func ParseFailOver(said []string) (FailOver, error) {
	over := FailOver{}
	for _, one := range said {
		name, part, named := strings.Cut(one, "=")
		f := Figure(name)
		if !named {
			f, part = "", one
		} else if !known(f) {
			return nil, fail.Choice("--fail-over", name, figureNames())
		}
		percent, ok := strings.CutSuffix(strings.TrimSpace(part), "%")
		n, err := strconv.ParseFloat(strings.TrimSpace(percent), 64)
		if !ok || err != nil || !(n >= 0 && n <= 1000) {
			return nil, fail.Usage("such as --fail-over 3% or --fail-over step_time=10%",
				"--fail-over %s is not a percentage from 0 to 1000", one)
		}
		over[f] = n / 100
	}
	return over, nil
}

func known(f Figure) bool {
	return slices.ContainsFunc(figures, func(i FigureInfo) bool { return i.Name == f })
}

func figureNames() (names []string) {
	for _, f := range figures {
		names = append(names, string(f.Name))
	}
	return names
}

// Regression is a matrix beside a baseline, cell by cell.
type Regression struct {
	Version  int                `json:"version" doc:"The version of this form."`
	Name     string             `json:"name" doc:"The name of the matrix."`
	Level    float64            `json:"level" doc:"Of every interval: 0.95."`
	FailOver map[Figure]float64 `json:"fail_over" doc:"How much more is allowed, as a part, by figure."`
	Changes  []Change           `json:"changes" doc:"What became of each figure of each cell, worst first."`
	Counts   map[Standing]int   `json:"counts" doc:"How many there are by standing."`
	Notes    []string           `json:"notes" doc:"What else is to be known, as of another machine."`
}

// Change is what became of a figure of a cell.
type Change struct {
	Cell     string    `json:"cell" doc:"The key of the cell."`
	Figure   Figure    `json:"figure" doc:"The figure."`
	Standing Standing  `json:"standing" doc:"worse, unknown, gone, better, same or new."`
	Was      float64   `json:"was,omitempty" doc:"What the baseline has."`
	Is       float64   `json:"is,omitempty" doc:"What there is."`
	Ratio    float64   `json:"ratio,omitempty" doc:"That over what was."`
	Interval *Interval `json:"interval,omitempty" doc:"The 95 % interval of the ratio; absent: not known."`
	Limit    float64   `json:"limit" doc:"How much more is allowed, as a part."`
	Sentence string    `json:"sentence" doc:"The same in words."`
}

// Standing is how a cell stands beside the baseline.
type Standing string

// Standings, worst first.
const (
	Worse    Standing = "worse"   // the whole interval lies beyond the limit, or the cell no longer runs
	NotKnown Standing = "unknown" // the interval holds the limit, or there is none
	Better   Standing = "better"  // the whole interval lies beyond the limit, to the other side
	Steady   Standing = "same"    // the whole interval lies within the limit
	New      Standing = "new"     // the baseline has no such cell
	Gone     Standing = "gone"    // this matrix has no such cell
)

var standings = []Standing{Worse, NotKnown, Gone, Better, Steady, New}

// defaultFailOver is what is allowed where nothing is said.
const defaultFailOver = 0.03

// Against sets a matrix beside a baseline. Cells are the same whose values of all axes are; an axis that only one of
// them has must not vary.
func Against(now, baseline *Result, o Options, over FailOver) (*Regression, error) {
	is, was := newComparing(now, o), newComparing(baseline, o)
	axes, err := sharedAxes(now.Axes, baseline.Axes)
	if err != nil {
		return nil, err
	}
	limits := FailOver{}
	for f, limit := range over {
		if f != "" {
			limits[f] = limit
		}
	}
	general, ok := over[""]
	if !ok && len(limits) == 0 {
		general, ok = defaultFailOver, true
	}
	for _, f := range []Figure{is.Figure, is.Device} {
		if _, set := limits[f]; ok && !set && f != "" {
			limits[f] = general
		}
	}
	g := &Regression{Version: ComparisonVersion, Name: now.Name, Level: Level, FailOver: limits, Changes: []Change{},
		Counts: map[Standing]int{}, Notes: []string{}}
	before := map[string]int{}
	for j, c := range was.Cells {
		before[sameCell(axes, was.Axes, c.Values)] = j
	}
	for i, c := range is.Cells {
		key := sameCell(axes, is.Axes, c.Values)
		j, ok := before[key]
		delete(before, key)
		if !ok {
			g.Changes = append(g.Changes, Change{Cell: c.Key, Figure: is.leading(c.Values), Standing: New, Sentence: c.Key +
				": the baseline has no such cell."})
			continue
		}
		g.Changes = append(g.Changes, changes(is, was, i, j, limits)...)
	}
	for j, c := range was.Cells {
		if _, left := before[sameCell(axes, was.Axes, c.Values)]; left {
			g.Changes = append(g.Changes, Change{Cell: c.Key, Figure: was.leading(was.Cells[j].Values), Standing: Gone,
				Sentence: c.Key + ": it is in the baseline, and was not measured now."})
		}
	}
	g.finish()
	g.machines(now, baseline)
	return g, nil
}

// Comparable says why a matrix with these axes cannot be set beside a baseline.
func Comparable(axes []Axis, baseline *Result) error {
	_, err := sharedAxes(axes, baseline.Axes)
	return err
}

// sharedAxes are the names of the axes that tell cells apart.
func sharedAxes(p, q []Axis) ([]string, error) {
	has := func(axes []Axis, name string) bool {
		return slices.ContainsFunc(axes, func(a Axis) bool { return a.Name == name })
	}
	var names []string
	for _, a := range p {
		switch {
		case has(q, a.Name):
			names = append(names, a.Name)
		case len(a.Values) > 1:
			return nil, fail.Input("measure a new baseline", "the baseline has no axis %s, of which this matrix has %d values",
				a.Name, len(a.Values))
		}
	}
	for _, a := range q {
		if !has(p, a.Name) && len(a.Values) > 1 {
			return nil, fail.Input("measure a new baseline", "this matrix has no axis %s, of which the baseline has %d values",
				a.Name, len(a.Values))
		}
	}
	slices.Sort(names)
	return names, nil
}

// sameCell is the key of a cell in both matrices.
func sameCell(names []string, axes []Axis, values []string) string {
	var parts []string
	for _, name := range names {
		parts = append(parts, values[slices.IndexFunc(axes, func(a Axis) bool { return a.Name == name })])
	}
	return joinKey(parts)
}

// changes are those of the figures of one cell that have a limit and say something of it.
func changes(is, was *comparing, i, j int, limits FailOver) (all []Change) {
	now, before := is.Cells[i], was.Cells[j]
	lead := is.leading(now.Values)
	if before.State == Done && now.State != Done {
		return []Change{gave(now, lead, limits[lead])}
	}
	for _, f := range figures {
		limit, ok := limits[f.Name]
		if !ok || !is.speaks(i, f.Name) || (f.Name == is.Figure || f.Name == is.Device) && f.Name != lead {
			continue
		}
		p, okNow := now.Figures[f.Name]
		q, okBefore := before.Figures[f.Name]
		c := Change{Cell: now.Key, Figure: f.Name, Limit: limit, Standing: NotKnown}
		switch {
		case !okNow && !okBefore:
			continue
		case !okNow || !okBefore:
			c.Sentence = fmt.Sprintf("%s: %s was measured in one of the two alone.", now.Key, f.titled())
		default:
			c.set(p, q, change(is.quantiles, p, q))
		}
		all = append(all, c)
	}
	return all
}

// gave is a cell that ran in the baseline and does not now.
func gave(now CellStats, lead Figure, limit float64) Change {
	c := Change{Cell: now.Key, Figure: lead, Limit: limit, Standing: Worse,
		Sentence: fmt.Sprintf("%s: it ran in the baseline, and now: %s.", now.Key, now.outcome())}
	if now.State == Unavailable || now.State == Lost || now.State == "" {
		c.Standing = NotKnown
	}
	return c
}

// change is the interval of how many times its baseline a figure is; nil: not known.
func change(known *quantiles, p, q Stat) *Interval {
	if !p.known() || !q.known() || p.Mean <= 0 || q.Mean <= 0 {
		return nil
	}
	var s sum
	s.add(&p, p.variance)
	s.add(&q, q.variance)
	return around(math.Log(p.Mean/q.Mean), s.half(known)+unsure(p)+unsure(q))
}

// set judges a change.
func (c *Change) set(p, q Stat, i *Interval) {
	c.Was, c.Is, c.Interval = q.Mean, p.Mean, i
	moved := Amount(c.Figure, q.Mean) + " to " + Amount(c.Figure, p.Mean)
	lead := fmt.Sprintf("%s: %s from %s", c.Cell, info(c.Figure).titled(), moved)
	switch {
	case p.Mean == q.Mean && p.Mean == 0:
		c.Standing, c.Ratio, c.Sentence = Steady, 1, fmt.Sprintf("%s: %s is zero in both.", c.Cell, info(c.Figure).titled())
		return
	case p.Mean <= 0 || q.Mean <= 0:
		c.Sentence = lead + ", of which there is no ratio."
		return
	}
	c.Ratio = p.Mean / q.Mean
	lead += ", " + percent(c.Ratio)
	if i == nil {
		c.Sentence = lead + "; one run on one side at least, so how exact that is, is not known."
		return
	}
	if i.Low != i.High {
		lead += " (95 %: " + i.percents() + ")"
	}
	upper, allowed := 1+c.Limit, fmt.Sprintf("%.4g %%", c.Limit*100)
	switch {
	case i.Low > upper:
		c.Standing, c.Sentence = Worse, lead+": more than the "+allowed+" that are allowed."
	case i.High < 1/upper:
		c.Standing, c.Sentence = Better, lead+": less, by more than "+allowed+"."
	case i.High <= upper && i.Low >= 1/upper:
		c.Standing, c.Sentence = Steady, lead+": within "+allowed+"."
	case i.High <= upper:
		c.Standing, c.Sentence = NotKnown, lead+": not more than allowed; whether it is less by "+allowed+" is not known."
	default:
		c.Standing, c.Sentence = NotKnown,
			lead+": whether that is more than the "+allowed+" that are allowed is not known. More runs would show it."
	}
}

// percent is a ratio as a change: "+3.1 %".
func percent(ratio float64) string {
	n := (ratio - 1) * 100
	switch {
	case math.Abs(n) >= 99.5:
		return fmt.Sprintf("%+.0f %%", n)
	case math.Abs(n) < 0.005:
		return "±0 %"
	case math.Abs(n) < 1:
		return fmt.Sprintf("%+.2f %%", n)
	}
	return fmt.Sprintf("%+.1f %%", n)
}

// percents is an interval of a ratio as changes.
func (i *Interval) percents() string { return between(percent(i.Low), percent(i.High)) }

// finish sorts and counts.
func (g *Regression) finish() {
	slices.SortStableFunc(g.Changes, func(p, q Change) int {
		if p.Standing != q.Standing {
			return slices.Index(standings, p.Standing) - slices.Index(standings, q.Standing)
		}
		return order2(q.Ratio-p.Ratio, 0)
	})
	for i := range g.Changes {
		c := &g.Changes[i]
		g.Counts[c.Standing]++
		roundAll(&c.Was, &c.Is, &c.Ratio)
		c.Interval.round()
	}
}

// machines says where the two were not measured alike.
func (g *Regression) machines(now, baseline *Result) {
	kind := func(r *Result) (kinds []string) {
		for _, m := range r.Machines {
			text := fmt.Sprintf("%s with %s", report.Counted(int64(m.Processors), "processor"), Amount(RSS, float64(m.Memory)))
			if m.Kernel != "" {
				text += ", Linux " + m.Kernel
			}
			if !slices.Contains(kinds, text) {
				kinds = append(kinds, text)
			}
		}
		slices.Sort(kinds)
		return kinds
	}
	if p, q := kind(now), kind(baseline); len(p) > 0 && len(q) > 0 && !slices.Equal(p, q) {
		g.Notes = append(g.Notes, fmt.Sprintf("The baseline was measured on another machine (%s; now %s): what differs "+
			"may be the machine.", strings.Join(q, "; "), strings.Join(p, "; ")))
	}
}

// ExitCode is ExitWorse where a cell is worse; with strict also where one is not known, or gone.
func (g *Regression) ExitCode(strict bool) int {
	if g.Counts[Worse] > 0 || strict && g.Counts[NotKnown]+g.Counts[Gone] > 0 {
		return ExitWorse
	}
	return 0
}

// Headline says how many cells are what.
func (g *Regression) Headline() string {
	var parts []string
	for _, s := range []struct {
		standing Standing
		words    string
	}{{Worse, "worse"}, {NotKnown, "not known"}, {Better, "better"}, {Steady, "the same"}, {New, "new"}, {Gone, "gone"}} {
		if n := g.Counts[s.standing]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, s.words))
		}
	}
	if len(parts) == 0 {
		return g.Name + " against its baseline: no cell to compare"
	}
	return g.Name + " against its baseline: " + strings.Join(parts, ", ")
}

// Text is the judgement for a terminal: what is worse, not known or gone, in sentences, then a table of all.
func (g *Regression) Text(o report.TextOptions) string {
	if o.Width <= 0 {
		o.Width = 100
	}
	var b strings.Builder
	b.WriteString(o.Paint("1", report.Clean(g.Headline())) + "\n")
	list(&b, o, "Worse", some(g.sentences(Worse)))
	list(&b, o, "Not known", some(append(g.sentences(NotKnown), g.sentences(Gone)...)))
	s := g.sheet()
	s.text(&b, o)
	list(&b, o, "Notes", g.Notes)
	return o.Fit(b.String())
}

func (g *Regression) sentences(of Standing) (all []string) {
	for _, c := range g.Changes {
		if c.Standing == of {
			all = append(all, c.Sentence)
		}
	}
	return all
}

// some are the first sentences of many: the table has all.
func some(sentences []string) []string {
	const most = 12
	if left := len(sentences) - most; left > 0 {
		return append(sentences[:most:most], report.Count(int64(left))+" more.")
	}
	return sentences
}

func (g *Regression) sheet() sheet {
	s := sheet{title: "All cells", columns: text("", "cell", "figure", ">was", ">is", ">change", ">95 %")}
	for _, c := range g.Changes {
		was, is, moved, span := "", "", "", ""
		if c.Ratio > 0 {
			was, is, moved, span = Amount(c.Figure, c.Was), Amount(c.Figure, c.Is), percent(c.Ratio), "not known"
		}
		if c.Interval != nil {
			span = c.Interval.percents()
		}
		s.add(string(c.Standing), c.Cell, info(c.Figure).titled(), was, is, moved, span)
	}
	return s
}

// Markdown is the judgement as a comment on a change.
func (g *Regression) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### hightide: %s\n", report.Markdown(g.Headline()))
	for _, of := range []Standing{Worse, NotKnown, Gone} {
		for _, said := range some(g.sentences(of)) {
			fmt.Fprintf(&b, "\n- **%s** %s", of, report.Markdown(said))
		}
	}
	b.WriteString("\n")
	s := g.sheet()
	s.markdown(&b)
	for _, n := range g.Notes {
		fmt.Fprintf(&b, "\n%s\n", report.Markdown(n))
	}
	return b.String()
}

// JUnit writes a test case for each figure of each cell; what is not known is skipped, with the reason.
func (g *Regression) JUnit(w io.Writer) error {
	var cases []report.TestCase
	for _, c := range g.Changes {
		one := report.TestCase{Name: c.Cell + " " + string(c.Figure), Class: g.Name}
		switch c.Standing {
		case Worse:
			one.Failure = &report.Outcome{Message: c.Sentence, Type: "worse"}
		case NotKnown, Gone, New:
			one.Skipped = &report.Outcome{Message: c.Sentence}
		}
		cases = append(cases, one)
	}
	return report.WriteJUnit(w, "hightide bench "+g.Name, cases)
}

// Annotations are workflow commands that have GitHub show what is worse as an error and what is not known as a warning,
// at the file of the specification. Last comes how the whole stands.
func (g *Regression) Annotations(w io.Writer, file string) error {
	for _, c := range g.Changes {
		level, title := "", ""
		switch c.Standing {
		case Worse:
			level, title = "error", "More memory than the baseline"
			if info(c.Figure).Unit != info(RSS).Unit {
				title = "Worse than the baseline"
			}
		case NotKnown, Gone:
			level, title = "warning", "Not known beside the baseline"
		default:
			continue
		}
		if _, err := fmt.Fprintln(w, report.Annotation(level, file, 0, title, c.Sentence)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, report.Annotation("notice", file, 0, "hightide bench", g.Headline()))
	return err
}
