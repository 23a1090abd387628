package trend

import (
	"database/sql"
	"os"
	"slices"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"hightide/internal/store"
	"hightide/internal/testkit"
)

// manyCommits enters n runs, of which each 25th is of project ranker: two of each commit.
const manyCommits = `INSERT INTO recorded (id, name, verb, label, command, host, state, start_wall_ns, duration_ns,
	ended_kind, ended_text, figure_bytes, figure_error_bytes, figure_what, figure_source, figure_label, figure_at_least,
	exit_code, stopped, steps, processes, ooms, snapshots, dropped, findings, size_bytes, damaged, text, git_commit)
	SELECT 'r' || lpad(i::text, 9, '0'), 'train', 'run', 'measured', '["python","train.py"]', 'host', 'finished',
	1.7e18::bigint + i * 259200000000, 60000000000, 'done', 'exit 0', 4000000000 + i % 7 * 1000, 0, 'PSS', 'tree_pss',
	'measured', FALSE, 0, FALSE, 100, 1, 0, 0, 0, 2, 100000, FALSE, 'train', md5((i / 50)::text) || '00000000'
	FROM generate_series(1, $1::bigint) AS i`

// TestTrendOfManyCommits: a trend of 2,000 commits among 100,000 runs (with HIGHTIDE_TEAM_RUNS; else of 20 among 1,000)
// is there within 200 ms with how its checks ended, on a machine that does nothing else. It says how long processors were busy, too, which another
// program changes less.
func TestTrendOfManyCommits(t *testing.T) {
	runs := 1000
	if os.Getenv("HIGHTIDE_TEAM_RUNS") != "" {
		runs = 100_000
	}
	server := testkit.StartPostgres(t)
	address := server.New(t)
	team, err := store.OpenTeam(address, "file://"+t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	if _, err := team.Acts(t.Context(), 0, 1); err != nil { // makes the schema
		t.Fatal(err)
	}
	db, err := sql.Open("postgres", address)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{manyCommits, "INSERT INTO tags SELECT id, 'project', CASE WHEN substr(id, 2)::bigint % 25 = 0 " +
		"THEN 'ranker' ELSE 'other' END FROM recorded WHERE $1::bigint > 0",
		"INSERT INTO statuses (project, commit, context, state, description, target_url) SELECT CASE WHEN of < 2 THEN 'ranker' " +
			"ELSE 'other' END, git_commit, 'check ' || of, 'success', 'host is 4 GiB', '' FROM (SELECT DISTINCT git_commit FROM recorded " +
			"WHERE $1::bigint > 0) AS runs, generate_series(0, 20) AS of",
		// twenty lines of each run, as reports have them
		"INSERT INTO places SELECT id, of, start_wall_ns, '', '', '/home/anna/f' || of || '.py', 'f' || of || '.py', 12, " +
			"'forward', 1000000 * of + mod(hashtext(id), 100), 10 FROM recorded, generate_series(1, 20) AS of " +
			"WHERE $1::bigint > 0 ORDER BY id, of",
		"UPDATE recorded SET figures = '{\"growth\": {\"bytes\": 5, \"what\": \"growth\", \"source\": \"rss\", " +
			"\"label\": \"estimated\"}, \"unlisted\": {\"bytes\": 9, \"what\": \"unlisted\", \"source\": \"heap.live\", " +
			"\"label\": \"sampled\"}}' WHERE $1::bigint > 0", "ANALYZE"} {
		args := []any{runs}
		if text == "ANALYZE" {
			args = nil
		}
		if _, err := db.ExecContext(t.Context(), text, args...); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []Measure{"f7.py:forward", Growth, Peak} {
		trendOfMany(t, team, server, runs, of)
	}
}

// trendOfMany asks for it 20 times, once among few runs.
func trendOfMany(t *testing.T, team *store.Team, server *testkit.Postgres, runs int, measure Measure) {
	large := runs > 1000
	var took []time.Duration
	theirs, ours := server.CPU(t), testkit.OwnCPU(t)
	for range 20 {
		began := time.Now()
		all, err := team.List(measure.Filter(store.Filter{Tags: map[string]string{"project": "ranker"}}))
		of := Of(all, measure)
		checks, wrong := team.Statuses(t.Context(), store.Scope{All: true}, "ranker", of.Hashes()...)
		of.Tell(checks)
		took = append(took, time.Since(began))
		if err != nil || wrong != nil || len(of.Commits[0].Statuses) != 2 || len(of.Commits) != runs/50+1 || len(all) != runs/25 || of.Unknown != "" {
			t.Fatalf("%d commits of %d runs, %q, left %q, %v", len(of.Commits), len(all), of.Unknown, of.Left, err)
		}
		if !large {
			break
		}
	}
	slices.Sort(took)
	t.Logf("%s of %d runs: median %v, 95 %% within %v; on processors %v of PostgreSQL and %v of ours each", measure, runs,
		took[len(took)/2], took[len(took)*95/100], (server.CPU(t)-theirs)/time.Duration(len(took)),
		(testkit.OwnCPU(t)-ours)/time.Duration(len(took)))
	if large && took[len(took)*95/100] > 200*time.Millisecond {
		t.Errorf("%s: 95 %% within %v", measure, took[len(took)*95/100])
	}
}
