package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/crypto/bcrypt"
)

// Account is a person who signs in with a password.
type Account struct {
	Name   string     `json:"name" doc:"Its name."`
	Made   time.Time  `json:"made" doc:"When it was made, or the password was set last."`
	Closed *time.Time `json:"closed,omitempty" doc:"When it was closed; absent: it is open."`
}

// Lengths of a password in bytes: bcrypt reads no more than that.
const (
	ShortestPassword = 12
	LongestPassword  = 72
)

// SetPassword makes an account, or gives it another password and opens it again.
func (t *Team) SetPassword(ctx context.Context, name, password string) error {
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return err
	}
	return t.db.change(ctx, func(s *session) error {
		_, err := s.exec("INSERT INTO accounts (name, password) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET "+
			"password = excluded.password, made = now(), closed = NULL", name, string(hash))
		if err == nil {
			err = noteHere(s, fmt.Sprintf("set the password of account %q", name))
		}
		return err
	})
}

// CloseAccount has an account let nobody in any more, at once.
func (t *Team) CloseAccount(ctx context.Context, name string) error {
	return t.db.change(ctx, func(s *session) error {
		n, err := s.exec("UPDATE accounts SET closed = now() WHERE name = ? AND closed IS NULL", name)
		if err == nil && n == 0 {
			return &Error{Kind: ErrNotFound, Text: fmt.Sprintf("there is no account %q that is open", name),
				Hint: "hightide account lists them"}
		}
		if err == nil {
			err = noteHere(s, fmt.Sprintf("closed account %q", name))
		}
		return err
	})
}

// Accounts are all, also closed ones, by name.
func (t *Team) Accounts(ctx context.Context) (all []Account, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT name, made, closed FROM accounts ORDER BY name", nil, func(rows *sql.Rows) error {
			var a Account
			err := rows.Scan(&a.Name, &a.Made, &a.Closed)
			all = append(all, a)
			return err
		})
	})
	return all, err
}

// password is the bcrypt of an account that is open, and when it was set.
func (t *Team) password(ctx context.Context, name string) (hash string, set time.Time, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.row("SELECT password, made FROM accounts WHERE name = ? AND closed IS NULL", name).Scan(&hash, &set)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return "", set, nil
	}
	return hash, set, err
}

// nobodys is compared where there is no account, so that the time tells nothing.
var nobodys = sync.OnceValue(func() []byte {
	hash, _ := bcrypt.GenerateFromPassword([]byte("nobody's"), bcrypt.DefaultCost)
	return hash
})

// SignIn says whether a password is that of an account. since names the password: it is another once that is changed.
func (t *Team) SignIn(ctx context.Context, name, password string) (since time.Time, good bool, err error) {
	hash, since, err := t.password(ctx, name)
	if err != nil || hash == "" {
		_ = bcrypt.CompareHashAndPassword(nobodys(), []byte(password))
		return since, false, err
	}
	return since, bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil, nil
}

// SignedIn says whether an account is open, with the password that it was entered by.
func (t *Team) SignedIn(ctx context.Context, name string, since time.Time) (bool, error) {
	hash, now, err := t.password(ctx, name)
	return err == nil && hash != "" && now.Equal(since), err
}
