package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestGuard(t *testing.T) {
	const token = "right"
	for _, test := range []struct {
		name    string
		options Options
		method  string
		path    string
		headers []string
		want    int
	}{
		{name: "itself", want: 200},
		{name: "localhost", headers: []string{"Host", "localhost:7333"}, want: 200},
		{name: "IPv6", headers: []string{"Host", "[::1]:7333"}, want: 200},
		{name: "a rebound name", headers: []string{"Host", "evil.example"}, want: 421},
		{name: "a name that ends like ours", headers: []string{"Host", "localhost.evil.example:7333"}, want: 421},
		{name: "another address", headers: []string{"Host", "10.0.0.1:7333"}, want: 421},
		{name: "no name", headers: []string{"Host", ":"}, want: 421},
		{name: "a name that was given", options: Options{Hosts: []string{"box"}}, headers: []string{"Host", "BOX:7333"}, want: 200},
		{name: "another origin", headers: []string{"Origin", "https://evil.example"}, want: 403},
		{name: "another port of ours", headers: []string{"Origin", "http://localhost:3000"}, want: 403},
		{name: "a page in a file", headers: []string{"Origin", "null"}, want: 403},
		{name: "a picture elsewhere", headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, want: 403},
		{name: "a link elsewhere", headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, want: 200},
		{name: "a form elsewhere", method: "POST", path: "/api/v1/runs/delete", headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, want: 403},
		{name: "no token", options: Options{Token: token}, want: 401},
		{name: "a wrong token", options: Options{Token: token}, headers: []string{"Authorization", "Bearer wrong"}, want: 401},
		{name: "half a token", options: Options{Token: token}, headers: []string{"Authorization", "Bearer righ"}, want: 401},
		{name: "the token", options: Options{Token: token}, headers: []string{"Authorization", "Bearer right"}, want: 200},
		{name: "an address with the token", options: Options{Token: token}, headers: []string{"Host", "10.0.0.1:7333", "Authorization", "Bearer right"}, want: 200},
		{name: "a rebound name with the token", options: Options{Token: token}, headers: []string{"Host", "evil.example", "Authorization", "Bearer right"}, want: 421},
		{name: "the page itself needs it", options: Options{Token: token}, path: "/", want: 401},
		{name: "the token in the address of another page", options: Options{Token: token}, path: "/?token=wrong", want: 401},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, test.options)
			method, path := test.method, test.path
			if method == "" {
				method = http.MethodGet
			}
			if path == "" {
				path = "/api/v1/status"
			}
			if got, text := s.ask(method, path, "", test.headers...); got != test.want {
				t.Errorf("%d %s; want %d", got, text, test.want)
			}
		})
	}
}

// TestTokenCookie: the printed address is exchanged for a cookie that no script gets, and of other sites only a link sends. The token goes
// out of the address.
func TestTokenCookie(t *testing.T) {
	s := newSite(t, Options{Token: "right"})
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Get(s.URL + "/runs/x?token=right&t=1-2")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	cookies := response.Cookies()
	if response.StatusCode != http.StatusSeeOther || response.Header.Get("Location") != "/runs/x?t=1-2" || len(cookies) != 1 {
		t.Fatalf("%s to %q with %v", response.Status, response.Header.Get("Location"), cookies)
	}
	if at, err := url.Parse(s.URL); err != nil || !strings.HasSuffix(cookies[0].Name, "-"+at.Port()) { // cookies know no ports: another server on this machine would take its place
		t.Errorf("the cookie of %s is called %s", s.URL, cookies[0].Name)
	}
	if c := cookies[0]; !c.HttpOnly || c.SameSite != http.SameSiteLaxMode {
		t.Errorf("cookie %+v", c)
	}
	if got, text := s.ask(http.MethodGet, "/api/v1/status", "", "Cookie", cookies[0].String()); got != http.StatusOK {
		t.Errorf("with the cookie: %d %s", got, text)
	}
}

// TestHeaders: every answer forbids scripts within pages, framing, and guessing of types, also a refused one.
func TestHeaders(t *testing.T) {
	s := newSite(t, Options{})
	for _, path := range []string{"/", "/api/v1/runs", "/api/v1/nothing", "/api/v1/runs?limit=0"} {
		response, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		policy := response.Header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "script-src 'self';") || !strings.Contains(policy, "frame-ancestors 'none'") || response.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, response.Header)
		}
	}
}

// TestNoPathOfARequest: what a request calls a run is never taken for a file.
func TestNoPathOfARequest(t *testing.T) {
	s := newSite(t, Options{})
	s.finish(s.begin("run", 1))
	for _, path := range []string{
		"/api/v1/runs/server_test.go", "/api/v1/runs/.%2Fserver_test.go/report", "/api/v1/runs/%2Fetc%2Fpasswd", "/api/v1/runs/..%2F..%2Fgo.mod/series", "/api/v1/runs/testdata/live",
		"/api/v1/diff?a=server_test.go&b=last", "/api/v1/runs/last/artifacts/..%2F..%2Fgo.mod", "/api/v1/runs/last/artifacts/run.hightide%2F",
	} {
		if got, text := s.ask(http.MethodGet, path, ""); got < 400 || got >= 500 || strings.Contains(text, "passwd:") {
			t.Errorf("%s: %d %s", path, got, text)
		}
	}
}

func TestAuditAndBodyLimit(t *testing.T) {
	var lock sync.Mutex
	var lines []string
	s := newSite(t, Options{Audit: func(line string) {
		lock.Lock()
		defer lock.Unlock()
		lines = append(lines, line)
	}})
	w := s.begin("run", 1)
	s.finish(w)
	s.ask(http.MethodGet, "/api/v1/runs", "")
	s.ask(http.MethodPatch, "/api/v1/runs/last", `{"name":"secret"}`)
	s.ask(http.MethodDelete, "/api/v1/runs/last", "", "Origin", "https://evil.example")
	if got, _ := s.ask(http.MethodPost, "/api/v1/runs/delete", `{"ids":["`+strings.Repeat("x", bodySize)+`"]}`); got != http.StatusRequestEntityTooLarge {
		t.Errorf("a body of more than %d bytes: %d", bodySize, got)
	}
	lock.Lock()
	defer lock.Unlock()
	if len(lines) != 3 || !strings.HasSuffix(lines[0], `PATCH "/api/v1/runs/last": 200`) || !strings.HasSuffix(lines[1], `DELETE "/api/v1/runs/last": 403`) ||
		slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "secret") }) {
		t.Errorf("told %q", lines)
	}
}
