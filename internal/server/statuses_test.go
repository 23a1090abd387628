package server

import (
	"context"
	"strings"
	"testing"

	"hightide/internal/store"
)

// checks are kept in memory, as the store of a team keeps them.
type checks struct {
	all map[string][]store.CommitStatus
}

func (k *checks) SetStatus(_ context.Context, commit string, c store.CommitStatus) (store.CommitStatus, error) {
	if k.all == nil {
		k.all = map[string][]store.CommitStatus{}
	}
	k.all[commit] = append(k.all[commit], c)
	return c, nil
}

func (k *checks) Statuses(_ context.Context, scope store.Scope, project string, _ ...string) (map[string][]store.CommitStatus,
	error) {
	seen := map[string][]store.CommitStatus{}
	for commit, all := range k.all {
		for _, c := range all {
			if scope.Has(store.Viewer, c.Project) && (project == "" || project == c.Project) {
				seen[commit] = append(seen[commit], c)
			}
		}
	}
	return seen, nil
}

// TestStatuses: members say how checks ended, viewers see it, and what is no status is refused: above all an address that
// is a program.
func TestStatuses(t *testing.T) {
	s, _, _ := teamSite(t)
	at := "/api/v1/projects/own/commits/" + strings.Repeat("A", 40)
	for body, want := range map[string]int{
		`{"state":"failure","description":"peak is 3 GiB, 1 GiB over","target_url":"https://ci.example.org/7"}`: 200,
		`{"state":"success","context":"lint"}`: 200,
		`{"state":"failed"}`:                   422,
		`{}`:                                   422,
		`{"state":"success","target_url":"javascript:alert(1)"}`:           422,
		`{"state":"success","target_url":" javascript:alert(1)"}`:          422,
		`{"state":"success","target_url":"https://x\" onclick=alert(1)"}`:  422,
		`{"state":"success","target_url":"https://x/\u0000"}`:              422,
		`{"state":"success","target_url":"x\nhttps://example.org"}`:        422,
		`{"state":"success","context":"` + strings.Repeat("x", 101) + `"}`: 422,
	} {
		status, text := s.ask("POST", at+"/statuses", body, "Authorization", "Bearer "+person{"member", MayChange}.secret())
		if status != want {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	status, text := s.ask("POST", at+"/statuses", `{"state":"success","context":"l\u0000i\u001b[31mn\u202et","description":"a\nb"}`,
		"Authorization", "Bearer "+person{"member", MayChange}.secret())
	if got := decode[store.CommitStatus](t, text); status != 200 || got.Context != "li[31mnt" || got.Description != "a b" {
		t.Errorf("what a terminal would obey is kept: %d %s", status, text)
	}
	status, text = s.ask("GET", at+"/status", "", "Authorization", "Bearer "+person{"viewer", MayRead}.secret())
	all := decode[CombinedStatus](t, text)
	if status != 200 || all.State != "failure" || all.Total != 3 || all.Commit != strings.Repeat("a", 40) {
		t.Errorf("%d %s", status, text)
	}
	if status, text := s.ask("GET", strings.Replace(at, "AAAA", "XXXX", 1)+"/status", ""); status != 422 {
		t.Errorf("what is no hash: %d %s", status, text)
	}
	for want, states := range map[string][]string{"pending": nil, "success": {"success"},
		"failure": {"pending", "error"}} {
		var all []store.CommitStatus
		for _, state := range states {
			all = append(all, store.CommitStatus{State: state})
		}
		if got := store.Combined(all); got != want {
			t.Errorf("%v are %s", states, got)
		}
	}
}
