package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// browserOf is one that has signed in; status is what the server answered.
type browserOf struct {
	*teamSession
	status       int
	cookie, page string
}

// signIn brings a name and a password.
func (s *teamSession) signIn(name, password string) browserOf {
	s.t.Helper()
	body, _ := json.Marshal(map[string]string{"name": name, "password": password})
	return s.begin(string(body))
}

// begin begins a session.
func (s *teamSession) begin(body string) browserOf {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.served.at("/api/v1/session"),
		strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := s.served.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	b := browserOf{teamSession: s, status: answer.StatusCode}
	var in struct{ Page string }
	_ = json.NewDecoder(answer.Body).Decode(&in)
	for b.page = in.Page; len(answer.Cookies()) > 0 && b.cookie == ""; {
		b.cookie = answer.Cookies()[0].Name + "=" + answer.Cookies()[0].Value
	}
	return b
}

// ask asks as the page does.
func (b browserOf) ask(method, path string) *http.Response {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), method, b.served.at(path), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Cookie", b.cookie)
	request.Header.Set("X-Hightide-Page", b.page)
	answer, err := b.served.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	answer.Body.Close()
	return answer
}

// password sets one.
func (s *teamSession) password(name, password string) error {
	c := s.command("account", name)
	c.Stdin = strings.NewReader(password + "\n")
	return c.Run()
}

// TestSignIn: a person signs in with a password, and does what its account may, until it signs out, has another
// password, or the account is closed.
func TestSignIn(t *testing.T) {
	s := startTeam(t, teamFile)
	const right, next = "correct horse", "battery staple"
	if err := s.password("anna", "short"); err == nil {
		t.Error("a password of 5 letters is taken")
	}
	for _, name := range []string{"anna", "root"} {
		if err := s.password(name, right); err != nil {
			t.Fatal(err)
		}
	}
	status := func(b browserOf, path string) int { return b.ask(http.MethodGet, path).StatusCode }
	anna := s.signIn("anna", right)
	if anna.status != 201 || status(anna, "/api/v1/projects") != 200 || status(anna, "/api/v1/audit") != 403 {
		t.Errorf("signed in: %d, then %d", anna.status, status(anna, "/api/v1/projects"))
	}
	if root := s.signIn("root", right); status(root, "/api/v1/audit") != 200 {
		t.Errorf("an admin: %d", status(root, "/api/v1/audit"))
	}
	nobody := browserOf{teamSession: s}
	if answer := nobody.ask(http.MethodGet, "/api/v1/status"); answer.Header.Get("X-Hightide-Sign-In") != "password" ||
		answer.StatusCode != 401 {
		t.Errorf("nobody: %s %v", answer.Status, answer.Header)
	}
	cookie := browserOf{teamSession: s, cookie: anna.cookie}
	if got := status(cookie, "/api/v1/status"); got != 401 {
		t.Errorf("a cookie without the page's secret: %d", got)
	}
	for _, wrong := range [][2]string{{"anna", "battery horse"}, {"nobody", right}, {"anna", ""}} {
		if got := s.signIn(wrong[0], wrong[1]); got.status != 401 || got.cookie != "" {
			t.Errorf("%q: %d", wrong, got.status)
		}
	}
	for tries := 0; s.signIn("bob", "guess").status != 429; tries++ {
		if tries > 10 {
			t.Fatal("a password may be guessed as often as one likes")
		}
	}
	if err := s.password("anna", next); err != nil || status(anna, "/api/v1/status") != 401 {
		t.Errorf("after the password was changed, %v, the session is %d", err, status(anna, "/api/v1/status"))
	}
	waitFor(t, func() bool { anna = s.signIn("anna", next); return anna.status == 201 })
	got := anna.ask(http.MethodDelete, "/api/v1/session").StatusCode
	if got != 200 || status(anna, "/api/v1/status") != 401 {
		t.Errorf("signed out: %d, then %d", got, status(anna, "/api/v1/status"))
	}
	waitFor(t, func() bool { anna = s.signIn("anna", next); return anna.status == 201 })
	s.must("account", "anna", "--close")
	if got = status(anna, "/api/v1/status"); got != 401 {
		t.Errorf("of a closed account: %d", got)
	}
	if told := s.must("account") + s.must("audit", "--limit", "1000"); !strings.Contains(told, "anna") ||
		!strings.Contains(told, `account "anna"`) || strings.Contains(told, right) || strings.Contains(told, next) {
		t.Errorf("told %s", told)
	}
}
