package metrics

import (
	"math"
	"strings"

	dto "github.com/prometheus/client_model/go"
)

// ended is the value of a series that is no more, as Prometheus writes it. Without it a receiver shows the last
// figure of a run that has ended for minutes.
var ended = math.Float64frombits(0x7ff0000000000002)

func hasEnded(value float64) bool { return math.Float64bits(value) == math.Float64bits(ended) }

// withEnded is the families of now, and in them as ended those series that were there before. Neither is changed.
func withEnded(before, now []*dto.MetricFamily) []*dto.MetricFamily {
	there := map[string]bool{}
	for _, family := range now {
		for _, m := range family.GetMetric() {
			there[identity(family, m)] = true
		}
	}
	gone := map[string]*dto.MetricFamily{}
	for _, family := range before {
		for _, m := range family.GetMetric() {
			if _, ok := number(m); ok && !there[identity(family, m)] {
				addFamily(gone, family, m)
			}
		}
	}
	all := make([]*dto.MetricFamily, 0, len(now)+len(gone))
	for _, family := range now {
		if more := gone[family.GetName()]; more != nil {
			delete(gone, family.GetName())
			more.Metric = append(more.Metric, family.GetMetric()...)
			family = more
		}
		all = append(all, family)
	}
	for _, family := range gone {
		all = append(all, family)
	}
	return all
}

// addFamily puts a series into the family of its name, as ended.
func addFamily(to map[string]*dto.MetricFamily, family *dto.MetricFamily, m *dto.Metric) {
	of := to[family.GetName()]
	if of == nil {
		of = &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type}
		to[family.GetName()] = of
	}
	last := &dto.Metric{Label: m.GetLabel(), Gauge: &dto.Gauge{Value: &ended}}
	if m.Counter != nil {
		last.Gauge, last.Counter = nil, &dto.Counter{Value: &ended}
	}
	of.Metric = append(of.Metric, last)
}

// identity tells a series from all others.
func identity(family *dto.MetricFamily, m *dto.Metric) string {
	var b strings.Builder
	b.WriteString(family.GetName())
	for _, l := range m.GetLabel() { // sorted, as they were gathered
		b.WriteString("\x00" + l.GetName() + "\x00" + l.GetValue())
	}
	return b.String()
}
