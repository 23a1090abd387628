package store

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"
	"github.com/pressly/goose/v3"
	goosing "github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// versionTable says which migrations a database has had.
const versionTable = "hightide_version"

// postgres is the database of a team, opened when it is first used.
type postgres struct {
	url  *url.URL
	gate chan struct{} // is full while somebody uses what follows
	db   *sql.DB       // nil: it could not be used yet, and is tried again
}

// connectSeconds is how long a server may take to answer, unless the address says otherwise.
const connectSeconds = "5"

func newPostgres(address string) (*postgres, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, &Error{Kind: ErrPlace, Text: "the address of the store cannot be read",
			Hint: "write postgres://USER@HOST/DATABASE; the password may stand in PGPASSWORD or ~/.pgpass"}
	}
	query := u.Query()
	for key, value := range map[string]string{"connect_timeout": connectSeconds, "sslmode": "prefer",
		"application_name": "hightide"} {
		if !query.Has(key) {
			query.Set(key, value)
		}
	}
	u.RawQuery = query.Encode()
	return &postgres{url: u, gate: make(chan struct{}, 1)}, nil
}

// name is what people may see of the address.
func (p *postgres) name() string { return Shown(p.url.String()) }

// open returns the database, with the newest schema.
func (p *postgres) open(ctx context.Context) (*sql.DB, error) {
	select {
	case p.gate <- struct{}{}:
	case <-ctx.Done():
		return nil, p.failed(ctx.Err())
	}
	defer func() { <-p.gate }()
	if p.db != nil {
		return p.db, nil
	}
	db := sql.OpenDB(connector{address: p.url.String()})
	db.SetMaxOpenConns(8)
	if err := p.migrate(ctx, db); err != nil {
		db.Close()
		return nil, p.failed(err)
	}
	p.db = db
	return db, nil
}

// migrate brings the schema to the newest version, one program at a time.
func (p *postgres) migrate(ctx context.Context, db *sql.DB) error {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	all, err := fs.ReadDir(files, ".")
	if err != nil {
		return err
	}
	newest := int64(len(all)) // they are numbered from 1
	var version sql.NullInt64
	soon, cancel := context.WithTimeout(ctx, patience) // the migrations may take longer
	defer cancel()
	err = db.QueryRowContext(soon, "SELECT max(version_id) FROM "+versionTable+" WHERE is_applied").Scan(&version)
	var said *pq.Error
	switch {
	case errors.As(err, &said) && said.Code.Name() == "undefined_table":
	case err != nil:
		return err
	case version.Int64 == newest:
		return nil
	case version.Int64 > newest:
		return &Error{Kind: ErrNewer, Text: fmt.Sprintf("the store %s has schema %d and this hightide knows up to %d",
			p.name(), version.Int64, newest), Hint: "install a newer hightide"}
	}
	return p.forward(ctx, files)
}

// lockPatience is how long a migration waits for a table that others use. Whoever reads the table meanwhile waits
// behind it, so it gives way then and comes again: a reader of an older server is held up no longer.
const lockPatience = time.Second

// forward makes the migrations that are left, each whole or not at all.
func (p *postgres) forward(ctx context.Context, files fs.FS) error {
	limit := fmt.Sprintf("SET lock_timeout = %d", lockPatience.Milliseconds())
	db := sql.OpenDB(connector{p.url.String(), []string{limit}})
	defer db.Close()
	locker, err := goosing.NewPostgresSessionLocker()
	if err != nil {
		return err
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(versionTable),
		goose.WithSessionLocker(locker), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return err
	}
	for {
		_, err = provider.Up(ctx)
		var said *pq.Error
		if !errors.As(err, &said) || said.Code.Name() != "lock_not_available" {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(lockPatience / 2):
		}
	}
}

// failed is an error of the database with advice.
func (p *postgres) failed(err error) error {
	var typed *Error
	if err == nil || errors.As(err, &typed) {
		return err
	}
	return &Error{Kind: ErrPlace, Text: "cannot use the store " + p.name(), Err: err,
		Hint: "is its server up, and is the address of --store right? Runs are kept on this machine and sent later"}
}

func (p *postgres) close() error {
	p.gate <- struct{}{}
	defer func() { <-p.gate }()
	if p.db == nil {
		return nil
	}
	err := p.db.Close()
	p.db = nil
	return err
}

// Shown is a location as people may see it: without user, password and settings of a server.
func Shown(location string) string {
	if u, err := url.Parse(location); err == nil && strings.Contains(location, "://") {
		return (&url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path}).String()
	}
	return location
}

// change makes all of the changes, or none.
func (p *postgres) change(ctx context.Context, work func(*session) error) error {
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*patience) // work may send an object meanwhile
	defer cancel()
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return p.failed(err)
	}
	defer tx.Rollback()
	if err := work(&session{ctx, tx}); err != nil {
		return p.failed(err)
	}
	return p.failed(tx.Commit())
}

// look reads.
func (p *postgres) look(ctx context.Context, work func(*session) error) error {
	db, err := p.open(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.failed(work(&session{ctx, db}))
}

// session is a database or a transaction of it, with ? for values as SQLite has it.
type session struct {
	ctx context.Context
	of  interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
		QueryContext(context.Context, string, ...any) (*sql.Rows, error)
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}
}

// exec returns how many rows it changed.
func (s *session) exec(text string, args ...any) (int64, error) {
	result, err := s.of.ExecContext(s.ctx, numbered(text), plain(args)...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s *session) row(text string, args ...any) *sql.Row {
	return s.of.QueryRowContext(s.ctx, numbered(text), plain(args)...)
}

func (s *session) query(text string, args []any, take func(*sql.Rows) error) error {
	rows, err := s.of.QueryContext(s.ctx, numbered(text), plain(args)...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := take(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// numbered writes the places of values as PostgreSQL does. No query has a question mark elsewhere.
func numbered(text string) string {
	var b strings.Builder
	for n := 1; ; n++ {
		before, after, found := strings.Cut(text, "?")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("$" + strconv.Itoa(n))
		text = after
	}
}

// plain are values that PostgreSQL takes: its texts are UTF-8 without NUL.
func plain(args []any) []any {
	for i, arg := range args {
		switch arg := arg.(type) {
		case string:
			args[i] = storable(arg)
		case *string:
			args[i] = storable(*arg)
		}
	}
	return args
}

// storable is a text as PostgreSQL takes it.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}
