package growth

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// leastLogged of a device that its growth is told from, where there are no steps.
const leastLogged = 16

// readLog looks at a recording that has no process: where one was recorded, growth tells of it.
func (in *Found) readLog() (all log, said, notLooked string) {
	var looked []string
	least, readings := facts.LeastTotal, 0
	for _, s := range in.Run.Series {
		if s.Name != mem.SeriesDeviceUsed || len(s.Values) == 0 {
			continue
		}
		c := card{device: s.Device, peak: s.Values[s.Peak()], last: s.Values[len(s.Values)-1], all: in.MemoryOf(s.Device)}
		if whole, ok := c.all.Get(); ok && c.peak > whole {
			all.contradicting = append(all.contradicting, fmt.Sprintf("The file contradicts itself: %s had %v in use, and "+
				"has %v in all.", s.Device, mem.Bytes(c.peak), mem.Bytes(whole)))
		}
		readings = max(readings, len(s.Values))
		from, to := s.Times[0], s.Times[len(s.Times)-1]
		if time.Duration(to-from) < leastLifeRSS || len(s.Values) < leastLogged {
			continue
		}
		minutes := func(at int64) float64 { return float64(at-from) / float64(time.Minute) }
		floor := max(facts.LeastTotal, facts.LeastShare*float64(c.peak))
		c.trend = usage.TrendOf(usage.Binned(s.Times, s.Values, from, to, usage.MostBins, minutes), usage.Noise{}, floor)
		looked, least = append(looked, s.Device), max(least, floor)
		if c.trend.Steady {
			all.cards = append(all.cards, c)
		}
	}
	slices.SortStableFunc(all.cards, func(a, b card) int { return int(math.Copysign(1, b.trend.Slope-a.trend.Slope)) })
	if len(looked) == 0 {
		return all, "", fmt.Sprintf("Growth was not looked for: %s over %s are too few to tell it. It takes %d over %s.",
			report.Counted(int64(readings), "reading"), report.Duration(in.End-in.Start), leastLogged,
			report.Duration(int64(leastLifeRSS)))
	}
	return all, fmt.Sprintf("Looked for steady growth over time: %v or more of %s.", mem.Bytes(least),
		strings.Join(looked, ", ")), ""
}

// ofLog tells what grows over time on whole devices, and when they are full.
func (in *Found) ofLog() {
	in.log, in.Looked, in.NotLooked = in.readLog()
	in.Said.Notes = append(in.Said.Notes, in.log.contradicting...)
	for i := range in.log.cards {
		in.Said.Findings = append(in.Said.Findings, in.log.cards[i].finding(in.Label()))
	}
}

// finding puts the growth of a device into words.
func (c *card) finding(label mem.Label) report.Finding {
	rate := bytesPer(c.trend.Slope)
	f := report.Finding{Kind: report.KindGrowth, Severity: report.Warning, Label: label,
		Bytes:      mem.Some(int64(c.trend.Growth)),
		Confidence: math.Round(c.trend.Confidence()*doubtOverTime*1000) / 1000,
		Title:      fmt.Sprintf("what %s has in use grows %v per minute", c.device, rate),
		Text: fmt.Sprintf("The memory in use on %s, by all programs together, grows steadily: %v per minute (%s, ± %v), "+
			"%v by the end.",
			c.device, rate, label, bytesPer(c.trend.Half), mem.Bytes(c.trend.Growth)),
		Advice: "The log does not tell which program takes it, nor by which line: `hightide run -- COMMAND` does.",
	}
	if left, ok := c.left(); ok {
		f.Text += fmt.Sprintf(" The device has %v: at this rate it is full %s after the last reading (estimated).",
			mem.Bytes(c.all.Or(0)), report.Duration(left))
		f.Severity = report.Critical
	}
	return f
}

// left is the time in ns until the device is full, at the rate that was seen.
func (c *card) left() (int64, bool) {
	all, known := c.all.Get()
	if !known || c.trend.Slope <= 0 {
		return 0, false
	}
	minutes := float64(max(0, all-c.last)) / c.trend.Slope
	return int64(minutes * float64(time.Minute)), c.peak <= all && minutes < 1e6
}

// clause is the headline's word on it.
func (c *card) clause() string {
	text := fmt.Sprintf("grows %v per minute (%s)", bytesPer(c.trend.Slope), mem.Measured)
	if left, ok := c.left(); ok {
		text += fmt.Sprintf(": full in about %s (estimated)", report.Duration(left))
	}
	return text
}
