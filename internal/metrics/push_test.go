package metrics

import (
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hightide/internal/engine"
	"hightide/internal/mem"

	"github.com/klauspost/compress/snappy"
	otlpmetrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// receiver takes requests, and answers as it is told to.
type receiver struct {
	*httptest.Server

	lock     sync.Mutex
	bodies   [][]byte
	headers  []http.Header
	asked    int
	answer   func(asked int) (status int, retryAfter string)
	answered chan struct{}
}

func newReceiver(t *testing.T, answer func(asked int) (int, string)) *receiver {
	t.Helper()
	r := &receiver{answer: answer, answered: make(chan struct{}, 10_000)}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.lock.Lock()
	r.asked++
	status, after := r.answer(r.asked)
	if status < 300 {
		r.bodies, r.headers = append(r.bodies, body), append(r.headers, request.Header)
	}
	r.lock.Unlock()
	if after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(status)
	r.answered <- struct{}{}
}

// took is what the receiver has taken so far.
func (r *receiver) took() ([][]byte, []http.Header) {
	r.lock.Lock()
	defer r.lock.Unlock()
	return r.bodies, r.headers
}

func fine(int) (int, string) { return 200, "" }

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("waited a minute in vain for " + what)
		}
	}
}

// senderTo is a sender without an exporter: what it sends are numbers in the order of their requests.
func senderTo(t *testing.T, address, dir string) *sender {
	t.Helper()
	s, err := newSender(remoteWrite, address, &Push{Dir: dir, Say: func(line string) { t.Log(line) },
		firstWait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, s *sender, bodies ...string) {
	t.Helper()
	for _, body := range bodies {
		if err := s.queue.putRequest([]byte(body)); err != nil {
			t.Fatal(err)
		}
	}
}

// sendAll sends until the queue is empty.
func sendAll(t *testing.T, s *sender) {
	t.Helper()
	gathered := make(chan struct{})
	close(gathered)
	s.run(t.Context(), gathered)
}

// TestReceivers: whatever a receiver does, it gets each request once and in order, but for what it refuses for good.
func TestReceivers(t *testing.T) {
	for _, test := range []struct {
		name    string
		answer  func(asked int) (int, string)
		takes   string
		refused uint64
		fails   bool
	}{
		{"well", fine, "1 2 3", 0, false},
		{"busy", func(n int) (int, string) { return pick(n <= 2, 429, 200), "0" }, "1 2 3", 0, true},
		{"broken for a while", func(n int) (int, string) { return pick(n%3 != 0, 500, 204), "" }, "1 2 3", 0, true},
		{"restarting", func(n int) (int, string) { return pick(n == 2, 503, 200), "nonsense" }, "1 2 3", 0, true},
		{"choosy", func(n int) (int, string) { return pick(n == 2, 400, 200), "" }, "1 3", 1, false},
		{"moved", func(n int) (int, string) { return pick(n == 1, 302, 200), "" }, "2 3", 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			to := newReceiver(t, test.answer)
			s := senderTo(t, to.URL, t.TempDir())
			put(t, s, "1", "2", "3")
			sendAll(t, s)
			bodies, _ := to.took()
			if got := strings.Fields(fmt.Sprintf("%s", bodies)); strings.Trim(strings.Join(got, " "), "[]") != test.takes {
				t.Errorf("it took %v, want %s", got, test.takes)
			}
			if s.refused.Load() != test.refused || (s.failures.Load() > 0) != test.fails {
				t.Errorf("refused %d, failures %d", s.refused.Load(), s.failures.Load())
			}
			if requests, bytes, _ := s.queue.state(); requests != 0 || bytes != 0 {
				t.Errorf("%d requests of %d bytes are left", requests, bytes)
			}
		})
	}
}

func pick(first bool, a, b int) int {
	if first {
		return a
	}
	return b
}

// TestRetryAfter: a receiver that names a time is not asked before it.
func TestRetryAfter(t *testing.T) {
	to := newReceiver(t, func(n int) (int, string) { return pick(n == 1, 429, 200), "1" })
	s := senderTo(t, to.URL, t.TempDir())
	put(t, s, "1")
	began := time.Now()
	sendAll(t, s)
	if waited := time.Since(began); waited < time.Second {
		t.Errorf("asked again after %v", waited)
	}
}

// TestReceiverDown: what is gathered while nobody listens arrives once somebody does, and it is said once.
func TestReceiverDown(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	address := gone.Listener.Addr().String()
	gone.Close()
	s := senderTo(t, "http://"+address, t.TempDir())
	var said []string
	var lock sync.Mutex
	s.Say = func(line string) { lock.Lock(); defer lock.Unlock(); said = append(said, line) }
	put(t, s, "1", "2")
	done := make(chan struct{})
	go func() { defer close(done); sendAll(t, s) }()
	waitFor(t, "three failures", func() bool { return s.failures.Load() >= 3 })
	to := &receiver{answer: fine, answered: make(chan struct{}, 100)}
	to.Server = listenAgain(t, address, to.serve)
	<-done
	if bodies, _ := to.took(); fmt.Sprintf("%s", bodies) != "[1 2]" {
		t.Errorf("it took %s", bodies)
	}
	if len(said) != 2 || !strings.Contains(said[0], "wait on disk") || !strings.Contains(said[1], "again") {
		t.Errorf("said %q", said)
	}
}

// TestSlowReceiver: one that does not answer in time is given up and asked again.
func TestSlowReceiver(t *testing.T) {
	to := newReceiver(t, fine)
	hold := make(chan struct{})
	var asked atomic.Int64
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			<-hold
			return
		}
		to.serve(w, r)
	}))
	defer slow.Close()
	defer close(hold)
	s := senderTo(t, slow.URL, t.TempDir())
	s.within = 200 * time.Millisecond
	put(t, s, "1")
	sendAll(t, s)
	// on a busy machine it may have to be asked more often
	if bodies, _ := to.took(); len(bodies) == 0 || s.failures.Load() == 0 {
		t.Errorf("it took %s after %d failures", bodies, s.failures.Load())
	}
}

