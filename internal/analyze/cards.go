package analyze

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// leastLogged of a device that its growth is told from, where there are no steps.
const leastLogged = 16

// card is a device that a log tells of as a whole, whoever used it.
type card struct {
	device string
	trend  usage.Trend // per minute
	peak   int64
	last   int64
	all    mem.Optional // what the device has
}

// cards looks at logs of whole devices, as nvidia-smi writes them: what grows over time, and when the device is full.
// Where a process was recorded, growth tells of it.
func cards(in *Input, r *report.Report) {
	if len(in.Run.Processes) > 0 {
		return
	}
	for _, s := range in.Run.Series {
		if all, ok := in.memoryOf(s.Device).Get(); ok && s.Name == mem.SeriesDeviceUsed && len(s.Values) > 0 &&
			s.Values[s.Peak()] > all {
			r.AddNote(fmt.Sprintf("The file contradicts itself: %s had %v in use, and has %v in all.", s.Device,
				mem.Bytes(s.Values[s.Peak()]), mem.Bytes(all)))
		}
	}
	var looked []string
	least, readings := leastTotal, 0
	for _, s := range in.Run.Series {
		if s.Name != mem.SeriesDeviceUsed || len(s.Values) == 0 {
			continue
		}
		readings = max(readings, len(s.Values))
		if span := s.Times[len(s.Times)-1] - s.Times[0]; time.Duration(span) < leastLifeRSS || len(s.Values) < leastLogged {
			continue
		}
		c, from := card{device: s.Device, peak: s.Values[s.Peak()], last: s.Values[len(s.Values)-1],
			all: in.memoryOf(s.Device)}, s.Times[0]
		minutes := func(at int64) float64 { return float64(at-from) / float64(time.Minute) }
		floor := max(leastTotal, leastShare*float64(c.peak))
		c.trend = usage.TrendOf(usage.Binned(s.Times, s.Values, from, s.Times[len(s.Times)-1], usage.MostBins, minutes),
			usage.Noise{}, floor)
		looked, least = append(looked, s.Device), max(least, floor)
		if c.trend.Steady {
			in.cards = append(in.cards, c)
		}
	}
	slices.SortStableFunc(in.cards, func(a, b card) int { return int(math.Copysign(1, b.trend.Slope-a.trend.Slope)) })
	for i := range in.cards {
		r.Findings = append(r.Findings, in.cards[i].finding(in.Label()))
	}
	r.Headline.NotLooked = ""
	if len(looked) == 0 {
		r.Headline.NotLooked = fmt.Sprintf("Growth was not looked for: %s over %s are too few to tell it. It takes %d "+
			"over %s.",
			report.Counted(int64(readings), "reading"), report.Duration(in.End-in.Start), leastLogged,
			report.Duration(int64(leastLifeRSS)))
		return
	}
	r.Headline.Looked = fmt.Sprintf("Looked for steady growth over time: %v or more of %s.", mem.Bytes(least),
		strings.Join(looked, ", "))
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

// memoryOf is what a device has in all, by the name that series have it under.
func (in *Input) memoryOf(device string) mem.Optional {
	for _, gpu := range in.Run.Info.Host.GPUs {
		if device == gpu.Name || device == fmt.Sprintf("gpu:%d", gpu.Index) {
			return gpu.Memory
		}
	}
	return mem.Optional{}
}
