package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"hightide/internal/server"
)

// TestShare: a member makes a link to a run in a team's server, and who has it sees that run alone, until it is revoked;
// it outlasts a kill of the server, and its secret stands neither in the log nor in the database.
func TestShare(t *testing.T) {
	s := startTeam(t, teamFile)
	s.must("run", "--quiet", "--tag", "project=ranker", "--name", "shown", "--", "/bin/true")
	s.must("run", "--quiet", "--tag", "project=ranker", "--name", "other", "--", "/bin/true")
	anna, bob := s.key("anna", "--may", "push"), s.key("bob", "--may", "push")
	if status, _ := s.as(bob, "POST", "/api/v1/runs/shown/shares", `{}`); status != 403 {
		t.Errorf("a viewer makes a link: %d", status)
	}
	status, text := s.as(anna, "POST", "/api/v1/runs/shown/shares", `{"lasts_s":3600}`)
	var made server.MadeShare
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != 200 || len(made.Secret) < 20 {
		t.Fatalf("%d %s %v", status, text, err)
	}
	_ = s.served.process.Process.Kill()
	s.start()
	see := s.opensLink(made.Secret)
	if a, b := see("shown"), see("other"); a != 200 || b != 404 {
		t.Errorf("the link shows its run: %d, another: %d", a, b)
	}
	at := strings.TrimSpace(s.must("share", "shown", "--server", "https://runs.example.org/", "--lasts", "24h"))
	address, secret, _ := strings.Cut(at, "#share=")
	if !strings.HasPrefix(address, "https://runs.example.org/runs/") || s.opensLink(secret)("shown") != 200 {
		t.Errorf("the command's link %s", address)
	}
	list := s.must("share")
	s.must("share", "shown", "--revoke", "1")
	if got := see("shown"); got != 401 {
		t.Errorf("after it was revoked: %d", got)
	}
	told := s.must("audit", "--json", "--limit", "1000")
	for _, want := range []string{"made link 1 to run", "made link 2 to run", "revoked link 1 to run", "opened run"} {
		if !strings.Contains(told, want) {
			t.Errorf("the log does not tell %q: %s", want, told)
		}
	}
	for _, kept := range []string{told, list, s.served.said.String(), s.must("share", "--json")} {
		if strings.Contains(kept, made.Secret) || strings.Contains(kept, secret) || !strings.Contains(list, "anna") {
			t.Errorf("the secret of a link is told in %s", kept)
		}
	}
	for _, wrong := range [][]string{{"share", "--revoke", "1"}, {"share", "shown", "--revoke", "1"},
		{"share", "nothing"}, {"share", "shown", "--lasts", "2161h"}} {
		if out, err := s.command(wrong...).CombinedOutput(); err == nil {
			t.Errorf("%v: %s", wrong, out)
		}
	}
	s.must("rm", "shown")
	if left := s.must("share", "--json"); strings.Contains(left, `"id"`) {
		t.Errorf("links of a run that was deleted: %s", left)
	}
}

// opensLink lets a browser in, and gives how it is answered about runs.
func (s *teamSession) opensLink(secret string) func(run string) int {
	s.t.Helper()
	asked := func(method, path, body string, headers http.Header) *http.Response {
		request, err := http.NewRequestWithContext(s.t.Context(), method, s.served.address+path, strings.NewReader(body))
		if err != nil {
			s.t.Fatal(err)
		}
		request.Header = headers
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() { response.Body.Close() })
		return response
	}
	response := asked("POST", "/api/v1/session", `{"share":"`+secret+`"}`, http.Header{"Content-Type": {"application/json"}})
	var in server.Entered
	if err := json.NewDecoder(response.Body).Decode(&in); err != nil || response.StatusCode != 201 {
		s.t.Fatalf("a link opens no session: %s %v", response.Status, err)
	}
	cookie := response.Cookies()[0]
	return func(run string) int {
		return asked("GET", "/api/v1/runs/"+run, "", http.Header{"Cookie": {cookie.Name + "=" + cookie.Value},
			"X-Hightide-Page": {in.Page}}).StatusCode
	}
}
