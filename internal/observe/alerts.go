package observe

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"hightide/internal/event"
	"hightide/internal/mem"
)

// Alert is a limit that somebody set: on the value of a series, or on its growth per step.
type Alert struct {
	Text    string // as it was written
	Series  mem.Quantity
	Above   bool // else below
	Bytes   float64
	Percent float64 // of the total that the series belongs to; 0: Bytes counts
	PerStep bool
}

var alertForm = regexp.MustCompile(`^\s*([a-z][a-z0-9._]*)\s*(>=?|<=?)\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*|%)\s*(/\s*step)?\s*$`)

// alertNames are the short names and what they mean. host.rss is of the whole process tree, as in
// the report's headline.
var alertNames = map[string]mem.Quantity{
	"host.rss": mem.SeriesTreeRSS, "rss": mem.SeriesTreeRSS, "host.pss": mem.SeriesTreePSS, "pss": mem.SeriesTreePSS,
	"growth": mem.SeriesTreeRSS, // per step
	"heap":   mem.SeriesHeapLive, "device": mem.SeriesDeviceUsed, "gpu": mem.SeriesDeviceUsed,
	"allocated": mem.SeriesAllocated, "reserved": mem.SeriesReserved, "available": mem.SeriesSystemAvailable,
}

// ParseAlert reads a limit such as "host.rss > 8GiB", "rss > 50MiB/step", "device.used > 90%" or
// "system.available < 1GiB".
func ParseAlert(text string) (Alert, error) {
	m := alertForm.FindStringSubmatch(text)
	if m == nil {
		return Alert{}, fmt.Errorf("alert %q is not of the form SERIES > SIZE[/step], as in 'host.rss > 8GiB'", text)
	}
	a := Alert{Text: strings.TrimSpace(text), Series: mem.Quantity(m[1]), Above: m[2][0] == '>', PerStep: m[5] != ""}
	if full, ok := alertNames[m[1]]; ok {
		a.Series = full
	} else if !strings.Contains(m[1], ".") {
		return Alert{}, fmt.Errorf("alert %q: no series is called %s; there are %s, and full names such as host.vms", text, m[1], strings.Join(sortedKeys(alertNames), ", "))
	}
	if m[1] == "growth" && !a.PerStep {
		return Alert{}, fmt.Errorf("alert %q: growth is per step, as in 'growth > 50MiB/step'", text)
	}
	value, err := strconv.ParseFloat(m[3], 64)
	if err != nil || math.IsInf(value, 0) {
		return Alert{}, fmt.Errorf("alert %q: %s is no number", text, m[3])
	}
	if m[4] == "%" {
		a.Percent = value
		if a.PerStep {
			return Alert{}, fmt.Errorf("alert %q: a growth per step is given in bytes", text)
		}
		return a, nil
	}
	bytes, err := mem.ParseBytes(m[3] + m[4])
	if err != nil {
		return Alert{}, fmt.Errorf("alert %q: %w", text, err)
	}
	a.Bytes = float64(bytes)
	return a, nil
}

// alertState is an alert and whether it has sounded: once, until the value is well back.
type alertState struct {
	Alert
	sounded bool
}

// check returns true where the alert sounds now. total is what a percentage is of; 0: not known.
func (a *alertState) check(value, total float64) bool {
	limit := a.Bytes
	if a.Percent > 0 {
		if total <= 0 {
			return false
		}
		limit = total * a.Percent / 100
	}
	over := value > limit
	back := value < 0.9*limit
	if !a.Above {
		over, back = value < limit, value > 1.1*limit
	}
	switch {
	case over && !a.sounded:
		a.sounded = true
		return true
	case back:
		a.sounded = false
	}
	return false
}

// alert compares a new sample with the limits on its series.
func (r *Recorder) alert(key seriesKey, time, value int64) {
	for _, a := range r.alerts {
		if !a.PerStep && a.Series == key.name && a.check(float64(value), r.total(key)) {
			r.sound(a, key.process, time, mem.Bytes(value), "")
		}
	}
}

// total is what a percentage of a series means: of the machine or its control group for host
// memory, of the device for the device's.
func (r *Recorder) total(key seriesKey) float64 {
	if key.device != "" {
		return float64(r.deviceTotal(key.device))
	}
	total := r.latest[seriesKey{name: mem.SeriesSystemTotal}]
	if limit := r.latest[seriesKey{name: mem.SeriesCgroupLimit}]; limit > 0 && (limit < total || total == 0) {
		total = limit
	}
	return float64(total)
}

func (r *Recorder) deviceTotal(device string) int64 {
	for _, gpu := range r.info.Host.GPUs {
		if fmt.Sprintf("%s:%d", gpu.Vendor, gpu.Index) == device {
			return gpu.Memory.Or(0)
		}
	}
	return 0
}

// alertGrowth compares the growth per step with the limits on growth.
func (r *Recorder) alertGrowth(p *process, now int64) {
	slope, ok := p.growth.perStep()
	if !ok {
		return
	}
	for _, a := range r.alerts {
		if a.PerStep && a.check(slope, 0) {
			r.sound(a, p.ID, now, mem.Bytes(slope), " per step")
		}
	}
}

func (r *Recorder) sound(a *alertState, process uint32, time int64, value mem.Bytes, per string) {
	text := fmt.Sprintf("alert %s: it is %s%s", a.Text, value, per)
	frame := mem.Event{Time: time, Process: process, Kind: "alert", Text: text, Bytes: mem.Some(int64(value)), Facts: map[string]string{"alert": a.Text}}
	if steps := r.steps(); steps > 0 {
		frame.Step = mem.Some(int64(steps))
	}
	r.emit(frame)
	r.opts.Events.Tell(event.Alert{Text: text})
}
