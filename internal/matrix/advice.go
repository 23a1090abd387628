package matrix

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Advice is a recommendation: a sentence that is true of this matrix, and the cells that it speaks of.
type Advice struct {
	Kind     string `json:"kind" doc:"Of which kind of axis it is, or item, room or repeats."`
	Sentence string `json:"sentence" doc:"What to make of it."`
	Cells    []int  `json:"cells,omitempty" doc:"The places of the cells that it speaks of."`
}

// advise makes sentences of what the ratios, the fits and the runs say. Each rests on the interval of every single
// pair, not on a mean that hides those which say the contrary.
func (w *comparing) advise() {
	for a := range w.Axes {
		w.adviseAxis(a)
	}
	w.adviseItem()
	w.adviseRoom()
	w.adviseRepeats()
}

// adviseAxis says of an axis which value needs less. Of numbers only the largest is set against the least.
func (w *comparing) adviseAxis(a int) {
	axis := w.Axes[a]
	_, numbers := numbersOf(axis.Values)
	for i := range w.Ratios {
		r := &w.Ratios[i]
		if r.Axis != axis.Name || r.Figure != r.BaseFigure || r.Figure != w.Figure && r.Figure != w.Device ||
			r.Pairs == 0 || r.Interval == nil {
			continue
		}
		if w.kinds[a] == kindModel || numbers && r.Value != w.largest(axis) {
			continue
		}
		said := w.choice(a, r)
		if r.Left > 0 {
			said += fmt.Sprintf(" Of %s more that is not known: one side was not measured, or only once.",
				report.Counted(int64(r.Left), "pair"))
		}
		w.Advice = append(w.Advice, Advice{string(w.kinds[a]), said, w.extremes(r)})
	}
}

// largest is the value of an axis of numbers that is furthest from none.
func (w *comparing) largest(a Axis) string {
	numbers, _ := numbersOf(a.Values)
	return a.Values[slices.Index(numbers, slices.Max(numbers))]
}

// extremes are the cells of the pairs that differ least and most.
func (w *comparing) extremes(r *Ratio) []int {
	if len(r.Of) == 0 {
		return nil
	}
	by := func(p, q Pair) int { return cmp.Compare(p.Ratio, q.Ratio) }
	least, most := slices.MinFunc(r.Of, by), slices.MaxFunc(r.Of, by)
	cells := []int{least.Cell, least.Base, most.Cell, most.Base}
	slices.Sort(cells)
	return slices.Compact(cells)
}

// choice says in how many pairs one value needs more than the other.
func (w *comparing) choice(a int, r *Ratio) string {
	of, base := w.named(a, r.Value), w.named(a, r.Base)
	figure := info(r.Figure).titled()
	times := fmt.Sprintf("%s times as much", Times(r.Ratio))
	if r.Pairs > 1 {
		times += fmt.Sprintf(" on average, %s to %s times", Times(r.Least), Times(r.Most))
	}
	all := "in the one pair of cells"
	if r.Pairs > 1 {
		all = fmt.Sprintf("in each of %d pairs of cells", r.Pairs)
	}
	switch r.Pairs {
	case r.More:
		return report.UpperFirst(fmt.Sprintf("%s needs less than %s %s: by %s, %s takes %s.", base, of, all, figure, of,
			times))
	case r.Less:
		return report.UpperFirst(fmt.Sprintf("%s needs less than %s %s: by %s, %s takes %s.", of, base, all, figure, of,
			times))
	case r.Same:
		return report.UpperFirst(fmt.Sprintf("%s and %s need the same within 1 %% %s: by %s, %s takes %s.", of, base, all,
			figure, of, times))
	}
	if r.More+r.Less+r.Same == 0 {
		return fmt.Sprintf("Whether %s or %s needs less is not known %s: by %s, %s takes %s.", base, of,
			strings.Replace(all, "each", "any", 1), figure, of, times)
	}
	lead := ""
	if r.More > 0 && r.Less > 0 {
		lead = fmt.Sprintf("Neither of %s and %s needs less everywhere. ", of, base)
	}
	return report.UpperFirst(fmt.Sprintf("%sBy %s, beside %s, %s needs %s, of %d pairs of cells. It takes %s.", lead,
		figure, base, of, r.shares(), r.Pairs, times))
}

// shares says in how many pairs what is known.
func (r *Ratio) shares() string {
	var parts []string
	for _, p := range []struct {
		n     int
		words string
	}{{r.More, "more in"}, {r.Less, "less in"}, {r.Same, "the same within 1 % in"},
		{r.Pairs - r.More - r.Less - r.Same, "an amount not known well enough in"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", p.words, p.n))
		}
	}
	return strings.Join(parts, ", ")
}

