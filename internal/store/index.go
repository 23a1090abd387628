package store

import (
	"cmp"
	"context"
	"database/sql"
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
const indexVersion = 11

// index is the SQLite file, opened when it is first used. Every error of it can be ignored: the
// recordings are the truth.
type index struct {
	path string
	mu   sync.Mutex
	db   *sql.DB
	err  error
}

func newIndex(path string) *index { return &index{path: path} }

// openDatabase returns the database, making it where there is none.
func (x *index) openDatabase() (*sql.DB, error) {
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

// broken tells a file that is not a database any more.
func broken(err error) bool {
	text := err.Error()
	return strings.Contains(text, "malformed") || strings.Contains(text, "not a database")
}

// busyTime is how long to wait for another engine.
const busyTime = 5 * time.Second

func openIndex(path string) (*sql.DB, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600) // SQLite gives its other files the same mode
	if err = cmp.Or(err, hasPlaceFault); err != nil {
		return nil, err
	}
	file.Close()
	options := url.Values{"_pragma": {fmt.Sprintf("busy_timeout(%d)", busyTime.Milliseconds()), "journal_mode(WAL)",
		"synchronous(NORMAL)", "foreign_keys(1)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+options.Encode())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	err = migrate(db)
	// SQLite's own time-out does not hold for the change to WAL, which engines that start at once all make.
	for end := time.Now().Add(busyTime); err != nil && strings.Contains(err.Error(), "SQLITE_BUSY") &&
		time.Now().Before(end); {
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
	if _, err := tx.Exec("DROP TABLE IF EXISTS tags; DROP TABLE IF EXISTS runs;" + schema() +
		fmt.Sprintf("PRAGMA user_version = %d", indexVersion)); err != nil {
		return err
	}
	return tx.Commit()
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

// startIndexer starts the goroutine, which ends with close.
func (x *index) startIndexer() *indexer {
	ctx, cancel := context.WithCancel(context.Background())
	i := &indexer{rows: make(chan entry, 1), done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(i.done)
		for e := range i.rows {
			if ctx.Err() == nil {
				_ = x.putRuns(e) // best effort: List looks at the recording where the row is missing or old
			}
		}
	}()
	return i
}

func (i *indexer) putEntry(e entry) {
	for {
		select {
		case i.rows <- e:
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
