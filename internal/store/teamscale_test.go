package store

import (
	"database/sql"
	"os"
	"slices"
	"testing"
	"time"

	"hightide/internal/testkit"
)

// scaleRuns is how many runs TestTeamOfManyRuns has: HIGHTIDE_TEAM_RUNS=100000 measures those of a large team.
const scaleRuns = "HIGHTIDE_TEAM_RUNS"

// manyRuns enters n runs of 300 days, of 40 names and 50 projects. One of them is called "needle".
const manyRuns = `INSERT INTO recorded (id, name, verb, label, command, host, state, start_wall_ns, duration_ns,
	ended_kind, ended_text, figure_bytes, figure_error_bytes, figure_what, figure_source, figure_label, figure_at_least,
	exit_code, signal, stopped, steps, processes, peak_host_rss_bytes, peak_host_pss_bytes, peak_device_used_bytes,
	peak_allocated_bytes, peak_reserved_bytes, ooms, snapshots, dropped, findings, size_bytes, damaged, text)
	SELECT 'r' || lpad(i::text, 9, '0'),
	CASE WHEN i = 77 THEN 'needle' ELSE 'train-' || i % 40 END, 'run', 'measured', '["python","train.py","--lr","' || i || '"]',
	'host-' || i % 100, CASE WHEN i % 11 = 0 THEN 'cut off' ELSE 'finished' END, 1.7e18::bigint + i * 259200000000,
	60000000000, 'done', 'exit 0', i::bigint * 1000003 % 80000000000, 0, 'RSS', 'tree_rss', 'measured', FALSE, 0, NULL, FALSE,
	100, 1, 1, NULL, NULL, NULL, NULL, 0, 0, 0, 2, 100000, FALSE,
	lower('r' || lpad(i::text, 9, '0') || E'\n' || CASE WHEN i = 77 THEN 'needle' ELSE 'train-' || i % 40 END ||
	E'\n' || 'python train.py --lr ' || i)
	FROM generate_series(1, CAST(? AS bigint)) AS i`

// manyPlaces enters 50 findings and lines of each run: five findings, and lines of a file that all have and of 500
// others. An "oom" is in one run of a hundred, "cycles" and needle.py in one alone.
const manyPlaces = `INSERT INTO places (run, at, start_wall_ns, kind, severity, file, base, line, function, bytes)
	SELECT id, at, start_wall_ns, CASE WHEN at = 0 THEN 'leak' WHEN at = 1 THEN 'fragmentation' WHEN at = 2 THEN 'growth'
	WHEN at = 3 AND i % 100 = 0 THEN 'oom' WHEN at = 4 AND i = 77 THEN 'cycles' WHEN at < 5 THEN 'gap' ELSE '' END,
	CASE WHEN at < 5 THEN 'warning' ELSE '' END, '/srv/jobs/p' || i % 50 || '/' || base, base,
	(i * 31 + at * 17) % 400 + 1, 'f' || at, i * 1000 + at
	FROM (SELECT id, start_wall_ns, i, at, CASE WHEN i = 77 AND at = 9 THEN 'needle.py' WHEN at % 3 = 0 THEN 'train.py'
	ELSE 'module_' || (i * 7 + at) % 500 || '.py' END AS base
	FROM (SELECT id, start_wall_ns, substr(id, 2)::bigint AS i FROM recorded) AS r, generate_series(0, 49) AS at
	WHERE i > CAST(? AS bigint) AND i <= CAST(? AS bigint)) AS p`

