package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"hightide/internal/store"
)

// The door knows who may ask.
//
//	printed address ──▶ a code, good once ──▶ POST /session ──▶ a cookie, which no script reads
//	                                                        └─▶ the page's secret, which no other port gets
//
// A page's request carries the cookie and the secret, and each is worth nothing without the other: browsers send a
// cookie to every port of a machine, so servers of other accounts get it. A program's request carries the token, a
// scraper's the token of the metrics. None of them is ever taken for another.

const (
	codeLasts    = time.Hour
	codesKept    = 1000
	sessionLasts = 7 * 24 * time.Hour // after its last use
	sessionsKept = 100
)

// pageHeader is where a page's request carries its secret.
const pageHeader = "X-Hightide-Page"

// door is who may ask this server.
type door struct {
	token, metrics digest

	mu        sync.Mutex
	keys      func(digest string) (Key, bool)
	access    func(account string) Access
	accounts  Accounts
	shares    Shares
	kept      Sessions
	guesses   rates         // of passwords
	comparing chan struct{} // has as many as may be compared at once
	attempts  attempts      // to sign in at the provider
	codes     map[digest]code
	sessions  map[digest]*session // by their cookies
	count     int
}

// Key is what a person or a machine may do that is known by a secret of its own.
type Key struct {
	Name    string
	Account string // whose it is
	May     Right
	Away    bool // it is not known whose it is, as what knows it does not answer
}

// Accounts knows people by their passwords.
type Accounts interface {
	SignIn(ctx context.Context, name, password string) (since time.Time, good bool, err error)
	SignedIn(ctx context.Context, name string, since time.Time) (bool, error)
}

// passwordsAtOnce is how many are compared at once: each takes a processor for a moment.
const passwordsAtOnce = 2

// Access is what an account may do, whatever key it has.
type Access struct {
	May   Right       // at most
	Scope store.Scope // of runs
}

// Right is what a request needs; each contains those before it.
type Right int

// Rights.
const (
	MayRead   Right = iota // what changes nothing
	MayReport              // what a machine holds
	MayChange              // runs, snapshots, uploads
	MayStart               // programs
	MayAdmin               // the server itself: the log of who did what
)

// caller is who asks, by name; "": nobody who may.
type caller struct {
	name    string
	may     Right
	key     Right       // what the key may, or the session, whatever the account may
	scope   store.Scope // of runs
	account string      // whose key it is; "": the server's own
	away    bool        // who it is cannot be asked now
}

// grant is what lets somebody in, and is asked each time whether it still does: a key, a link to one run, an account
// with the password that it had then, or an account at the provider, for a time. The zero value is of who runs the server.
type grant struct {
	key     string // the digest of it
	share   string // the digest of a link's secret
	account string
	since   time.Time
	until   time.Time // of an account at the provider
	groups  string    // that it was in, a line each
}

// code opens a session once, of whoever had it made.
type code struct {
	until time.Time
	by    grant
}

// session is a browser that brought a code.
type session struct {
	name string
	by   grant
	page digest
	used time.Time
	kept time.Time // when it was kept last that it is used; zero: it ends with the server
}

func newDoor(token, metrics string) *door {
	return &door{token: digestOf(token), metrics: digestOf(metrics), codes: map[digest]code{},
		sessions: map[digest]*session{}, comparing: make(chan struct{}, passwordsAtOnce)}
}

// code makes one that opens a session once, for who was let in by a grant.
func (d *door) code(now time.Time, by grant) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	for old, c := range d.codes {
		if now.After(c.until) || len(d.codes) >= codesKept {
			delete(d.codes, old)
		}
	}
	text := rand.Text()
	d.codes[digestOf(text)] = code{now.Add(codeLasts), by}
	return text
}

// enter exchanges a code for a session. The one that the browser had before ends.
func (d *door) enter(text, before string, now time.Time) (cookie, page string, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	given := digestOf(text)
	brought, known := d.codes[given]
	delete(d.codes, given)
	if !known || now.After(brought.until) {
		return "", "", false
	}
	cookie, page = d.beginLocked(brought.by, before, now)
	return cookie, page, true
}

// begin begins a session. The one that the browser had before ends.
func (d *door) begin(by grant, before string, now time.Time) (cookie, page string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.beginLocked(by, before, now)
}

func (d *door) beginLocked(by grant, before string, now time.Time) (cookie, page string) {
	delete(d.sessions, digestOf(before))
	d.makeRoom(now)
	d.count++
	cookie, page = rand.Text(), rand.Text()
	d.sessions[digestOf(cookie)] = &session{fmt.Sprintf("session %d", d.count), by, digestOf(page), now, time.Time{}}
	return cookie, page
}

// end ends the session of a cookie.
func (d *door) end(cookie string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, digestOf(cookie))
}

