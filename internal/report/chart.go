package report

import (
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
)

const (
	chartHeight = 6
	chartMargin = 11 // for the scale
)

// phaseInk is how a phase looks in the strip below the curve: a letter, and a colour.
var phaseInk = map[mem.Phase]struct {
	letter rune
	code   string
}{
	mem.PhaseData: {'d', "33"}, mem.PhaseForward: {'f', "32"}, mem.PhaseBackward: {'b', "34"},
	mem.PhaseOptimizer:  {'o', "35"},
	mem.PhaseEvaluation: {'e', "36"}, mem.PhaseCheckpoint: {'c', "31"}, mem.PhaseUser: {'u', "37"},
	mem.PhaseStep: {'s', "37"},
}

// picture is a curve with the phases below it. Its x runs from begin to end, in ns or events.
type picture struct {
	title      string
	label      mem.Label
	x, y       []int64
	reserved   []int64 // around y; nil: not known
	high       int64   // of the scale; 0: the highest of the curve
	begin, end int64
	unit       mem.Unit // of y
	bars       []bar
	inferred   bool // the bars
	axis       []string
}

// bar is a stay in a phase.
type bar struct {
	phase    mem.Phase
	from, to int64
}

// chart draws the leading curve over the time of a run, or over what has a number.
func (p *printer) chart(r *Report) {
	s := r.leading()
	if s != nil && len(s.X) > 1 && s.XUnit == mem.UnitEvents {
		end := s.X[len(s.X)-1] + 1
		p.picture(&picture{title: Shorten(UpperFirst(Clean(s.FullTitle())), p.Width-20), label: s.Label,
			x: append(s.X, end), y: append(s.Y, s.Y[len(s.Y)-1]), end: end, unit: s.Unit,
			axis: []string{"1", Count(end)}})
		return
	}
	if s == nil || len(s.X) < 2 || r.Headline.Duration <= 0 {
		return
	}
	end := max(r.Headline.Duration, s.X[len(s.X)-1])
	p.picture(&picture{title: Shorten(UpperFirst(Clean(s.FullTitle())), p.Width-20) + " over time", label: s.Label,
		x: s.X, y: s.Y, end: end, unit: s.Unit,
		bars: r.barsOfPeak(), axis: []string{"0 s", Duration(end / 2), Duration(end)}})
}

// picture draws a curve, with what its highest point is at the left.
func (p *printer) picture(c *picture) {
	columns, high := p.Width-chartMargin-2, max(c.high, slices.Max(c.y))
	label, heights, around := string(c.label), c.perColumn(c.y, columns), make([]int64, columns)
	if c.reserved != nil {
		high, around = max(high, slices.Max(c.reserved)), c.perColumn(c.reserved, columns)
		label += "; ░: reserved, not allocated"
	}
	p.title(c.title + p.paint(dim, " ("+label+")"))
	for row := chartHeight - 1; row >= 0; row-- {
		scale := map[int]string{chartHeight - 1: FormatCell(high, c.unit), 0: FormatCell(int64(0), c.unit)}[row]
		p.line(fmt.Sprintf("  %*s │", chartMargin-3, scale) + p.paint(cyan, p.chartRow(heights, around, high, row)))
	}
	p.strip(c, columns)
	if c.axis == nil {
		return
	}
	axis, last := c.axis[0], c.axis[len(c.axis)-1]
	if len(c.axis) > 2 {
		axis += strings.Repeat(" ", max(columns/2-len(axis)-len([]rune(c.axis[1]))/2, 1)) + c.axis[1]
	}
	axis += strings.Repeat(" ", max(columns-len([]rune(axis))-len([]rune(last)), 1)) + last
	p.line(strings.Repeat(" ", chartMargin) + p.paint(dim, axis))
}

// leading is the curve that the picture leads with.
func (r *Report) leading() *Series {
	var best *Series
	for i := range r.Series {
		s := &r.Series[i]
		if s.Name == r.Headline.MainSource && (best == nil || s.Process == r.Headline.Peak.Process) {
			best = s
		}
	}
	if best == nil && len(r.Series) > 0 {
		best = &r.Series[0]
	}
	return best
}

// perColumn is the highest value in each column, -1 where nothing was seen yet; gaps hold the last.
func (c *picture) perColumn(y []int64, columns int) []int64 {
	out := slices.Repeat([]int64{-1}, columns)
	for i, x := range c.x {
		at := c.column(x, columns)
		out[at] = max(out[at], y[i])
	}
	for i := 1; i <= c.column(c.x[len(c.x)-1], columns); i++ {
		if out[i] < 0 {
			out[i] = out[i-1]
		}
	}
	return out
}

func (c *picture) column(x int64, columns int) int {
	return min(max(int(float64(x-c.begin)/float64(max(c.end-c.begin, 1))*float64(columns)), 0), columns-1)
}

