package main

import (
	"encoding/json"
	"os/user"
	"strings"
	"testing"
)

// TestCommentOfNoAccount: who has the password of the database is none of the server's accounts, and a comment does not
// say so: an account of the same name did not write it, and may not delete it.
func TestCommentOfNoAccount(t *testing.T) {
	here, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	config := strings.Replace(teamFile, `["root"]`, `["eve"]`, 1) // the user may be root
	s := startTeam(t, strings.Replace(config, `["anna"]`, `["`+here.Username+`"]`, 1))
	s.must("run", "--quiet", "--name", "talked", "--tag", "project=ranker", "--", "/bin/true")
	s.must("comment", "talked", "said")
	namesake := s.key(here.Username, "--may", "push")
	status, text := s.as(namesake, "GET", "/api/v1/runs/talked/comments", "")
	var list struct {
		Comments []struct{ ID, By, Text string }
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != 200 || len(list.Comments) != 1 {
		t.Fatalf("%d %s, %v", status, text, err)
	}
	if by := list.Comments[0].By; !strings.HasPrefix(by, here.Username+" on ") {
		t.Errorf("it is by %q", by)
	}
	if status, text := s.as(namesake, "DELETE", "/api/v1/runs/talked/comments/"+list.Comments[0].ID, ""); status != 403 {
		t.Errorf("an account of the same name deletes it: %d %s", status, text)
	}
}
