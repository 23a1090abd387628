package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"hightide/internal/trend"
)

// TestCommitStatus: a job of CI runs a program, checks its budgets and says so of the commit: the server has it in the
// form of hosts of repositories, the trend on its point, and the comment and every door say the same. Who sees the project
// alone says nothing, and who does not see it learns nothing.
func TestCommitStatus(t *testing.T) {
	s := startTeam(t, teamFile)
	anna, bob, carol := s.machine(s.key("anna", "--may", "push")), s.machine(s.key("bob", "--may", "push")),
		s.machine(s.key("carol", "--may", "push"))
	w := &walk{faultyTeam: &faultyTeam{teamSession: s}}
	w.git(anna, "init", "-q", ".")
	w.commit(anna, "held = bytearray(40 << 20)\n", "a program")
	to := []string{"--server", s.served.at(""), "--project", "ranker"}
	run := append([]string{"run", "--quiet", "--push", "--name", "checked"}, to...)
	anna.both(append(run, "--", pythonPath(t), "train.py")...)
	tight := write(t, t.TempDir(), "memory.yaml", "host: 1MiB\ngrowth: 1TiB\n")
	check := func(m *teamSession, args ...string) (string, int) {
		c := m.command(append([]string{"check", "--budget", tight, "checked"}, args...)...)
		out, _ := c.CombinedOutput()
		return string(out), c.ProcessState.ExitCode()
	}
	file := filepath.Join(t.TempDir(), "status.json")
	if out, code := check(anna, append(to, "--status", file)...); code != 3 { // of growth nothing is known
		t.Fatalf("%d %s", code, out)
	}
	text, err := os.ReadFile(file)
	var sent map[string]string
	if err != nil || json.Unmarshal(text, &sent) != nil || sent["state"] != "failure" || sent["context"] != "hightide" ||
		!strings.HasPrefix(sent["description"], "host is ") || !strings.Contains(sent["description"], "over its budget of 1.00 MiB") ||
		sent["target_url"] != s.served.at("")+"/trend?tag=project%3Dranker" || len(sent) != 4 {
		t.Errorf("%v %s", err, text)
	}
	s.checksOf(anna, sent["description"])
	hash := strings.Repeat("a", 40)
	for _, other := range []struct {
		m    *teamSession
		want string
	}{{bob, "may not do that"}, {carol, `there is no project "ranker"`}} {
		other.m.both("run", "--quiet", "--name", "checked", "--", pythonPath(t), "-c", "held = bytearray(40 << 20)")
		if out, code := check(other.m, append(to, "--commit", hash)...); code == 0 || !strings.Contains(out, other.want) {
			t.Errorf("%d %s; want %s", code, out, other.want)
		}
	}
	if out, code := check(bob, to...); code != 2 || !strings.Contains(out, "--commit") {
		t.Errorf("a run of no commit: %d %s", code, out)
	}
	out, code := check(anna, append(to, "--commit", "abc")...)
	if code != 2 || !strings.Contains(out, "is no hash of a commit") {
		t.Errorf("half a hash: %d %s", code, out)
	}
}

// checksOf reads what was said of the only commit, through every door.
func (s *teamSession) checksOf(m *teamSession, want string) {
	s.t.Helper()
	var page, direct, asked trend.Trend
	reads := s.key("reads", "--of", "bob", "--may", "read")
	_, text := s.as(reads, "GET", "/api/v1/trend?tag=project%3Dranker", "")
	for into, text := range map[*trend.Trend]string{&page: text, &direct: s.must("trend", "--tag", "project=ranker", "--json"),
		&asked: m.must("trend", "--server", s.served.at(""), "--tag", "project=ranker", "--json")} {
		if err := json.Unmarshal([]byte(text), into); err != nil || len(into.Commits) != 1 || len(into.Commits[0].Statuses) != 1 {
			s.t.Fatalf("%v: %s", err, text)
		}
	}
	commit := page.Commits[0]
	if got := commit.Statuses[0]; got.Description != want || got.State != "failure" || got.Project != "ranker" {
		s.t.Errorf("the trend has %+v", got)
	}
	if !reflect.DeepEqual(page, direct) || !reflect.DeepEqual(page, asked) {
		s.t.Errorf("the doors differ: %+v\n%+v\n%+v", page, direct, asked)
	}
	list := s.must("trend", "--tag", "project=ranker")
	if !strings.Contains(list, "CHECKS") || !strings.Contains(list, "failure") {
		s.t.Errorf("the list: %s", list)
	}
	text = s.must("trend", "--tag", "project=ranker", "--comment")
	if !strings.Contains(text, "- `hightide`: **failure** `"+want+"`") {
		s.t.Errorf("the comment: %s", text)
	}
	status, text := s.as(reads, "GET", "/api/v1/projects/ranker/commits/"+commit.Commit+"/status", "")
	if status != 200 || !strings.Contains(text, `"state":"failure"`) || !strings.Contains(text, `"total_count":1`) {
		s.t.Errorf("%d %s", status, text)
	}
}
