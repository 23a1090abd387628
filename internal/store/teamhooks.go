package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Delivery is a message that waits to be sent.
type Delivery struct {
	ID    int64
	Run   string
	Hook  string // which hook of the team's file, by its hash
	Body  string
	Made  time.Time
	Tries int64 // that were made before
}

// deliveryLasts is how long a message is tried, deliveryHeld how long whoever tries it has it alone. No try is planned
// deliveryAhead: the longest wait is an hour.
const (
	deliveryAhead = 2 * time.Hour
	deliveryLasts = 24 * time.Hour
	deliveryHeld  = 60 * time.Second
)

// Untold are runs that have ended and of which no messages were made yet, at most so many.
func (t *Team) Untold(ctx context.Context, most int) (runs []Run, err error) {
	var ids []string
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT id FROM recorded WHERE NOT told AND NOT "+isHeard+" AND EXISTS (SELECT 1 FROM files "+
			"WHERE run = id AND name = ? AND whole) ORDER BY id LIMIT ?", []any{Recording, most}, func(rows *sql.Rows) error {
			var id string
			err := rows.Scan(&id)
			ids = append(ids, id)
			return err
		})
	})
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	return t.listed(Filter{IDs: ids})
}

// Tell keeps messages of a run, a body for each hook, unless somebody has done so meanwhile.
func (t *Team) Tell(ctx context.Context, run string, bodies map[string]string) error {
	return t.db.change(ctx, func(s *session) error {
		n, err := s.exec("UPDATE recorded SET told = TRUE WHERE id = ? AND NOT told", run)
		if err != nil || n == 0 {
			return err
		}
		return s.deliver(run, bodies)
	})
}

func (s *session) deliver(run string, bodies map[string]string) error {
	for hook, body := range bodies {
		if _, err := s.exec("INSERT INTO deliveries (run, hook, body) VALUES (?, ?, ?)", run, hook, body); err != nil {
			return err
		}
	}
	return nil
}

// TellAlert keeps messages of an alert of a run that goes on, unless it was told of before. The title is that of the
// finding that the alert is in the report of the run.
func (t *Team) TellAlert(ctx context.Context, run, alert, title string, bodies map[string]string) error {
	return t.db.change(ctx, func(s *session) error {
		n, err := s.exec("INSERT INTO alerts (run, alert, title) SELECT id, ?, ? FROM recorded WHERE id = ? AND NOT told "+
			"ON CONFLICT DO NOTHING", alert, title, run)
		if err != nil || n == 0 {
			return err
		}
		return s.deliver(run, bodies)
	})
}

// ToldAlerts are the titles of the alerts of a run that were told of while it went on.
func (t *Team) ToldAlerts(ctx context.Context, run string) (titles map[string]bool, err error) {
	titles = map[string]bool{}
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT title FROM alerts WHERE run = ?", []any{run}, func(rows *sql.Rows) error {
			var title string
			err := rows.Scan(&title)
			titles[title] = true
			return err
		})
	})
	return titles, err
}

// NextDelivery takes a message whose time has come; false: there is none. Others do not get it for a minute. A time far
// ahead is of a clock that was set back since.
func (t *Team) NextDelivery(ctx context.Context) (d Delivery, there bool, err error) {
	err = t.db.change(ctx, func(s *session) error {
		return s.row("UPDATE deliveries SET next = now() + CAST(? AS bigint) * interval '1 second' WHERE id = ("+
			"SELECT id FROM deliveries WHERE next <= now() OR next > now() + CAST(? AS bigint) * interval '1 second' "+
			"ORDER BY next LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, run, hook, body, made, tries",
			int64(deliveryHeld.Seconds()), int64(deliveryAhead.Seconds())).Scan(&d.ID, &d.Run, &d.Hook, &d.Body,
			&d.Made, &d.Tries)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return d, false, nil
	}
	return d, err == nil, err
}

// Delivered ends a message: it has arrived, or nobody wants it any more.
func (t *Team) Delivered(ctx context.Context, d Delivery) error {
	return t.db.change(ctx, func(s *session) error {
		_, err := s.exec("DELETE FROM deliveries WHERE id = ?", d.ID)
		return err
	})
}

// Undelivered has a message be tried again after a while, with what was answered; over: it was tried for a day, and ends.
func (t *Team) Undelivered(ctx context.Context, d Delivery, after time.Duration, answer string) (over bool, err error) {
	err = t.db.change(ctx, func(s *session) error {
		n, err := s.exec("UPDATE deliveries SET tries = tries + 1, answer = ?, next = now() + CAST(? AS bigint) * "+
			"interval '1 second' WHERE id = ? AND made > now() - CAST(? AS bigint) * interval '1 second'", answer,
			int64(after.Seconds()), d.ID, int64(deliveryLasts.Seconds()))
		if err != nil || n > 0 {
			return err
		}
		over = true
		_, err = s.exec("DELETE FROM deliveries WHERE id = ?", d.ID)
		return err
	})
	return over, err
}
