package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Session is a browser that was let in, and by what. It has no secret: cookie and page are the SHA-256 of theirs.
type Session struct {
	Cookie, Page string
	Name         string
	Key, Share   string // the digests of a key or of a link
	Account      string
	Since, Until time.Time // of an account with a password, and of one at a provider; zero: of neither
	Groups       string
}

// sessionLasts is how long a session is kept that nobody uses.
const sessionLasts = "7 days"

// KeepSession keeps one, and drops those that nobody has used for long.
func (t *Team) KeepSession(ctx context.Context, o Session) error {
	return t.db.change(ctx, func(s *session) error {
		if _, err := s.exec("DELETE FROM sessions WHERE used < now() - interval '" + sessionLasts + "'"); err != nil {
			return err
		}
		_, err := s.exec("INSERT INTO sessions (cookie, page, name, key, share, account, since, until, groups) "+
			"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", o.Cookie, o.Page, o.Name, o.Key, o.Share, o.Account, o.Since, o.Until, o.Groups)
		return err
	})
}

// SessionOf is the one of a cookie, which is used with that; false: there is none.
func (t *Team) SessionOf(ctx context.Context, cookie string) (o Session, there bool, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.row("UPDATE sessions SET used = now() WHERE cookie = ? AND used > now() - interval '"+sessionLasts+"' "+
			"RETURNING cookie, page, name, key, share, account, since, until, groups", cookie).Scan(&o.Cookie, &o.Page, &o.Name,
			&o.Key, &o.Share, &o.Account, &o.Since, &o.Until, &o.Groups)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return o, false, nil
	}
	return o, err == nil, err
}

// EndSession ends the one of a cookie.
func (t *Team) EndSession(ctx context.Context, cookie string) error {
	return t.db.change(ctx, func(s *session) error {
		_, err := s.exec("DELETE FROM sessions WHERE cookie = ?", cookie)
		return err
	})
}
