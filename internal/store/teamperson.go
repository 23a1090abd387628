package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// Person is what a team's store has of somebody, but for the files of the runs.
type Person struct {
	Version  int             `json:"version" doc:"Of this form: 1."`
	Name     string          `json:"name" doc:"The account."`
	Account  *Account        `json:"account,omitempty" doc:"The account with its password's age; absent: none with a password."`
	Keys     []Key           `json:"keys" doc:"Keys of the account, without their secrets."`
	Runs     []Run           `json:"runs" doc:"Runs that the person's keys sent to a server."`
	NotSeen  int             `json:"runs_not_seen,omitempty" doc:"How many more of them are in projects that who asks does not see; absent: none."`
	Comments []PersonComment `json:"comments" doc:"What the person said of runs."`
	Shares   []Share         `json:"shares" doc:"Links that the person made."`
	Acts     []Act           `json:"acts" doc:"Lines of the log in which the name stands. Addresses of others are left out."`
	Reserved []PersonMonth   `json:"reserved" doc:"What the person reserved on machines, by month."`
	Users    []string        `json:"users" doc:"Users of machines of that name, who wrote comments with the database's password and need not be that person."`
}

// Within leaves out runs that a scope does not see, and counts them.
func (p *Person) Within(scope Scope) {
	all := len(p.Runs)
	p.Runs = slices.DeleteFunc(p.Runs, func(r Run) bool { return !scope.Has(Viewer, r.Tags[ProjectTag]) })
	p.NotSeen = all - len(p.Runs)
}

// Known says whether anything is kept of that person.
func (p *Person) Known() bool {
	return p.Account != nil || p.NotSeen+len(p.Keys)+len(p.Runs)+len(p.Comments) > 0 ||
		len(p.Shares)+len(p.Acts)+len(p.Reserved) > 0
}

// PersonComment is a comment that somebody wrote, as it is kept.
type PersonComment struct {
	Run     string          `json:"run" doc:"The id of the run."`
	Comment json.RawMessage `json:"comment" doc:"The comment, as it is kept."`
	file    string
}

// PersonMonth is what a person reserved on a machine in a month.
type PersonMonth struct {
	Month    string `json:"month" doc:"As 2026-01."`
	Machine  string `json:"machine" doc:"The account of the machine."`
	Project  string `json:"project" doc:"The project; empty: none."`
	GPU      string `json:"gpu" doc:"The name of the GPU; empty: memory of the host."`
	Held     int64  `json:"held_ms" doc:"How long a GPU was held, in ms."`
	Idle     int64  `json:"idle_ms" doc:"How long of that its holder did nothing, in ms."`
	Reserved int64  `json:"reserved_mib_s" doc:"What was reserved of the host, in MiB times seconds."`
	Unused   int64  `json:"unused_mib_s" doc:"What of that was not used, in MiB times seconds."`
}

// Deleted stands where the name of somebody stood who was deleted.
const Deleted = "a deleted person"

// Person gathers what there is of somebody, by the name of the account.
func (t *Team) Person(ctx context.Context, name string) (*Person, error) {
	p := &Person{Version: 1, Name: name, Keys: []Key{}, Runs: []Run{}, Comments: []PersonComment{},
		Shares: []Share{}, Acts: []Act{}, Reserved: []PersonMonth{}, Users: []string{}}
	accounts, err := t.Accounts(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range accounts {
		if a.Name == name {
			p.Account = &a
		}
	}
	keys, err := t.Keys(ctx)
	if err != nil {
		return nil, err
	}
	for _, k := range keys {
		if k.Account == name {
			p.Keys = append(p.Keys, k)
		}
	}
	if err := t.db.look(ctx, func(s *session) error { return s.personRows(p) }); err != nil {
		return nil, err
	}
	ids, err := t.sentBy(ctx, name)
	if err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		if p.Runs, err = t.listed(Filter{IDs: ids}); err != nil {
			return nil, err
		}
	}
	p.Comments, p.Users, err = t.commentsBy(ctx, name)
	return p, err
}

// OnMachine is what stands between a user and the machine where a comment is by a user of a machine: it was written with
// the password of the database, which knows no account.
const OnMachine = " on "

