package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Key lets a person or a machine ask a server of a team. The secret itself is shown once and kept nowhere.
type Key struct {
	Name    string     `json:"name" doc:"Its name."`
	Account string     `json:"account" doc:"Whose it is."`
	May     string     `json:"may" doc:"What it may: read; push: change runs too; exec: start programs too; admin: the server too."`
	Made    time.Time  `json:"made" doc:"When it was made."`
	Expires *time.Time `json:"expires,omitempty" doc:"From when on it is good no more; absent: it does not expire."`
	Revoked *time.Time `json:"revoked,omitempty" doc:"When it was revoked; absent: it was not."`
}

// AddKey makes a key of the name, account and right of k, and returns its secret. Without an account it is one of the
// key's own name. A name is good for another key once its own was revoked. lasts of 0: it does not expire.
func (t *Team) AddKey(ctx context.Context, k Key, lasts time.Duration) (secret string, err error) {
	secret = rand.Text()
	err = t.db.change(ctx, func(s *session) error {
		n, err := s.exec("INSERT INTO keys (name, account, digest, may, expires) VALUES (?, ?, ?, ?, "+
			"CASE WHEN CAST(? AS bigint) > 0 THEN now() + CAST(? AS bigint) * interval '1 second' END) "+
			"ON CONFLICT (name) DO UPDATE SET account = excluded.account, digest = excluded.digest, may = excluded.may, made = now(), "+
			"expires = excluded.expires, revoked = NULL WHERE keys.revoked IS NOT NULL",
			k.Name, k.Account, hashOf([]byte(secret)), k.May, int64(lasts.Seconds()), int64(lasts.Seconds()))
		if err == nil && n == 0 {
			err = &Error{Kind: ErrAmbiguous, Text: fmt.Sprintf("there is a key %s already", k.Name),
				Hint: "revoke it first: hightide key " + k.Name + " --revoke"}
		}
		if err == nil {
			err = noteHere(s, fmt.Sprintf("made key %q of %q for %s", k.Name, cmp.Or(k.Account, k.Name), k.May))
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
		if err == nil {
			err = noteHere(s, fmt.Sprintf("revoked key %q", name))
		}
		return err
	})
}

// ofKey is whose a key is.
const ofKey = "CASE account WHEN '' THEN name ELSE account END"

// Keys are all that were made, also those that are good no more, by name.
func (t *Team) Keys(ctx context.Context) (all []Key, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT name, "+ofKey+", may, made, expires, revoked FROM keys ORDER BY name", nil, func(rows *sql.Rows) error {
			var k Key
			err := rows.Scan(&k.Name, &k.Account, &k.May, &k.Made, &k.Expires, &k.Revoked)
			all = append(all, k)
			return err
		})
	})
	return all, err
}

// KeyOf is the key of which this is the SHA-256, in hexadecimal, where it is good now; false: it is not.
func (t *Team) KeyOf(ctx context.Context, digest string) (k Key, good bool, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.row("SELECT name, "+ofKey+", may, made FROM keys WHERE digest = ? AND revoked IS NULL "+
			"AND (expires IS NULL OR expires > now())", digest).Scan(&k.Name, &k.Account, &k.May, &k.Made)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Key{}, false, nil
	}
	return k, err == nil, err
}
