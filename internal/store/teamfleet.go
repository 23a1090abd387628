package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"hightide/internal/fleet"
)

// monthsKept is of how many months an overview has what was reserved.
const monthsKept = 12

// TakeReport keeps what a machine said. A report of its session that was taken already changes nothing but its state.
func (t *Team) TakeReport(ctx context.Context, machine string, r fleet.Report) error {
	text, err := json.Marshal(r.State)
	if err != nil {
		return err
	}
	return t.db.change(ctx, func(s *session) error {
		var was string
		var number int64
		err := s.row("SELECT session, number FROM machines WHERE name = ? FOR UPDATE", machine).Scan(&was, &number)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		again := err == nil && was == r.Session && number >= r.Number
		if again {
			_, err = s.exec("UPDATE machines SET state = ?, heard = now() WHERE name = ?", string(text), machine)
			return err
		}
		if _, err := s.exec("INSERT INTO machines (name, state, session, number) VALUES (?, ?, ?, ?) ON CONFLICT (name) "+
			"DO UPDATE SET state = excluded.state, heard = now(), session = excluded.session, number = excluded.number",
			machine, string(text), r.Session, r.Number); err != nil {
			return err
		}
		for _, u := range r.Used {
			if err := s.addUsed(machine, u); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *session) addUsed(machine string, u fleet.Used) error {
	_, err := s.exec("INSERT INTO reserved (month, machine, project, person, gpu, held_ms, idle_ms, reserved_mib_s, "+
		"unused_mib_s) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (month, machine, project, person, gpu) DO UPDATE SET "+
		"held_ms = reserved.held_ms + excluded.held_ms, idle_ms = reserved.idle_ms + excluded.idle_ms, "+
		"reserved_mib_s = reserved.reserved_mib_s + excluded.reserved_mib_s, "+
		"unused_mib_s = reserved.unused_mib_s + excluded.unused_mib_s",
		u.Month, machine, u.Project, u.Person, u.GPU, u.Held, u.Idle, u.Reserved, u.Unused)
	return err
}

// Machines are those that were heard of, with the database's time, and what was reserved in the newest months.
func (t *Team) Machines(ctx context.Context) (all []fleet.Node, used []fleet.Used, now int64, err error) {
	err = t.db.look(ctx, func(s *session) error {
		var clock time.Time
		if err := s.row("SELECT now()").Scan(&clock); err != nil {
			return err
		}
		now = clock.UnixNano()
		err := s.query("SELECT name, state, heard FROM machines ORDER BY name", nil, func(rows *sql.Rows) error {
			var m fleet.Node
			var text string
			var heard time.Time
			if err := rows.Scan(&m.Name, &text, &heard); err != nil {
				return err
			}
			m.Heard = heard.UnixNano()
			all = append(all, m)
			return json.Unmarshal([]byte(text), &all[len(all)-1].State)
		})
		if err != nil {
			return err
		}
		since := clock.UTC().AddDate(0, 1-monthsKept, 1-clock.UTC().Day()).Format("2006-01")
		return s.query("SELECT month, project, person, gpu, sum(held_ms)::bigint, sum(idle_ms)::bigint, "+
			"sum(reserved_mib_s)::bigint, sum(unused_mib_s)::bigint FROM reserved WHERE month >= ? "+
			"GROUP BY month, project, person, gpu", []any{since}, func(rows *sql.Rows) error {
			var u fleet.Used
			err := rows.Scan(&u.Month, &u.Project, &u.Person, &u.GPU, &u.Held, &u.Idle, &u.Reserved, &u.Unused)
			used = append(used, u)
			return err
		})
	})
	return all, used, now, err
}