// adviseItem says where one more item of the batch costs most and least by each figure, of the fits whose slope is
// known to be above 0. Memory of a host and of a device are not set beside each other.
func (w *comparing) adviseItem() {
	var figures []Figure
	for _, f := range w.Fits {
		if !slices.Contains(figures, f.Figure) {
			figures = append(figures, f.Figure)
		}
	}
	for _, figure := range figures {
		w.adviseItemBy(figure)
	}
}

func (w *comparing) adviseItemBy(figure Figure) {
	var known []Fit
	for _, f := range w.Fits {
		if s := f.Terms[len(f.Terms)-1]; f.Figure == figure && len(f.Terms) == 2 && f.Form == forms[0].name &&
			f.Freedom > 0 && s.Interval != nil && s.Interval.Low > 0 {
			known = append(known, f)
		}
	}
	if len(known) < 2 {
		return
	}
	slices.SortStableFunc(known, func(p, q Fit) int { return cmp.Compare(p.Terms[1].Value, q.Terms[1].Value) })
	least, most := known[0], known[len(known)-1]
	if most.Terms[1].Interval.Low <= least.Terms[1].Interval.High {
		return
	}
	all := w.kindsLike(func(values []string) bool { return w.away(values) == w.away(most.Values) })
	said := fmt.Sprintf("by %s one more item of a batch costs most with %s, %s, and least with %s, %s.",
		info(figure).titled(),
		w.group(most.Values), most.Terms[1].words(), w.group(least.Values), least.Terms[1].words())
	w.Advice = append(w.Advice, Advice{"item", ofKinds(len(known), all, said),
		[]int{most.Points[0].Cell, least.Points[0].Cell}})
}

// kindsLike counts the kinds of cells that differ in more than the batch.
func (w *comparing) kindsLike(like func(values []string) bool) (n int) {
	for _, values := range w.alike {
		if like(values) {
			n++
		}
	}
	return n
}

// ofKinds says of how many kinds of cells a sentence is, where there are others: any of those may be beyond.
func ofKinds(known, all int, said string) string {
	if all <= known {
		return report.UpperFirst(said)
	}
	return fmt.Sprintf("Of %s of cells, %s Of %d more that is not known.", report.Counted(int64(known), "kind"), said,
		all-known)
}

// words is a term with its interval.
func (t Term) words() string {
	if t.Interval == nil || t.Interval.Low == t.Interval.High {
		return bytesOf(t.Value)
	}
	return bytesOf(t.Value) + " (95 %: " + bytesBetween(t.Interval) + ")"
}

// adviseRoom says of each memory which of the cells' kinds fills it first.
func (w *comparing) adviseRoom() {
	first, known := map[string]Fit{}, map[string]int{}
	var order []string
	for _, f := range w.Fits {
		l := f.Limit
		if l == nil || l.Unlimited || l.Refuted || l.High == nil || l.Low == 0 || f.Freedom == 0 {
			continue
		}
		known[l.Of]++
		if _, seen := first[l.Of]; !seen {
			order = append(order, l.Of)
		} else if first[l.Of].Limit.Batch <= l.Batch {
			continue
		}
		first[l.Of] = f
	}
	for _, of := range order {
		f := first[of]
		said := fmt.Sprintf("the first to fill the %s of %s as the batch grows is %s, foretold to fit up to a batch of %s",
			mem.Bytes(f.Limit.Memory), of,
			w.group(f.Values), f.Limit.words())
		if f.Limit.Times > 1 {
			said += fmt.Sprintf("; %s was the largest measured, so that rests on a straight line beyond it",
				report.Count(int64(math.Round(float64(f.Limit.Batch)/f.Limit.Times))))
		}
		device := w.axis(kindDevice)
		all := w.kindsLike(func(values []string) bool { return device < 0 || values[device] == f.Values[device] })
		w.Advice = append(w.Advice, Advice{"room", ofKinds(known[of], all, said+"."), []int{f.Points[len(f.Points)-1].Cell}})
	}
}

