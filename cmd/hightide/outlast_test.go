package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// behindProxy is a browser whose proxy has TLS, or has not.
type behindProxy struct {
	*teamSession
	proto, cookie, page string
}

func (b *behindProxy) ask(method, path, body string) *http.Response {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.served.at(path), strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	request.Host = "runs.example.org"
	request.Header.Set("X-Forwarded-Proto", b.proto)
	request.Header.Set("Content-Type", "application/json")
	if b.cookie != "" {
		request.Header.Set("Cookie", b.cookie)
		request.Header.Set("X-Hightide-Page", b.page)
	}
	answer, err := b.served.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { answer.Body.Close() })
	return answer
}

func (b *behindProxy) sees() int { return b.ask("GET", "/api/v1/status", "").StatusCode }

// TestSessionsOutlast: a browser that was let in over TLS stays so when the server is killed and started again, until it
// signs out or what let it in ends. One without TLS does not, and the database has no secret of either.
func TestSessionsOutlast(t *testing.T) {
	s := startTeam(t, "names = ['runs.example.org']\nproxies = ['127.0.0.1']\n"+teamFile)
	for _, name := range []string{"anna", "bob"} {
		if err := s.password(name, "correct horse"); err != nil {
			t.Fatal(err)
		}
	}
	enters := func(name, proto string) *behindProxy {
		b := &behindProxy{teamSession: s, proto: proto}
		answer := b.ask("POST", "/api/v1/session", `{"name":"`+name+`","password":"correct horse"}`)
		var in struct{ Page string }
		if err := json.NewDecoder(answer.Body).Decode(&in); err != nil || answer.StatusCode != 201 {
			t.Fatalf("%s %v", answer.Status, err)
		}
		b.cookie, b.page = answer.Cookies()[0].Name+"="+answer.Cookies()[0].Value, in.Page
		return b
	}
	anna, bob, plain, leaves := enters("anna", "https"), enters("bob", "https"), enters("anna", "http"), enters("bob", "https")
	again := func() {
		_ = s.served.process.Process.Kill()
		_ = s.served.process.Wait()
		s.start()
	}
	again()
	if a, b, p := anna.sees(), bob.sees(), plain.sees(); a != 200 || b != 200 || p != 401 {
		t.Errorf("after a restart: %d, %d, and without TLS %d", a, b, p)
	}
	stolen := *anna
	if stolen.page = "another"; stolen.sees() != 401 {
		t.Error("the cookie alone is enough after a restart")
	}
	if leaves.ask("DELETE", "/api/v1/session", "").StatusCode != 200 {
		t.Error("it cannot sign out")
	}
	s.must("account", "bob", "--close")
	again()
	if a, b, l := anna.sees(), bob.sees(), leaves.sees(); a != 200 || b != 401 || l != 401 {
		t.Errorf("%d, of an account that was closed %d, after signing out %d", a, b, l)
	}
	db := s.database()
	for _, secret := range []string{anna.page, strings.SplitN(anna.cookie, "=", 2)[1]} {
		if found := s.traces(db, secret); len(found) > 0 {
			t.Errorf("a secret stands in %v", found)
		}
	}
}
