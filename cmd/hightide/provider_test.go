package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/oauth2-proxy/mockoidc"
)

// startProvided is a server whose people sign in at a provider.
func startProvided(t *testing.T) (*teamSession, *mockoidc.MockOIDC) {
	t.Helper()
	at, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = at.Shutdown() })
	s := startTeam(t, teamFile)
	address := s.served.at("")
	config := strings.Replace(teamFile, "127.0.0.1:0", strings.TrimPrefix(address, "http://"), 1)
	config = strings.Replace(config, `["anna"]`, `["anna@example.org", "group:ranking"]`, 1)
	write(t, s.dir, "secret", at.Config().ClientSecret+"\n")
	write(t, s.dir, "team.toml", config+"[oidc]\nissuer = '"+at.Issuer()+"'\nclient-id = '"+at.Config().ClientID+
		"'\nclient-secret-file = 'secret'\nurl = '"+address+"'\n")
	_ = s.served.process.Process.Kill()
	_ = s.served.process.Wait()
	s.start()
	return s, at
}

// visitor is a browser of somebody.
func visitor(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

// goes follows a browser's way, and gives where it ends and with which status.
func goes(t *testing.T, browser *http.Client, to string) (*url.URL, int) {
	t.Helper()
	answer, err := browser.Get(to)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return answer.Request.URL, answer.StatusCode
}

// entered has a browser that comes back from the provider exchange its code.
func (s *teamSession) entered(fragment string) browserOf {
	s.t.Helper()
	code, is := strings.CutPrefix(fragment, "code=")
	if !is {
		s.t.Fatalf("it came back with %q", fragment)
	}
	return s.begin(`{"code":"` + code + `"}`)
}

// TestSignInAtProvider: who signs in at the provider has the roles of its account and its groups. A sign-in is good
// once, in the browser that began it, and the log tells of it.
func TestSignInAtProvider(t *testing.T) {
	s, at := startProvided(t)
	s.must("run", "--quiet", "--tag", "project=ranker", "--name", "shown", "--", "/bin/true")
	sees := func(user *mockoidc.MockUser) (runs, changed int) {
		at.QueueUser(user)
		end, _ := goes(t, visitor(t), s.served.at("/api/v1/session/provider"))
		b := s.entered(end.Fragment)
		return b.ask(http.MethodGet, "/api/v1/runs/shown").StatusCode, b.ask(http.MethodPost, "/api/v1/plan").StatusCode
	}
	for name, user := range map[string]*mockoidc.MockUser{
		"the account": {Subject: "1", Email: "anna@example.org", EmailVerified: true},
		"a group":     {Subject: "2", Email: "new@example.org", EmailVerified: true, Groups: []string{"x", "ranking"}},
	} {
		if runs, changed := sees(user); runs != 200 || changed == 403 {
			t.Errorf("%s: %d, %d", name, runs, changed)
		}
	}
	stranger := &mockoidc.MockUser{Subject: "3", Email: "eve@example.org", EmailVerified: true, Groups: []string{"other"}}
	if runs, changed := sees(stranger); runs != 404 || changed != 403 {
		t.Errorf("a stranger: %d, %d", runs, changed)
	}
	anna := visitor(t)
	anna.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	step := func(browser *http.Client, to string) string {
		answer, err := browser.Get(to)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		return answer.Header.Get("Location")
	}
	back := step(anna, step(anna, s.served.at("/api/v1/session/provider")))
	if _, status := goes(t, visitor(t), back); status != 401 {
		t.Errorf("another browser comes back: %d", status)
	}
	if end := step(anna, back); !strings.HasPrefix(end, "/#code=") {
		t.Errorf("it comes back to %q", end)
	}
	if _, status := goes(t, anna, back); status != 401 {
		t.Errorf("the same once more: %d", status)
	}
	s.refusedAsPage(anna, step(anna, s.served.at("/api/v1/session/provider")))
	refused, err := http.Get(s.served.at("/api/v1/status"))
	if err != nil || refused.Header.Get("X-Hightide-Sign-In") != "password provider" {
		t.Errorf("a page is told %v, %v", refused, err)
	}
	if told := s.must("audit"); !strings.Contains(told, `account "anna@example.org"`) || strings.Contains(told, "code=") {
		t.Errorf("the log tells %s", told)
	}
}

// refusedAsPage: a browser that is not let in gets a page, in which what the provider's address says is text.
func (s *teamSession) refusedAsPage(browser *http.Client, provider string) {
	s.t.Helper()
	to, err := url.Parse(provider)
	if err != nil {
		s.t.Fatal(err)
	}
	for accept, want := range map[string]string{"text/html,application/xhtml+xml,*/*;q=0.8": "text/html", "*/*": "application/problem+json"} {
		request, _ := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.served.at("/api/v1/session/provider/back?state="+
			url.QueryEscape(to.Query().Get("state"))+"&error="+url.QueryEscape("<img src=x onerror=alert(1)>")), nil)
		request.Header.Set("Accept", accept)
		answer, err := browser.Do(request)
		if err != nil {
			s.t.Fatal(err)
		}
		text, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != 401 || !strings.HasPrefix(answer.Header.Get("Content-Type"), want) ||
			want == "text/html" && (strings.Contains(string(text), "<img") || !strings.Contains(string(text), "not signed in")) {
			s.t.Errorf("for %q: %s %s", accept, answer.Status, text)
		}
	}
}

// TestProviderRefused: a file that names a provider wrongly serves nobody; one that is away leaves the rest as it is.
func TestProviderRefused(t *testing.T) {
	s, at := startProvided(t)
	_ = at.Shutdown()
	if _, status := goes(t, visitor(t), s.served.at("/api/v1/session/provider")); status != 503 {
		t.Errorf("a provider that is away: %d", status)
	}
	for text, want := range map[string]string{
		"issuer = 'http://login.example.org'\nclient-id = 'x'\nurl = 'https://x'": "no address as https",
		"issuer = 'https://login.example.org'\nurl = 'https://x'":                 "no client-id",
		"client = 1": "there is no setting",
	} {
		path := write(t, s.dir, "wrong.toml", "[oidc]\n"+text)
		out, err := s.command("serve", "--config", path).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v %s; want %s", text, err, out, want)
		}
	}
}
