package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/store"
)

// People sign in with a password, where the server knows accounts:
//
//	name and password ──▶ POST /session ──▶ the cookie and the page's secret, as for a code
//
// A session rests on the account: it ends when that is closed or has another password.

// signInHeader tells a page that is not let in how people are: "password", "provider", or both.
const signInHeader = "X-Hightide-Sign-In"

func (s *Server) signsIn() string {
	var ways []string
	if s.options.Accounts != nil {
		ways = append(ways, "password")
	}
	if s.options.Provider != nil {
		ways = append(ways, "provider")
	}
	return strings.Join(ways, " ")
}

// guesses are how often one account, and one address, may be tried: five times at once, then every two seconds.
var guesses = Rates{Requests: 0.5}

// signIn lets a person in.
func (s *Server) signIn(ctx context.Context, in *EnterInput) (*enterOutput, error) {
	accounts, name := s.options.Accounts, in.Body.Name
	if accounts == nil {
		return nil, huma.Error401Unauthorized("nobody signs in with a password here; " + another)
	}
	address := s.door.guesses.take(guesses, "", in.request)
	if account := s.door.guesses.take(guesses, "account "+name, in.request); max(address, account) > 0 {
		return nil, huma.NewError(http.StatusTooManyRequests, "too many passwords were tried: wait for a moment")
	}
	select {
	case s.door.comparing <- struct{}{}:
		defer func() { <-s.door.comparing }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	since, good, err := accounts.SignIn(ctx, name, in.Body.Password)
	if err != nil {
		return nil, huma.Error503ServiceUnavailable(awayText)
	}
	if !good {
		return nil, huma.Error401Unauthorized("the name or the password is wrong")
	}
	by := grant{account: name, since: since}
	cookie, page := s.door.begin(by, in.cookie(), time.Now())
	if s.options.Audit != nil {
		s.options.Audit(store.Act{Time: time.Now(), Who: fmt.Sprintf("account %q", name), From: in.request.RemoteAddr,
			What: "signed in"})
	}
	return s.entered(ctx, in.request, in.cookie(), cookie, page), nil
}

// leave ends the session that asks.
func (s *Server) leave(ctx context.Context, in *LeaveInput) (*Left, error) {
	if cookie, err := in.request.Cookie(cookieName(in.request)); err == nil {
		s.forgotten(ctx, cookie.Value)
	}
	return &Left{Ended: true}, nil
}
