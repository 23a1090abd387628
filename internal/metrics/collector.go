package metrics

import (
	"strconv"
	"strings"

	"hightide/internal/mem"

	"github.com/prometheus/client_golang/prometheus"
)

// collector tells what is known of live runs, as it is when somebody asks.
type collector struct {
	live  *live
	descs map[mem.Quantity]*prometheus.Desc
}

// What is told beside the series.
var (
	runsDesc       = prometheus.NewDesc("hightide_runs", "Runs in the data directory, by state.", []string{"state"}, nil)
	unreadableDesc = prometheus.NewDesc("hightide_unreadable_runs", "Runs that are being recorded and that cannot be read.", nil, nil)
	runDesc        = prometheus.NewDesc("hightide_run_info", "A run that is being recorded; always 1.", []string{"run", "name", "verb", "host", "label", "version"}, nil)
	startDesc      = prometheus.NewDesc("hightide_run_start_time_seconds", "When the run began, in seconds since 1970.", []string{"run"}, nil)
	processDesc    = prometheus.NewDesc("hightide_process_info", "A process of a run; always 1.", []string{"run", "process", "pid", "role", "rank", "python"}, nil)
	stepsDesc      = prometheus.NewDesc("hightide_process_steps_total", "Optimizer steps that a process has completed.", []string{"run", "process", "rank"}, nil)
	dropsDesc      = prometheus.NewDesc("hightide_dropped_records_total", "Records that were lost on the way into the recording.", []string{"run", "process", "place"}, nil)
	eventsDesc     = prometheus.NewDesc("hightide_events_total", "Events of a run by kind, as alert, oom, exit.", []string{"run", "kind"}, nil)
	others         = []*prometheus.Desc{runsDesc, unreadableDesc, runDesc, startDesc, processDesc, stepsDesc, dropsDesc, eventsDesc}
)

func newCollector(l *live) *collector {
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
	if err := c.live.look(ctx); err != nil {
		to <- prometheus.NewInvalidMetric(runsDesc, err)
		return
	}
	for state, n := range c.live.states {
		gauge(to, runsDesc, float64(n), string(state))
	}
	gauge(to, unreadableDesc, float64(c.live.unreadable))
	for id, r := range c.live.runs {
		c.series(to, id, r)
		r.facts(to, id)
	}
}

// series tells the newest figure of each series. Where two mean the same, as after a process began anew, the later one stands.
func (c *collector) series(to chan<- prometheus.Metric, id string, r *run) {
	type key struct{ name, labels string }
	newest := map[key]uint32{}
	for number, def := range r.series {
		_, known := r.latest[number]
		if k := (key{string(def.Name), strings.Join(r.values(id, ofDevice, &def), "\x00")}); known && number > newest[k] && !r.over(def.Process) {
			newest[k] = number
		}
	}
	for _, number := range newest {
		def := r.series[number]
		m := metricOf(def.Name)
		if m == nil {
			continue
		}
		value := float64(r.latest[number])
		if m.scale != 0 {
			value *= m.scale
		}
		is := prometheus.GaugeValue
		if m.counter {
			is = prometheus.CounterValue
		}
		to <- prometheus.MustNewConstMetric(c.descs[def.Name], is, value, r.values(id, m.of, &def)...)
	}
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
func (r *run) values(id string, of kind, def *mem.SeriesDef) []string {
	process, rank := r.number(def.Process)
	switch of {
	case ofProcess:
		return clean(id, process, rank, string(def.Label))
	case ofDevice:
		return clean(id, process, rank, def.Device, def.Framework, string(def.Label))
	}
	return clean(id, string(def.Label))
}

// number of a process, and its rank; both empty where there is none.
func (r *run) number(process uint32) (number, rank string) {
	if process == 0 {
		return "", ""
	}
	if n, ok := r.processes[process].Rank.Get(); ok {
		rank = strconv.FormatInt(n, 10)
	}
	return strconv.FormatUint(uint64(process), 10), rank
}

// facts tells of the run itself and its processes.
func (r *run) facts(to chan<- prometheus.Metric, id string) {
	gauge(to, runDesc, 1, id, r.info.Name, r.info.Verb, r.info.Host.Name, string(r.info.Label), r.info.Version)
	gauge(to, startDesc, float64(r.info.StartWall)*perNanosecond, id)
	for _, p := range r.processes {
		if p.End.Known() {
			continue
		}
		number, rank := r.number(p.ID)
		gauge(to, processDesc, 1, id, number, strconv.Itoa(p.PID), p.Role, rank, p.Python)
		if total, ok := r.steps[p.ID]; ok {
			counter(to, stepsDesc, float64(total.Steps), id, number, rank)
		}
	}
	for drop, records := range r.drops {
		number, _ := r.number(drop.Process)
		counter(to, dropsDesc, float64(records), id, number, drop.Place)
	}
	for kind, n := range r.events {
		counter(to, eventsDesc, float64(n), id, kind)
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
