package metrics

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"

	"hightide/internal/fail"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// protocol is how metrics are sent.
type protocol struct {
	name     string
	headers  map[string]string
	encode   func(families []*dto.MetricFamily, at int64, of origin) ([]byte, error)
	rejected func(*http.Response) uint64 // of the samples in a request that was taken
}

// origin is who tells.
type origin struct {
	host  string
	began int64 // when counters began to be told, ns since 1970
}

// Push says where metrics are sent. The zero value sends none.
type Push struct {
	RemoteWrite string        // URL of a receiver of Prometheus remote write
	OTLP        string        // URL of a receiver of OpenTelemetry metrics over HTTP
	Every       time.Duration // 0: 15 s
	Token       string        // sent as "Authorization: Bearer"; "": what the URL has
	Headers     []string      // sent as well, as "X-Scope-OrgID: team"

	Dir   string       // of the queues; it is there, and this user's alone
	Limit int64        // bytes of each queue; 0: 64 MiB
	Say   func(string) // takes lines for people: that a receiver does not answer, and that it does again

	firstWait, within time.Duration // between tries, and for an answer; 0: 1 s and 30 s
}

const (
	defaultEvery = 15 * time.Second
	defaultLimit = 64 << 20
	tellLast     = 2 * time.Second // at the end, for what is in the queue
)

// headerName is what HTTP lets a header be called.
var headerName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*$`)

// Check refuses addresses that cannot be.
func (p *Push) Check() error {
	for flag, address := range map[string]string{"--remote-write": p.RemoteWrite, "--otlp": p.OTLP} {
		if address == "" {
			continue
		}
		if to, err := url.Parse(address); err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
			return fail.Usage("as in "+flag+" https://metrics.example.org/receive", "%s takes an http or https URL", flag)
		}
	}
	for _, header := range p.Headers {
		if name, value, ok := strings.Cut(header, ":"); !ok || !headerName.MatchString(name) || strings.ContainsFunc(value, unicode.IsControl) {
			return fail.Usage("as in --push-header 'X-Scope-OrgID: team'", "%q is not a header", header)
		}
	}
	if p.Every < 0 || p.Every > 0 && p.Every < LeastPause {
		return fail.Usage("as in --push-every 15s", "pushing every %v is too often", p.Every)
	}
	return nil
}

// LeastPause is the shortest time between two pushes.
const LeastPause = 100 * time.Millisecond

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
		late := time.AfterFunc(tellLast, giveUp)
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
