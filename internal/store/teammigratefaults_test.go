package store

import (
	"bytes"
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/pressly/goose/v3"

	"hightide/internal/testkit"
)

// migrateOnce is a program that brings a database forward.
func migrateOnce(database string) {
	s, err := OpenTeam(database, "file:///tmp", os.Getenv("HIGHTIDE_TEST_OUTBOX"))
	if err == nil {
		_, err = s.List(Filter{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// migrateTo brings a database to a version of before, with some runs.
func migrateTo(t *testing.T, db *sql.DB, version int64) {
	t.Helper()
	files, err := fs.Sub(migrationFiles, "migrations")
	must(t, err)
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithTableName(versionTable))
	must(t, err)
	_, err = provider.UpTo(t.Context(), version)
	must(t, err)
	_, err = db.Exec(numbered(manyRuns), 3)
	must(t, err)
}

// until waits for a state.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("in vain: " + what)
		}
	}
}

// TestTeamMigrationFaults: whatever fails in the middle of the migrations, who opens the database next goes on with them,
// and it has all runs.
func TestTeamMigrationFaults(t *testing.T) {
	disk := t.TempDir()
	full := ""
	server := testkit.StartPostgresOn(t, func(dir string) {
		disk = dir
		if err := testkit.MountSmall(t, dir, "300m"); err != nil {
			t.Logf("a full disk is left out: %v", err)
			return
		}
		full = "the disk is full"
	})
	wire := testkit.NewWire(t, "unix", server.Socket())
	var child *exec.Cmd
	for name, fault := range map[string]struct{ strike, mend func() }{
		"who migrates is killed":   {func() { _ = child.Process.Kill(); _ = child.Wait() }, func() {}},
		"the database is killed":   {func() { server.Kill(t) }, func() { server.Start(t) }},
		"the network is cut":       {wire.Cut, wire.Mend},
		"the network falls silent": {wire.Silence, wire.Mend},
		full: {func() { testkit.Fill(t, disk) }, func() {
			testkit.Empty(t, disk)
			server.Restart(t)
		}},
	} {
		if name == "" {
			continue
		}
		for n := range testkit.Faults(1) {
			t.Run(fmt.Sprint(name, " ", n), func(t *testing.T) {
				database := server.New(t)
				defer server.Drop(t, database)
				db, err := sql.Open("postgres", database)
				must(t, err)
				defer db.Close()
				migrateTo(t, db, 2)
				holder, err := db.Begin() // the eighth changes a table that somebody reads: it waits, in the middle
				must(t, err)
				_, err = holder.Exec("LOCK TABLE recorded IN ACCESS SHARE MODE")
				must(t, err)
				said := new(bytes.Buffer)
				child = exec.Command(os.Args[0])
				child.Env = append(os.Environ(), "HIGHTIDE_TEST_MIGRATOR="+server.Over(database, wire), "HIGHTIDE_TEST_OUTBOX="+t.TempDir())
				child.Stderr = said
				must(t, child.Start())
				until(t, "a migration that waits for a lock", func() bool {
					waits := false
					_ = db.QueryRow("SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND " +
						"wait_event_type = 'Lock')").Scan(&waits)
					return waits
				})
				fault.strike()
				_ = holder.Rollback()
				fault.mend()
				if child.ProcessState == nil {
					_ = child.Wait() // it has its error, or has done it
				}
				migrated(t, server.Over(database, wire), db)
			})
		}
	}
}

// migrated checks that a database is of the newest version and has its runs.
func migrated(t *testing.T, address string, db *sql.DB) {
	t.Helper()
	s, _ := machine(t, address, t.TempDir(), t.TempDir())
	until(t, "the runs of before", func() bool {
		runs, err := s.List(Filter{})
		return err == nil && len(runs) == 3
	})
	id, err := noted(t, s, 1)
	must(t, err)
	isThere(t, s, id, 1)
	files, err := migrationFiles.ReadDir("migrations")
	must(t, err)
	var each, all int
	must(t, db.QueryRow("SELECT count(*), count(DISTINCT version_id) FROM "+versionTable+" WHERE version_id > 0").Scan(&all, &each))
	if all != len(files) || each != len(files) {
		t.Errorf("%d migrations, %d entries of %d", len(files), all, each)
	}
}