// TestFullQueue: the oldest go, and are counted.
func TestFullQueue(t *testing.T) {
	q, err := openQueue(t.TempDir(), 10)
	if err != nil {
		t.Fatal(err)
	}
	defer q.close()
	for n := range 5 {
		if err := q.putRequest([]byte(fmt.Sprintf("%04d", n))); err != nil {
			t.Fatal(err)
		}
	}
	if _, body, ok := q.first(); !ok || string(body) != "0003" {
		t.Errorf("the oldest is %q", body)
	}
	if requests, bytes, dropped := q.state(); requests != 2 || bytes != 8 || dropped != 3 {
		t.Errorf("%d requests of %d bytes, %d dropped", requests, bytes, dropped)
	}
	if err := q.putRequest(make([]byte, 11)); err == nil {
		t.Error("a request larger than the queue was taken")
	}
}

// TestTwoProcesses: each has a queue of its own, and what one left the next takes over.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	a, b := senderTo(t, "http://localhost:1", dir), senderTo(t, "http://localhost:1", dir)
	if a.queue.dir == b.queue.dir {
		t.Errorf("both send from %s", a.queue.dir)
	}
	put(t, a, "1")
	put(t, b, "2", "3")
	b.queue.close()
	if c := senderTo(t, "http://localhost:1", dir); len(c.queue.waiting) != 2 { // a still sends its own
		t.Errorf("%d requests were found beside a process that sends", len(c.queue.waiting))
	} else {
		c.queue.close()
	}
	a.queue.close()
	if c := senderTo(t, "http://localhost:1", dir); len(c.queue.waiting) != 3 {
		t.Errorf("%d requests were found", len(c.queue.waiting))
	}
}

// TestRefusalIsSaidOnce: a receiver that refuses all of it is complained of once, until it has taken something.
func TestRefusalIsSaidOnce(t *testing.T) {
	to := newReceiver(t, func(n int) (int, string) { return pick(n == 3, 200, 400), "" })
	s := senderTo(t, to.URL, t.TempDir())
	var said []string
	s.Say = func(line string) { said = append(said, line) }
	put(t, s, "1", "2", "3", "4", "5")
	sendAll(t, s)
	if len(said) != 2 || !strings.HasSuffix(said[0], "it answers 400 Bad Request") {
		t.Errorf("said %q", said)
	}
	if s.refused.Load() != 4 {
		t.Errorf("counted %d", s.refused.Load())
	}
}

