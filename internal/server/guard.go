package server

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// policy lets the page load its own files and nothing else, and lets nobody frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets through what comes from this server's own pages, or from a program that has the token.
//
// The Host header is checked, as a page elsewhere can give its own name this machine's address (DNS rebinding). The Origin
// header is, as a page elsewhere can send requests that need no answer.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(plain http.ResponseWriter, r *http.Request) {
		w := s.bounded(plain, r)
		defer s.audit(w, r)
		defer s.looked.begin()()
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		switch {
		case !s.knows(r.Host):
			refuse(w, http.StatusMisdirectedRequest, "this server is not called "+r.Host)
		case !s.ownOrigin(r):
			refuse(w, http.StatusForbidden, "pages of other origins may not ask")
		case s.brings(r):
			http.SetCookie(w, &http.Cookie{Name: cookieName(r), Value: s.options.Token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
			http.Redirect(w, r, withoutToken(r.URL), http.StatusSeeOther)
		case !s.admits(r):
			header.Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "the token is missing or wrong: use the address that hightide ui printed, or send Authorization: Bearer TOKEN")
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func refuse(w http.ResponseWriter, status int, text string) {
	http.Error(w, text, status)
}

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
