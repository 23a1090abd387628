// Package oidc has people sign in at a provider of OpenID Connect, as an organization has for all of its programs.
//
//	Begin ──▶ the provider's page ──▶ back, with a code ──▶ Finish: who it is
//
// The code flow with PKCE, a state and a nonce. The protocol is go-oidc's and x/oauth2's.
package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// Config names a provider, and what it says of people.
type Config struct {
	Issuer  string // its address, as it stands in what it signs
	ID      string // of this server, at the provider
	Secret  string // likewise; "": the server is a public client
	Back    string // the address of this server to which the provider sends people back
	Account string // the claim that is the name of the account; "": email
	Groups  string // the claim that lists groups; "": groups
	Scopes  []string
}

// Provider is asked when the first person signs in, and not before: a server starts while it is away.
type Provider struct {
	config Config
	client *http.Client

	mu    sync.Mutex
	found *oidc.Provider // nil: it did not answer yet
}

// answersWithin is how long the provider may take.
const answersWithin = 10 * time.Second

// New checks what is said of a provider.
func New(config Config) (*Provider, error) {
	for _, at := range []string{config.Issuer, config.Back} {
		u, err := url.Parse(at)
		if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !local(u.Hostname())) {
			return nil, fmt.Errorf("%q is no address as https://login.example.org", at)
		}
	}
	if config.ID == "" {
		return nil, errors.New("no client-id is named: the provider gives one")
	}
	return &Provider{config: config, client: &http.Client{Timeout: answersWithin}}, nil
}

func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Attempt is what this server remembers of somebody who was sent to the provider.
type Attempt struct{ State, nonce, verifier string }

// Person is who signed in.
type Person struct {
	Account string
	Groups  []string
}

// Begin gives the provider's address for somebody who signs in.
func (p *Provider) Begin(ctx context.Context) (address string, a Attempt, err error) {
	found, err := p.discover(ctx)
	if err != nil {
		return "", a, err
	}
	a = Attempt{oauth2.GenerateVerifier(), oauth2.GenerateVerifier(), oauth2.GenerateVerifier()} // 256 random bits each
	return p.oauth(found).AuthCodeURL(a.State, oidc.Nonce(a.nonce), oauth2.S256ChallengeOption(a.verifier)), a, nil
}

// Finish says who came back with a code.
func (p *Provider) Finish(ctx context.Context, a Attempt, code string) (person Person, err error) {
	found, err := p.discover(ctx)
	if err != nil {
		return person, err
	}
	ctx = oidc.ClientContext(ctx, p.client)
	token, err := p.oauth(found).Exchange(ctx, code, oauth2.VerifierOption(a.verifier))
	if err != nil {
		var said *oauth2.RetrieveError
		if errors.As(err, &said) { // its text has the whole answer
			err = errors.New(cmp.Or(said.ErrorCode, said.Response.Status))
		}
		return person, fmt.Errorf("the provider %s refuses the code: %w", p.config.Issuer, err)
	}
	raw, _ := token.Extra("id_token").(string)
	signed, err := found.Verifier(&oidc.Config{ClientID: p.config.ID}).Verify(ctx, raw)
	if err != nil {
		return person, fmt.Errorf("what the provider %s signed is not taken: %w", p.config.Issuer, err)
	}
	if signed.Nonce != a.nonce || a.nonce == "" {
		return person, errors.New("what the provider signed is of another sign-in")
	}
	var claims map[string]any
	if err := signed.Claims(&claims); err != nil {
		return person, fmt.Errorf("the claims of the provider cannot be read: %w", err)
	}
	return p.person(claims)
}

// person is who the claims are of.
func (p *Provider) person(claims map[string]any) (person Person, err error) {
	claim := cmp.Or(p.config.Account, "email")
	person.Account, _ = claims[claim].(string)
	if person.Account == "" || len(person.Account) > 200 || strings.ContainsAny(person.Account, "\n\x00:") {
		return person, fmt.Errorf("the provider says no %s that can be the name of an account", claim)
	}
	if claim == "email" && claims["email_verified"] != true { // else anybody could take an address at some providers
		return person, errors.New("the provider does not say that it has verified the address of email")
	}
	listed, _ := claims[cmp.Or(p.config.Groups, "groups")].([]any)
	for _, one := range listed {
		if group, is := one.(string); is && group != "" {
			person.Groups = append(person.Groups, group)
		}
	}
	return person, nil
}

func (p *Provider) oauth(found *oidc.Provider) *oauth2.Config {
	scopes := p.config.Scopes
	if len(scopes) == 0 {
		scopes = []string{"profile", "email", "groups"}
	}
	return &oauth2.Config{ClientID: p.config.ID, ClientSecret: p.config.Secret, Endpoint: found.Endpoint(),
		RedirectURL: p.config.Back, Scopes: append([]string{oidc.ScopeOpenID}, scopes...)}
}

// discover asks the provider what it is, once.
func (p *Provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	// its keys are asked for later too, when this request has ended
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), p.config.Issuer)
	if err != nil {
		return nil, fmt.Errorf("the provider %s cannot be asked: %w", p.config.Issuer, err)
	}
	p.found = found
	return found, nil
}
