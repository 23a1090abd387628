package store

import (
	"database/sql"
	"strings"
	"testing"

	"hightide/internal/testkit"
)

// TestTeamWords: words are found by an index where the owner of the database, who need be nobody else, opens it, and
// without one where somebody does who may make no extension.
func TestTeamWords(t *testing.T) {
	server := testkit.StartPostgres(t)
	for of, want := range map[string]bool{"OWNER TO plain": true, "OWNER TO hightide": false} {
		address := server.New(t)
		db, err := sql.Open("postgres", address)
		must(t, err)
		defer db.Close()
		var name string
		must(t, db.QueryRow("SELECT current_database()").Scan(&name))
		for _, does := range []string{
			"DO $$ BEGIN CREATE ROLE plain LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$",
			"ALTER DATABASE " + name + " " + of, "GRANT ALL ON SCHEMA public TO plain"} {
			_, err = db.Exec(does)
			must(t, err)
		}
		s, _ := machine(t, strings.Replace(address, "hightide@", "plain@", 1), t.TempDir(), t.TempDir())
		id, err := noted(t, s, 1)
		must(t, err)
		for text, found := range map[string]int{id[3:]: 1, "nowhere": 0, strings.ToUpper(id[:2]): 1} {
			if runs, err := s.List(Filter{Text: text}); err != nil || len(runs) != found {
				t.Errorf("%s, %q: %d runs, %v", of, text, len(runs), err)
			}
		}
		var has bool
		must(t, db.QueryRow("SELECT EXISTS (SELECT 1 FROM pg_indexes WHERE indexname = 'recorded_text')").Scan(&has))
		if has != want {
			t.Errorf("%s: an index of words %v, want %v", of, has, want)
		}
	}
}
