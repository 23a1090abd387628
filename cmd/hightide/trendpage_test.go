package main

import (
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

// TestTrendDoors: the API and MCP say of a trend, and of the comment for a pull request, what the command says.
func TestTrendDoors(t *testing.T) {
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
	server, ask := s.serve(), assistantOf(t, s)
	for _, of := range []struct{ name, tool, path string }{
		{"trend", "trend", "/trend?"},
		{"trend --comment", "comment", "/trend/comment?"},
	} {
		told, err := s.command(append(strings.Fields(of.name), "--tag", "project=ranker", "--json")...).Output()
		if err != nil {
			t.Fatal(err)
		}
		status, text := server.get("/api/v1" + of.path + "tag=project%3Dranker")
		command, page := object(t, string(told)), object(t, text)
		delete(page, "$schema")
		assistant := ask(of.tool, map[string]any{"tags": map[string]any{"project": "ranker"}})
		if of.tool == "comment" { // the page's has links to it
			for _, text := range []map[string]any{page, command, assistant} {
				if said, _ := text["markdown"].(string); !strings.HasPrefix(said, "**Memory: ") {
					t.Errorf("a pull request is told %v", text)
				}
			}
			delete(page, "markdown")
			if assistant["markdown"] != command["markdown"] {
				t.Errorf("MCP says %v, the command %v", assistant["markdown"], command["markdown"])
			}
			delete(command, "markdown")
			delete(assistant, "markdown")
		} else if commits, _ := command["commits"].([]any); len(commits) != 2 {
			t.Errorf("commits: %s", told)
		}
		if status != 200 || !reflect.DeepEqual(page, command) || !reflect.DeepEqual(assistant, command) {
			t.Errorf("%s: %d, the page gets %v\nthe command %v\nMCP %v", of.name, status, page, command, assistant)
		}
	}
	newest := ask("trend", map[string]any{"limit": 1})
	if commits, _ := newest["commits"].([]any); len(commits) != 1 || newest["earlier_commits"] != 1.0 {
		t.Errorf("the newest commit alone: %v", newest)
	}
}
