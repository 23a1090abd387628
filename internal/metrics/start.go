package metrics

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Start sends the metrics from now on until the context ends or stop is called, which returns when all senders have
// ended, after one last try.
func (x *Exporter) Start(ctx context.Context, p Push) (stop func(), err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if p.Say == nil {
		p.Say = func(string) {}
	}
	var senders []*sender
	for _, to := range []struct {
		protocol
		url string
	}{{remoteWrite, p.RemoteWrite}, {otlp, p.OTLP}} {
		if to.url == "" {
			continue
		}
		s, err := newSender(to.protocol, to.url, &p)
		if err != nil {
			return nil, err
		}
		senders = append(senders, s)
	}
	if len(senders) == 0 {
		return func() {}, nil
	}
	x.registry.MustRegister(pushed(senders))
	var ended []chan struct{}
	sending, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	ctx, end := context.WithCancel(ctx)
	gathering := make(chan struct{})
	go func() {
		defer close(gathering)
		x.gather(ctx, &p, senders)
	}()
	for _, s := range senders {
		done := make(chan struct{})
		ended = append(ended, done)
		go func() { defer close(done); s.run(sending, gathering) }()
	}
	return func() {
		end()
		<-gathering
		late := time.AfterFunc(cmp.Or(p.last, tellLast), giveUp)
		for _, done := range ended {
			<-done
		}
		late.Stop()
		giveUp()
	}, nil
}

// gather puts the metrics into the queues at each interval, and once more at the end; then all of them have ended.
func (x *Exporter) gather(ctx context.Context, p *Push, senders []*sender) {
	every := cmp.Or(p.Every, defaultEvery)
	tick := time.NewTicker(every)
	defer tick.Stop()
	var before []*dto.MetricFamily
	for {
		families, err := x.registry.Gather() // with an error there is what could be gathered
		if err != nil && len(families) == 0 {
			p.Say("metrics cannot be gathered: " + err.Error())
		}
		at := time.Now().UnixNano()
		for _, s := range senders {
			s.add(withEnded(before, families), at)
			if ctx.Err() != nil {
				s.add(withEnded(families, nil), at+int64(time.Millisecond))
			}
		}
		if ctx.Err() != nil {
			return
		}
		before = families
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

// What is told of the pushing itself.
var (
	pushRequests = prometheus.NewDesc("hightide_push_requests_total",
		"Requests to a receiver of metrics: sent, refused by it, or dropped as the queue was full.",
		[]string{"to", "outcome"}, nil)
	pushFailures = prometheus.NewDesc("hightide_push_failures_total", "Tries that failed and are made again.",
		[]string{"to"}, nil)
	pushWaiting = prometheus.NewDesc("hightide_push_waiting_requests", "Requests that wait on disk.", []string{"to"}, nil)
	pushBytes   = prometheus.NewDesc("hightide_push_waiting_bytes", "Size of the requests that wait on disk.",
		[]string{"to"}, nil)
)

type pushed []*sender

// Describe implements prometheus.Collector.
func (pushed) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{pushRequests, pushFailures, pushWaiting, pushBytes} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (all pushed) Collect(to chan<- prometheus.Metric) {
	for _, s := range all {
		requests, bytes, dropped := s.queue.state()
		gauge(to, pushWaiting, float64(requests), s.name)
		gauge(to, pushBytes, float64(bytes), s.name)
		counter(to, pushFailures, float64(s.failures.Load()), s.name)
		counter(to, pushRequests, float64(s.sent.Load()), s.name, "sent")
		counter(to, pushRequests, float64(s.refused.Load()), s.name, "refused")
		counter(to, pushRequests, float64(dropped), s.name, "dropped")
	}
}