// TestLossIsSaidOnce: while nothing can be kept, as on a full disk, one line says so, and one how much was lost once
// it can be again.
func TestLossIsSaidOnce(t *testing.T) {
	s := senderTo(t, "http://127.0.0.1:9/", t.TempDir())
	var said []string
	s.Say = func(line string) { said = append(said, line) }
	if err := os.Rename(s.queue.dir, s.queue.dir+".away"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.add(nil, 1)
	}
	if err := os.Rename(s.queue.dir+".away", s.queue.dir); err != nil {
		t.Fatal(err)
	}
	s.add(nil, 1)
	s.add(nil, 1)
	if len(said) != 2 || !strings.Contains(said[0], "are lost: ") ||
		!strings.HasSuffix(said[1], "are kept again; those of 3 times are lost") {
		t.Errorf("said %q", said)
	}
}

// TestKilled: a process that is killed loses nothing that it had put into the queue.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("HIGHTIDE_TEST_QUEUE"); dir != "" {
		s := senderTo(t, "http://127.0.0.1:9", dir)
		for n := 0; ; n++ {
			put(t, s, fmt.Sprint(n))
		}
	}
	dir := t.TempDir()
	child := exec.Command(os.Args[0], "-test.run", "^TestKilled$")
	child.Env = append(os.Environ(), "HIGHTIDE_TEST_QUEUE="+dir)
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "100 requests", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "*", "*"+bodySuffix))
		return len(files) >= 100
	})
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait()
	s := senderTo(t, "http://127.0.0.1:9", dir)
	to := newReceiver(t, fine)
	s.url = to.URL
	sendAll(t, s)
	bodies, _ := to.took()
	for n, body := range bodies {
		if string(body) != fmt.Sprint(n) {
			t.Fatalf("request %d is %q", n, body)
		}
	}
	if left, _ := os.ReadDir(s.queue.dir); len(bodies) < 100 || len(left) != 1 {
		t.Errorf("%d requests arrived, %d files are left beside the lock", len(bodies), len(left)-1)
	}
}

func listenAgain(t *testing.T, address string, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(serve)
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("another process took %s: %v", address, err)
	}
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server
}

// samples are values by name and labels, as "name{a=b,…}".
type samples map[string]float64

// expected is what the exporter has now.
func expected(t *testing.T, x *Exporter) samples {
	t.Helper()
	families, err := x.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := samples{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if value, ok := number(m); ok && strings.HasPrefix(f.GetName(), "hightide_") {
				all.add(f.GetName(), labels, value)
			}
		}
	}
	return all
}

func (s samples) add(name string, labels map[string]string, value float64) {
	maps.DeleteFunc(labels, func(k, v string) bool {
		return v == "" || k == "job" || k == "instance" || k == "__name__"
	})
	s[name+fmt.Sprint(labels)] = value
}

