package store

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// TestStatusesGoWithTheirRuns: what was said of a commit goes with the last run of it in its project. Of a commit that no
// run came of it goes after 30 days. Other projects' words on the same commit stay, as do those of commits with runs.
func TestStatusesGoWithTheirRuns(t *testing.T) {
	team, err := OpenTeam(testkit.StartPostgres(t).New(t), "file://"+t.TempDir(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer team.Close()
	commit, other := strings.Repeat("a", 40), strings.Repeat("b", 40)
	record := func(project, hash string) string {
		t.Helper()
		w, err := team.Create(mem.RunInfo{Verb: "run", Label: mem.Measured, Command: []string{"x"}, StartMono: 1, StartWall: 1,
			Git: &mem.Git{Commit: hash}, Tags: map[string]string{ProjectTag: project}})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(mem.End{Time: 2, ExitCode: mem.Some(0)}); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return w.Info().ID
	}
	first, second := record("ranker", commit), record("ranker", strings.ToUpper(commit))
	record("ranker", other)
	for _, said := range [][2]string{{"ranker", commit}, {"search", commit}, {"ranker", other}, {"ranker", strings.Repeat("c", 40)}} {
		if _, err := team.SetStatus(t.Context(), said[1], CommitStatus{Project: said[0], Context: "x", State: StatusSuccess}); err != nil {
			t.Fatal(err)
		}
	}
	has := func(when string, want ...string) {
		t.Helper()
		all, err := team.Statuses(t.Context(), Scope{All: true}, "")
		var got []string
		for hash, of := range all {
			for _, c := range of {
				got = append(got, c.Project+" "+hash[:1])
			}
		}
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %v %v; want %v", when, got, err, want)
		}
		for _, one := range want {
			if !strings.Contains(strings.Join(got, ","), one) {
				t.Errorf("%s: %v; want %v", when, got, want)
			}
		}
	}
	if two, err := team.Statuses(t.Context(), Scope{All: true}, "ranker", commit, other); err != nil || len(two) != 2 {
		t.Errorf("of two commits: %v %v", two, err)
	}
	if err := team.Remove(first); err != nil {
		t.Fatal(err)
	}
	has("another run of the commit is left", "ranker a", "search a", "ranker b", "ranker c")
	if err := team.Remove(second); err != nil {
		t.Fatal(err)
	}
	has("the last run of the commit is gone", "search a", "ranker b", "ranker c")
	if err := team.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	has("what is young waits for its run", "search a", "ranker b", "ranker c")
	if err := team.db.change(t.Context(), func(s *session) error {
		_, err := s.exec("UPDATE statuses SET updated = now() - interval '31 days'")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := team.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	has("no run came of it", "ranker b")
}
