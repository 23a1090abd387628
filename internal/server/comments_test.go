package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestComments: members write them, who and when is the server's word, each deletes its own and admins any; no file of a
// run is a way around that.
func TestComments(t *testing.T) {
	s, own, _ := teamSite(t)
	as := func(account, method, path, body string) (int, string) {
		return s.ask(method, "/api/v1/runs/"+own+path, body, "Authorization", "Bearer "+person{account, MayChange}.secret())
	}
	status, text := as("member", http.MethodPost, "/comments", `{"text":" <b>why</b>\n","at_ns":0}`)
	if status != 200 || !strings.Contains(text, `"by":"member"`) || !strings.Contains(text, `"at_ns":0`) {
		t.Fatalf("%d %s", status, text)
	}
	var list CommentList
	read := func(account string) {
		status, text := as(account, http.MethodGet, "/comments", "")
		if list = decode[CommentList](t, text); status != 200 {
			t.Fatalf("%s reads them: %d %s", account, status, text)
		}
	}
	if read("viewer"); len(list.Comments) != 1 || list.Comments[0].Text != "<b>why</b>" || list.Comments[0].Made < 1e18 {
		t.Fatalf("read as %+v", list)
	}
	first := list.Comments[0].ID
	for body, want := range map[string]int{`{"text":"  "}`: 422, `{"text":"x","by":"admin"}`: 422, `{"text":"x","finding":"leak"}`: 422,
		`{"text":"x","at_ns":-1}`: 422, `{"text":"` + strings.Repeat("x", 4001) + `"}`: 422,
		`{"text":"x","at_ns":999999999999}`: 422} {
		if status, text := as("member", http.MethodPost, "/comments", body); status != want {
			t.Errorf("%.60s: %d %s", body, status, text)
		}
	}
	if status, _ := as("admin", http.MethodPost, "/comments", `{"text":"of the admin"}`); status != 200 {
		t.Errorf("an admin writes one: %d", status)
	}
	read("admin")
	second := list.Comments[1].ID
	name := url.PathEscape("comment-" + first + ".json")
	if status, text := as("viewer", http.MethodGet, "/artifacts/"+name, ""); status != 404 {
		t.Errorf("as a file: %d %s", status, text)
	}
	if _, text := as("viewer", http.MethodGet, "/artifacts", ""); strings.Contains(text, "comment-") {
		t.Errorf("files of the run: %s", text)
	}
	for _, del := range []struct {
		who, id string
		want    int
	}{{"viewer", first, 403}, {"member", second, 403}, {"member", "x", 404}, {"member", "../x", 404}, {"admin", first, 200},
		{"admin", first, 404}, {"admin", second, 200}} {
		if status, text := as(del.who, http.MethodDelete, "/comments/"+url.PathEscape(del.id), ""); status != del.want {
			t.Errorf("%+v: %d %s", del, status, text)
		}
	}
	if read("member"); len(list.Comments) != 0 {
		t.Errorf("left %+v", list)
	}
}
