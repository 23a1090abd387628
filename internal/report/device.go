package report

import (
	"fmt"

	"hightide/internal/mem"
)

// devicesDrawn is how many devices the terminal draws.
const devicesDrawn = 4

// devices draws the course of each device's memory over its events, and its segments.
func (p *printer) devices(r *Report) {
	for _, a := range r.Allocators[:min(len(r.Allocators), devicesDrawn)] {
		p.course(a)
		p.tape(a)
	}
}

// course draws what was allocated over the events, with the phases below.
func (p *printer) course(a *Allocator) {
	if len(a.Curve) < 3 {
		return
	}
	c := &picture{title: "Allocated on " + a.Title + ", event by event", label: a.Label, begin: int64(a.First),
		end: int64(a.Last), unit: mem.UnitBytes, inferred: true,
		axis: []string{"event " + Count(int64(a.First)), Count(int64(a.Last))}}
	for _, point := range a.Curve {
		c.x, c.y, c.reserved = append(c.x, int64(point.Event)), append(c.y, int64(point.Allocated)),
			append(c.reserved, point.Reserved.Or(0))
	}
	if a.Steps != nil {
		for _, phase := range a.Steps.Phases {
			c.bars = append(c.bars, bar{phase.Phase, int64(phase.From), int64(phase.To) + 1})
		}
	}
	if !a.Highest.Reserved.Known() {
		c.reserved = nil
	}
	p.picture(c)
}

const tapeRows = 3

var fills = []rune(" ░▒▓█")

var asciiFills = []rune(" .:+#")

// tape draws the segments one after the other, by address: each character is an equal part of the memory
// reserved, as dark as it is in use.
func (p *printer) tape(a *Allocator) {
	var reserved, used mem.Bytes
	for i := range a.Map {
		reserved += a.Map[i].Size
		used += a.Map[i].Active
	}
	if reserved == 0 || used == 0 {
		return
	}
	width := p.Width - 4
	cells, levels := make([]float64, width*tapeRows), fills
	if p.ASCII {
		levels = asciiFills
	}
	part, at := float64(reserved)/float64(len(cells)), 0.0
	for i := range a.Map {
		for _, b := range a.Map[i].Blocks {
			end := at + float64(b[0])
			for b[1] != int64(mem.BlockInactive) && at < end {
				cell := min(int(at/part), len(cells)-1)
				until := min(end, float64(cell+1)*part)
				if until <= at {
					break
				}
				cells[cell] += (until - at) / part
				at = until
			}
			at = end
		}
	}
	title := Shorten(fmt.Sprintf("Segments of %s %s", a.Title, momentText(a)), p.Width)
	p.title(title + p.paint(dim, Shorten(fmt.Sprintf(" (each character %v; dark is in use, light is cached)",
		mem.Bytes(part)), p.Width-len([]rune(title)))))
	for row := range tapeRows {
		line := make([]rune, width)
		for i := range line {
			full := cells[row*width+i]
			line[i] = levels[min(int(full*float64(len(levels)-1)+0.5), len(levels)-1)]
			if full > 0 && line[i] == ' ' {
				line[i] = levels[1]
			}
			if line[i] == ' ' {
				line[i] = '·'
			}
		}
		p.line("  " + string(line))
	}
}

func momentText(a *Allocator) string {
	if a.At == a.Peak {
		return "at the peak"
	}
	return AfterEvent(a.At.Event)
}

// traceFacts is what there was to read, of a report of files.
func (r *Report) traceFacts() []string {
	if len(r.Allocators) == 0 || r.Headline.Duration > 0 {
		return nil
	}
	events, devices := 0, len(r.Allocators)
	for _, a := range r.Allocators {
		events += a.Events
	}
	facts := []string{Counted(int64(events), "event")}
	if events == 0 {
		facts[0] = "no trace"
	}
	if devices > 1 {
		facts = append(facts, fmt.Sprintf("%d devices", devices))
	}
	if s := r.Allocators[0].Steps; s != nil && len(s.Steps) > 0 {
		facts = append(facts, fmt.Sprintf("%d steps (%s)", len(s.Steps), s.Source))
	}
	return facts
}