// quoted is how the log writes a name.
func quoted(name string) string { return fmt.Sprintf("%q", name) }

func (s *session) personRows(p *Person) error {
	err := s.query("SELECT id, at, who, source, what, status FROM acts WHERE strpos(who, ?) > 0 OR strpos(what, ?) > 0 "+
		"ORDER BY id", []any{quoted(p.Name), quoted(p.Name)}, func(rows *sql.Rows) error {
		var a Act
		err := rows.Scan(&a.ID, &a.Time, &a.Who, &a.From, &a.What, &a.Status)
		if !strings.Contains(a.Who, quoted(p.Name)) { // another one, of whom nothing more is told
			a.From = ""
		}
		p.Acts = append(p.Acts, a)
		return err
	})
	if err != nil {
		return err
	}
	err = s.query("SELECT "+shareColumns+" FROM shares WHERE maker = ? ORDER BY id", []any{p.Name}, func(rows *sql.Rows) error {
		one, err := scanShare(rows.Scan)
		p.Shares = append(p.Shares, one)
		return err
	})
	if err != nil {
		return err
	}
	return s.query("SELECT month, machine, project, gpu, held_ms, idle_ms, reserved_mib_s, unused_mib_s FROM reserved "+
		"WHERE person = ? ORDER BY month, machine", []any{p.Name}, func(rows *sql.Rows) error {
		var m PersonMonth
		err := rows.Scan(&m.Month, &m.Machine, &m.Project, &m.GPU, &m.Held, &m.Idle, &m.Reserved, &m.Unused)
		p.Reserved = append(p.Reserved, m)
		return err
	})
}

// sentBy are the ids of the runs that somebody sent.
func (t *Team) sentBy(ctx context.Context, name string) (ids []string, err error) {
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT id FROM recorded WHERE sender = ? AND sender <> '' ORDER BY id", []any{name},
			func(rows *sql.Rows) error {
				var id string
				err := rows.Scan(&id)
				ids = append(ids, id)
				return err
			})
	})
	return ids, err
}

// commentsBy are the comments of somebody, on all runs, and the users of machines of that name who wrote some.
func (t *Team) commentsBy(ctx context.Context, name string) (own []PersonComment, users []string, err error) {
	found := []PersonComment{}
	err = t.db.look(ctx, func(s *session) error {
		return s.query("SELECT run, name FROM files WHERE whole AND name LIKE ? ORDER BY run, name",
			[]any{commentPrefix + "%"}, func(rows *sql.Rows) error {
				var c PersonComment
				err := rows.Scan(&c.Run, &c.file)
				found = append(found, c)
				return err
			})
	})
	if err != nil {
		return nil, nil, err
	}
	own, users = []PersonComment{}, []string{}
	for _, c := range found {
		var who struct {
			By string `json:"by"`
		}
		file, err := t.openWhole(c.Run, c.file)
		if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		c.Comment, err = io.ReadAll(file)
		file.Close()
		if err != nil {
			return nil, nil, err
		}
		switch err := json.Unmarshal(c.Comment, &who); {
		case err != nil:
		case who.By == name:
			own = append(own, c)
		case strings.HasPrefix(who.By, name+OnMachine) && !slices.Contains(users, who.By):
			users = append(users, who.By)
		}
	}
	slices.Sort(users)
	return own, users, nil
}

