package server

import (
	"context"
	"encoding/hex"
	"net/http"
	"time"

	"hightide/internal/store"
)

// Sessions over TLS outlast the server, where it keeps them: who takes its port meanwhile has no certificate, so no
// browser gives it the cookie. Others end with the server: docs/decisions/server.md says why.

// Sessions keeps browsers that were let in.
type Sessions interface {
	KeepSession(ctx context.Context, s store.Session) error
	SessionOf(ctx context.Context, cookie string) (store.Session, bool, error)
	EndSession(ctx context.Context, cookie string) error
}

// keptAgain is how often it is kept that a session is used.
const keptAgain = time.Hour

func (d digest) text() string { return hex.EncodeToString(d[:]) }

// entered is the answer to a browser that was let in. A session that cannot be kept ends with the server.
func (s *Server) entered(ctx context.Context, r *http.Request, before, cookie, page string) *enterOutput {
	d := s.door
	if d.kept != nil && r.TLS != nil {
		if before != "" {
			_ = d.kept.EndSession(ctx, digestOf(before).text())
		}
		d.mu.Lock()
		begun := d.sessions[digestOf(cookie)]
		d.mu.Unlock()
		if begun != nil && begun.by != (grant{}) { // that of who runs the server ends with it
			by := begun.by
			begun.kept = time.Now()
			_ = d.kept.KeepSession(ctx, store.Session{Cookie: digestOf(cookie).text(), Page: begun.page.text(),
				Name: begun.name, Key: by.key, Share: by.share, Account: by.account, Since: by.since, Until: by.until,
				Groups: by.groups})
		}
	}
	return &enterOutput{*cookieOf(r, cookie), Entered{page}}
}

// recall looks a session up that this server has not in memory, or not told for long that it is used. away: what keeps
// sessions does not answer.
func (d *door) recall(r *http.Request, cookie string, now time.Time) (away bool) {
	if d.kept == nil || r.TLS == nil || cookie == "" {
		return false
	}
	own := digestOf(cookie)
	d.mu.Lock()
	known := d.sessions[own]
	fresh := known != nil && (known.kept.IsZero() || now.Sub(known.kept) < keptAgain)
	if known != nil && !known.kept.IsZero() {
		known.kept = now
	}
	d.mu.Unlock()
	if fresh {
		return false
	}
	kept, there, err := d.kept.SessionOf(r.Context(), own.text())
	if err != nil || !there || known != nil {
		return err != nil
	}
	page, err := hex.DecodeString(kept.Page)
	if err != nil || len(page) != len(digest{}) {
		return false
	}
	by := grant{key: kept.Key, share: kept.Share, account: kept.Account, since: kept.Since, groups: kept.Groups}
	if !kept.Until.IsZero() {
		by.until = kept.Until
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.makeRoom(now)
	d.sessions[own] = &session{kept.Name + " (of before)", by, digest(page), now, now}
	return false
}

// forgotten ends the session of a cookie wherever it is kept.
func (s *Server) forgotten(ctx context.Context, cookie string) {
	s.door.end(cookie)
	if s.door.kept != nil {
		_ = s.door.kept.EndSession(ctx, digestOf(cookie).text())
	}
}
