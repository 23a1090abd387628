package tui

import (
	"fmt"
	"strings"

	"hightide/internal/live"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/sampler"
	"hightide/internal/store"

	"github.com/charmbracelet/x/ansi"
)

// gauge is a line of a bar: what, how full, and in figures.
type gauge struct {
	name   string
	milli  mem.Optional // of the whole; absent: no bar
	figure string       // behind it
	curve  *live.Curve  // to its right, where there is room; nil: none
	whole  mem.Optional // that the curve is drawn up to
}

// usedMemory is what programs hold of a machine.
func usedMemory(p *sampler.Picture) mem.Optional {
	total, ok := p.Total.Get()
	available, known := p.Available.Get()
	if !ok || !known {
		return mem.Optional{}
	}
	return mem.Some(total - available)
}

// share in thousandths; absent where either is not known.
func share(part, whole mem.Optional) mem.Optional {
	p, ok := part.Get()
	w, known := whole.Get()
	if !ok || !known || w <= 0 {
		return mem.Optional{}
	}
	return mem.Some(int64(float64(p) / float64(w) * 1000))
}

// gauges of a machine: memory, its limit, swap, processors, and each GPU.
func (s *State) gauges() (all []gauge) {
	p := &s.Machine
	used := usedMemory(p)
	all = append(all, gauge{"Memory", share(used, p.Total), ofSizes(used, p.Total), &s.Memory, p.Total})
	if limit := share(p.Group, p.Limit); limit.Known() && p.Limit.Or(0) < p.Total.Or(0) {
		all = append(all, gauge{"Limit", limit, ofSizes(p.Group, p.Limit) + ", control group", nil, mem.Optional{}})
	}
	if swap, ok := p.Swap.Get(); ok && swap > 0 {
		used := mem.Some(swap - p.SwapFree.Or(0))
		all = append(all, gauge{"Swap", share(used, p.Swap), ofSizes(used, p.Swap), nil, mem.Optional{}})
	}
	cores := fmt.Sprintf("%d cores, load %s", p.Cores, p.Load)
	all = append(all, gauge{"CPU", p.Busy, cores, &s.Busy, mem.Some(1000)})
	for i := range p.GPUs {
		g := cardGauge(&p.GPUs[i])
		g.curve, g.whole = s.Cards[p.GPUs[i].Index], p.GPUs[i].Memory
		all = append(all, g)
	}
	return all
}

func ofSizes(part, whole mem.Optional) string {
	return strings.TrimSpace(size(part)) + " of " + size(whole)
}

func cardGauge(c *sampler.Card) gauge {
	figure := ofSizes(c.Used, c.Memory)
	if busy, ok := c.Utilisation.Get(); ok {
		figure += ", busy " + percent(busy)
	}
	if degrees, ok := c.Temperature.Get(); ok {
		figure += fmt.Sprintf(", %d °C", degrees)
	}
	if milliwatts, ok := c.Power.Get(); ok {
		figure += fmt.Sprintf(", %d W", milliwatts/1000)
	}
	return gauge{fmt.Sprintf("GPU %d", c.Index), share(c.Used, c.Memory), figure + "  " + c.Name, nil, mem.Optional{}}
}

// trend is a spark line of the newest of a curve.
func trend(c *live.Curve, of []live.Point, width int) string {
	if len(of) == 0 || width <= 0 {
		return ""
	}
	from := of[max(len(of)-width, 0)].Time
	return spark(c.Highest(from, of[len(of)-1].Time, width))
}

// shareTrend is how full something was lately, drawn up to all of it as the bar is.
func shareTrend(c *live.Curve, whole mem.Optional, width int) string {
	if c == nil || len(c.Recent) == 0 || width <= 0 || whole.Or(0) <= 0 {
		return ""
	}
	from := c.Recent[max(len(c.Recent)-width, 0)].Time
	return sparkTo(c.Highest(from, c.Recent[len(c.Recent)-1].Time, width), whole.Or(0))
}

// imaginedGauges are the imaginary GPUs of the runs that go on.
func (s *State) imaginedGauges() (all []gauge) {
	for i := range s.Runs {
		r := &s.Runs[i]
		view := s.Live[r.ID]
		if view == nil || view.End != nil || r.State != store.Running {
			continue
		}
		for _, card := range view.Cards() {
			name, of := strings.Replace(card.Device, "nvidia:", "GPU ", 1), ""
			if !strings.HasPrefix(name, "GPU ") { // of a played rank: "rank 127 nvidia:7"
				name, of = "GPU", card.Device+", "
			}
			total := mem.Some(int64(card.Total))
			all = append(all, gauge{name, share(card.Used, total), ofSizes(card.Used, total) + ", imagined  " + of + card.GPU +
				", " + firstOf(r.Name, r.ID), nil, mem.Optional{}})
		}
	}
	return all
}

// gaugesThatFit leaves out GPUs where there are too many, and says how many and how full they are.
func gaugesThatFit(all []gauge, height int) []gauge {
	if len(all) <= height {
		return all
	}
	kept, fullest := all[:max(height-1, 0)], mem.Optional{}
	rest := all[len(kept):]
	for _, g := range rest {
		fullest.Raise(g.milli)
	}
	return append(kept[:len(kept):len(kept)], gauge{fmt.Sprintf("+ %d", len(rest)), fullest, "the fullest of " +
		report.Counted(int64(len(rest)), "more GPU"), nil, mem.Optional{}})
}

// A curve beside a bar is so wide, or there is none.
const leastSparks, mostSparks = 10, 40

// gaugeLines draw a machine.
func (s *State) gaugeLines(width, height int) (lines []string) {
	barWidth := min(max(width/3, 10), 48, max(width-37, 4))
	gauges := append(s.gauges(), s.imaginedGauges()...)
	for _, g := range gaugesThatFit(gauges, height) {
		meter, figure := strings.Repeat(" ", barWidth), "    -"
		if milli, ok := g.milli.Get(); ok {
			meter, figure = bar(milli, barWidth), pad(percent(milli), 5, true)
		}
		line := " " + pad(g.name, 7, false) + meter + " " + figure + "  " + g.figure
		if room := min(width-ansi.StringWidth(line)-3, mostSparks); room >= leastSparks {
			curve := shareTrend(g.curve, g.whole, room)
			line = pad(line, width-ansi.StringWidth(curve)-1, false) + paint(cyan, curve)
		}
		lines = append(lines, line)
	}
	return lines
}
