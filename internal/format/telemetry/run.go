package telemetry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// builder makes a recording of events.
type builder struct {
	out       *mem.Run
	processes map[int64]uint32
	series    map[mem.SeriesDef]*mem.Samples // by all but its number
	order     []mem.SeriesDef
}

// recordingOf makes a recording of events, in the order of their times.
func recordingOf(events []Event) (*mem.Run, error) {
	if len(events) == 0 {
		return nil, errors.New("it holds no readings")
	}
	for i := range events {
		if err := events[i].check(); err != nil {
			return nil, fmt.Errorf("event %d: %w", i+1, err)
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(*a.Time, *b.Time) })
	first, last := events[0], events[len(events)-1]
	b := &builder{mem.NewRun(), map[int64]uint32{}, map[mem.SeriesDef]*mem.Samples{}, nil}
	b.add(mem.RunInfo{Verb: "telemetry", Label: mem.Measured, StartMono: int64(*first.Time),
		StartWall: int64(*first.Time), Host: host(events)})
	for i := range events {
		b.event(&events[i])
	}
	b.samples()
	b.add(mem.End{Time: int64(*last.Time), Reason: "left"})
	return b.out, nil
}

// samples adds the series, in the order in which they began.
func (b *builder) samples() {
	for n, def := range b.order {
		samples := b.series[def]
		def.ID, samples.Series = uint32(n+1), uint32(n+1)
		b.add(def)
		b.add(*samples)
	}
}

// add takes in a frame, which is of our own making.
func (b *builder) add(f mem.Frame) { _ = b.out.Add(f) }

// host is the machine, as far as events tell.
func host(events []Event) mem.Host {
	h := mem.Host{}
	for _, e := range events {
		h.Name = cmp.Or(h.Name, e.Host)
		if n := e.device(); e.Total != nil && !slices.ContainsFunc(h.GPUs,
			func(g mem.GPU) bool { return int64(g.Index) == n }) && n < 1<<10 {
			h.GPUs = append(h.GPUs, mem.GPU{Index: int(n), Name: deviceName(n), Memory: mem.Some(int64(*e.Total))})
		}
	}
	return h
}

func (e *Event) device() int64 {
	if e.Device == nil || *e.Device < 0 {
		return 0
	}
	return int64(*e.Device)
}

func deviceName(n int64) string { return fmt.Sprintf("gpu:%d", n) }

// process is the number of an event's process in the recording.
func (b *builder) process(e *Event) uint32 {
	pid := int64(0)
	if e.PID != nil {
		pid = int64(*e.PID)
	}
	id, known := b.processes[pid]
	if !known {
		id = uint32(len(b.processes) + 1)
		b.processes[pid] = id
		p := mem.Process{ID: id, PID: int(pid), Role: "main", Start: int64(*e.Time)}
		if e.Collector == pmonCollector && e.Context != "" {
			p.Command = mem.MaskArgs([]string{e.Context})
		}
		if e.Rank != nil && *e.Rank > 0 {
			p.Role, p.Rank = "rank", mem.Some(int64(*e.Rank))
		}
		b.add(p)
	}
	return id
}

func (b *builder) event(e *Event) {
	if e.Collector == smiCollector { // it tells of devices alone
		b.sample(e, mem.SeriesDef{Device: deviceName(e.device()), Name: mem.SeriesDeviceUsed}, e.Used)
		return
	}
	id := b.process(e)
	if e.Collector == pmonCollector {
		b.sample(e, mem.SeriesDef{Process: id, Device: deviceName(e.device()), Name: mem.SeriesDeviceProcess}, e.Used)
		return
	}
	if e.passed() {
		frame := mem.Event{Time: int64(*e.Time), Process: id, Kind: "alert", Text: "limit " + e.Type + ": " + e.Context,
			Facts: map[string]string{"alert": e.Type}}
		if e.Allocated != nil {
			frame.Bytes = mem.Some(int64(*e.Allocated))
		}
		b.add(frame)
		return // its size is of the moment that it was told, which may be later than the reading
	}
	if e.ofHost() {
		b.sample(e, mem.SeriesDef{Process: id, Name: mem.SeriesRSS}, e.Allocated)
		b.sample(e, mem.SeriesDef{Name: mem.SeriesTreeRSS}, e.Allocated)
		return
	}
	device := deviceName(e.device())
	b.sample(e, mem.SeriesDef{Process: id, Device: device, Name: mem.SeriesAllocated}, e.Allocated)
	b.sample(e, mem.SeriesDef{Process: id, Device: device, Name: mem.SeriesReserved}, e.Reserved)
	b.sample(e, mem.SeriesDef{Process: id, Device: device, Name: mem.SeriesActive}, e.Active)
	b.sample(e, mem.SeriesDef{Process: id, Device: device, Name: mem.SeriesInactiveSplit}, e.Inactive)
	b.sample(e, mem.SeriesDef{Device: device, Name: mem.SeriesDeviceUsed}, e.Used)
}

