package store

import (
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

// TestTeamOfManyRuns: lists, searches and filters of a large team are quick, and give what they ask for.
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
		_, err := s.exec("INSERT INTO tags SELECT id, 'project', 'p' || substr(id, 9) FROM recorded")
		return err
	}))
	must(t, s.db.look(t.Context(), func(s *session) error { _, err := s.exec("ANALYZE"); return err }))
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
		t.Logf("%-24s median %v, 95 %% within %v", test.name, took[len(took)/2], took[len(took)*95/100])
		if large && took[len(took)*95/100] > 100*time.Millisecond {
			t.Errorf("%s: 95 %% within %v", test.name, took[len(took)*95/100])
		}
	}
}