// makeRoom drops sessions that nobody uses, and the one that was not used for longest where there are many.
func (d *door) makeRoom(now time.Time) {
	var oldest digest
	for key, s := range d.sessions {
		if now.Sub(s.used) > sessionLasts {
			delete(d.sessions, key)
		} else if first, ok := d.sessions[oldest]; !ok || s.used.Before(first.used) {
			oldest = key
		}
	}
	if len(d.sessions) >= sessionsKept {
		delete(d.sessions, oldest)
	}
}

// session is the name of the one that a cookie and a page's secret belong to, with what let it in; "": there is none.
func (d *door) session(cookie, page string, now time.Time) (name string, by grant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.sessions[digestOf(cookie)]
	if s == nil || now.Sub(s.used) > sessionLasts || !s.page.is(page) {
		return "", grant{}
	}
	s.used = now
	return s.name, s.by
}

// keyed is who has the key of this digest. It is looked up each time, so a key that is revoked ends at once.
func (d *door) keyed(digest, as string) caller {
	if d.keys == nil {
		return caller{}
	}
	key, good := d.keys(digest)
	if !good {
		return caller{away: key.Away}
	}
	name := fmt.Sprintf("key %q", key.Name)
	if key.Account != "" && key.Account != key.Name {
		name += fmt.Sprintf(" of %q", key.Account)
	}
	return d.limited(strings.TrimSpace(as+" "+name), key.Account, key.May)
}

// limited is a caller who may do what both its key and its account may.
func (d *door) limited(name, account string, may Right) caller {
	if d.access == nil {
		return caller{name: name, may: may, key: may, scope: store.Scope{All: true}, account: account}
	}
	key, access := may, d.access(account)
	may = min(may, access.May)
	scope := access.Scope
	if may < MayChange {
		scope = scope.ReadOnly()
	}
	return caller{name: name, may: may, key: key, scope: scope, account: account}
}

// signedIn is who has signed in to an account, which is looked up each time too.
func (d *door) signedIn(ctx context.Context, by grant, as string) caller {
	if d.accounts == nil {
		return caller{}
	}
	if good, err := d.accounts.SignedIn(ctx, by.account, by.since); !good {
		return caller{away: err != nil}
	}
	return d.limited(fmt.Sprintf("%s of %q", as, by.account), by.account, MayAdmin)
}

// groupPrefix stands before the name of a group where an account may stand.
const groupPrefix = "group:"

// ofProvider is who signed in at the provider, in what it and its groups may.
func (d *door) ofProvider(by grant, as string, now time.Time) caller {
	if now.After(by.until) {
		return caller{}
	}
	who := d.limited(fmt.Sprintf("%s of %q", as, by.account), by.account, MayAdmin)
	for group := range strings.SplitSeq(by.groups, "\n") {
		if group != "" && d.access != nil {
			more := d.access(groupPrefix + group)
			who.may, who.scope = max(who.may, more.May), who.scope.With(more.Scope)
		}
	}
	return who
}

// who is the one that asks, and what lets it in.
func (d *door) who(r *http.Request, now time.Time) (who caller, by grant) {
	// a proxy's own password is none of ours
	if token, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is {
		switch {
		case d.token.is(token):
			return owner("token"), grant{}
		case d.metrics.is(token) && (r.URL.Path == "/metrics" || r.URL.Path == ownPath) && reads(r):
			return caller{name: "metrics token", may: MayRead, scope: store.Scope{All: true}}, grant{}
		case token == "":
			return caller{}, grant{}
		}
		own := digestOf(token)
		by.key = hex.EncodeToString(own[:])
		return d.keyed(by.key, ""), by
	}
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return caller{}, by
	}
	away := d.recall(r, cookie.Value, now)
	name, by := d.session(cookie.Value, r.Header.Get(pageHeader), now)
	switch {
	case name == "":
		return caller{away: away}, by
	case by.share != "":
		return d.sharedWith(r.Context(), by.share, name), by
	case !by.until.IsZero():
		return d.ofProvider(by, name, now), by
	case by.account != "":
		return d.signedIn(r.Context(), by, name), by
	case by.key != "":
		return d.keyed(by.key, name), by
	}
	return owner(name), by
}

// owner is who runs the server.
func owner(name string) caller {
	return caller{name: name, may: MayAdmin, scope: store.Scope{All: true}}
}

// reads says whether a request changes nothing.
func reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// cookieName is that of a session's cookie. Servers on other ports of this machine have others, as cookies know no
// ports. Where there is TLS, browsers take a cookie of this name from this very host alone.
func cookieName(r *http.Request) string {
	_, port, _ := net.SplitHostPort(r.Host)
	name := "hightide-session-" + port
	if r.TLS != nil {
		name = "__Host-" + name
	}
	return name
}

// cookieOf keeps a session in a browser. No page elsewhere has the browser send it, not even by a link.
func cookieOf(r *http.Request, value string) *http.Cookie {
	return &http.Cookie{Name: cookieName(r), Value: value, Path: "/", MaxAge: int(sessionLasts.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil}
}
