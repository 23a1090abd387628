package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"hightide/internal/store"
)

// kept is what is kept of persons: of each an account, and runs where there are some. Handlers read it in goroutines of
// their own.
type kept struct {
	sync.Mutex
	runs    []store.Run
	forgot  []string
	broken  bool
	running bool
}

func (k *kept) Person(_ context.Context, name string) (*store.Person, error) {
	k.Lock()
	defer k.Unlock()
	if slices.Contains(k.forgot, name) {
		return &store.Person{Version: 1, Name: name}, nil
	}
	return &store.Person{Version: 1, Name: name, Account: &store.Account{Name: name}, Runs: slices.Clone(k.runs)}, nil
}

func (k *kept) Export(_ context.Context, w io.Writer, p *store.Person) error {
	k.Lock()
	defer k.Unlock()
	_, err := io.WriteString(w, "all of "+p.Name)
	if k.broken {
		err = errors.New("broken")
	}
	return err
}

func (k *kept) Forget(_ context.Context, name string, _ bool) error {
	k.Lock()
	defer k.Unlock()
	if k.running {
		return &store.Error{Kind: store.ErrRunning, Text: "it is recorded"}
	}
	k.forgot = append(k.forgot, name)
	return nil
}

// peopleSite is a server where anna is a member of "own", carol its admin, and root the admin of the server.
func peopleSite(t *testing.T, k *kept) (s *site, acts *[]store.Act) {
	keys, acts := keyring{}, new([]store.Act)
	for name, may := range map[string]Right{"anna": MayChange, "carol": MayChange, "root": MayAdmin} {
		keys[name] = Key{Name: name + "-laptop", Account: name, May: may}
	}
	keys["looks"] = Key{Name: "looks", Account: "anna", May: MayRead}
	roles := map[string]store.Scope{"anna": {Roles: map[string]store.Role{"own": store.Member}},
		"carol": {Roles: map[string]store.Role{"own": store.Admin}}, "root": {All: true}}
	return newSite(t, Options{Keys: keys.of, People: k, Audit: func(a store.Act) { k.set(func() { *acts = append(*acts, a) }) },
		Access: func(account string) Access {
			return Access{map[bool]Right{true: MayAdmin, false: MayChange}[account == "root"], roles[account]}
		},
	}), acts
}

func (s *site) by(key, method, path string) (int, string) {
	s.t.Helper()
	return s.ask(method, path, "", "Authorization", "Bearer "+key)
}

// TestPeople: everybody has what is kept of oneself, and who administers the server of anybody. Runs of projects that one
// does not see are counted; runs are deleted by who may delete them.
func TestPeople(t *testing.T) {
	run := func(id, project string) store.Run {
		return store.Run{ID: id, Tags: map[string]string{store.ProjectTag: project}}
	}
	k := &kept{runs: []store.Run{run("one", "own"), run("two", "left")}}
	s, acts := peopleSite(t, k)
	p := decode[store.Person](t, second(s.by("anna", "GET", "/api/v1/people/anna")))
	if len(p.Runs) != 1 || p.NotSeen != 1 || p.Account == nil {
		t.Errorf("anna of herself: %+v", p)
	}
	p = decode[store.Person](t, second(s.by("root", "GET", "/api/v1/people/anna")))
	if len(p.Runs) != 2 || p.NotSeen != 0 {
		t.Errorf("root of anna: %+v", p)
	}
	if status, text := s.by("anna", "GET", "/api/v1/people/anna/export"); status != 200 || text != "all of anna" {
		t.Errorf("export: %d %s", status, text)
	}
	k.set(func() { k.broken = true })
	request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/people/anna/export", nil)
	request.Header.Set("Authorization", "Bearer anna")
	if answer, err := http.DefaultClient.Do(request); err == nil {
		if text, err := io.ReadAll(answer.Body); err == nil {
			t.Errorf("half an export looks whole: %d %s", answer.StatusCode, text)
		}
		answer.Body.Close()
	}
	for _, of := range []struct {
		who, query string
		runs       []store.Run
		want       int
		why        string
	}{
		{"looks", "?keep_runs=true", nil, 403, "may not do that"},
		{"anna", "", k.runs, 403, "see no more"},
		{"anna", "", k.runs[:1], 403, "deleted by its admins"},
		{"carol", "", k.runs, 403, "see no more"},
		{"carol", "", k.runs[:1], 200, ""},
		{"anna", "?keep_runs=true", k.runs, 200, ""},
	} {
		before := len(k.forgot)
		name := strings.Replace(of.who, "looks", "anna", 1)
		status, text := k.over(s, of.runs, of.who, "/api/v1/people/"+name+of.query)
		if status != of.want || !strings.Contains(text, of.why) ||
			len(k.forgot)-before != map[bool]int{true: 1}[of.want == 200] {
			t.Errorf("%+v: %d %s, forgot %v", of, status, text, k.forgot)
		}
	}
	var told []string
	for _, a := range *acts {
		told = append(told, a.Who+": "+a.What)
	}
	if all := strings.Join(told, "\n"); !strings.Contains(all, `looked at what is kept of "anna"`) ||
		!strings.Contains(all, `exported what is kept of "anna"`) || strings.Contains(all, "/people/") ||
		strings.Count(all, store.Deleted+": deletes what is kept of "+store.Deleted) != 2 {
		t.Errorf("the log: %s", all)
	}
}

// set changes something of it.
func (k *kept) set(change func()) {
	k.Lock()
	defer k.Unlock()
	change()
}

// over asks to delete while there are other runs.
func (k *kept) over(s *site, runs []store.Run, who, path string) (int, string) {
	before := k.runs
	defer k.set(func() { k.runs = before })
	k.set(func() { k.runs = runs })
	return s.by(who, http.MethodDelete, path)
}

// TestPeopleLog: by an admin the log has who deleted, and not whom; what was refused it has by name, and a look at who is
// not there leaves nothing.
func TestPeopleLog(t *testing.T) {
	k := &kept{running: true}
	s, acts := peopleSite(t, k)
	if status, text := s.by("root", "DELETE", "/api/v1/people/bob"); status != 409 {
		t.Errorf("while a run is recorded: %d %s", status, text)
	}
	k.set(func() { k.running = false })
	if status, text := s.by("root", "DELETE", "/api/v1/people/bob"); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	s.by("root", "GET", "/api/v1/people/bob")
	s.by("root", "GET", "/api/v1/people/bob/export")
	if a := *acts; len(a) != 2 || !strings.Contains(a[0].What, `"bob"`) || a[0].Status != 409 ||
		strings.Contains(a[1].String(), "bob") || !strings.Contains(a[1].Who, `"root"`) || a[1].Status != 200 {
		t.Errorf("the log: %+v", *acts)
	}
}

func second(_ int, text string) string { return text }
