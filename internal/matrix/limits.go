package matrix

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// limit foretells the largest batch; nil: the memory is not known, or how exact the fit is.
func (w *comparing) limit(f *Fit, points []point, best fitted, cells []int, batch int) *Limit {
	l := &Limit{Failed: w.failed(cells, batch)}
	l.Of, l.Memory = w.memory(f.Values, f.Figure)
	if l.Memory <= 0 || best.df <= 0 { // nothing says how far off it would be
		return nil
	}
	seq := points[len(points)-1].seq
	largest := 0.0
	for _, p := range points {
		largest = max(largest, p.batch)
	}
	room := float64(l.Memory)
	l.Batch = most(func(b float64) bool { return best.at(b, seq) <= room })
	l.Low = most(func(b float64) bool { _, _, high := w.band(best, b, seq); return high <= room })
	if high := most(func(b float64) bool { low, _, _ := w.band(best, b, seq); return low <= room }); high < endless {
		l.High = &high
	}
	last := f.Terms[len(f.Terms)-1].Interval
	l.Unlimited = l.Batch >= endless || len(f.Terms) == 2 && last != nil && last.Low <= 0 // it was not seen to grow
	if l.Unlimited {
		l.Batch, l.Low, l.High = 0, 0, nil
	}
	l.Times = float64(l.Batch) / largest
	l.Refuted = l.Failed != nil && (l.Unlimited || l.Batch >= *l.Failed)
	return l
}

// endless is a batch that nothing holds.
const endless = 1 << 31

// most is the largest whole number up to which a condition holds, 0: it does not of 1.
func most(holds func(float64) bool) int64 {
	low, high := int64(0), int64(1)
	for holds(float64(high)) {
		if high >= endless {
			return endless
		}
		low, high = high, high*2
	}
	for high-low > 1 {
		middle := (low + high) / 2
		if holds(float64(middle)) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// failed is the least batch that ran out of memory.
func (w *comparing) failed(cells []int, batch int) *int64 {
	var least *int64
	for _, i := range cells {
		if w.Cells[i].State != OutOfMemory {
			continue
		}
		if n := int64(number(w.Cells[i].Values[batch])); least == nil || n < *least {
			least = &n
		}
	}
	return least
}

// memory is what cells with these values have: of the device, else of the smallest machine.
func (w *comparing) memory(values []string, f Figure) (string, int64) {
	if d := w.device(); d >= 0 {
		if room, ok := w.options.Memory[values[d]]; ok || !isHost(values[d]) {
			return w.shown(d, values[d]), room.of(f)
		}
	}
	if len(w.result.Machines) == 0 {
		return "", 0
	}
	least := slices.MinFunc(w.result.Machines, func(p, q Machine) int { return order2(float64(p.Memory-q.Memory), 0) })
	return least.Name, least.Memory
}

// curvePoints is how many a curve has.
const curvePoints = 30

// curve is the fit from no batch to the largest one measured, and on to the limit where that is near.
func (w *comparing) curve(f *Fit, points []point, best fitted) *Curve {
	end, seq := 0.0, points[len(points)-1].seq
	for _, p := range points {
		end = max(end, p.batch)
	}
	if l := f.Limit; l != nil && !l.Unlimited {
		end = max(end, min(float64(l.Batch), 8*end))
	}
	c := &Curve{}
	for i := range curvePoints {
		x := end * float64(i) / (curvePoints - 1)
		low, middle, high := w.band(best, x, seq)
		roundAll(&x, &low, &middle, &high)
		c.X, c.Fit = append(c.X, x), append(c.Fit, middle)
		if best.df > 0 {
			c.Low, c.High = append(c.Low, low), append(c.High, high)
		}
	}
	return c
}

// scalingSentence says how memory goes with the batch, and where that ends.
func (w *comparing) scalingSentence(f *Fit) string {
	of := w.subject(f.Figure, w.group(f.Values))
	last := f.Terms[len(f.Terms)-1]
	said := fmt.Sprintf("%s goes as %s: ", report.UpperFirst(of), f.Form)
	for k, t := range f.Terms {
		if k > 0 {
			said += ", "
		}
		said += fmt.Sprintf("%c = %s", 'a'+rune(k), t.words())
	}
	if len(f.Terms) == 2 && last.Interval != nil && last.Interval.Low <= 0 && last.Interval.High >= 0 {
		said = fmt.Sprintf("%s was not seen to grow with the batch: %s an item", report.UpperFirst(of), last.words())
	}
	switch {
	case f.Freedom == 0:
		said += "; as many cells as terms, so that nothing says whether it is of that form"
	case !f.Judged:
		said += fmt.Sprintf("; R² %.4f", f.R2)
	case !f.Straight:
		said += fmt.Sprintf("; R² %.3f, but the cells lie further off than their runs scatter: it is not quite of that "+
			"form", f.R2)
	default:
		said += fmt.Sprintf("; R² %.4f", f.R2)
	}
	return said + "." + w.limitSentence(f)
}

// limitSentence is the largest batch with what it rests on.
func (w *comparing) limitSentence(f *Fit) string {
	l := f.Limit
	if l == nil || l.Unlimited {
		return ""
	}
	if l.Refuted {
		return fmt.Sprintf(" By that a batch of %s would fit into the %s of %s, but one of %s ran out of memory: beyond "+
			"what was measured it is not of that form.",
			report.Count(l.Batch), mem.Bytes(l.Memory), l.Of, report.Count(*l.Failed))
	}
	said := fmt.Sprintf(" %s of %s hold a batch of %s", mem.Bytes(l.Memory), l.Of, report.Count(l.Batch))
	switch {
	case l.Low > 0 && l.High != nil && l.Low == *l.High:
	case l.Low > 0 && l.High != nil:
		said += fmt.Sprintf(" (95 %%: %s to %s)", report.Count(l.Low), report.Count(*l.High))
	default:
		said += fmt.Sprintf(" (95 %%: %s at least)", report.Count(l.Low))
	}
	if l.Times > 1 {
		said += fmt.Sprintf(", %s times the largest one measured, if it goes on like that", Times(l.Times))
	}
	if l.Failed != nil {
		said += fmt.Sprintf("; a batch of %s ran out of memory", report.Count(*l.Failed))
	}
	return said + "."
}

// group names cells by the values that they share.
func (c *Comparison) group(values []string) string {
	var names []string
	for a, v := range values {
		if v != "" && len(c.Axes[a].Values) > 1 {
			names = append(names, c.named(a, v))
		}
	}
	if len(names) == 0 {
		return "all cells"
	}
	return strings.Join(names, ", ")
}
