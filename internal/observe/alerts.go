package observe

import (
	"cmp"
	"fmt"
	"strings"

	"hightide/internal/event"
	"hightide/internal/mem"
	"hightide/internal/sampler"
)

// alertState is an alert and what it has been compared with.
type alertState struct {
	Alert
	sounding map[seriesKey]bool // sounded, and not well back since
	growths  map[uint32]*growth // of PerStep, by process
	compared bool               // with anything
	noTotal  string             // a device whose memory is not known, though its series are
	sounded  bool
	asker    asker // a process of the run; its zero value: the command line
}

func newAlertState(a Alert) *alertState {
	return &alertState{Alert: a, sounding: map[seriesKey]bool{}, growths: map[uint32]*growth{}}
}

// check returns true where the alert sounds now: once for each series, until its value is well back. total is what a
// percentage is of; 0: not known.
func (a *alertState) check(key seriesKey, value, total float64) bool {
	limit := a.Limit
	if a.OfTotal {
		if total <= 0 {
			a.noTotal = key.device
			return false
		}
		limit = total * a.Limit / 100
	}
	a.compared = true
	over := value > limit
	back := value < 0.9*limit
	if !a.Above {
		over, back = value < limit, value > 1.1*limit
	}
	switch {
	case over && !a.sounding[key]:
		a.sounding[key], a.sounded = true, true
		return true
	case back:
		delete(a.sounding, key)
	}
	return false
}

// alert compares a new value of a series with the limits on it.
func (r *Recorder) alert(key seriesKey, time, value int64) {
	for _, a := range r.alerts {
		if !a.PerStep && a.Series == key.name && a.check(key, float64(value), r.total(key)) {
			r.sound(a, key, time, value)
		}
	}
}

// alertHeap compares the live heap, which is that of all processes together.
func (r *Recorder) alertHeap(now int64) {
	if len(r.alerts) == 0 {
		return
	}
	sum, known := int64(0), false
	for _, p := range r.order {
		if p.heap != nil && len(p.channels) > 0 {
			sum, known = sum+int64(p.heap.live), true
		}
	}
	if known {
		r.alert(seriesKey{name: mem.SeriesHeapLive}, now, sum)
	}
}

// alertMarks compares, at the end of a process, the marks that say more than any reading did: the kernel's, and the
// peak of the heap. Each is no more than what all processes held together at that moment.
func (r *Recorder) alertMarks(p *process, now int64) {
	marks := map[mem.Quantity]mem.Optional{mem.SeriesTreeRSS: p.MaxRSS}
	if p.heap != nil {
		marks[mem.SeriesHeapLive] = mem.Some(int64(p.heap.peak))
	}
	for _, a := range r.alerts {
		key := seriesKey{name: a.Series}
		if mark, ok := marks[a.Series].Get(); ok && a.Above && !a.PerStep && !a.sounded &&
			a.check(key, float64(mark), r.total(key)) {
			r.sound(a, key, now, mark)
		}
	}
}

// total is what a percentage of a series means: of the machine or its control group for host
// memory, of the device for the device's.
func (r *Recorder) total(key seriesKey) float64 {
	if key.device != "" {
		return float64(r.deviceTotal(key))
	}
	total := r.latest[seriesKey{name: mem.SeriesSystemTotal}]
	if limit := r.latest[seriesKey{name: mem.SeriesCgroupLimit}]; limit > 0 && (limit < total || total == 0) {
		total = limit
	}
	return float64(total)
}

// deviceTotal is the memory of a device, as its vendor's driver or the process's framework calls it.
func (r *Recorder) deviceTotal(key seriesKey) int64 {
	for _, p := range r.order {
		if p.ID == key.process && p.deviceMemory[key.device] > 0 {
			return p.deviceMemory[key.device]
		}
	}
	for _, gpu := range r.info.Host.GPUs {
		if fmt.Sprintf("%s:%d", strings.ToLower(gpu.Vendor), gpu.Index) == key.device {
			return gpu.Memory.Or(0)
		}
	}
	return 0
}

// alertStep takes in the end of a step where its growth is watched.
func (r *Recorder) alertStep(p *process, s mem.Step) {
	for _, a := range r.alerts {
		held := map[mem.Quantity]mem.Optional{mem.SeriesTreeRSS: s.RSS, mem.SeriesHeapLive: s.Heap,
			mem.SeriesAllocated: s.Device}[a.Series]
		if bytes, ok := held.Get(); ok && a.PerStep {
			if a.growths[p.ID] == nil {
				a.growths[p.ID] = &growth{}
			}
			a.growths[p.ID].point(s.Number, bytes)
		}
	}
}

// alertGrowth compares the growth per step with the limits on growth.
func (r *Recorder) alertGrowth(p *process, now int64) {
	for _, a := range r.alerts {
		g := a.growths[p.ID]
		if a.Series == "" {
			g = &p.growth
		}
		if !a.PerStep || g == nil || !g.enough() {
			continue
		}
		slope, grows := g.perStep()
		if !grows {
			slope = min(slope, 0)
		}
		if key := (seriesKey{process: p.ID}); a.check(key, slope, 0) {
			r.sound(a, key, now, int64(slope))
		}
	}
}

func (r *Recorder) sound(a *alertState, key seriesKey, time, value int64) {
	text := fmt.Sprintf("alert %s: it is %s", a.Text, amount(unitOf(a.Series), value))
	if a.PerStep {
		text += " per step"
	}
	frame := mem.Event{Time: time, Process: key.process, Kind: "alert", Text: text,
		Facts: map[string]string{"alert": a.Text}}
	if unitOf(a.Series) == mem.UnitBytes {
		frame.Bytes = mem.Some(value)
	}
	if steps := r.steps(); steps > 0 {
		frame.Step = mem.Some(int64(steps))
	}
	r.emit(frame)
	a.asker.answer(value)
	r.opts.Events.Tell(event.Alert{Text: text})
}

// alertsWithout says at the start which alerts this machine can never compare.
func (r *Recorder) alertsWithout(vendors []sampler.Vendor) {
	for _, a := range r.alerts {
		if len(vendors) == 0 && strings.HasPrefix(string(a.Series), "device.") {
			r.opts.Events.Tell(event.Alert{Text: fmt.Sprintf("alert %s is never compared here: %s", a.Text, noDevice)})
		}
	}
}

// alertsNever says at the end which alerts were never compared, and why: silence would pass for a limit that was kept.
func (r *Recorder) alertsNever() {
	for _, a := range r.alerts {
		if !a.compared {
			r.emit(mem.Event{Time: r.now(), Kind: "unobserved", Text: fmt.Sprintf("alert %s was never compared: %s", a.Text,
				r.never(a)),
				Facts: facts("alert", a.Text)})
		}
	}
}

const noDevice = "there is no GPU whose driver reports its memory"

func (r *Recorder) never(a *alertState) string {
	steps := r.steps()
	switch {
	case a.PerStep && steps == 0:
		return "no step of an optimizer was seen"
	case a.PerStep:
		return fmt.Sprintf("growth cannot be told from %d steps", steps)
	case a.noTotal != "":
		return "how much memory " + a.noTotal + " has is not known"
	case a.OfTotal && !a.Series.OfDevice():
		return "how much memory there is is not known"
	case a.Series == mem.SeriesHeapLive:
		return "no process's heap was sampled"
	case strings.HasPrefix(string(a.Series), "allocator."):
		return "no framework reported an allocator, as PyTorch does once it uses a GPU"
	case a.Series.OfDevice():
		return noDevice
	}
	return "nothing told of " + cmp.Or(string(a.Series), "it")
}
