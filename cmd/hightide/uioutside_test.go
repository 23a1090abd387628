package main

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// TestPushAfterKill: what a server that was killed had not sent, the next one sends.
func TestPushAfterKill(t *testing.T) {
	s := newSession(t)
	var taken atomic.Int64
	to := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer secret" {
			taken.Add(1)
		}
	}))
	address := to.Listener.Addr().String()
	to.Listener.Close() // nobody listens yet
	t.Setenv("HIGHTIDE_PUSH_TOKEN", "secret")
	waiting := func() []string {
		files, _ := filepath.Glob(filepath.Join(s.dir, "data", "push", "*", "*.request"))
		return files
	}
	ui := s.serve("--remote-write", "http://"+address, "--push-every", "100ms")
	waitFor(t, func() bool { return len(waiting()) >= 5 })
	if err := ui.process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = ui.process.Wait()
	left := len(waiting())
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("another process took %s: %v", address, err)
	}
	to.Listener = listener
	to.Start()
	defer to.Close()
	s.serve("--remote-write", "http://"+address, "--push-every", "1h")
	waitFor(t, func() bool { return len(waiting()) == 0 && taken.Load() > int64(left) })
}

// TestMetricsOfTheServer: /metrics is there, and what cannot be pushed to is said before anything is served.
func TestMetricsOfTheServer(t *testing.T) {
	s := newSession(t)
	ui := s.serve("--metrics-token-file", "prometheus.token")
	scraper := s.read("prometheus.token")
	if status, text := ui.get("/metrics"); status != 200 || !strings.Contains(text, "hightide_build_info{") {
		t.Errorf("%d %s", status, text)
	}
	for token, want := range map[string][2]int{scraper: {200, 401}, ui.token: {200, 200}, "": {401, 401}} {
		ui.token = token
		metrics, _ := ui.get("/metrics")
		rest, _ := ui.get("/api/v1/runs")
		if got := [2]int{metrics, rest}; got != want || len(scraper) < 20 {
			t.Errorf("of the metrics and of the runs the token %q is answered %v; want %v", token, got, want)
		}
	}
	said, err := s.command("ui", "--addr", "127.0.0.1:0", "--otlp", "collector:4318").CombinedOutput()
	if err == nil || !strings.Contains(string(said), "--otlp takes an http or https URL") ||
		err.(*exec.ExitError).ExitCode() != 2 {
		t.Errorf("%v: %s", err, said)
	}
}

// TestCompatMemoryMark: the API that its pages know, and nothing else.
func TestCompatMemoryMark(t *testing.T) {
	s := newSession(t)
	const page = "http://localhost:3000"
	ui := s.serve("--compat", "memorymark", "--origin", page)
	ask := func(address, origin string) (*http.Response, string) {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		request.Header.Set("Origin", origin)
		answer, err := ui.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		return answer, string(text)
	}
	if answer, text := ask(ui.address+"/health", page); answer.StatusCode != 200 || !strings.Contains(text, `"status":"healthy"`) ||
		answer.Header.Get("Access-Control-Allow-Origin") != page {
		t.Errorf("its page by the address that is printed: %s %s, %v", answer.Status, text, answer.Header)
	}
	for address, want := range map[string]int{ui.at("/health"): 401, ui.address + "/api/v1/runs": 404, ui.address +
		"x/health": 401} {
		if answer, text := ask(address, page); answer.StatusCode != want {
			t.Errorf("%s: %s %s; want %d", address, answer.Status, text, want)
		}
	}
	if answer, _ := ask(ui.address+"/health", "http://localhost:3001"); answer.StatusCode != 403 || answer.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("another page: %s", answer.Status)
	}
}
