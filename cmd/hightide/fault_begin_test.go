package main

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"
)

// TestKilledAtTheBeginning kills hightide in the moments between making a run and its first second of recording. What
// is there afterwards is a run that says of what, or none.
func TestKilledAtTheBeginning(t *testing.T) {
	s := newSession(t)
	seen := map[string]bool{}
	for round := range 12 {
		wanted := filepath.Join(s.dir, "data", "runs", "*", []string{"", "run.hightide"}[round%2])
		c := s.command("run", "--quiet", "--name", "first", "--", "sleep", "0.2")
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		for fresh := false; !fresh; time.Sleep(100 * time.Microsecond) {
			found, _ := filepath.Glob(wanted)
			for _, path := range found {
				fresh = fresh || !seen[path]
				seen[path] = true
			}
		}
		_ = c.Process.Kill()
		_ = c.Wait()
		found, _ := filepath.Glob(filepath.Join(s.dir, "data", "runs", "*"))
		for _, dir := range found {
			seen[dir], seen[filepath.Join(dir, "run.hightide")] = true, true
		}
	}
	text, err := s.command("ls", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Runs []struct {
			ID      string
			Name    string
			Verb    string
			Command []string
			State   string
			Damaged bool
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	for _, run := range list.Runs {
		if run.Name != "first" || run.Verb != "run" || len(run.Command) != 2 || run.Damaged || run.State == "running" {
			t.Errorf("%+v", run)
		}
		if out, err := s.command("report", run.ID).CombinedOutput(); err != nil {
			t.Errorf("report %s: %v\n%s", run.ID, err, out)
		}
	}
	t.Logf("%d of 12 were runs", len(list.Runs))
}
