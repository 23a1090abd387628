package server

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"hightide/internal/oidc"
	"hightide/internal/store"
)

// People sign in at their organization's provider, where the server knows one:
//
//	GET /session/provider ──▶ the provider ──▶ GET /session/provider/back ──▶ /#code=…, as of any address
//
// A sign-in is of the browser that began it, which a cookie tells, and is good once.

// Provider has people sign in elsewhere.
type Provider interface {
	Begin(ctx context.Context) (address string, a oidc.Attempt, err error)
	Finish(ctx context.Context, a oidc.Attempt, code string) (oidc.Person, error)
}

const (
	providerPath = sessionPath + "/provider"
	attemptLasts = 10 * time.Minute
	// who signed in elsewhere signs in again after that: nobody tells this server that an account was closed there
	providerLasts = 12 * time.Hour
)

// ProviderInput is a browser on its way to the provider.
type ProviderInput struct{ request *http.Request }

// Resolve implements huma.Resolver.
func (in *ProviderInput) Resolve(c huma.Context) []error {
	in.request, _ = humago.Unwrap(c)
	return nil
}

// BackInput is a browser that comes back from the provider.
type BackInput struct {
	ProviderInput
	Code  string `query:"code" maxLength:"4096" doc:"What the provider gives for who signed in."`
	State string `query:"state" maxLength:"200" doc:"Which sign-in it is."`
	Error string `query:"error" maxLength:"200" doc:"Why nobody did."`
}

func (s *Server) provider(api huma.API) {
	leads := map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: "string"}}}
	served(api, "/session/provider", "Sign in at the team's provider: leads there", leads,
		func(ctx context.Context, in *ProviderInput) (serving, error) {
			return shownTo(in.request)(s.toProvider(ctx, in))
		})
	served(api, "/session/provider/back", "Come back from the provider: leads to the page", leads,
		func(ctx context.Context, in *BackInput) (serving, error) {
			return shownTo(in.request)(s.fromProvider(ctx, in))
		})
	for _, path := range []string{providerPath, providerPath + "/back"} {
		api.OpenAPI().Paths[path].Get.Security = []map[string][]string{}
	}
}

// isProvider says whether a request is of a browser that signs in.
func isProvider(r *http.Request) bool {
	return reads(r) && (r.URL.Path == providerPath || r.URL.Path == providerPath+"/back")
}

func attemptCookie(r *http.Request, value string, lasts time.Duration) *http.Cookie {
	name := strings.Replace(cookieName(r), "session", "signin", 1)
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: int(lasts.Seconds()), HttpOnly: true,
		SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil} // Lax: it comes with the provider's link
}

func (s *Server) toProvider(ctx context.Context, in *ProviderInput) (serving, error) {
	if s.options.Provider == nil {
		return nil, huma.Error404NotFound("this server knows no provider: people sign in by a password or a code")
	}
	if s.door.guesses.take(guesses, "", in.request) > 0 {
		return nil, huma.Error429TooManyRequests("too many sign-ins were begun: wait for a moment")
	}
	address, a, err := s.options.Provider.Begin(ctx)
	if err != nil {
		return nil, huma.Error503ServiceUnavailable(line(err))
	}
	browser := newSecret()
	s.door.attempts.add(attempt{a, digestOf(browser), time.Now().Add(attemptLasts)}, time.Now())
	return func(_ context.Context, w http.ResponseWriter) {
		http.SetCookie(w, attemptCookie(in.request, browser, attemptLasts))
		leadTo(w, address)
	}, nil
}

// leadTo sends a browser on. Nothing of the answer is kept, as its address is a secret.
func leadTo(w http.ResponseWriter, address string) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", address)
	w.WriteHeader(http.StatusFound)
}

func (s *Server) fromProvider(ctx context.Context, in *BackInput) (serving, error) {
	if s.options.Provider == nil {
		return nil, huma.Error404NotFound("this server knows no provider: people sign in by a password or a code")
	}
	cookie, err := in.request.Cookie(attemptCookie(in.request, "", 0).Name)
	var browser string
	if err == nil {
		browser = cookie.Value
	}
	one, good := s.door.attempts.take(in.State, browser, time.Now())
	switch {
	case !good:
		return nil, huma.Error401Unauthorized("this sign-in was finished already, is older than ten minutes, or was begun in " +
			"another browser: " + tryAgain)
	case in.Error != "" || in.Code == "":
		return nil, huma.Error401Unauthorized(fmt.Sprintf("the provider let nobody in: %q; %s", clip(in.Error, auditPath),
			tryAgain))
	}
	who, err := s.options.Provider.Finish(ctx, one.Attempt, in.Code)
	if err != nil {
		return nil, huma.Error401Unauthorized(line(err) + "; " + tryAgain)
	}
	by := grant{account: who.Account, groups: strings.Join(who.Groups, "\n"), until: time.Now().Add(providerLasts)}
	if s.options.Audit != nil {
		s.options.Audit(store.Act{Time: time.Now(), Who: fmt.Sprintf("account %q", who.Account), From: in.request.RemoteAddr,
			What: "signed in at the provider"})
	}
	code := s.door.code(time.Now(), by)
	return func(_ context.Context, w http.ResponseWriter) {
		http.SetCookie(w, attemptCookie(in.request, "", -time.Second))
		leadTo(w, (&url.URL{Path: "/", Fragment: "code=" + code}).String())
	}, nil
}

// refusedPage is for a browser that comes from elsewhere, so no script of ours is there to show what the API says.
const refusedPage = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Not signed in · hightide</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 3rem auto; padding: 0 1rem }</style>
</head>
<body>
<h1>You are not signed in</h1>
<p>%s.</p>
<p><a href="/">To the sign-in</a></p>
</body>
</html>
`

// shownTo has an error be a page where a browser asks, which cannot read JSON to people.
func shownTo(r *http.Request) func(serving, error) (serving, error) {
	return func(done serving, err error) (serving, error) {
		var problem huma.StatusError
		if err == nil || !errors.As(err, &problem) || accepted(r.Header.Get("Accept"), jsonKind, "text/html") != "text/html" {
			return done, err
		}
		return func(_ context.Context, w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			w.WriteHeader(problem.GetStatus())
			text := problem.Error()
			first, size := utf8.DecodeRuneInString(text)
			_, _ = fmt.Fprintf(w, refusedPage, html.EscapeString(string(unicode.ToUpper(first))+text[size:]))
		}, nil
	}
}

const tryAgain = "open the server's page and sign in again"
