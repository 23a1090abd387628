package server

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"hightide/internal/store"
)

// TestProxies: the word of a proxy that is named counts, of its last link; of any other client it does not.
func TestProxies(t *testing.T) {
	trust := func(networks ...string) (all []netip.Prefix) {
		for _, n := range networks {
			all = append(all, netip.MustParsePrefix(n))
		}
		return all
	}
	for _, test := range []struct {
		trusted []netip.Prefix
		said    string
		want    string
	}{
		{nil, "9.9.9.9", "127.0.0.1:"},
		{trust("10.0.0.0/8"), "9.9.9.9", "127.0.0.1:"},
		{trust("127.0.0.1/32"), "9.9.9.9", "9.9.9.9:0"},
		{trust("127.0.0.1/32"), "1.1.1.1, 9.9.9.9", "9.9.9.9:0"},
		{trust("127.0.0.0/8", "10.0.0.0/8"), "1.1.1.1, 9.9.9.9, 10.1.2.3", "9.9.9.9:0"},
		{trust("127.0.0.1/32"), "somebody", "127.0.0.1:"},
		{trust("127.0.0.1/32"), "", "127.0.0.1:"},
		{trust("127.0.0.1/32"), "fd00::1", "[fd00::1]:0"},
	} {
		var acts []store.Act
		s := newSite(t, Options{Proxies: test.trusted, Audit: func(a store.Act) { acts = append(acts, a) }})
		s.ask(http.MethodDelete, "/api/v1/runs/x", "", "X-Forwarded-For", test.said)
		if len(acts) != 1 || !strings.HasPrefix(acts[0].From, test.want) {
			t.Errorf("%q of %v is told as %+v; want %s", test.said, test.trusted, acts, test.want)
		}
		response, _ := s.enters(s.made.Code(), "X-Forwarded-Proto", "https")
		trusted := len(test.trusted) > 0 && test.trusted[0].Contains(netip.MustParseAddr("127.0.0.1"))
		if secure := response.Cookies()[0].Secure; secure != trusted {
			t.Errorf("%v: a cookie that is secure: %v", test.trusted, secure)
		}
	}
}

// TestRates: who asks more than it may is told when to ask again, and nobody else.
func TestRates(t *testing.T) {
	keys := keyring{"anna": {Name: "anna"}, "bob": {Name: "bob"}}
	s := newSite(t, Options{Keys: keys.of, Rates: Rates{Requests: 0.1, Bytes: 1 << 20}})
	ask := func(key string) int {
		got, _ := s.ask(http.MethodGet, "/api/v1/status", "", "Authorization", "Bearer "+key)
		return got
	}
	if first, second, other := ask("anna"), ask("anna"), ask("bob"); first != 200 || second != 429 || other != 200 {
		t.Errorf("the first %d, the second %d, another's %d", first, second, other)
	}
	if first, second := ask("guess"), ask("another guess"); first != 401 || second != 429 {
		t.Errorf("guesses of one address: %d, %d", first, second)
	}
	s = newSite(t, Options{Rates: Rates{Bytes: 64 << 10}})
	began, full := time.Now(), strings.Repeat("x", 700<<10)
	got, _ := s.ask(http.MethodPost, "/api/v1/runs/delete", `{"ids":["`+full+`"]}`)
	if got >= 500 || time.Since(began) < 500*time.Millisecond {
		t.Errorf("700 KiB at 64 KiB a second, 640 at once: %d after %v", got, time.Since(began))
	}
}

// TestHealth: a supervisor, who has no key, learns whether the server answers and whether its store does, and no more.
func TestHealth(t *testing.T) {
	var broken error
	s := newSite(t, Options{Ready: func(context.Context) error { return broken }})
	for _, step := range []struct {
		broken error
		path   string
		want   int
	}{{nil, healthPath, 200}, {nil, readyPath, 200}, {errors.New("secret"), healthPath, 200},
		{errors.New("secret"), readyPath, 503}} {
		broken = step.broken
		got, text := s.ask(http.MethodGet, step.path, "", "Authorization", "")
		if got != step.want || strings.Contains(text, "secret") {
			t.Errorf("%s: %d %s", step.path, got, text)
		}
		if got, _ := s.ask(http.MethodPost, step.path, "", "Authorization", ""); got != 401 {
			t.Errorf("POST %s: %d", step.path, got)
		}
	}
}
