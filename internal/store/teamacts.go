package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

// Act is something that somebody changed, or was refused to.
type Act struct {
	ID     int64     `json:"id" doc:"Its number in the log."`
	Time   time.Time `json:"time" doc:"When it was."`
	Who    string    `json:"who" doc:"A key, a session, or the token of the server; nobody: who was not known."`
	From   string    `json:"from" doc:"The address of the client, or where a command ran."`
	What   string    `json:"what" doc:"The request, without its query and body, or what it began."`
	Status int       `json:"status,omitempty" doc:"The status of the answer; absent: there was none yet."`
}

func (a Act) String() string {
	text := fmt.Sprintf("%s %s at %s %s", a.Time.UTC().Format(time.RFC3339), a.Who, a.From, a.What)
	if a.Status != 0 {
		text += fmt.Sprintf(": %d", a.Status)
	}
	return text
}

// Note keeps an act.
func (t *Team) Note(ctx context.Context, a Act) error {
	return t.db.change(ctx, func(s *session) error {
		_, err := s.exec("INSERT INTO acts (who, source, what, status) VALUES (?, ?, ?, ?)", a.Who, a.From, a.What, a.Status)
		return err
	})
}

// noteHere keeps what a command does that has the database itself.
func noteHere(s *session, what string) error {
	_, err := s.exec("INSERT INTO acts (who, source, what, status) SELECT 'database user ' || current_user, "+
		"coalesce(host(inet_client_addr()), 'the machine of the database'), ?, 0", what)
	return err
}

// Acts are the newest that were kept: before a number, 0 for all, and so many at most.
func (t *Team) Acts(ctx context.Context, before int64, limit int) (all []Act, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT id, at, who, source, what, status FROM acts WHERE CAST(? AS bigint) = 0 OR id < ? "+
			"ORDER BY id DESC LIMIT ?", []any{before, before, limit}, func(rows *sql.Rows) error {
			var a Act
			err := rows.Scan(&a.ID, &a.Time, &a.Who, &a.From, &a.What, &a.Status)
			all = append(all, a)
			return err
		})
	})
	return all, err
}
