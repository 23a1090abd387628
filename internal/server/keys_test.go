package server

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"hightide/internal/engine"
)

// keyring knows keys by their secrets, as the store of a team does.
type keyring map[string]Key

func (k keyring) of(digest string) (Key, bool) {
	for secret, key := range k {
		if d := digestOf(secret); hex.EncodeToString(d[:]) == digest {
			return key, true
		}
	}
	return Key{}, false
}

// mayAsk is what the rights are to be, by route: what reads, all may; programs are for exec; the rest is for push.
func mayAsk(method, path, key string) bool {
	switch {
	case path == actsPath:
		return false
	case method == "GET" || method == "HEAD" || path == "/api/v1/session" || path == "/api/v1/session/codes":
		return true
	case strings.HasPrefix(path, "/api/v1/jobs"):
		return key == "exec"
	}
	return key != "read"
}

// TestRightsOfKeys: every route, by every method that it has, does what each key may, and refuses the rest.
func TestRightsOfKeys(t *testing.T) {
	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	keys := keyring{"read": {Name: "reader", May: MayRead}, "push": {Name: "pusher", May: MayChange},
		"exec": {Name: "starter", May: MayStart}}
	allowed, refused := 0, 0
	for secret := range keys {
		s := newSite(t, Options{AllowExec: true, Keys: keys.of,
			Check: func(context.Context, string) (*engine.FileFacts, error) { return nil, nil }})
		s.finish(s.begin("run", 1))
		for _, route := range s.routes() {
			got, _ := s.status(client, route, []string{"Authorization", "Bearer " + secret})
			may := mayAsk(route[0], route[1], secret)
			if may == (got == 403) || got == 401 {
				t.Errorf("%s %s with a key for %s: %d, may %v", route[0], route[1], secret, got, may)
			}
			if may {
				allowed++
			} else {
				refused++
			}
		}
	}
	if allowed < 100 || refused < 40 {
		t.Errorf("%d allowed, %d refused", allowed, refused)
	}
}

// TestRevokedKey: with a key ends what it let in: requests, sessions of browsers, and codes that were not opened yet.
func TestRevokedKey(t *testing.T) {
	keys := keyring{"anna": {Name: "anna", May: MayRead}}
	s := newSite(t, Options{Keys: keys.of})
	made := func() string {
		got, text := s.ask(http.MethodPost, sessionPath+"/codes", "", "Authorization", "Bearer anna")
		if got != 201 {
			t.Fatalf("a code: %d %s", got, text)
		}
		var code Code
		if err := json.Unmarshal([]byte(text), &code); err != nil {
			t.Fatal(err)
		}
		return code.Code
	}
	_, in := s.enters(made())
	waiting := made()
	page := func(b browser, method, path string) int {
		got, _ := s.ask(method, path, `{"name":"x"}`, "Authorization", "", "Cookie", b.cookie, pageHeader, b.page,
			"Content-Type", "application/json")
		return got
	}
	if got := page(in, http.MethodGet, "/api/v1/status"); got != 200 {
		t.Errorf("a browser that a key let in: %d", got)
	}
	if got := page(in, http.MethodPatch, "/api/v1/runs/last"); got != 403 {
		t.Errorf("it changes a run, with a key that reads: %d", got)
	}
	if got := page(in, http.MethodPost, sessionPath+"/codes"); got != 201 {
		t.Errorf("it makes a code: %d", got)
	}
	delete(keys, "anna")
	if got, _ := s.ask(http.MethodGet, "/api/v1/status", "", "Authorization", "Bearer anna"); got != 401 {
		t.Errorf("a revoked key: %d", got)
	}
	if got := page(in, http.MethodGet, "/api/v1/status"); got != 401 {
		t.Errorf("a browser of a revoked key: %d", got)
	}
	_, late := s.enters(waiting)
	if got := page(late, http.MethodGet, "/api/v1/status"); got != 401 {
		t.Errorf("a code of a revoked key: %d", got)
	}
}
