package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// ownPath is where the server tells of itself: how much it is asked and how quick it is. It names routes by their
// patterns, so no run, no person and no secret stands in it.
const ownPath = "/metrics/server"

// own are the figures of the server itself, over all of its views.
type own struct {
	registry *prometheus.Registry
	took     *prometheus.HistogramVec
	asked    *prometheus.CounterVec
	received prometheus.Counter
}

func newOwn(s *Server) *own {
	o := &own{registry: prometheus.NewRegistry(),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "hightide_server_request_seconds",
			Help:    "How long requests took, by route; streams of events are left out.",
			Buckets: []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60}}, []string{"route"}),
		asked: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "hightide_server_requests_total",
			Help: "Requests that ended, by route and kind of status."}, []string{"route", "status"}),
		received: prometheus.NewCounter(prometheus.CounterOpts{Name: "hightide_server_received_bytes_total",
			Help: "What was read of bodies of requests."})}
	gauge := func(name, help string, of func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, of)
	}
	o.registry.MustRegister(o.took, o.asked, o.received,
		gauge("hightide_server_streams", "Streams of events that are open.", func() float64 {
			return float64(s.streams.Load())
		}),
		gauge("hightide_server_sessions", "Browsers that are let in.", func() float64 {
			s.door.mu.Lock()
			defer s.door.mu.Unlock()
			return float64(len(s.door.sessions))
		}),
		gauge("hightide_server_store_up", "1 where what keeps the runs answers, else 0.", func() float64 {
			ctx, done := context.WithTimeout(context.Background(), readyWithin)
			defer done()
			if s.options.Ready != nil && s.options.Ready(ctx) != nil {
				return 0
			}
			return 1
		}),
		gauge("hightide_server_start_time_seconds", "When the server began, in seconds since 1970.", func() float64 {
			return float64(s.began.Unix())
		}))
	return o
}

// ended counts a request that ended, and logs it. MemoryMark's API, which is beside the server, has neither.
func (s *Server) ended(w *timely, r *http.Request, who string, began time.Time) {
	o := s.own
	if o == nil {
		return
	}
	route, took := s.routeOf(r), time.Since(began)
	var received int64
	if w.body != nil {
		received = w.body.got
	}
	o.asked.WithLabelValues(route, fmt.Sprintf("%dxx", w.status/100)).Inc()
	if !isStream(r) {
		o.took.WithLabelValues(route).Observe(took.Seconds())
	}
	o.received.Add(float64(received))
	if log := s.options.Log; log != nil {
		log.LogAttrs(r.Context(), slog.LevelInfo, "request", slog.String("route", route), slog.Int("status", w.status),
			slog.Int64("took_ns", took.Nanoseconds()), slog.Int64("received_bytes", received), slog.String("who", who),
			slog.String("from", r.RemoteAddr))
	}
}

// routeOf is the pattern that a request matched: so nobody makes a new one by asking, and it has no secret.
func (s *Server) routeOf(r *http.Request) string {
	_, route := s.mux.Handler(r)
	if !strings.HasPrefix(route, r.Method+" ") && route != "/" {
		return "other"
	}
	return route
}

// serveOwn answers who may see the server's figures: its admins, the token of the metrics, and accounts that are named.
func (s *Server) serveOwn(w http.ResponseWriter, r *http.Request) {
	by, _ := r.Context().Value(askingKey{}).(asking)
	if !by.scope.All && (s.options.Scrapes == nil || !s.options.Scrapes(by.account)) {
		refuse(w, r, http.StatusForbidden, "figures of the server are seen by its admins, and by scrapers of the team's file")
		return
	}
	promhttp.HandlerFor(s.own.registry, promhttp.HandlerOpts{}).ServeHTTP(w, r)
}
