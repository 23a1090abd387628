// Package metrics tells monitoring systems of the runs that are being recorded, and of hightide itself.
//
//	recordings ──▶ live.go: the newest figure of each series ──▶ collector.go, by the table in names.go ──▶ Registry
//	                                                                                                          │
//	                                          GET /metrics (Prometheus, OpenMetrics) ◀── Handler ◀────────────┤
//	   receiver ◀── sender.go: retry ◀─ queue.go: on disk, bounded ◀ remotewrite.go, otlp.go: a request ◀─────┘
//
// What is pushed is what /metrics has. A new metric is a line in names.go; a new protocol is one file and a line in
// Start.
package metrics

import (
	"net/http"
	"runtime"

	"hightide/internal/engine"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Exporter has the metrics of an engine's runs.
type Exporter struct {
	registry *prometheus.Registry
}

// New makes an exporter. Recordings are read when somebody asks for the metrics, and not before.
func New(e *engine.Engine) *Exporter {
	x := &Exporter{prometheus.NewRegistry()}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "hightide_build_info", Help: "The version of hightide that tells this; always 1.",
		ConstLabels: prometheus.Labels{"version": engine.Version, "goversion": runtime.Version()},
	})
	build.Set(1)
	x.registry.MustRegister(build, newCollector(newWatched(e)), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return x
}

// Handler answers GET /metrics. What cannot be read is left out and counted (hightide_unreadable_runs).
func (x *Exporter) Handler() http.Handler {
	return promhttp.HandlerFor(x.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 4, Registry: x.registry,
	})
}
