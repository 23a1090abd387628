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

// EnterInput is a code, and the browser that brings it.
type EnterInput struct {
	Body struct {
		Code string `json:"code" maxLength:"100" doc:"The code of an address that hightide ui printed: what stands behind #code=."`
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

func (s *Server) session(api huma.API) {
	huma.Post(api, sessionPath, s.enter, func(o *huma.Operation) {
		o.Summary, o.DefaultStatus, o.Security = "Begin a session: exchange a code for a cookie and the page's secret",
			http.StatusCreated, []map[string][]string{}
	})
	huma.Post(api, sessionPath+"/codes", answering(func(ctx context.Context, _ *struct{}) (*Code, error) {
		by, _ := ctx.Value(askingKey{}).(asking)
		return &Code{s.door.code(time.Now(), by.key)}, nil
	}), func(o *huma.Operation) {
		o.Summary, o.DefaultStatus = "Make a code that opens a session once", http.StatusCreated
	})
}

func (s *Server) enter(_ context.Context, in *EnterInput) (*enterOutput, error) {
	before := ""
	if cookie, err := in.request.Cookie(cookieName(in.request)); err == nil {
		before = cookie.Value
	}
	cookie, page, ok := s.door.enter(in.Body.Code, before, time.Now())
	if !ok {
		return nil, huma.Error401Unauthorized("this address was opened already, is older than an hour, or is of a server " +
			"that has ended: an address opens once; " + another)
	}
	return &enterOutput{*cookieOf(in.request, cookie), Entered{page}}, nil
}

// another says how to get in.
const another = "hightide ui, in a terminal of the account that runs the server, prints a new one"

// Code makes a code that opens a session of this server once, within an hour.
func (s *Server) Code() string { return s.door.code(time.Now(), "") }