// TestTeamOfManyRuns: lists, searches and filters of a large team are quick, and give what they ask for. With 100,000 runs there are
// 5 million findings and lines.
func TestTeamOfManyRuns(t *testing.T) {
	runs, large := 2000, os.Getenv(scaleRuns) != ""
	if large {
		runs = 100_000
	}
	server := testkit.StartPostgres(t)
	s, _ := machine(t, server.New(t), t.TempDir(), t.TempDir())
	must(t, s.db.change(t.Context(), func(s *session) error {
		if _, err := s.exec(manyRuns, runs); err != nil {
			return err
		}
		// one in ten was recorded before findings were kept
		if _, err := s.exec("UPDATE recorded SET places = 50 WHERE substr(id, 10) <> '9'"); err != nil {
			return err
		}
		_, err := s.exec("INSERT INTO tags SELECT id, 'project', 'p' || substr(id, 9) FROM recorded")
		return err
	}))
	for at := 0; at < runs; at += 5000 {
		must(t, s.db.change(t.Context(), func(s *session) error { _, err := s.exec(manyPlaces, at, at+5000); return err }))
	}
	db, err := sql.Open("postgres", s.db.url.String()) // it may take longer than a question of the store
	must(t, err)
	defer db.Close()
	_, err = db.ExecContext(t.Context(), "VACUUM FULL recorded")
	must(t, err)
	_, err = db.ExecContext(t.Context(), "VACUUM ANALYZE")
	must(t, err)
	for _, test := range []struct {
		name   string
		filter Filter
		want   int // the most that are given; below 0: at least one
	}{
		{"the newest", Filter{Limit: 200}, 200},
		{"the next page", Filter{Limit: 200, Before: "r000001000"}, 200},
		{"a word in one run", Filter{Limit: 200, Text: "needle"}, 1},
		{"a word in none", Filter{Limit: 200, Text: "haystack"}, 0},
		{"a word in all", Filter{Limit: 200, Text: "TRAIN.py"}, 200},
		{"a name", Filter{Limit: 40, Name: "train-7"}, 40},
		{"a state", Filter{Limit: 100, State: CutOff}, 100},
		{"a tag", Filter{Limit: 20, Tags: map[string]string{"project": "p42"}}, 20},
		{"the beginning of an id", Filter{Ref: "r00000077"}, 10},
		{"a kind in all", Filter{Limit: 200, Finding: "leak"}, 200},
		{"a kind in few", Filter{Limit: 20, Finding: "oom"}, 20},
		{"a kind in one", Filter{Limit: 200, Finding: "cycles"}, 1},
		{"a kind in none", Filter{Limit: 200, Finding: "copies"}, 0},
		{"a file in all", Filter{Limit: 200, Line: Spot{File: "train.py"}}, 200},
		{"a file in some", Filter{Limit: 100, Line: Spot{File: "module_77.py"}}, 100},
		{"a file in one", Filter{Limit: 200, Line: Spot{File: "needle.py"}}, 1},
		{"a file in none", Filter{Limit: 200, Line: Spot{File: "haystack.py"}}, 0},
		{"a line", Filter{Limit: 50, Line: Spot{File: "train.py", Line: 77}}, 50},
		{"a line of a folder", Filter{Limit: 4, Line: Spot{File: "p7/train.py", Line: 77}}, 4},
		{"a line in none", Filter{Limit: 200, Line: Spot{File: "train.py", Line: 401}}, 0},
		{"a kind at a line", Filter{Limit: 5, Finding: "leak", Line: Spot{File: "train.py", Line: 77}}, 5},
		{"a kind in a project", Filter{Limit: 20, Finding: "leak", Projects: []string{"p42"}}, 20},
		{"a line of a name", Filter{Limit: 2, Name: "train-5", Line: Spot{File: "train.py", Line: 77}}, 2},
		{"a kind with a word", Filter{Limit: 200, Finding: "oom", Text: "haystack"}, 0},
		{"a word and a kind in all", Filter{Limit: 200, Finding: "leak", Text: "needle"}, 1},
		{"what is not known", Filter{Limit: 200, Unasked: true}, 200},
		{"one id", Filter{IDs: []string{"r000000077"}}, 1},
	} {
		var took []time.Duration
		for range 40 {
			began := time.Now()
			found, err := s.List(test.filter)
			took = append(took, time.Since(began))
			if err != nil || len(found) != test.want {
				t.Fatalf("%s: %d runs, want %d, %v", test.name, len(found), test.want, err)
			}
			if !large {
				break
			}
		}
		slices.Sort(took)
		t.Logf("%-26s median %v, 95 %% within %v", test.name, took[len(took)/2], took[len(took)*95/100])
		if large && took[len(took)*95/100] > 100*time.Millisecond {
			t.Errorf("%s: 95 %% within %v", test.name, took[len(took)*95/100])
		}
	}
}