var eighths = []rune(" ▁▂▃▄▅▆▇█")

var asciiEighths = []rune("  ..::+##")

// chartRow is one line of the picture; each character cell has eight levels, and a shade where nothing but what is
// around reaches.
func (p *printer) chartRow(heights, around []int64, high int64, row int) string {
	levels, shade := eighths, '░'
	if p.ASCII {
		levels, shade = asciiEighths, '.'
	}
	level := func(v int64) int {
		if v <= 0 || high <= 0 {
			return 0
		}
		return min(max(int(float64(v)/float64(high)*8*chartHeight+0.5)-8*row, 0), 8)
	}
	out := make([]rune, len(heights))
	for i, v := range heights {
		if out[i] = levels[level(v)]; level(v) == 0 && level(around[i]) > 4 {
			out[i] = shade
		}
	}
	return string(out)
}

// Panel is memory allocated and reserved over the events of a trace, in parts at equal distances.
type Panel struct {
	Title    string
	Label    mem.Label
	Used     []int64
	Reserved []int64
	Parts    int // there would be to the end; where there are fewer, memory ran out
}

// Panels draws curves below each other, to one scale.
func Panels(o TextOptions, panels ...Panel) string {
	p, high := newPrinter(o), int64(1)
	for _, of := range panels {
		high = max(high, slices.Max(append(of.Reserved, 0)))
	}
	for _, of := range panels {
		c := &picture{title: of.Title, label: of.Label, y: of.Used, reserved: of.Reserved, high: high,
			end: int64(of.Parts) - 1, unit: mem.UnitBytes}
		for i := range of.Used {
			c.x = append(c.x, int64(i))
		}
		if len(c.y) == 0 {
			c.x, c.y, c.reserved = []int64{0}, []int64{0}, []int64{0}
		}
		if len(of.Used) < of.Parts {
			c.title += ", until memory ran out"
		}
		p.picture(c)
	}
	return p.finish()
}

// strip draws which phase took most of each column.
func (p *printer) strip(c *picture, columns int) {
	phases := c.dominantPhases(columns)
	if !slices.ContainsFunc(phases, func(phase mem.Phase) bool { return phase != mem.PhaseNone }) {
		p.line(strings.Repeat(" ", chartMargin-1) + "└" + strings.Repeat("─", columns))
		return
	}
	var b strings.Builder
	for _, phase := range phases {
		if ink, ok := phaseInk[phase]; ok {
			b.WriteString(p.paint(ink.code, string(ink.letter)))
		} else {
			b.WriteByte(' ')
		}
	}
	p.line(fmt.Sprintf("  %*s └", chartMargin-3, "phase") + b.String())
	var legend []string
	for _, phase := range mem.Phases {
		if ink, ok := phaseInk[phase]; ok && slices.Contains(phases, phase) {
			legend = append(legend, p.paint(ink.code, string(ink.letter))+" "+string(phase))
		}
	}
	if c.inferred {
		legend = append(legend, p.paint(dim, "(inferred)"))
	}
	p.line(strings.Repeat(" ", chartMargin) + strings.Join(legend, "  "))
}

// dominantPhases is the phase that took most of each column. Where steps were thinned the column between two kept
// ones repeats.
func (c *picture) dominantPhases(columns int) []mem.Phase {
	taken, phases := make([]map[mem.Phase]int64, columns), make([]mem.Phase, columns)
	edge := func(column int) int64 {
		return c.begin + int64(float64(column)/float64(columns)*float64(c.end-c.begin))
	}
	for _, b := range c.bars {
		for at := c.column(b.from, columns); at <= c.column(b.to, columns); at++ {
			if taken[at] == nil {
				taken[at] = map[mem.Phase]int64{}
			}
			taken[at][b.phase] += max(min(b.to, edge(at+1))-max(b.from, edge(at)), 0)
		}
	}
	for at := range phases {
		var most int64
		for _, phase := range mem.Phases {
			if n := taken[at][phase]; n > most {
				most, phases[at] = n, phase
			}
		}
	}
	return phases
}

// barsOfPeak are the phases of the process at the peak, or of the one that has most of them.
func (r *Report) barsOfPeak() (bars []bar) {
	process, of := r.Headline.Peak.Process, map[uint32]int{}
	for _, b := range r.Phases {
		of[b.Process]++
	}
	if of[process] == 0 {
		for id, n := range of {
			if n > of[process] || n == of[process] && id < process {
				process = id
			}
		}
	}
	for _, b := range r.Phases {
		if b.Process == process && b.Phase != mem.PhaseModule && b.Phase != mem.PhaseStep && b.Phase != mem.PhaseUser {
			bars = append(bars, bar{b.Phase, b.Start, b.End})
		}
	}
	return bars
}
