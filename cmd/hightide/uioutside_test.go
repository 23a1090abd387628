package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// served is a `hightide ui` that has said its address.
func served(t *testing.T, s *session, args ...string) (process *exec.Cmd, address string) {
	t.Helper()
	c := s.command(append([]string{"ui", "--addr", "127.0.0.1:0"}, args...)...)
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if found := regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(lines.Text()); found != "" && strings.Contains(lines.Text(), "Ctrl-C") {
			go io.Copy(io.Discard, said)
			return c, found
		}
	}
	t.Fatal("the server ended before it said its address")
	return nil, ""
}

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
	ui, _ := served(t, s, "--remote-write", "http://"+address, "--push-every", "100ms")
	waitFor(t, func() bool { return len(waiting()) >= 5 })
	if err := ui.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = ui.Wait()
	left := len(waiting())
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("another process took %s: %v", address, err)
	}
	to.Listener = listener
	to.Start()
	defer to.Close()
	served(t, s, "--remote-write", "http://"+address, "--push-every", "1h")
	waitFor(t, func() bool { return len(waiting()) == 0 && taken.Load() > int64(left) })
}

// TestMetricsOfTheServer: /metrics is there, and what cannot be pushed to is said before anything is served.
func TestMetricsOfTheServer(t *testing.T) {
	s := newSession(t)
	_, address := served(t, s)
	answer, err := http.Get(address + "metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "hightide_build_info{") {
		t.Errorf("error %v, %s", err, text)
	}
	said, err := s.command("ui", "--addr", "127.0.0.1:0", "--otlp", "collector:4318").CombinedOutput()
	if err == nil || !strings.Contains(string(said), "--otlp takes an http or https URL") || err.(*exec.ExitError).ExitCode() != 2 {
		t.Errorf("%v: %s", err, said)
	}
}

// TestCompatMemoryMark: the API that its pages know, and nothing else.
func TestCompatMemoryMark(t *testing.T) {
	_, address := served(t, newSession(t), "--compat", "memorymark")
	answer, err := http.Get(address + "health")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var health struct{ Status string }
	if err := json.NewDecoder(answer.Body).Decode(&health); err != nil || health.Status != "healthy" || answer.Header.Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("error %v, %+v, %v", err, health, answer.Header)
	}
	other, err := http.Get(address + "api/v1/runs")
	if err != nil || other.StatusCode != 404 {
		t.Errorf("error %v, %+v", err, other)
	}
	other.Body.Close()
}