// Forget deletes what there is of somebody: the account and its keys first, so that nothing new comes, then comments
// and, unless they are kept, the runs that the person sent, with all of their files, and last the name wherever else it
// stands. What was cut off is ended by doing it again. Nothing is deleted where a run would have to be that is still
// recorded.
func (t *Team) Forget(ctx context.Context, name string, keepRuns bool) error {
	if !keepRuns {
		if err := t.noneRuns(ctx, name); err != nil {
			return err
		}
	}
	err := t.db.change(ctx, func(s *session) error {
		return s.all("DELETE FROM accounts WHERE name = ?", "UPDATE keys SET revoked = now() WHERE revoked IS NULL AND "+ofKey+" = ?",
			"DELETE FROM shares WHERE maker = ?", "DELETE FROM sessions WHERE account = ?")(name)
	})
	if err != nil {
		return err
	}
	comments, _, err := t.commentsBy(ctx, name)
	if err != nil {
		return err
	}
	for _, c := range comments {
		if err := t.Detach(c.Run, c.file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !keepRuns {
		ids, err := t.sentBy(ctx, name)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if err := t.Remove(id); err != nil && !errors.Is(err, ErrNotFound) {
				return err
			}
		}
	}
	if err := t.forgetName(ctx, name); err != nil {
		return err
	}
	if _, err := t.outbox.List(Filter{}); err != nil { // which drops rows of runs that are gone
		return err
	}
	return t.outbox.index.scrub()
}

// noneRuns is an error where a run of somebody is still recorded.
func (t *Team) noneRuns(ctx context.Context, name string) error {
	ids, err := t.sentBy(ctx, name)
	if err != nil || len(ids) == 0 {
		return err
	}
	runs, err := t.listed(Filter{IDs: ids, Brief: true})
	for _, r := range runs {
		if r.State == Running {
			return stillRunning(r.ID)
		}
	}
	return err
}

// forgetName takes a name out of all rows that stay.
func (t *Team) forgetName(ctx context.Context, name string) error {
	var hashes []string
	err := t.db.change(ctx, func(s *session) (err error) {
		if hashes, err = dropFiles(s, "writer = ? AND NOT whole", SentBy(name)); err != nil {
			return err
		}
		if err := s.all("UPDATE files SET writer = '' WHERE writer = ?",
			"UPDATE recorded SET writer = '' WHERE writer = ?")(SentBy(name)); err != nil {
			return err
		}
		if err := s.all("UPDATE recorded SET sender = '' WHERE sender = ?",
			"INSERT INTO reserved SELECT month, machine, project, '', gpu, held_ms, idle_ms, reserved_mib_s, unused_mib_s "+
				"FROM reserved WHERE person = ? ON CONFLICT (month, machine, project, person, gpu) DO UPDATE SET "+
				"held_ms = reserved.held_ms + excluded.held_ms, idle_ms = reserved.idle_ms + excluded.idle_ms, "+
				"reserved_mib_s = reserved.reserved_mib_s + excluded.reserved_mib_s, "+
				"unused_mib_s = reserved.unused_mib_s + excluded.unused_mib_s",
			"DELETE FROM reserved WHERE person = ?")(name); err != nil {
			return err
		}
		inState, err := json.Marshal(name)
		if err != nil {
			return err
		}
		if _, err := s.exec("UPDATE machines SET state = replace(state, ?, ?)", `"person":`+string(inState),
			`"person":""`); err != nil {
			return err
		}
		names, err := s.keyNames(name)
		if err != nil {
			return err
		}
		for _, known := range append(names, name) {
			q := quoted(known)
			// what the person asked for names runs
			if _, err := s.exec("UPDATE acts SET what = regexp_replace(what, '\"[^\"]*\"', '\"…\"', 'g') WHERE strpos(who, ?) > 0",
				q); err != nil {
				return err
			}
			if _, err := s.exec("UPDATE acts SET who = replace(who, ?, ?), what = replace(what, ?, ?), "+
				"source = CASE WHEN strpos(who, ?) > 0 THEN '' ELSE source END "+
				"WHERE strpos(who, ?) > 0 OR strpos(what, ?) > 0", q, Deleted, q, Deleted, q, q, q); err != nil {
				return err
			}
		}
		if err := s.all("DELETE FROM keys WHERE " + ofKey + " = ?")(name); err != nil {
			return err
		}
		return noteHere(s, "deleted what there was of "+Deleted+" at "+time.Now().UTC().Format(time.RFC3339))
	})
	if err == nil {
		t.sweep(ctx, hashes)
	}
	return err
}

// keyNames are the names of somebody's keys.
func (s *session) keyNames(account string) (names []string, err error) {
	err = s.query("SELECT name FROM keys WHERE "+ofKey+" = ?", []any{account}, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		names = append(names, name)
		return err
	})
	return names, err
}

// all does several things with one value.
func (s *session) all(texts ...string) func(value string) error {
	return func(value string) error {
		for _, text := range texts {
			if _, err := s.exec(text, value); err != nil {
				return fmt.Errorf("%s: %w", strings.Fields(text)[0], err)
			}
		}
		return nil
	}
}
