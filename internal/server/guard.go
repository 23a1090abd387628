package server

import (
	"crypto/subtle"
	"encoding/json"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// policy lets the page load its own files and nothing else, and lets nobody frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets through what comes from this server's own pages, or from a program that has the token.
//
// The Host header is checked, as a page elsewhere can give its own name this machine's address (DNS rebinding). The Origin
// header is, as a page elsewhere can send requests that need no answer.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, asked *http.Request) {
		w, r := s.bounded(plain, asked)
		defer s.audit(w, r)
		now, ended := s.looked.begin()
		defer ended()
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
		case s.brings(r):
			http.SetCookie(w, s.cookie(r))
			http.Redirect(w, r, withoutToken(r.URL), http.StatusSeeOther)
		case !s.admits(r):
			header.Set("WWW-Authenticate", "Bearer")
			refuse(w, r, http.StatusUnauthorized, "the token is missing or wrong: use the address that hightide ui printed, or send Authorization: Bearer TOKEN")
		default:
			s.serveIn(next, w, r, now)
		}
	})
}

// serveIn serves a request where there is room for it beside those under way.
func (s *Server) serveIn(next http.Handler, w http.ResponseWriter, r *http.Request, now int) {
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

// refuse answers with an error: in the form of the API's where that was asked, so that its clients can read it, else as text.
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
	if ip := net.ParseIP(name); ip != nil { // no name that another page could have
		return ip.IsLoopback() || s.options.Token != "" || slices.Contains(s.options.Hosts, name)
	}
	return name == "localhost" || slices.Contains(s.options.Hosts, name)
}

// ownOrigin says whether a request comes from a page of this server, or from no page.
func (s *Server) ownOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" && !(r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Mode") == "navigate") {
		return false
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && from.Host == r.Host
}

// cookieName is that of the cookie which keeps the token for a page that was opened with ?token=. Servers on other ports of this
// machine have others, as cookies know no ports.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	return "hightide-token-" + port
}

// cookie keeps the token. Of other sites only a link to a page of ours sends it, as a permalink in a mail is: those pages are read, and
// what they do is asked for by requests of our own origin.
func (s *Server) cookie(r *http.Request) *http.Cookie {
	return &http.Cookie{Name: cookieName(r), Value: s.options.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: r.TLS != nil}
}

// brings says whether a page is opened with the right token in its address, as hightide ui prints it.
func (s *Server) brings(r *http.Request) bool {
	given := r.URL.Query().Get("token")
	return r.Method == http.MethodGet && given != "" && s.options.Token != "" && subtle.ConstantTimeCompare([]byte(given), []byte(s.options.Token)) == 1
}

// withoutToken is the address within this server that a page has after its token was taken: it is in no history and no bookmark.
func withoutToken(u *url.URL) string {
	query := u.Query()
	query.Del("token")
	to := url.URL{Path: "/" + strings.TrimLeft(u.Path, "/"), RawQuery: query.Encode()}
	return to.RequestURI()
}

// admits says whether a request carries the token, where one is asked for.
func (s *Server) admits(r *http.Request) bool {
	if s.options.Token == "" {
		return true
	}
	given, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if cookie, err := r.Cookie(cookieName(r)); given == "" && err == nil {
		given = cookie.Value
	}
	return subtle.ConstantTimeCompare([]byte(given), []byte(s.options.Token)) == 1
}