// adviseRepeats says which cells are known less exactly than was asked for, and whether repeats would help: they do not
// against the error of a figure that is estimated.
func (w *comparing) adviseRepeats() {
	goal := w.result.Goal
	if goal.Within <= 0 || !known(goal.Figure) {
		return
	}
	var vague, estimated []int
	worst, worstCell, error := 0.0, -1, 0.0
	for i, c := range w.Cells {
		s, ok := c.Figures[goal.Figure]
		if !ok || s.Interval == nil || s.Mean <= 0 || !w.speaks(i, goal.Figure) {
			continue
		}
		switch half := s.scatter(w.quantiles) / s.Mean; {
		case half > goal.Within:
			vague = append(vague, i)
			if half > worst {
				worst, worstCell = half, i
			}
		case half+s.Error/s.Mean > goal.Within:
			estimated = append(estimated, i)
			error = max(error, s.Error/s.Mean)
		}
	}
	figure, asked := info(goal.Figure).titled(), fmt.Sprintf("the ±%.3g %% asked for", goal.Within*100)
	if len(vague) > 0 {
		w.Advice = append(w.Advice, Advice{"repeats",
			fmt.Sprintf("Of %s, %d scatter too much in %s for %s; most does %s, ±%.2g %%. More repeats would show it.",
				report.Counted(int64(len(w.Cells)), "cell"), len(vague), figure, asked, w.group(w.Cells[worstCell].Values),
				worst*100), vague})
	}
	if len(estimated) > 0 {
		w.Advice = append(w.Advice, Advice{"repeats",
			fmt.Sprintf("Of %s, %d are less exact in %s than %s for its own error, up to ±%.2g %%, against which repeats do "+
				"not help.",
				report.Counted(int64(len(w.Cells)), "cell"), len(estimated), figure, asked, error*100), estimated})
	}
}

// notes say what is not known, and what intervals rest on.
func (w *comparing) notes() {
	single, imaginary, blank := 0, 0, 0
	for i, c := range w.Cells {
		if c.Done == 1 {
			single++
		}
		if c.State == Done && len(c.Figures) == 0 {
			blank++
		}
		if c.State == Done && !w.speaks(i, RSS) {
			imaginary++
		}
	}
	if single > 0 {
		w.note("%s of %d ran once: no interval is known there.", report.Counted(int64(single), "cell"), len(w.Cells))
	}
	if blank > 0 {
		w.note("%s without figures: each trial ended before its memory was first read. A longer trial has them.",
			report.Counted(int64(blank), "cell"))
	}
	if imaginary > 0 {
		w.note("The host's figures of %s on imaginary devices are in no ratio: nothing is computed there, so they are not "+
			"those of a real run.", report.Counted(int64(imaginary), "cell"))
	}
	if slices.ContainsFunc(w.Ratios, func(r Ratio) bool { return r.Figure != r.BaseFigure }) {
		w.note("Host and device are compared by different figures: %s is of the whole process with its libraries, %s is "+
			"what it took on the device.", info(w.Figure).titled(), info(w.Device).Title)
	}
	if w.beside {
		w.note("Trials ran beside each other: times and processor use are those of shared processors, and are not compared.")
		if w.Figure == PSS {
			w.note("PSS shares out the pages of libraries among the programs that use them, so it is less where trials of " +
				"one framework ran at once. RSS is not.")
		}
	}
	w.noteBasis()
	w.noteMissing()
	if w.options.Holdings == nil && len(w.Ratios) > 0 {
		w.note("What explains the differences was not looked for.")
	}
}

func (w *comparing) note(format string, values ...any) {
	w.Notes = append(w.Notes, fmt.Sprintf(format, values...))
}

// noteBasis says what the intervals of the leading figure rest on.
func (w *comparing) noteBasis() {
	n, ok := w.noise[w.Figure]
	switch figure := info(w.Figure).titled(); {
	case !ok:
	case !n.any:
		if slices.ContainsFunc(w.Cells, func(c CellStats) bool { return c.Done > 1 }) {
			w.note("No two runs of a cell differ in %s.", figure)
		}
	case n.likes == nil:
		w.note("Some cells' runs scatter more than others'. Intervals of %s rest on the runs of each cell.", figure)
	case len(n.by) == 0:
		w.note("The runs of all cells scatter alike, by %.2g %% of %s. Intervals rest on that.",
			math.Sqrt(n.likes[""].variance)*100, figure)
	default:
		var names []string
		for _, a := range n.by {
			names = append(names, w.Axes[a].Name)
		}
		w.note("Runs of the same %s scatter alike. Intervals of %s rest on that.", strings.Join(names, " and "), figure)
	}
}

// noteMissing says why cells were not measured: each reason once.
func (w *comparing) noteMissing() {
	type reason struct {
		state State
		text  string
	}
	counts := map[reason]int{}
	var order []reason
	for _, c := range w.Cells {
		if c.State == Done || c.State == "" {
			continue
		}
		r := reason{c.State, c.Reason}
		if counts[r] == 0 {
			order = append(order, r)
		}
		counts[r]++
	}
	for _, r := range order[:min(len(order), 8)] {
		w.note("%s: %s", report.Counted(int64(counts[r]), "cell"),
			CellStats{State: r.state, Reason: r.text, Done: 0, Trials: 1}.outcome())
	}
	if left := len(order) - 8; left > 0 {
		w.note("%s more why cells were not measured.", report.Counted(int64(left), "reason"))
	}
}
