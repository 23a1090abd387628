package server

import (
	"compress/gzip"
	"context"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"hightide/internal/engine"
	"hightide/internal/fleet"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// What a route is for. A run in its path is one that is asked for beside that.
const (
	forAll     = "anybody"         // also who is not known
	forRead    = "who is let in"   // what there is of its projects
	forChange  = "member"          // of any project, with a key for push
	forMember  = "member, of it"   // of the run's own project
	forDelete  = "admin, of it"    // of the run's own project
	forSeen    = "viewer, of it"   // of the project of the path
	forPush    = "member, into it" // into the project of the path
	forStart   = "server, programs"
	forServer  = "server"
	forFleet   = "fleet"   // who sees the machines, or the server's own figures
	forMachine = "machine" // one of them, of itself
	forPerson  = "oneself, or server"
	forErasure = "oneself, or server, with a key for push"
	forSession = "who is let in, to let in a browser"
)

// rowsOf has a row for each route of the router, by its pattern. Add yours here.
var rowsOf = map[string]string{
	"/": forAll, "GET /healthz": forAll, "GET /readyz": forAll, "POST /api/v1/session": forAll,
	"GET /api/v1/session/provider": forAll, "GET /api/v1/session/provider/back": forAll,
	"POST /api/v1/session/codes": forSession, "DELETE /api/v1/session": forSession,

	"GET /metrics/server": forFleet,
	"GET /metrics":        forRead, "GET /openapi.json": forRead, "GET /openapi.yaml": forRead,
	"GET /openapi-3.0.json": forRead, "GET /openapi-3.0.yaml": forRead, "GET /schemas/{schema}": forRead,
	"GET /api/v1/status": forRead,
	"GET /api/v1/diff":   forRead, "GET /api/v1/diff/figures": forRead, "GET /api/v1/diff/page": forRead,
	"GET /api/v1/gpus": forRead, "GET /api/v1/live": forRead, "GET /api/v1/sparks": forRead,
	"GET /api/v1/jobs": forRead, "GET /api/v1/jobs/{id}": forRead,
	"GET /api/v1/jobs/{id}/events": forRead, "GET /api/v1/matrices": forRead,
	"GET /api/v1/runs": forRead, "GET /api/v1/snapshots": forRead,

	"PATCH /api/v1/runs/{id}": forMember, "DELETE /api/v1/runs/{id}": forDelete, "POST /api/v1/runs/delete": forDelete,
	"POST /api/v1/plan": forChange, "POST /api/v1/snapshots": forChange, "DELETE /api/v1/snapshots/{id}": forChange,
	"POST /api/v1/snapshots/{id}/whatif": forChange,

	"POST /api/v1/runs/{id}/shares": forMember, "DELETE /api/v1/runs/{id}/shares/{share}": forMember,

	"POST /api/v1/runs/{id}/comments": forMember, "DELETE /api/v1/runs/{id}/comments/{comment}": forMember,

	"GET /api/v1/projects": forRead, "GET /api/v1/trend": forRead, "GET /api/v1/trend/page": forRead,
	"GET /api/v1/trend/comment":                                          forRead,
	"PUT /api/v1/projects/{project}/pushes/{id}/files/{name}":            forPush,
	"PUT /api/v1/projects/{project}/pushes/{id}/files/{name}/parts/{at}": forPush,
	"PUT /api/v1/projects/{project}/pushes/{id}/live/{at}":               forPush,
	"POST /api/v1/projects/{project}/pushes/{id}":                        forPush,

	"GET /api/v1/projects/{project}/commits/{commit}/status":    forSeen,
	"POST /api/v1/projects/{project}/commits/{commit}/statuses": forPush,

	"POST /api/v1/jobs": forStart, "DELETE /api/v1/jobs/{id}": forStart,
	"GET /api/v1/audit": forServer,
	"GET /api/v1/fleet": forFleet, "GET /api/v1/fleet/page": forFleet,
	"PUT /api/v1/fleet/machines/{machine}": forMachine,
	"GET /api/v1/people/{person}":          forPerson, "GET /api/v1/people/{person}/export": forPerson,
	"DELETE /api/v1/people/{person}": forErasure,
}

// rowOf is that of a pattern. What is read of one run or snapshot needs no row of its own: it is told by its path.
func rowOf(pattern string) (row string, known bool) {
	row, known = rowsOf[pattern]
	for _, of := range []string{"runs", "snapshots", "matrices"} {
		if !known && strings.HasPrefix(pattern, "GET /api/v1/"+of+"/{") {
			return forRead, true
		}
	}
	return row, known
}

// person is somebody who asks by a key.
type person struct {
	account string
	may     Right // of the key
}

// people are all roles, with all keys.
func people() (all []person) {
	for _, account := range []string{"stranger", "viewer", "member", "admin", "elsewhere", "root"} {
		for _, may := range []Right{MayRead, MayChange, MayStart, MayAdmin} {
			all = append(all, person{account, may})
		}
	}
	return all
}

func (p person) secret() string { return p.account + string(rune('0'+p.may)) }

// mayDo is what the rights are to be. seen says whether the run of the request is of the project in which the person
// has its role, or the data asked for is the own.
func (p person) mayDo(row string, seen bool) bool {
	role := map[string]store.Role{"viewer": store.Viewer, "member": store.Member, "admin": store.Admin,
		"elsewhere": store.Admin, "root": store.Admin}[p.account]
	has := func(r store.Role) bool { return p.may >= MayChange && role >= r }
	switch row {
	case forAll, forRead, forSession, forSeen:
		return true
	case forChange:
		return has(store.Member)
	case forMember, forPush: // of what is not seen, it is told that it is not there
		return has(store.Member)
	case forDelete:
		return has(store.Admin) || has(store.Member) && !seen
	case forStart:
		return p.account == "root" && p.may >= MayStart
	case forFleet:
		return p.account == "root" || p.account == "viewer"
	case forMachine:
		return p.account == "elsewhere" && p.may >= MayChange
	case forPerson:
		return seen || p.account == "root" && p.may == MayAdmin
	case forErasure:
		return seen && p.may >= MayChange || p.account == "root" && p.may == MayAdmin
	case forServer:
		return p.account == "root" && p.may == MayAdmin
	}
	return false
}

// teamSite is a server of a team: a project "own", in which three have a role, one of which they know nothing, and a
// run in each.
func teamSite(t *testing.T) (s *site, own, other string) {
	runs := new(store.Memory)
	keys := keyring{}
	for _, p := range people() {
		keys[p.secret()] = Key{Name: p.secret(), Account: p.account, May: p.may}
	}
	access := map[string]Access{
		"viewer":    {MayRead, store.Scope{Roles: map[string]store.Role{"own": store.Viewer}}},
		"member":    {MayChange, store.Scope{Roles: map[string]store.Role{"own": store.Member}}},
		"admin":     {MayChange, store.Scope{Roles: map[string]store.Role{"own": store.Admin}}},
		"elsewhere": {MayChange, store.Scope{Roles: map[string]store.Role{"third": store.Admin}}},
		"root":      {MayAdmin, store.Scope{All: true}},
	}
	s = siteOf(t, runs, Options{AllowExec: true, Keys: keys.of, Fleet: new(oneMachine),
		Scrapes: new(oneMachine).Sees, Shares: new(links), People: new(kept), Statuses: new(checks),
		Access: func(account string) Access { return access[account] },
		Check:  func(context.Context, string) (*engine.FileFacts, error) { return nil, nil }})
	return s, s.runIn("own"), s.runIn("other")
}

// oneMachine is a fleet whose machine is "elsewhere", and that "viewer" sees.
type oneMachine struct{ taken int }

func (*oneMachine) Sees(account string) bool    { return account == "viewer" }
func (*oneMachine) Reports(account string) bool { return account == "elsewhere" }

func (m *oneMachine) TakeReport(context.Context, string, fleet.Report) error {
	m.taken++
	return nil
}

func (m *oneMachine) Overview(context.Context) (*fleet.Overview, error) {
	return fleet.Of(nil, nil, 1, fleet.Settings{}), nil
}

// runIn records a run of a project.
func (s *site) runIn(project string) (id string) {
	s.t.Helper()
	w, err := s.store.Create(mem.RunInfo{Name: "of " + project, Verb: "run", Label: mem.Measured, StartMono: 1000,
		StartWall: 1, Command: []string{"python", project + ".py"}, Tags: map[string]string{"project": project}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.write(w, mem.Process{ID: 1, PID: 4711, Role: "main", Start: 1000},
		mem.SeriesDef{ID: 1, Process: 1, Name: mem.SeriesRSS, Unit: mem.UnitBytes, Label: mem.Measured}, reading(0))
	s.finish(w)
	return w.ID()
}

// TestEveryRouteHasARow: what the router has, and nothing else, has a row that says who may ask.
func TestEveryRouteHasARow(t *testing.T) {
	s := newSite(t, Options{})
	used := map[string]bool{}
	for _, pattern := range s.made.mux.patterns {
		if _, known := rowOf(pattern); !known {
			t.Errorf("%s has no row", pattern)
		}
		used[pattern] = true
	}
	for pattern := range rowsOf {
		if !used[pattern] {
			t.Errorf("%s is no route", pattern)
		}
	}
}

// TestRoles: every route, by every role, with every kind of key, and of the project's run and of another's.
func TestRoles(t *testing.T) {
	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	asked, refused := 0, 0
	for _, p := range people() {
		s, own, other := teamSite(t)
		for _, pattern := range s.made.mux.patterns {
			for _, id := range []string{own, other} {
				seen := id == own && p.account != "elsewhere" && p.account != "stranger" || p.account == "root"
				row, _ := rowOf(pattern)
				route, body := request(pattern, id)
				if strings.Contains(pattern, "{person}") {
					seen = id == own
					route[1] = strings.ReplaceAll(route[1], "{person}", map[bool]string{true: p.account, false: "somebody"}[seen])
				}
				route[1] = strings.ReplaceAll(route[1], "{project}", map[bool]string{true: "own", false: "other"}[id == own])
				got := s.statusOf(client, route, body, p.secret())
				asked++
				may := p.mayDo(row, seen)
				if may == (got == 403) || got == 401 || got >= 500 {
					t.Errorf("%s of %s's run by %s with a key for %d: %d, may %v", pattern, map[bool]string{true: "own",
						false: "other"}[id == own], p.account, p.may, got, may)
				}
				if got == 403 {
					refused++
				}
				if strings.Contains(pattern, "{project}") && seen && may && got == 404 {
					t.Errorf("%s by %s: %d, and it is in the project", pattern, p.account, got)
				}
				one := strings.Contains(pattern, "/runs/{id}") || strings.Contains(pattern, "{project}")
				if one && !seen && may && got != 404 {
					t.Errorf("%s of a run that %s does not see: %d", pattern, p.account, got)
				}
			}
		}
	}
	if asked < 1000 || refused < 100 {
		t.Errorf("%d requests, %d refused", asked, refused)
	}
}

// request is one for a pattern, with a body that is right where one is needed.
func request(pattern, id string) (route [2]string, body string) {
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		method, path = http.MethodGet, pattern
	}
	path = strings.NewReplacer("{id}", id, "{name}", "x", "{share}", "1", "{comment}", "x", "{commit}", strings.Repeat("a", 40),
		"{schema}", "Status.json").Replace(path)
	switch pattern {
	case "GET /api/v1/diff", "GET /api/v1/diff/figures", "GET /api/v1/diff/page":
		path += "?a=" + id + "&b=" + id
	case "GET /api/v1/trend/comment":
		path += "?commit=" + id + "&base=last"
	case "GET /api/v1/sparks":
		path += "?run=" + id
	case "GET /api/v1/runs/{id}/heap":
		path += "?process=1&at_ns=1"
	case "PATCH /api/v1/runs/{id}":
		body = `{"name":"x"}`
	case "POST /api/v1/runs/{id}/comments":
		body = `{"text":"x"}`
	case "POST /api/v1/runs/{id}/shares":
		body = `{}`
	case "POST /api/v1/projects/{project}/commits/{commit}/statuses":
		body = `{"state":"success"}`
	case "POST /api/v1/runs/delete":
		body = `{"ids":["` + id + `"]}`
	case "PUT /api/v1/fleet/machines/{machine}":
		path = strings.ReplaceAll(path, "{machine}", "elsewhere")
		body = `{"session":"s","number":1,"used":[],"state":{"version":"","time_unix_ns":1,"since_unix_ns":1,"every_ns":1,` +
			`"cores":1,"gpus":[],"groups":[],"holders":[],"others":0,"others_rss_bytes":0}}`
	case "PUT /api/v1/projects/{project}/pushes/{id}/files/{name}":
		body = `{"size_bytes":5}`
	case "PUT /api/v1/projects/{project}/pushes/{id}/files/{name}/parts/{at}":
		path = strings.ReplaceAll(path, "{at}", "0") + "?sha256=" + strings.Repeat("0", 64)
	case "PUT /api/v1/projects/{project}/pushes/{id}/live/{at}":
		path = strings.ReplaceAll(path, "{at}", "0") + "?stream=" + strings.Repeat("a", 26)
	case "POST /api/v1/projects/{project}/pushes/{id}":
		body = `{"files":["run.hightide"]}`
	}
	return [2]string{method, path}, body
}

// statusOf asks, and gives the status once there is one: some answers last.
func (s *site) statusOf(client *http.Client, route [2]string, body, key string) int {
	s.t.Helper()
	ctx, done := context.WithCancel(s.t.Context())
	defer done()
	request, err := http.NewRequestWithContext(ctx, route[0], s.URL+route[1], strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+key)
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// TestOtherProjectsAreNotThere: of another project's run each route answers, to the letter, as of one that was never
// there; and no list names it.
func TestOtherProjectsAreNotThere(t *testing.T) {
	s, own, other := teamSite(t)
	never := "0" + other[1:]
	asked := 0
	for _, pattern := range s.made.mux.patterns {
		if pattern == "GET /api/v1/live" || !strings.Contains(pattern, "/api/v1/") {
			continue
		}
		for _, account := range []string{"viewer", "admin", "stranger"} {
			var said []string
			for _, id := range []string{other, never} {
				route, body := request(pattern, id)
				route[1] = strings.ReplaceAll(route[1], "{project}", map[bool]string{true: "other", false: "never"}[id == other])
				for _, more := range []string{"", "before=" + id, "run=" + id, "search=" + id, "tag=project=other"} {
					to := route[1]
					if more != "" && route[0] == http.MethodGet {
						to += map[bool]string{true: "&", false: "?"}[strings.Contains(to, "?")] + more
					}
					status, text := s.ask(route[0], to, body, "Authorization", "Bearer "+person{account, MayChange}.secret())
					text = strings.NewReplacer(id, "ID", "other", "P", "never", "P").Replace(uptime.ReplaceAllString(s.inPage(text), ""))
					said = append(said, text+http.StatusText(status))
					asked++
				}
			}
			if half := len(said) / 2; !slices.Equal(said[:half], said[half:]) && !secretsIn(pattern) {
				t.Errorf("%s by %s tells: %.300q", pattern, account, said)
			}
			if text := strings.Join(said, ""); strings.Contains(text, "of other") || strings.Contains(text, "other.py") {
				t.Errorf("%s tells %s of another project's run", pattern, account)
			}
		}
	}
	if asked < 1000 {
		t.Errorf("%d requests", asked)
	}
	if runs, err := s.store.List(store.Filter{}); err != nil || len(runs) != 2 || own == other {
		t.Errorf("left %+v, %v", runs, err)
	}
	if len(s.made.views.all) != 3 {
		t.Errorf("%d views for three scopes: %v", len(s.made.views.all), slices.Collect(maps.Keys(s.made.views.all)))
	}
}

// uptime differs from answer to answer.
var uptime = regexp.MustCompile(`"(uptime|made_wall)_ns":\d+`)

// pageData is what a page of one file has in it.
var pageData = regexp.MustCompile(`id="hightide-report">([^<]+)<`)

// inPage is what an answer has in it, where it is a page of one file.
func (s *site) inPage(text string) string {
	s.t.Helper()
	found := pageData.FindStringSubmatch(text)
	if found == nil {
		return text
	}
	unpacked, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(found[1])))
	if err != nil {
		s.t.Fatal(err)
	}
	data, err := io.ReadAll(unpacked)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(data)
}

// secretsIn says whether an answer is another one each time.
func secretsIn(pattern string) bool { return pattern == "POST /api/v1/session/codes" }
