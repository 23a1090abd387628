package server

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"hightide/internal/store"
)

// TestGuard: whatever else a request has, it is of this server's name, and of no page elsewhere.
func TestGuard(t *testing.T) {
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
		{name: "a rebound name of an address", headers: []string{"Host", "127.0.0.1.evil.example:7333"}, want: 421},
		{name: "another address", headers: []string{"Host", "10.0.0.1:7333"}, want: 200}, // no page can take it for its own
		{name: "no name", headers: []string{"Host", ":"}, want: 421},
		{name: "a name that was given", options: Options{Hosts: []string{"box"}}, headers: []string{"Host", "BOX:7333"},
			want: 200},
		{name: "another origin", headers: []string{"Origin", "https://evil.example"}, want: 403},
		{name: "another port of ours", headers: []string{"Origin", "http://localhost:3000"}, want: 403},
		{name: "a page in a file", headers: []string{"Origin", "null"}, want: 403},
		{name: "an origin of another API's", options: Options{Origins: []string{"http://localhost:3000"}},
			headers: []string{"Origin", "http://localhost:3000/"}, want: 403},
		{name: "a picture elsewhere", headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"},
			want: 403},
		{name: "a picture on another port", headers: []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"},
			want: 403},
		{name: "a link elsewhere", headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"},
			want: 200},
		{name: "a form elsewhere", method: "POST", path: "/api/v1/runs/delete",
			headers: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, want: 403},
		{name: "a form on another port", method: "POST", path: "/api/v1/runs/delete",
			headers: []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"}, want: 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSite(t, test.options)
			if got, text := s.ask(cmp.Or(test.method, http.MethodGet), cmp.Or(test.path, "/api/v1/status"), "",
				test.headers...); got != test.want {
				t.Errorf("%d %s; want %d", got, text, test.want)
			}
		})
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
		if !strings.Contains(policy, "script-src 'self';") || !strings.Contains(policy, "frame-ancestors 'none'") ||
			response.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, response.Header)
		}
	}
}

// TestNoPathOfARequest: what a request calls a run is never taken for a file.
func TestNoPathOfARequest(t *testing.T) {
	s := newSite(t, Options{})
	s.finish(s.begin("run", 1))
	for _, path := range []string{
		"/api/v1/runs/server_test.go", "/api/v1/runs/.%2Fserver_test.go/report", "/api/v1/runs/%2Fetc%2Fpasswd",
		"/api/v1/runs/..%2F..%2Fgo.mod/series", "/api/v1/runs/testdata/live",
		"/api/v1/diff?a=server_test.go&b=last", "/api/v1/runs/last/artifacts/..%2F..%2Fgo.mod",
		"/api/v1/runs/last/artifacts/run.hightide%2F",
	} {
		if got, text := s.ask(http.MethodGet, path, ""); got < 400 || got >= 500 || strings.Contains(text, "passwd:") {
			t.Errorf("%s: %d %s", path, got, text)
		}
	}
}

func TestAuditAndBodyLimit(t *testing.T) {
	var lock sync.Mutex
	var lines []string
	s := newSite(t, Options{Audit: func(act store.Act) {
		lock.Lock()
		defer lock.Unlock()
		lines = append(lines, act.String())
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
	if len(lines) != 3 || !strings.Contains(lines[0], " token at 127.0.0.1:") ||
		!strings.HasSuffix(lines[0], `PATCH "/api/v1/runs/last": 200`) ||
		!strings.HasSuffix(lines[1], `DELETE "/api/v1/runs/last": 403`) ||
		slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, "secret") }) {
		t.Errorf("told %q", lines)
	}
}
