package store

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// Share is a link by which people outside see one run, and nothing else. Its secret is shown once and kept nowhere.
type Share struct {
	ID      int64      `json:"id" doc:"Its number, by which it is revoked."`
	Run     string     `json:"run" doc:"The id of the run that it shows."`
	Maker   string     `json:"by" doc:"The account that made it."`
	Made    time.Time  `json:"made" doc:"When it was made."`
	Expires time.Time  `json:"expires" doc:"From when on it opens nothing."`
	Revoked *time.Time `json:"revoked,omitempty" doc:"When it was revoked; absent: it was not."`
}

// Open says whether it lets people in at a time.
func (s *Share) Open(now time.Time) bool { return s.Revoked == nil && now.Before(s.Expires) }

// How long a link may last.
const (
	ShareLasts   = 7 * 24 * time.Hour // where nobody says
	LongestShare = 90 * 24 * time.Hour
)

const shareColumns = "id, run, maker, made, expires, revoked"

func scanShare(scan func(...any) error) (s Share, err error) {
	err = scan(&s.ID, &s.Run, &s.Maker, &s.Made, &s.Expires, &s.Revoked)
	return s, err
}

// AddShare makes a link to a run, which is named by its id.
func (t *Team) AddShare(ctx context.Context, run, maker string, lasts time.Duration) (secret string, made Share,
	err error) {
	secret = rand.Text()
	err = t.db.change(ctx, func(s *session) error {
		made, err = s.addShare(secret, run, maker, lasts)
		return err
	})
	return secret, made, err
}

// AddShareHere is AddShare of a command that has the database itself, which is told in the log.
func (t *Team) AddShareHere(ctx context.Context, run, maker string, lasts time.Duration) (secret string, made Share,
	err error) {
	secret = rand.Text()
	err = t.db.change(ctx, func(s *session) error {
		if made, err = s.addShare(secret, run, maker, lasts); err != nil {
			return err
		}
		return noteHere(s, fmt.Sprintf("made link %d to run %s until %s", made.ID, run, made.Expires.UTC().Format(time.RFC3339)))
	})
	return secret, made, err
}

func (s *session) addShare(secret, run, maker string, lasts time.Duration) (made Share, err error) {
	made, err = scanShare(s.row("INSERT INTO shares (run, digest, maker, expires) SELECT id, ?, ?, "+
		"now() + CAST(? AS bigint) * interval '1 second' FROM recorded WHERE id = ? RETURNING "+shareColumns,
		hashOf([]byte(secret)), maker, int64(lasts.Seconds()), run).Scan)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound(run)
	}
	return made, err
}

// RevokeShare ends a link of a run at once, with the browsers that it let in.
func (t *Team) RevokeShare(ctx context.Context, run string, id int64) error {
	return t.db.change(ctx, func(s *session) error { return s.revokeShare(run, id) })
}

// RevokeShareHere is RevokeShare of a command that has the database itself, which is told in the log.
func (t *Team) RevokeShareHere(ctx context.Context, run string, id int64) error {
	return t.db.change(ctx, func(s *session) error {
		if err := s.revokeShare(run, id); err != nil {
			return err
		}
		return noteHere(s, fmt.Sprintf("revoked link %d to run %s", id, run))
	})
}

func (s *session) revokeShare(run string, id int64) error {
	n, err := s.exec("UPDATE shares SET revoked = now() WHERE id = ? AND run = ? AND revoked IS NULL", id, run)
	if err == nil && n == 0 {
		err = &Error{Kind: ErrNotFound, Text: fmt.Sprintf("run %s has no link %d that was not revoked", run, id),
			Hint: "hightide share lists them"}
	}
	return err
}

// Shares are the links of a run, the newest first; "": of all runs.
func (t *Team) Shares(ctx context.Context, run string) (all []Share, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT "+shareColumns+" FROM shares WHERE CAST(? AS text) = '' OR run = ? ORDER BY id DESC",
			[]any{run, run}, func(rows *sql.Rows) error {
				one, err := scanShare(rows.Scan)
				all = append(all, one)
				return err
			})
	})
	return all, err
}

// ShareOf is the link of which this is the SHA-256, in hexadecimal, where it lets people in now; false: it does not.
func (t *Team) ShareOf(ctx context.Context, digest string) (one Share, good bool, err error) {
	err = t.db.look(ctx, func(s *session) error {
		one, err = scanShare(s.row("SELECT "+shareColumns+" FROM shares WHERE digest = ? AND revoked IS NULL "+
			"AND expires > now()", digest).Scan)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Share{}, false, nil
	}
	return one, err == nil, err
}
