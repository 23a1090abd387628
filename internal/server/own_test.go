package server

import (
	"net/http"
	"strings"
	"testing"
)

// TestOwnFigures: what is asked is counted by route and status, whoever asks; neither a run nor a path nor a secret of a
// request stands in it.
func TestOwnFigures(t *testing.T) {
	s := newSite(t, Options{Metrics: "metrics"})
	run := s.begin("geheimer-name", 1)
	s.finish(run)
	for _, path := range []string{"/api/v1/runs", "/api/v1/runs", "/api/v1/runs/nicht-da?token=verraten", "/api/v1/nothing-here",
		"/metrics"} {
		s.ask(http.MethodGet, path, "")
	}
	s.ask(http.MethodGet, "/api/v1/runs", "", "Authorization", "Bearer falsch")
	s.ask(http.MethodPatch, "/api/v1/runs/geheimer-name", `{"name":"anders"}`)
	status, text := s.ask(http.MethodGet, ownPath, "", "Authorization", "Bearer metrics")
	for _, want := range []string{
		`hightide_server_requests_total{route="GET /api/v1/runs",status="2xx"} 2`,
		`hightide_server_requests_total{route="GET /api/v1/runs",status="4xx"} 1`,
		`hightide_server_requests_total{route="GET /api/v1/runs/{id}",status="4xx"} 1`,
		`hightide_server_request_seconds_count{route="GET /api/v1/runs"} 3`,
		`hightide_server_received_bytes_total 17`, `hightide_server_store_up 1`, `hightide_server_sessions 0`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%d, without %s:\n%s", status, want, text)
		}
	}
	for _, secret := range []string{"geheimer", "nicht-da", "nothing-here", "verraten", "falsch", right, "Bearer"} {
		if strings.Contains(text, secret) {
			t.Errorf("it tells %s", secret)
		}
	}
	if status, _ := s.ask(http.MethodGet, ownPath, "", "Authorization", ""); status != 401 {
		t.Errorf("nobody: %d", status)
	}
}