// sample adds a reading to a series, which begins with it.
func (b *builder) sample(e *Event, def mem.SeriesDef, size *whole) {
	if size == nil {
		return
	}
	def.Unit, def.Label = mem.UnitBytes, mem.Measured
	s := b.series[def]
	if s == nil {
		s = &mem.Samples{}
		b.series[def] = s
		b.order = append(b.order, def)
	}
	s.Times, s.Values = append(s.Times, int64(*e.Time)), append(s.Values, int64(*size))
}

// Events are the readings of a recording. They are of the whole tree of processes on the host (where that was not
// read, of each process), of each allocator and each device. With them come the limits that were passed. By time.
func Events(r *mem.Run) []Event {
	var events []Event
	host := mem.SeriesTreeRSS
	if r.Find(0, host) == nil {
		host = mem.SeriesRSS
	}
	for _, s := range r.Series {
		var of func(int64, *Event)
		collector, device := deviceCollector, int64(0)
		switch s.Name {
		case host:
			collector, device = hostCollector, -1
			of = func(value int64, e *Event) { e.Allocated = size(value) }
		case mem.SeriesAllocated:
			reserved := sameDevice(r, s, mem.SeriesReserved)
			of = func(value int64, e *Event) {
				e.Allocated = size(value)
				if reserved != nil {
					e.Reserved = optional(reserved.At(int64(*e.Time)))
				}
			}
		case mem.SeriesDeviceUsed:
			of = func(value int64, e *Event) { e.Used = size(value) }
		default:
			continue
		}
		if device == 0 {
			device = numberOf(s.Device)
		}
		for i, at := range s.Times {
			e := Event{Version: 4, Type: "sample", Time: size(at), Collector: collector, Device: size(device),
				PID: pid(r, s.Process)}
			of(s.Values[i], &e)
			e.Time = size(at - r.Info.StartMono + r.Info.StartWall)
			events = append(events, e)
		}
	}
	for _, e := range r.Events {
		if e.Kind == "alert" {
			events = append(events, Event{Version: 4, Type: "alert", Time: size(e.Time - r.Info.StartMono + r.Info.StartWall),
				Collector: hostCollector,
				Device:    size(-1), PID: pid(r, e.Process), Allocated: optional(e.Bytes), Context: e.Text})
		}
	}
	slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(*a.Time, *b.Time) })
	return events
}

func size(value int64) *whole { n := whole(value); return &n }

func optional(o mem.Optional) *whole {
	if value, ok := o.Get(); ok {
		return size(value)
	}
	return nil
}

// sameDevice is another quantity of the same allocator.
func sameDevice(r *mem.Run, s *mem.Series, name mem.Quantity) *mem.Series {
	for _, other := range r.Series {
		if other.Name == name && other.Process == s.Process && other.Device == s.Device && other.Framework == s.Framework {
			return other
		}
	}
	return nil
}

// numberOf is 1 of "cuda:1"; 0 where the name has none.
func numberOf(device string) int64 {
	n, _ := strconv.ParseInt(device[strings.LastIndexByte(device, ':')+1:], 10, 32)
	return n
}

// pid of a process, or of the run's first.
func pid(r *mem.Run, process uint32) *whole {
	if p := r.Process(process); p != nil {
		return size(int64(p.PID))
	}
	if len(r.Processes) > 0 {
		return size(int64(r.Processes[0].PID))
	}
	return nil
}
