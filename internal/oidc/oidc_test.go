package oidc_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"hightide/internal/oidc"
)

const back = "http://127.0.0.1:1/back"

// start is a provider on a port of the loopback, and a server that knows it.
func start(t *testing.T) (*mockoidc.MockOIDC, *oidc.Provider) {
	t.Helper()
	at, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = at.Shutdown() })
	p, err := oidc.New(oidc.Config{Issuer: at.Issuer(), ID: at.Config().ClientID, Secret: at.Config().ClientSecret,
		Back: back})
	if err != nil {
		t.Fatal(err)
	}
	return at, p
}

// visit has somebody sign in at the provider, and gives what it sends back.
func visit(t *testing.T, address string) url.Values {
	t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	to, err := answer.Location()
	if err != nil || !strings.HasPrefix(to.String(), back) {
		t.Fatalf("it leads to %v, %v", to, err)
	}
	return to.Query()
}

func TestSignIn(t *testing.T) {
	at, p := start(t)
	at.QueueUser(&mockoidc.MockUser{Subject: "1", Email: "anna@example.org", EmailVerified: true, Groups: []string{"ml"}})
	address, a, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"code_challenge_method=S256", "nonce=", "state=" + a.State} {
		if !strings.Contains(address, want) {
			t.Errorf("%s has no %s", address, want)
		}
	}
	said := visit(t, address)
	who, err := p.Finish(t.Context(), a, said.Get("code"))
	if err != nil || said.Get("state") != a.State || who.Account != "anna@example.org" || strings.Join(who.Groups, " ") != "ml" {
		t.Errorf("%+v, %v, %v", who, err, said)
	}
	if _, err := p.Finish(t.Context(), a, said.Get("code")); err == nil || !strings.Contains(err.Error(), "refuses the code") {
		t.Errorf("the code a second time: %v", err)
	}
}

func TestRefused(t *testing.T) {
	at, p := start(t)
	begin := func() (oidc.Attempt, string) {
		address, a, err := p.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return a, visit(t, address).Get("code")
	}
	refused := func(what, want string, a oidc.Attempt, code string) {
		t.Helper()
		who, err := p.Finish(t.Context(), a, code)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || who.Account != "" &&
			!strings.Contains(want, "verified") {
			t.Errorf("%s: %+v, %v; want %s", what, who, err, want)
		}
	}
	_, code := begin()
	other, _ := begin()
	refused("another's code, without its verifier", "refuses the code", other, code)

	at.QueueUser(&mockoidc.MockUser{Subject: "1", Email: "anna@example.org"})
	a, code := begin()
	refused("an address that nobody has verified", "does not say that it has verified", a, code)

	at.QueueUser(&mockoidc.MockUser{Subject: "1", EmailVerified: true})
	a, code = begin()
	refused("no address", "says no email", a, code)

	a, code = begin()
	at.FastForward(-24 * time.Hour)
	refused("what has expired", "token is expired", a, code)
	at.FastForward(24 * time.Hour)

	elsewhere, err := oidc.New(oidc.Config{Issuer: strings.Replace(at.Issuer(), "127.0.0.1", "localhost", 1),
		ID: "x", Back: back})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := elsewhere.Begin(t.Context()); err == nil || !strings.Contains(err.Error(), "did not match") {
		t.Errorf("another issuer: %v", err)
	}
	for _, wrong := range []oidc.Config{{Issuer: "http://login.example.org", ID: "x", Back: back},
		{Issuer: "login.example.org", ID: "x", Back: back}, {Issuer: at.Issuer(), ID: "x"},
		{Issuer: at.Issuer(), Back: back}} {
		if _, err := oidc.New(wrong); err == nil {
			t.Errorf("%+v is taken", wrong)
		}
	}
}