// TestPushed: both protocols carry what /metrics has, as decoders that are not ours read it.
func TestPushed(t *testing.T) {
	e, _ := recorded(t)
	x := New(e)
	want := expected(t, x)
	dir, err := e.Keep("push")
	if err != nil {
		t.Fatal(err)
	}
	prom, otel := newReceiver(t, fine), newReceiver(t, fine)
	stop, err := x.Start(t.Context(), Push{RemoteWrite: prom.URL, Headers: []string{"X-Scope-OrgID: team"},
		OTLP: strings.Replace(otel.URL, "http://", "http://me:secret@", 1), Every: 100 * time.Millisecond, Dir: dir, last: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "two pushes", func() bool { a, _ := prom.took(); b, _ := otel.took(); return len(a) >= 2 && len(b) >= 2 })
	stop()
	bodies, headers := prom.took()
	if h := headers[0]; h.Get("X-Prometheus-Remote-Write-Version") != "0.1.0" || h.Get("Content-Encoding") != "snappy" ||
		h.Get("Content-Type") != "application/x-protobuf" || h.Get("X-Scope-OrgID") != "team" {
		t.Errorf("remote write with %v", h)
	}
	compare(t, "remote write", readWriteRequest(t, bodies[0]), want)
	bodies, headers = otel.took()
	if h := headers[0]; !strings.HasPrefix(h.Get("Authorization"), "Basic ") {
		t.Errorf("OTLP with %v", h)
	}
	compare(t, "OTLP", readOTLP(t, bodies[0]), want)
	for how, last := range map[string]samples{"remote write": readWriteRequest(t, lastOf(prom)),
		"OTLP": readOTLP(t, lastOf(otel))} {
		for key, value := range last {
			if !hasEnded(value) {
				t.Errorf("%s: %s has not ended, but is %v", how, key, value)
			}
		}
		if len(last) < len(want) {
			t.Errorf("%s: %d series have ended, want %d", how, len(last), len(want))
		}
	}
}

func lastOf(r *receiver) []byte {
	bodies, _ := r.took()
	return bodies[len(bodies)-1]
}

// TestRunEnds: receivers are told that the series of a run that has ended are no more, and those of others go on.
func TestRunEnds(t *testing.T) {
	e, w := recorded(t)
	x := New(e)
	to := newReceiver(t, fine)
	dir, err := e.Keep("push")
	if err != nil {
		t.Fatal(err)
	}
	stop, err := x.Start(t.Context(), Push{RemoteWrite: to.URL, Every: 100 * time.Millisecond, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	const rss, runs = "hightide_run_resident_memory_bytes", "hightide_runs"
	waitFor(t, "a figure", func() bool { got := latest(t, to, rss); return got != nil && *got == 200 })
	write(t, w, mem.End{Time: 50})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "its end", func() bool { got := latest(t, to, rss); return got != nil && hasEnded(*got) })
	if got := latest(t, to, runs); got == nil || hasEnded(*got) {
		t.Errorf("%s is %v", runs, got)
	}
}

// latest is what a receiver was told last of a metric with one series, or one of its series; nil: nothing.
func latest(t *testing.T, r *receiver, name string) *float64 {
	t.Helper()
	bodies, _ := r.took()
	for i := len(bodies) - 1; i >= 0; i-- {
		for key, value := range readWriteRequest(t, bodies[i]) {
			if strings.HasPrefix(key, name+"map[") {
				return &value
			}
		}
	}
	return nil
}

// compare leaves out what is of the pushing itself, which goes on.
func compare(t *testing.T, how string, got, want samples) {
	t.Helper()
	for key, value := range want {
		if math.Float64bits(got[key]) != math.Float64bits(value) {
			t.Errorf("%s: %s is %v, want %v", how, key, got[key], value)
		}
	}
	for key := range got {
		if _, ok := want[key]; !ok && strings.HasPrefix(key, "hightide_") && !strings.HasPrefix(key, "hightide_push_") {
			t.Errorf("%s: %s is not in /metrics", how, key)
		}
	}
}

func readOTLP(t *testing.T, body []byte) samples {
	t.Helper()
	zipped, err := gzip.NewReader(strings.NewReader(string(body)))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	var data otlpmetrics.MetricsData // of the same form as an ExportMetricsServiceRequest
	if err := (proto.UnmarshalOptions{}).Unmarshal(text, &data); err != nil || len(data.ProtoReflect().GetUnknown()) > 0 {
		t.Fatalf("error %v, unknown fields %v", err, data.ProtoReflect().GetUnknown())
	}
	if name := data.ResourceMetrics[0].Resource.Attributes[0]; name.Key != "service.name" || name.Value.GetStringValue() != "hightide" {
		t.Errorf("OTLP from %v", name)
	}
	all := samples{}
	for _, m := range data.ResourceMetrics[0].ScopeMetrics[0].Metrics {
		points := m.GetGauge().GetDataPoints()
		if sum := m.GetSum(); sum != nil {
			points = sum.DataPoints
			if !sum.IsMonotonic || sum.AggregationTemporality != otlpmetrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE || points[0].StartTimeUnixNano == 0 {
				t.Errorf("%s: %v", m.Name, sum)
			}
		}
		for _, p := range points {
			labels := map[string]string{}
			for _, a := range p.Attributes {
				labels[a.Key] = a.Value.GetStringValue()
			}
			if p.TimeUnixNano == 0 || m.Description == "" || strings.Contains(m.Name, "_bytes") != (m.Unit == "By") {
				t.Errorf("%s in %q at %d: %s", m.Name, m.Unit, p.TimeUnixNano, m.Description)
			}
			value := p.GetAsDouble()
			if otlpmetrics.DataPointFlags(p.Flags) == otlpmetrics.DataPointFlags_DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK &&
				p.Value == nil {
				value = ended
			}
			all.add(m.Name, labels, value)
		}
	}
	return all
}

// readWriteRequest decodes by the definition of remote write 1.0, with the official library.
func readWriteRequest(t *testing.T, body []byte) samples {
	t.Helper()
	text, err := snappy.Decode(nil, body)
	if err != nil {
		t.Fatal(err)
	}
	request := dynamicpb.NewMessage(writeRequestType(t))
	if err := proto.Unmarshal(text, request); err != nil || len(request.GetUnknown()) > 0 {
		t.Fatalf("error %v, unknown fields %v", err, request.GetUnknown())
	}
	all := samples{}
	each(request, "timeseries", func(series protoreflect.Message) {
		labels, last := map[string]string{}, ""
		each(series, "labels", func(label protoreflect.Message) {
			name := field(label, "name").String()
			if name <= last {
				t.Errorf("label %s after %s", name, last)
			}
			labels[name], last = field(label, "value").String(), name
		})
		each(series, "samples", func(sample protoreflect.Message) {
			if age := time.Since(time.UnixMilli(field(sample, "timestamp").Int())); age < -time.Second || age > time.Hour { // ends are a little ahead
				t.Errorf("a sample of %v ago", age)
			}
			all.add(labels["__name__"], labels, field(sample, "value").Float())
		})
	})
	return all
}

func field(m protoreflect.Message, name protoreflect.Name) protoreflect.Value {
	return m.Get(m.Descriptor().Fields().ByName(name))
}

func each(m protoreflect.Message, name protoreflect.Name, do func(protoreflect.Message)) {
	list := field(m, name).List()
	for i := range list.Len() {
		do(list.Get(i).Message())
	}
}

// writeRequestType is Prometheus's definition of a WriteRequest.
func writeRequestType(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	one, many := descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL, descriptorpb.FieldDescriptorProto_LABEL_REPEATED
	type f = descriptorpb.FieldDescriptorProto
	scalar := func(name string, number int32, kind descriptorpb.FieldDescriptorProto_Type) *f {
		return &f{Name: &name, Number: &number, Label: &one, Type: &kind}
	}
	list := func(name string, number int32, of string) *f {
		kind := descriptorpb.FieldDescriptorProto_TYPE_MESSAGE
		return &f{Name: &name, Number: &number, Label: &many, Type: &kind, TypeName: &of}
	}
	const text, whole, real = descriptorpb.FieldDescriptorProto_TYPE_STRING,
		descriptorpb.FieldDescriptorProto_TYPE_INT64, descriptorpb.FieldDescriptorProto_TYPE_DOUBLE
	message := func(name string, fields ...*f) *descriptorpb.DescriptorProto {
		return &descriptorpb.DescriptorProto{Name: &name, Field: fields}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("remote.proto"), Package: proto.String("prometheus"), Syntax: proto.String("proto3"),
		MessageType: []*descriptorpb.DescriptorProto{
			message("WriteRequest", list("timeseries", 1, ".prometheus.TimeSeries"),
				list("metadata", 3, ".prometheus.MetricMetadata")),
			message("TimeSeries", list("labels", 1, ".prometheus.Label"), list("samples", 2, ".prometheus.Sample")),
			message("Label", scalar("name", 1, text), scalar("value", 2, text)),
			message("Sample", scalar("value", 1, real), scalar("timestamp", 2, whole)),
			message("MetricMetadata", scalar("type", 1, whole), scalar("metric_family_name", 2, text), scalar("help", 4, text),
				scalar("unit", 5, text)),
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName("WriteRequest")
}

// TestAddresses: an address that cannot be is refused before anything is sent.
func TestAddresses(t *testing.T) {
	x := New(&engine.Engine{DataDir: t.TempDir()})
	for _, p := range []Push{{RemoteWrite: "metrics.example.org"}, {OTLP: "ftp://example.org"}, {RemoteWrite: "http://"},
		{Headers: []string{"no colon"}}, {Headers: []string{"A: b\nC: d"}}, {Every: time.Millisecond}} {
		if _, err := x.Start(t.Context(), p); err == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}
