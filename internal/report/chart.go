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
	mem.PhaseData: {'d', "33"}, mem.PhaseForward: {'f', "32"}, mem.PhaseBackward: {'b', "34"}, mem.PhaseOptimizer: {'o', "35"},
	mem.PhaseEvaluation: {'e', "36"}, mem.PhaseCheckpoint: {'c', "31"}, mem.PhaseUser: {'u', "37"}, mem.PhaseStep: {'s', "37"},
}

// chart draws the leading curve with the phases below it.
func (p *printer) chart(r *Report) {
	s := r.leading()
	if s == nil || len(s.X) < 2 || r.Headline.Duration <= 0 {
		return
	}
	columns := p.Width - chartMargin - 2
	end := max(r.Headline.Duration, s.X[len(s.X)-1])
	heights := perColumn(s, end, columns)
	high := slices.Max(s.Y)
	p.title(Shorten(UpperFirst(Clean(s.FullTitle())), p.Width-20) + " over time" + p.paint(dim, fmt.Sprintf(" (%s)", s.Label)))
	p.rows(heights, high, FormatCell(high, s.Unit), FormatCell(int64(0), s.Unit))
	p.strip(r, end, columns)
	half := Duration(end / 2)
	axis := "0 s" + strings.Repeat(" ", max(columns/2-3-len([]rune(half))/2, 1)) + half
	last := Duration(end)
	axis += strings.Repeat(" ", max(columns-len([]rune(axis))-len([]rune(last)), 1)) + last
	p.line(strings.Repeat(" ", chartMargin) + p.paint(dim, axis))
}

// rows draws heights, with what the highest and the lowest are at the left.
func (p *printer) rows(heights []int64, high int64, top, bottom string) {
	for row := chartHeight - 1; row >= 0; row-- {
		scale := map[int]string{chartHeight - 1: top, 0: bottom}[row]
		p.line(fmt.Sprintf("  %*s │", chartMargin-3, scale) + p.paint(cyan, p.chartRow(heights, high, row)))
	}
}

// baseline ends a picture without phases.
func (p *printer) baseline(columns int) {
	p.line(strings.Repeat(" ", chartMargin-1) + "└" + strings.Repeat("─", columns))
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
func perColumn(s *Series, end int64, columns int) []int64 {
	out := make([]int64, columns)
	for i := range out {
		out[i] = -1
	}
	for i, x := range s.X {
		c := column(x, end, columns)
		out[c] = max(out[c], s.Y[i])
	}
	last := int64(-1)
	final := column(s.X[len(s.X)-1], end, columns)
	for i := range out[:final+1] {
		if out[i] < 0 {
			out[i] = last
		}
		last = out[i]
	}
	return out
}

var eighths = []rune(" ▁▂▃▄▅▆▇█")

var asciiEighths = []rune("  ..::+##")

// chartRow is one line of the picture; each character cell has eight levels.
func (p *printer) chartRow(heights []int64, high int64, row int) string {
	levels := eighths
	if p.ASCII {
		levels = asciiEighths
	}
	out := make([]rune, len(heights))
	for i, v := range heights {
		level := 0
		if v > 0 && high > 0 {
			level = int(float64(v)/float64(high)*8*chartHeight+0.5) - 8*row
		}
		out[i] = levels[min(max(level, 0), 8)]
	}
	return string(out)
}

// strip draws which phase took most of the time of each column.
func (p *printer) strip(r *Report, end int64, columns int) {
	phases, seen := dominantPhases(r, end, columns)
	if len(seen) == 0 {
		p.baseline(columns)
		return
	}
	var b strings.Builder
	for _, phase := range phases {
		ink, ok := phaseInk[phase]
		switch {
		case !ok:
			b.WriteByte(' ')
		case p.Color:
			b.WriteString(p.paint(ink.code, string(ink.letter)))
		default:
			b.WriteRune(ink.letter)
		}
	}
	p.line(fmt.Sprintf("  %*s └", chartMargin-3, "phase") + b.String())
	var legend []string
	for _, phase := range mem.Phases {
		if ink, ok := phaseInk[phase]; ok && seen[phase] {
			legend = append(legend, p.paint(ink.code, string(ink.letter))+" "+string(phase))
		}
	}
	p.line(strings.Repeat(" ", chartMargin) + strings.Join(legend, "  "))
}

// dominantPhases is the phase that took most of each column's time, of the process at the peak or
// the one whose steps count. Where steps were thinned the column between two kept ones repeats.
func dominantPhases(r *Report, end int64, columns int) ([]mem.Phase, map[mem.Phase]bool) {
	process := r.Headline.Peak.Process
	of := map[uint32]int{}
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
	time := make([]map[mem.Phase]int64, columns)
	for _, b := range r.Phases {
		if b.Process != process || b.Phase == mem.PhaseModule || b.Phase == mem.PhaseStep || b.Phase == mem.PhaseUser {
			continue
		}
		first, last := column(b.Start, end, columns), column(b.End, end, columns)
		for c := first; c <= last; c++ {
			from, to := int64(float64(c)/float64(columns)*float64(end)), int64(float64(c+1)/float64(columns)*float64(end))
			if time[c] == nil {
				time[c] = map[mem.Phase]int64{}
			}
			time[c][b.Phase] += max(min(b.End, to)-max(b.Start, from), 0)
		}
	}
	phases, seen := make([]mem.Phase, columns), map[mem.Phase]bool{}
	for c := range phases {
		var most int64
		for _, phase := range mem.Phases {
			if t := time[c][phase]; t > most {
				most, phases[c] = t, phase
			}
		}
		if phases[c] != mem.PhaseNone {
			seen[phases[c]] = true
		}
	}
	return phases, seen
}

func column(t, end int64, columns int) int {
	return min(max(int(float64(t)/float64(max(end, 1))*float64(columns)), 0), columns-1)
}
