package metrics

import (
	"context"
	"strconv"
	"strings"
	"time"

	"hightide/internal/live"
	"hightide/internal/mem"

	"github.com/prometheus/client_golang/prometheus"
)

// collector tells what is known of live runs, as it is when somebody asks.
type collector struct {
	live  *watched
	descs map[mem.Quantity]*prometheus.Desc
}

// What is told beside the series.
var (
	runsDesc       = prometheus.NewDesc("hightide_runs", "Runs in the data directory, by state.", []string{"state"}, nil)
	unreadableDesc = prometheus.NewDesc("hightide_unreadable_runs",
		"Runs that are being recorded and that cannot be read.", nil, nil)
	runDesc = prometheus.NewDesc("hightide_run_info", "A run that is being recorded; always 1.",
		[]string{"run", "name", "verb", "host", "label", "version"}, nil)
	startDesc = prometheus.NewDesc("hightide_run_start_time_seconds", "When the run began, in seconds since 1970.",
		[]string{"run"}, nil)
	processDesc = prometheus.NewDesc("hightide_process_info", "A process of a run; always 1.",
		[]string{"run", "process", "pid", "role", "rank", "python"}, nil)
	stepsDesc = prometheus.NewDesc("hightide_process_steps_total", "Optimizer steps that a process has completed.",
		[]string{"run", "process", "rank"}, nil)
	dropsDesc = prometheus.NewDesc("hightide_dropped_records_total",
		"Records that were lost on the way into the recording.", []string{"run", "process", "place"}, nil)
	eventsDesc = prometheus.NewDesc("hightide_events_total", "Events of a run by kind, as alert, oom, exit.",
		[]string{"run", "kind"}, nil)
	others = []*prometheus.Desc{runsDesc, unreadableDesc, runDesc, startDesc, processDesc, stepsDesc, dropsDesc,
		eventsDesc}
)

func newCollector(l *watched) *collector {
	c := &collector{l, map[mem.Quantity]*prometheus.Desc{}}
	for _, m := range told {
		c.descs[m.series] = prometheus.NewDesc(m.name, m.help, labels[m.of], nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		to <- d
	}
	for _, d := range others {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	c.live.lock.Lock()
	defer c.live.lock.Unlock()
	ctx, done := collecting()
	defer done()
	if err := c.live.update(ctx); err != nil {
		to <- prometheus.NewInvalidMetric(runsDesc, err)
		return
	}
	for state, n := range c.live.states {
		gauge(to, runsDesc, float64(n), string(state))
	}
	gauge(to, unreadableDesc, float64(c.live.unreadable))
	for id, r := range c.live.runs {
		t := telling{to, id, r.Run, processes(r.Run)}
		t.series(c.descs)
		t.facts()
	}
}

// telling tells of one run.
type telling struct {
	to        chan<- prometheus.Metric
	id        string
	run       *live.Run
	processes map[uint32]*mem.Process // that have not ended
}

// series tells the newest figure of each series. Where two mean the same, as after a process began anew, the later
// one stands.
func (t *telling) series(descs map[mem.Quantity]*prometheus.Desc) {
	type key struct {
		name   mem.Quantity
		labels string
	}
	newest := map[key]*live.Series{}
	for _, s := range t.run.Series {
		_, known := s.Last().Get()
		if k := (key{s.Name, strings.Join(t.values(ofDevice, &s.SeriesDef), "\x00")}); known && t.current(s.Process) {
			newest[k] = s
		}
	}
	for _, s := range newest {
		m := metricOf(s.Name)
		if m == nil {
			continue
		}
		value := float64(s.Last().Or(0))
		if m.scale != 0 {
			value *= m.scale
		}
		is := prometheus.GaugeValue
		if m.counter {
			is = prometheus.CounterValue
		}
		t.to <- prometheus.MustNewConstMetric(descs[s.Name], is, value, t.values(m.of, &s.SeriesDef)...)
	}
}

// current says whether a process has not ended; 0 is the run itself.
func (t *telling) current(process uint32) bool {
	_, ok := t.processes[process]
	return ok || process == 0
}

func metricOf(q mem.Quantity) *metric {
	for i := range told {
		if told[i].series == q {
			return &told[i]
		}
	}
	return nil
}

// values of the labels of a series.
func (t *telling) values(of kind, def *mem.SeriesDef) []string {
	process, rank := t.number(def.Process)
	switch of {
	case ofProcess:
		return clean(t.id, process, rank, string(def.Label))
	case ofDevice:
		return clean(t.id, process, rank, def.Device, def.Framework, string(def.Label))
	}
	return clean(t.id, string(def.Label))
}

// number of a process, and its rank; both empty where there is none.
func (t *telling) number(process uint32) (number, rank string) {
	if process == 0 {
		return "", ""
	}
	if p := t.processes[process]; p != nil {
		if n, ok := p.Rank.Get(); ok {
			rank = strconv.FormatInt(n, 10)
		}
	}
	return strconv.FormatUint(uint64(process), 10), rank
}

// facts tells of the run itself and its processes.
func (t *telling) facts() {
	info := &t.run.Info
	gauge(t.to, runDesc, 1, t.id, info.Name, info.Verb, info.Host.Name, string(info.Label), info.Version)
	gauge(t.to, startDesc, float64(info.StartWall)*perNanosecond, t.id)
	for _, p := range t.processes {
		number, rank := t.number(p.ID)
		gauge(t.to, processDesc, 1, t.id, number, strconv.Itoa(p.PID), p.Role, rank, p.Python)
		if total, ok := t.run.Totals[p.ID]; ok {
			counter(t.to, stepsDesc, float64(total.Steps), t.id, number, rank)
		}
	}
	for _, drop := range t.run.Drops {
		number, _ := t.number(drop.Process)
		counter(t.to, dropsDesc, float64(drop.Records), t.id, number, drop.Place)
	}
	for kind, n := range t.run.Kinds {
		counter(t.to, eventsDesc, float64(n), t.id, kind)
	}
}

func gauge(to chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, clean(labels...)...)
}

func counter(to chan<- prometheus.Metric, d *prometheus.Desc, value float64, labels ...string) {
	to <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, clean(labels...)...)
}

// clean makes labels valid: they come from recordings, and a name need not be UTF-8.
func clean(labels ...string) []string {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "�")
	}
	return labels
}

// collectWithin is how long reading the recordings may take: the first look at a long one reads all of it.
const collectWithin = 20 * time.Second

func collecting() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), collectWithin)
}
