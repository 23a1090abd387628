package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Team is the store of many people and machines: rows in PostgreSQL, files in an object store.
//
//	Create ──▶ outbox/runs/<id>/…  ──▶ send ──▶ objects, by chunk ──▶ one transaction: the run is there
//	           (Files, this machine)                                   with all of its files
//	List, Open, Follow ◀── PostgreSQL, objects; of what is in the outbox, the outbox
//
// A run is recorded into the outbox, a data directory on this machine, as for one person: neither the network nor a
// server holds up the program. What cannot be sent stays there, and goes with the next command. Read
// teamsend.go for how a run is sent, teamparts.go for its files, teamstore.go for what it does as a Store.
type Team struct {
	db      *postgres
	objects objects
	place   string // of the objects, for people
	outbox  *Files
	chunk   int64
	live    liveRuns

	once   sync.Once // what was left behind is being sent
	left   sync.WaitGroup
	cancel context.CancelFunc
	ctx    context.Context // ends with Close
	mu     sync.Mutex      // one run is sent at a time
	writer string          // see ownName
}

// chunkBytes is the size of a part.
const chunkBytes = 8 << 20

// OpenTeam is the store of a team. Nothing is touched until it is used; outbox is a folder on this machine.
func OpenTeam(database, objectsAt, outbox string) (*Team, error) {
	db, err := newPostgres(database)
	if err != nil {
		return nil, err
	}
	if objectsAt == "" {
		return nil, &Error{Kind: ErrPlace, Text: "the store " + db.name() + " keeps rows, and no place for files is named",
			Hint: "name it too: --objects s3://BUCKET, azblob://CONTAINER or file:///FOLDER, or set HIGHTIDE_OBJECTS"}
	}
	kept, err := openObjects(objectsAt)
	if err != nil {
		return nil, &Error{Kind: ErrPlace, Text: "the place of recordings " + objectsAt + " cannot be used", Err: err,
			Hint: "write --objects s3://BUCKET, azblob://CONTAINER or file:///FOLDER"}
	}
	of := sha256.Sum256([]byte(db.name() + "\n" + objectsAt))
	t := &Team{db: db, objects: kept, place: objectsAt, chunk: chunkBytes,
		outbox: OpenFiles(filepath.Join(outbox, hex.EncodeToString(of[:6])))}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	return t, nil
}

// ownName is what the team's database calls this outbox.
func (t *Team) ownName() (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.writer != "" {
		return t.writer, nil
	}
	if err := t.outbox.prepare(); err != nil {
		return "", err
	}
	path := filepath.Join(t.outbox.dir, "name")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = io.WriteString(file, rand.Text()+"\n")
		err = errors.Join(err, file.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", t.outbox.badPlace("write to", err)
	}
	text, err := os.ReadFile(path)
	if name := strings.TrimSpace(string(text)); err == nil && name != "" {
		t.writer = name
		return name, nil
	}
	return "", t.outbox.badPlace("read", cmp.Or(err, io.ErrUnexpectedEOF))
}

// What of a name, a tag's key and its value stands in a row, in bytes: an index takes 2,700. The recording has all.
const (
	nameKept  = 1000
	keyKept   = 500
	valueKept = 1500
)

// kept is the begin of a text that an index can take.
func kept(text string, most int) string {
	text = storable(text)
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// putTeamRow enters a row, or replaces it.
func putTeamRow(s *session, run Run) error {
	run.Name = kept(run.Name, nameKept)
	e := entry{run: run}
	if _, err := s.exec(insert("recorded", columns), append(e.values(columns), searched(&run))...); err != nil {
		return err
	}
	if _, err := s.exec("DELETE FROM tags WHERE run = ?", run.ID); err != nil {
		return err
	}
	for key, value := range run.Tags {
		if _, err := s.exec("INSERT INTO tags (run, key, value) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", run.ID,
			kept(key, keyKept), kept(value, valueKept)); err != nil {
			return err
		}
	}
	return putPlaces(s, &run)
}

// isHeard is the condition that somebody writes a run. The view runs says the same. A time that is yet to come is of a
// clock that was set back since, and says nothing.
const isHeard = "(heard IS NOT NULL AND heard BETWEEN now() - interval '60 seconds' AND now() + interval '60 seconds')"

// listed are the runs that the team's database has.
func (t *Team) listed(filter Filter) (runs []Run, err error) {
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	of, chosen := filter.chosen("json_object_agg")
	from, order, hint, args := "runs", inOrder, "", []any(nil)
	if filter.searchesPlaces() && filter.Text == "" { // a word is looked for in all runs anyway
		from, args = filter.foundFirst()
		order, hint = placesOrder, inThatOrder
	}
	where, more := filter.sql(false, order)
	args = append(args, more...)
	list := func(s *session) error {
		err := s.query("SELECT "+chosen+" FROM "+from+where, args, func(rows *sql.Rows) error {
			run, err := scanRun(rows, of)
			runs = append(runs, run)
			return err
		})
		if err == nil && filter.Held != (Spot{}) {
			err = filter.addHeld(s, runs)
		}
		return err
	}
	if filter.Brief && hint == "" {
		// Rows of a few hundred thousand runs lie in memory: to find 4,000 of them by their ids is a third of the work of
		// reading all, which PostgreSQL does where it takes them to be on a disk that turns.
		hint = "SET LOCAL random_page_cost = 1.1"
	}
	if hint == "" {
		err = t.db.look(ctx, list)
		return runs, err
	}
	err = t.db.change(ctx, func(s *session) error {
		if _, err := s.exec(hint); err != nil {
			return err
		}
		return list(s)
	})
	return runs, err
}

// clock is the database's time.
func (t *Team) clock() (now time.Time, err error) {
	err = t.db.look(t.ctx, func(s *session) error { return s.row("SELECT now()").Scan(&now) })
	return now, err
}
