package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/store"
)

// policy lets the page load its own files and nothing else, and lets nobody frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: " +
	"blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets through who is known, and what open says that anybody may ask; refuse answers the others.
//
// The Host header is checked, as a page elsewhere can give its own name this machine's address (DNS rebinding). The
// Origin header is, as a page elsewhere can send requests that need no answer.
func (s *Server) guard(next http.Handler, open func(*http.Request) bool, refuse refusal) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, asked *http.Request) {
		w, r := s.bounded(plain, asked)
		known, by := s.door.who(r, time.Now())
		who := known.name
		began := time.Now()
		defer func() { s.audit(w, r, known); s.ended(w, r, who, began) }()
		now, ended := s.looked.beginRequest(who != "")
		defer ended()
		again := s.rates.take(s.options.Rates, who, r)
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case !s.knows(r.Host):
			refuse(w, r, http.StatusMisdirectedRequest, "this server is not called "+r.Host)
		case !s.ownOrigin(r):
			refuse(w, r, http.StatusForbidden, "pages of other origins may not ask")
		case again > 0:
			header.Set("Retry-After", strconv.Itoa(int(again.Seconds())+1))
			refuse(w, r, http.StatusTooManyRequests, "more requests than this server takes of one caller")
		case known.away && !open(r): // a client tries again, where one who is not known gives up
			header.Set("Retry-After", "1")
			refuse(w, r, http.StatusServiceUnavailable, awayText)
		case who == "" && !open(r):
			header.Set("WWW-Authenticate", "Bearer")
			header.Set(signInHeader, s.signsIn())
			refuse(w, r, http.StatusUnauthorized, "who asks is not known: a browser opens the address that hightide ui "+
				"printed, a program sends Authorization: Bearer TOKEN")
		case who != "" && known.rightFor(r) < needs(r):
			refuse(w, r, http.StatusForbidden, "this key, or the account that it is of, may not do that: hightide key "+
				"NAME --may push, or exec, makes one that may, and a team's file gives roles")
		default:
			ctx := context.WithValue(r.Context(), askingKey{}, asking{who, r.RemoteAddr, by, known.account, known.scope,
				known.may})
			s.serveIn(next, refuse, w, r.WithContext(ctx), now)
		}
	})
}

// awayText is what everybody is told while it is not known who anybody is.
const awayText = "the team's database does not answer now: try again"

// needs is the right that a request takes.
func needs(r *http.Request) Right {
	switch {
	// a code opens no more than its maker may
	case reads(r) && r.URL.Path != actsPath, r.URL.Path == sessionPath, r.URL.Path == sessionPath+"/codes":
		return MayRead
	case r.URL.Path == actsPath:
		return MayAdmin
	case r.URL.Path == "/api/v1/jobs", strings.HasPrefix(r.URL.Path, "/api/v1/jobs/"):
		return MayStart
	}
	if isReport(r) {
		return MayReport
	}
	return MayChange
}

// rightFor is what counts of somebody for a request: the role decides nothing about what is kept of oneself.
func (c caller) rightFor(r *http.Request) Right {
	if person, is := forgets(r); is && c.account != "" && c.account == person {
		return c.key
	}
	return c.may
}

// asking is who asks, from where, what lets that one in, whose that is, and which runs it sees.
type asking struct {
	who, from string
	by        grant
	account   string
	scope     store.Scope
	may       Right
}

type askingKey struct{}

// askedBy says who asks, for a log.
func askedBy(ctx context.Context) string {
	a, _ := ctx.Value(askingKey{}).(asking)
	return a.String()
}

func (a asking) String() string { return cmp.Or(a.who, "nobody") + " at " + a.from }

// serveIn serves a request where there is room for it beside those under way.
func (s *Server) serveIn(next http.Handler, refuse refusal, w http.ResponseWriter, r *http.Request, now int) {
	stream := isStream(r)
	if stream {
		s.streams.Add(1)
		defer s.streams.Add(-1)
	}
	if full := s.options.Room.full(now, stream, s.streams.Load()); full != "" {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Connection", "close")
		refuse(w, r, http.StatusServiceUnavailable, full)
		return
	}
	next.ServeHTTP(w, r)
}

// refusal answers with an error.
type refusal func(w http.ResponseWriter, r *http.Request, status int, text string)

// refuse is the refusal of the API: in the form of the API's where that was asked, so that its clients can read it,
// else as text.
func refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	if !isAPI(r) {
		http.Error(w, text, status)
		return
	}
	body, _ := json.Marshal(huma.NewError(status, text))
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n')) // who asked may be gone
}

func isAPI(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

// knows says whether a Host header is a name of this server.
func (s *Server) knows(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.ToLower(strings.Trim(name, "[]"))
	if net.ParseIP(name) != nil { // no name that another page could have
		return true
	}
	return name == "localhost" || slices.Contains(s.options.Hosts, name)
}

// ownOrigin says whether a request comes from a page of this server, or from no page.
func (s *Server) ownOrigin(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	opens := r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate"
	if elsewhere := site == "cross-site" || site == "same-site"; elsewhere && !s.mayAsk(r) && !opens {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && from.Host == r.Host || s.mayAsk(r)
}

// mayAsk says whether a request is of another origin's page that was named.
func (s *Server) mayAsk(r *http.Request) bool {
	return slices.Contains(s.options.Origins, r.Header.Get("Origin"))
}
