package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
)

// sessionPath is the one request that nobody needs to be known for: it brings a code.
const sessionPath = "/api/v1/session"

// EnterInput is a code or a password, and the browser that brings it.
type EnterInput struct {
	Body struct {
		Code     string `json:"code,omitempty" maxLength:"100" doc:"The code of an address that hightide ui printed: what stands behind #code=."`
		Share    string `json:"share,omitempty" maxLength:"100" doc:"In place of a code, the secret of a link to one run: what stands behind #share= of an address. It is good until the link ends."`
		Name     string `json:"name,omitempty" maxLength:"100" doc:"In place of a code, the name of an account, where the server has accounts."`
		Password string `json:"password,omitempty" maxLength:"1000" doc:"Its password."`
	}

	request *http.Request
}

// Resolve implements huma.Resolver.
func (in *EnterInput) Resolve(c huma.Context) []error {
	in.request, _ = humago.Unwrap(c)
	return nil
}

// Entered is a session that has begun. Its cookie is in the header.
type Entered struct {
	Page string `json:"page" doc:"The page's secret: what each request of the page carries as X-Hightide-Page, beside the cookie."`
}

type enterOutput struct {
	Cookie http.Cookie `header:"Set-Cookie"`
	Body   Entered
}

// Code opens a session, once.
type Code struct {
	Code string `json:"code" doc:"Put behind #code= of an address of this server, within an hour: opens it in one browser, once."`
}

// LeaveInput is a browser whose session ends.
type LeaveInput struct{ request *http.Request }

// Resolve implements huma.Resolver.
func (in *LeaveInput) Resolve(c huma.Context) []error {
	in.request, _ = humago.Unwrap(c)
	return nil
}

// Left is a session that has ended.
type Left struct {
	Ended bool `json:"ended" doc:"Always true: who asks by a key or a token has no session to end."`
}

func (s *Server) session(api huma.API) {
	change(api, http.MethodDelete, "/session", "End this browser's session", s.leave)
	huma.Post(api, sessionPath, s.enter, func(o *huma.Operation) {
		o.Summary, o.DefaultStatus, o.Security = "Begin a session: exchange a code, or a password, for a cookie and the page's secret",
			http.StatusCreated, []map[string][]string{}
	})
	huma.Post(api, sessionPath+"/codes", answering(func(ctx context.Context, _ *struct{}) (*Code, error) {
		by, _ := ctx.Value(askingKey{}).(asking)
		return &Code{s.door.code(time.Now(), by.by)}, nil
	}), func(o *huma.Operation) {
		o.Summary, o.DefaultStatus = "Make a code that opens a session once", http.StatusCreated
	})
}

// cookie is that of the session which the browser has already; "": none.
func (in *EnterInput) cookie() string {
	if cookie, err := in.request.Cookie(cookieName(in.request)); err == nil {
		return cookie.Value
	}
	return ""
}

func (s *Server) enter(ctx context.Context, in *EnterInput) (*enterOutput, error) {
	if in.Body.Name != "" {
		return s.signIn(ctx, in)
	}
	if in.Body.Share != "" {
		return s.enterByShare(ctx, in)
	}
	cookie, page, ok := s.door.enter(in.Body.Code, in.cookie(), time.Now())
	if !ok {
		return nil, huma.Error401Unauthorized("this address was opened already, is older than an hour, or is of a server " +
			"that has ended: an address opens once; " + another)
	}
	return s.entered(ctx, in.request, in.cookie(), cookie, page), nil
}

// another says how to get in.
const another = "hightide ui, in a terminal of the account that runs the server, prints a new one"

// Code makes a code that opens a session of this server once, within an hour.
func (s *Server) Code() string { return s.door.code(time.Now(), grant{}) }
