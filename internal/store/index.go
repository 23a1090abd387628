package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite", without cgo
)

// indexVersion is the version of the schema. An index of an older one is dropped and filled again
// from the recordings; one of a newer hightide is left alone, and not used.
const indexVersion = 1

// schema keeps a run as JSON, as `hightide ls --json` prints it, and shows its figures as columns,
// so that the index can be asked with SQL. stamp is the size and time of the recording that the
// row was made from.
const schema = `
CREATE TABLE runs (
	id TEXT PRIMARY KEY,
	body TEXT NOT NULL,
	stamp TEXT NOT NULL,
	name TEXT AS (body ->> 'name'),
	state TEXT AS (body ->> 'state'),
	start_wall_ns INTEGER AS (body ->> 'start_wall_ns'),
	duration_ns INTEGER AS (body ->> 'duration_ns'),
	exit_code INTEGER AS (body ->> 'exit_code'),
	steps INTEGER AS (body ->> 'steps'),
	peak_host_rss_bytes INTEGER AS (body ->> 'peak_host_rss_bytes'),
	peak_host_pss_bytes INTEGER AS (body ->> 'peak_host_pss_bytes'),
	peak_device_used_bytes INTEGER AS (body ->> 'peak_device_used_bytes'),
	peak_allocated_bytes INTEGER AS (body ->> 'peak_allocated_bytes'),
	peak_reserved_bytes INTEGER AS (body ->> 'peak_reserved_bytes'),
	findings INTEGER AS (body ->> 'findings'),
	size_bytes INTEGER AS (body ->> 'size_bytes')
);
CREATE INDEX runs_start ON runs (start_wall_ns);
`

// index is the SQLite file, opened when it is first used. Every error of it can be ignored: the
// recordings are the truth.
type index struct {
	path string
	mu   sync.Mutex
	db   *sql.DB
	err  error
}

func newIndex(path string) *index { return &index{path: path} }

// open returns the database, making it where there is none.
func (x *index) open() (*sql.DB, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db != nil || x.err != nil {
		return x.db, x.err
	}
	x.db, x.err = openIndex(x.path)
	if x.err != nil && broken(x.err) {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			_ = os.Remove(x.path + suffix)
		}
		x.db, x.err = openIndex(x.path)
	}
	return x.db, x.err
}

// broken tells a file that is no database any more.
func broken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "malformed") || strings.Contains(text, "not a database")
}

// busyTime is how long to wait for another engine.
const busyTime = 5 * time.Second

func openIndex(path string) (*sql.DB, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite gives its other files the same mode
	if err != nil {
		return nil, err
	}
	file.Close()
	options := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "journal_mode(WAL)", "synchronous(NORMAL)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	err = migrate(db)
	// SQLite's own time-out does not hold for the change to WAL, which engines that start at once all make.
	for end := time.Now().Add(busyTime); err != nil && strings.Contains(err.Error(), "SQLITE_BUSY") && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
		err = migrate(db)
	}
	if err != nil {
		db.Close()
		return nil, err
	}
	return db, nil
}

func migrate(db *sql.DB) error {
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version == indexVersion {
		return nil
	}
	if version > indexVersion {
		return fmt.Errorf("index has version %d and this hightide knows up to %d", version, indexVersion)
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	// Another engine may have been first.
	if err := tx.QueryRow("PRAGMA user_version").Scan(&version); err != nil || version == indexVersion {
		return err
	}
	if _, err := tx.Exec("DROP TABLE IF EXISTS runs;" + schema + fmt.Sprintf("PRAGMA user_version = %d", indexVersion)); err != nil {
		return err
	}
	return tx.Commit()
}

// entry is a row with the state of the recording it was made from.
type entry struct {
	run   Run
	stamp string
}

func (x *index) all() (map[string]entry, error) {
	db, err := x.open()
	if err != nil {
		return nil, err
	}
	rows, err := db.Query("SELECT id, body, stamp FROM runs")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	entries := map[string]entry{}
	for rows.Next() {
		var id, body string
		var e entry
		if err := rows.Scan(&id, &body, &e.stamp); err != nil {
			return nil, err
		}
		if json.Unmarshal([]byte(body), &e.run) == nil {
			entries[id] = e
		}
	}
	return entries, rows.Err()
}

func (x *index) put(entries ...entry) error {
	if len(entries) == 0 {
		return nil
	}
	db, err := x.open()
	if err != nil {
		return err
	}
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	for _, e := range entries {
		body, err := json.Marshal(e.run)
		if err != nil {
			return err
		}
		// What a report found is not in the recording: it stays until there is a newer report.
		_, err = tx.Exec(`INSERT INTO runs (id, body, stamp) VALUES (?1, ?2, ?3)
			ON CONFLICT (id) DO UPDATE SET stamp = ?3, body = CASE
				WHEN json_type(?2, '$.findings') IS NULL AND json_type(runs.body, '$.findings') IS NOT NULL
				THEN json_set(?2, '$.findings', runs.body -> '$.findings') ELSE ?2 END`, e.run.ID, string(body), e.stamp)
		if err != nil {
			return err
		}
	}
	return tx.Commit()
}

func (x *index) remove(ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	db, err := x.open()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if _, err := db.Exec("DELETE FROM runs WHERE id = ?", id); err != nil {
			return err
		}
	}
	return nil
}

func (x *index) note(id string, findings int) error {
	db, err := x.open()
	if err == nil {
		_, err = db.Exec("UPDATE runs SET body = json_set(body, '$.findings', ?) WHERE id = ?", findings, id)
	}
	return err
}

func (x *index) close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.db == nil {
		return nil
	}
	err := x.db.Close()
	x.db = nil
	return err
}

// indexer enters one run into the index behind the recording's back: a slow or locked database
// never holds up a block. Only the newest row counts.
type indexer struct {
	rows   chan entry
	done   chan struct{}
	cancel context.CancelFunc
}

// begin starts the goroutine, which ends with close.
func (x *index) begin() *indexer {
	ctx, cancel := context.WithCancel(context.Background())
	i := &indexer{rows: make(chan entry, 1), done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(i.done)
		for e := range i.rows {
			if ctx.Err() == nil {
				_ = x.put(e) // best effort: List looks at the recording where the row is missing or old
			}
		}
	}()
	return i
}

func (i *indexer) put(row Run, stamp string) {
	for {
		select {
		case i.rows <- entry{row, stamp}:
			return
		default:
		}
		select {
		case <-i.rows: // an older row, not yet entered
		default:
		}
	}
}

// closeWait is how long the end of a run waits for the index.
const closeWait = 3 * time.Second

func (i *indexer) close() {
	close(i.rows)
	select {
	case <-i.done:
	case <-time.After(closeWait):
	}
	i.cancel()
}
