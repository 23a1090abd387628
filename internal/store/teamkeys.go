package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Key lets a person or a machine ask a server of a team. The secret itself is shown once and kept nowhere.
type Key struct {
	Name    string     `json:"name"`
	May     string     `json:"may"` // read; push: change runs too; exec: start programs too
	Made    time.Time  `json:"made"`
	Expires *time.Time `json:"expires,omitempty"`
	Revoked *time.Time `json:"revoked,omitempty"`
}

// AddKey makes a key and returns its secret. A name is good for another one once its key was revoked. lasts of 0: it
// does not expire.
func (t *Team) AddKey(ctx context.Context, name, may string, lasts time.Duration) (secret string, err error) {
	secret = rand.Text()
	err = t.db.change(ctx, func(s *session) error {
		n, err := s.exec("INSERT INTO keys (name, digest, may, expires) VALUES (?, ?, ?, "+
			"CASE WHEN CAST(? AS bigint) > 0 THEN now() + CAST(? AS bigint) * interval '1 second' END) "+
			"ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, may = excluded.may, made = now(), "+
			"expires = excluded.expires, revoked = NULL WHERE keys.revoked IS NOT NULL",
			name, hashOf([]byte(secret)), may, int64(lasts.Seconds()), int64(lasts.Seconds()))
		if err == nil && n == 0 {
			err = &Error{Kind: ErrAmbiguous, Text: fmt.Sprintf("there is a key %s already", name),
				Hint: "revoke it first: hightide key " + name + " --revoke"}
		}
		return err
	})
	if err != nil {
		return "", err
	}
	return secret, nil
}

// RevokeKey ends a key at once.
func (t *Team) RevokeKey(ctx context.Context, name string) error {
	return t.db.change(ctx, func(s *session) error {
		n, err := s.exec("UPDATE keys SET revoked = now() WHERE name = ? AND revoked IS NULL", name)
		if err == nil && n == 0 {
			err = &Error{Kind: ErrNotFound, Text: fmt.Sprintf("there is no key %q that is good", name),
				Hint: "hightide key lists them"}
		}
		return err
	})
}

// Keys are all that were made, also those that are good no more, by name.
func (t *Team) Keys(ctx context.Context) (all []Key, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT name, may, made, expires, revoked FROM keys ORDER BY name", nil, func(rows *sql.Rows) error {
			var k Key
			err := rows.Scan(&k.Name, &k.May, &k.Made, &k.Expires, &k.Revoked)
			all = append(all, k)
			return err
		})
	})
	return all, err
}

// KeyOf is the key of which this is the SHA-256, in hexadecimal, where it is good now; false: it is not.
func (t *Team) KeyOf(ctx context.Context, digest string) (k Key, good bool, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.row("SELECT name, may, made FROM keys WHERE digest = ? AND revoked IS NULL "+
			"AND (expires IS NULL OR expires > now())", digest).Scan(&k.Name, &k.May, &k.Made)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, false, nil
	}
	return k, err == nil, err
}
