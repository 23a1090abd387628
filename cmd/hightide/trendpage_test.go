package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"testing"
)

// TestTrendOverHTTP: the API says of a trend what the command says.
func TestTrendOverHTTP(t *testing.T) {
	s := newSession(t)
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", args...)
		c.Dir = s.dir
		c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
			"GIT_COMMITTER_EMAIL=a@b")
		if out, err := c.CombinedOutput(); err != nil {
			t.Skipf("git %q: %v %s", args, err, out)
		}
	}
	git("init", "-q", ".")
	write(t, s.dir, ".gitignore", "data\n")
	for _, text := range []string{"one", "two"} {
		write(t, s.dir, "work.txt", text)
		git("add", "work.txt", ".gitignore")
		git("commit", "-qm", text)
		for range 2 {
			if out, err := s.command("run", "--quiet", "--tag", "project=ranker", "--", pythonPath(t), "-c",
				"import time; held = b'x' * (20 << 20); time.sleep(0.3)").CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
		}
	}
	told, err := s.command("trend", "--tag", "project=ranker", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	status, text := s.serve().get("/api/v1/trend?tag=project%3Dranker")
	var page, command map[string]any
	if json.Unmarshal([]byte(text), &page) != nil || json.Unmarshal(told, &command) != nil || status != 200 {
		t.Fatalf("%d %s\n%s", status, text, told)
	}
	delete(page, "$schema")
	if commits, _ := page["commits"].([]any); len(commits) != 2 || !reflect.DeepEqual(page, command) {
		t.Errorf("the page gets %s\nthe command %s", text, told)
	}
}
