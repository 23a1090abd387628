package store

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// onlyAdds are the statements of migrations that a server of the version before, which runs on, does not notice: what
// it reads stays, and what it writes is still taken.
var onlyAdds = []*regexp.Regexp{
	regexp.MustCompile(`^CREATE (TABLE|INDEX|UNIQUE INDEX|VIEW|OR REPLACE VIEW|EXTENSION|FUNCTION) `),
	regexp.MustCompile(`^(COMMENT ON|UPDATE|INSERT INTO) `),
	// without a default, an older server's rows would be refused
	regexp.MustCompile(`^ALTER TABLE \w+( ADD COLUMN \w+ \w+( NOT NULL DEFAULT [^,]+)?,?)+$`),
}

// suited are the begins of others that it does not notice.
var suited = []string{
	"ALTER TABLE keys ADD COLUMN account TEXT NOT NULL DEFAULT '', DROP CONSTRAINT keys_may_check, ADD CONSTRAINT " +
		"keys_may_check CHECK (may IN ('read', 'push', 'exec', 'admin'))", // which allows more than before
	"DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS pg_trgm; CREATE INDEX recorded_text ON recorded USING gin",
}

// TestMigrationsOnlyAdd: an old server goes on while a new one brings the schema forward. Who writes a migration that
// it could not live with says so in docs/changes before, and here.
func TestMigrationsOnlyAdd(t *testing.T) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	must(t, err)
	used := 0
	for i, file := range files {
		text, err := migrationFiles.ReadFile(file)
		must(t, err)
		for _, one := range statements(string(text)) {
			adds := slices.ContainsFunc(onlyAdds, func(r *regexp.Regexp) bool { return r.MatchString(one) })
			if slices.ContainsFunc(suited, func(begin string) bool { return strings.HasPrefix(one, begin) }) {
				used++
			} else if !adds && i > 0 { // the first one makes the schema
				t.Errorf("%s: an older server may not live with %q", file, one)
			}
		}
	}
	if len(files) < 15 || used != len(suited) {
		t.Errorf("%d migrations, %d of %d exceptions", len(files), used, len(suited))
	}
	for _, wrong := range []string{"DROP TABLE runs", "ALTER TABLE recorded DROP COLUMN name",
		"ALTER TABLE recorded ADD COLUMN next TEXT NOT NULL", "ALTER TABLE recorded RENAME COLUMN a TO b",
		"ALTER TABLE recorded ALTER COLUMN name TYPE BIGINT"} {
		if slices.ContainsFunc(onlyAdds, func(r *regexp.Regexp) bool { return r.MatchString(wrong) }) {
			t.Errorf("%q passes for one that only adds", wrong)
		}
	}
}

var (
	comment  = regexp.MustCompile(`(?m)--.*$`)
	wholes   = regexp.MustCompile(`(?s)-- \+goose StatementBegin(.*?)-- \+goose StatementEnd`)
	ofSimple = regexp.MustCompile(`(?m);\s*$`)
)

// statements are those of a migration, each with one space between its words.
func statements(text string) (all []string) {
	parts := ofSimple.Split(comment.ReplaceAllString(wholes.ReplaceAllString(text, ""), ""), -1)
	for _, whole := range wholes.FindAllStringSubmatch(text, -1) {
		parts = append(parts, whole[1])
	}
	for _, part := range parts {
		if one := strings.Join(strings.Fields(part), " "); one != "" {
			all = append(all, one)
		}
	}
	return all
}
