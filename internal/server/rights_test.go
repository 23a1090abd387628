package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hightide/internal/engine"
	"hightide/internal/store"
)

// browser is one that was let in by a code.
type browser struct{ cookie, page string }

// enters opens an address with a code.
func (s *site) enters(code string, headers ...string) (*http.Response, browser) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+sessionPath,
		strings.NewReader(`{"code":"`+code+`"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	b := entered(s.t, response)
	return response, b
}

// entered is a browser by the answer that let it in.
func entered(t *testing.T, response *http.Response) browser {
	t.Helper()
	var in Entered
	_ = json.NewDecoder(response.Body).Decode(&in)
	b := browser{page: in.Page}
	for _, cookie := range response.Cookies() {
		b.cookie = cookie.Name + "=" + cookie.Value
	}
	return b
}

// asker is somebody who sends requests, and what each is answered.
type asker struct {
	who     string
	headers []string
	refused int // the status that refuses; 0: may ask
}

// askers are all kinds of them, by a session and by what can be stolen of it, or of the token.
func (s *site) askers() []asker {
	_, mine := s.enters(s.made.Code())
	_, other := s.enters(s.made.Code())
	_, value, _ := strings.Cut(mine.cookie, "=")
	own := []string{"Authorization", "", "Cookie", mine.cookie, pageHeader, mine.page}
	from := func(origin string) []string { return append(slices.Clone(own), "Origin", origin) }
	at, _ := url.Parse(s.URL)
	return []asker{
		{"the token", []string{"Authorization", "Bearer " + right}, 0},
		{"a session", own, 0},
		{"a session's own page", from(s.URL), 0},
		{"a session through a proxy with a password", append(slices.Clone(own[2:]), "Authorization", "Basic OnJpZ2h0"), 0},
		{"nobody", []string{"Authorization", ""}, 401},
		{"another account's guess", []string{"Authorization", "Bearer wrong"}, 401},
		{"half the token", []string{"Authorization", "Bearer righ"}, 401},
		{"an empty token", []string{"Authorization", "Bearer "}, 401},
		{"the token as a name and password", []string{"Authorization", "Basic OnJpZ2h0"}, 401},
		{"the token in a cookie", []string{"Authorization", "", "Cookie", "hightide-session-" + at.Port() + "=" + right,
			pageHeader, right}, 401},
		{"the token of the metrics", []string{"Authorization", "Bearer metrics"}, 401},
		{"a cookie alone, as another port gets it", []string{"Authorization", "", "Cookie", mine.cookie}, 401},
		{"a cookie as the token", []string{"Authorization", "Bearer " + value}, 401},
		{"a cookie as the token, beside itself", []string{"Authorization", "Bearer " + value, "Cookie", mine.cookie}, 401},
		{"a cookie as both", []string{"Authorization", "", "Cookie", mine.cookie, pageHeader, value}, 401},
		{"a page's secret alone", []string{"Authorization", "", pageHeader, mine.page}, 401},
		{"a page's secret as the token", []string{"Authorization", "Bearer " + mine.page}, 401},
		{"one session's cookie, another's secret", []string{"Authorization", "", "Cookie", mine.cookie, pageHeader,
			other.page}, 401},
		{"a cookie of another port's server", []string{"Authorization", "", "Cookie", "hightide-session-1=" + value,
			pageHeader, mine.page}, 401},
		{"a wrong token beside a session", append([]string{"Cookie", mine.cookie, pageHeader, mine.page}, "Authorization",
			"Bearer wrong"), 401},
		{"a page elsewhere", from("https://evil.example"), 403},
		{"a page of another port", from("http://" + at.Hostname() + ":9"), 403},
		{"a page of no origin", from("null"), 403},
		{"a page of another port, without an origin", append(slices.Clone(own), "Sec-Fetch-Site", "same-site",
			"Sec-Fetch-Mode", "no-cors"), 403},
		{"a page elsewhere that has the token", []string{"Authorization", "Bearer " + right, "Origin",
			"https://evil.example"}, 403},
		{"a rebound name", append(slices.Clone(own), "Host", "evil.example:"+at.Port()), 421},
		{"a rebound name with the token", []string{"Authorization", "Bearer " + right, "Host", "evil.example"}, 421},
	}
}

// routes are all that the server has: what its description lists, and what stands beside that.
func (s *site) routes() (all [][2]string) {
	for path, item := range s.made.api.OpenAPI().Paths {
		path = strings.NewReplacer("{id}", "last", "{name}", "x").Replace(path)
		for method, has := range map[string]bool{"GET": item.Get != nil, "POST": item.Post != nil,
			"PATCH": item.Patch != nil, "DELETE": item.Delete != nil, "PUT": item.Put != nil} {
			open := path == sessionPath && method == "POST" || strings.HasPrefix(path, providerPath) // to who signs in
			if has && !open {
				all = append(all, [2]string{method, path})
			}
		}
	}
	for _, path := range []string{"/metrics", "/openapi.json", "/openapi.yaml", "/schemas/Status.json",
		"/api/v1/nothing", "/api/", "/api/v1/session"} {
		all = append(all, [2]string{"GET", path}, [2]string{"HEAD", path}, [2]string{"OPTIONS", path}, [2]string{"PUT", path})
	}
	for _, path := range []string{"/", "/runs/x", "/api", "//api/v1/runs", "/api/../api/v1/runs", "/x/..%2fapi/v1/runs",
		"/index.html"} {
		all = append(all, [2]string{"POST", path}, [2]string{"DELETE", path}, [2]string{"OPTIONS", path})
	}
	return all
}

// TestRights: every route is closed to everyone but the token and a session, whoever asks and however. What changes
// nothing is asked of those who may, too: they are not refused.
func TestRights(t *testing.T) {
	s := newSite(t, Options{AllowExec: true, Metrics: "metrics",
		Check: func(context.Context, string) (*engine.FileFacts, error) { return nil, nil }})
	s.finish(s.begin("run", 1))
	client := &http.Client{Timeout: time.Minute, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	routes, asked := s.routes(), 0
	if len(routes) < 60 {
		t.Fatalf("%d routes", len(routes))
	}
	for _, who := range s.askers() {
		for _, route := range routes {
			if who.refused == 0 && (!strings.HasPrefix(route[1], "/api/v1/") || route[0] != "GET") {
				continue
			}
			want := who.refused
			if who.who == "the token of the metrics" && route[1] == "/metrics" && (route[0] == "GET" || route[0] == "HEAD") {
				want = 200
			}
			got, header := s.status(client, route, who.headers)
			asked++
			switch {
			case want == 0 && (got == 401 || got == 403 || got == 421):
				t.Errorf("%s %s of %s: %d, and may ask", route[0], route[1], who.who, got)
			case want != 0 && got != want:
				t.Errorf("%s %s of %s: %d; want %d", route[0], route[1], who.who, got, want)
			}
			if header.Get("Access-Control-Allow-Origin") != "" || header.Get("Set-Cookie") != "" {
				t.Errorf("%s %s of %s: %v", route[0], route[1], who.who, header)
			}
		}
	}
	if asked < 1000 {
		t.Errorf("%d requests", asked)
	}
	if runs, err := s.store.List(store.Filter{}); err != nil || len(runs) != 1 || runs[0].Name != "run" {
		t.Errorf("error %v, and what is left is %+v", err, runs)
	}
	if jobs := s.made.work.list(); len(jobs) != 0 {
		t.Errorf("jobs were begun: %+v", jobs)
	}
}

// status asks, and gives the status once there is one: some answers last.
func (s *site) status(client *http.Client, route [2]string, headers []string) (int, http.Header) {
	s.t.Helper()
	ctx, done := context.WithCancel(s.t.Context())
	defer done()
	request, err := http.NewRequestWithContext(ctx, route[0], s.URL+route[1], strings.NewReader(""))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		} else if headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	response, err := client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	return response.StatusCode, response.Header
}

// TestPageIsOfAnybody: the page and its files tell nothing, so that a link to it works, and are the only ones that
// anybody gets.
func TestPageIsOfAnybody(t *testing.T) {
	s := newSite(t, Options{})
	nobody := []string{"Authorization", ""}
	for _, path := range []string{"/", "/runs/x", "/app.html"} {
		// 503: built without its pages
		if got, text := s.ask(http.MethodGet, path, "", nobody...); got != 200 && got != 503 || strings.Contains(text, right) {
			t.Errorf("%s: %d %s", path, got, text)
		}
		if got, _ := s.ask(http.MethodGet, path, "", "Authorization", "", "Host", "evil.example"); got != 421 {
			t.Errorf("%s of a rebound name: %d", path, got)
		}
	}
}

// TestPathsOfNobody: however a path is written, who is not known gets the page, which tells nothing, or is refused.
func TestPathsOfNobody(t *testing.T) {
	s := newSite(t, Options{Metrics: "metrics"})
	s.finish(s.begin("run", 1))
	_, page := s.ask(http.MethodGet, "/", "", "Authorization", "")
	for _, path := range []string{
		"//api/v1/runs", "/./api/v1/runs", "/x/../api/v1/runs", "/%61pi/v1/runs", "/api%2Fv1%2Fruns", "/api/v1%2Fruns",
		"/API/v1/runs", "/api/v1/runs/", "/api/v1//runs", "/api/v1/./runs", "/api/v1/runs%00", "/api/v1/runs;x",
		"/metrics/", "//metrics", "/%6detrics", "/x/../metrics", "/metrics%2f", "/openapi.json/", "/schemas/",
		"/schemas/../openapi.json", "/.%2e/.%2e/etc/passwd", "/..%2f..%2fgo.mod", "/runs/..%2f..%2f..%2fetc%2fpasswd",
		"/app.html/../../x", "/debug/pprof/",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			got, text := s.ask(method, path, "", "Authorization", "")
			if got != 400 && got != 401 && got != 405 && (text != page || method == http.MethodPost) ||
				strings.Contains(text, "passwd:") || strings.Contains(text, `"run"`) {
				t.Errorf("%s %s: %d %.200s", method, path, got, text)
			}
		}
	}
}

// TestNoSecretInAnAddress: neither the token nor a code opens anything there, where logs and histories keep it.
func TestNoSecretInAnAddress(t *testing.T) {
	s := newSite(t, Options{})
	for _, query := range []string{"?token=" + right, "?access_token=" + right, "?code=" + s.made.Code(), "?page=" +
		right} {
		for _, path := range []string{"/api/v1/status", "/metrics"} {
			if got, text := s.ask(http.MethodGet, path+query, "", "Authorization", ""); got != 401 {
				t.Errorf("%s%s: %d %s", path, query, got, text)
			}
		}
	}
}

// TestSession: an address is good once. Its cookie is of this port, no script reads it, and no page elsewhere has it
// sent.
func TestSession(t *testing.T) {
	s := newSite(t, Options{})
	code := s.made.Code()
	for _, from := range []string{"https://evil.example", "null", "http://127.0.0.1:9"} {
		if response, _ := s.enters(code, "Origin", from); response.StatusCode != 403 {
			t.Errorf("a page of %s: %s", from, response.Status)
		}
	}
	response, in := s.enters(code)
	cookies := response.Cookies()
	if response.StatusCode != 201 || len(cookies) != 1 || len(in.page) < 20 {
		t.Fatalf("%s with %v", response.Status, cookies)
	}
	at, _ := url.Parse(s.URL)
	if c := cookies[0]; c.Name != "hightide-session-"+at.Port() || !c.HttpOnly ||
		c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || len(c.Value) < 20 || c.Value == in.page {
		t.Errorf("cookie %+v", c)
	}
	again := func(b browser) int {
		got, _ := s.ask(http.MethodGet, "/api/v1/status", "", "Authorization", "", "Cookie", b.cookie, pageHeader, b.page)
		return got
	}
	if got := again(in); got != 200 {
		t.Errorf("with both: %d", got)
	}
	for _, wrong := range []string{code, "", "x", right} {
		if response, b := s.enters(wrong); response.StatusCode != 401 || b != (browser{}) {
			t.Errorf("the code %q: %s, %v", wrong, response.Status, b)
		}
	}
	if got := again(in); got != 200 {
		t.Errorf("after codes that were wrong: %d", got)
	}
	_, next := s.enters(s.made.Code(), "Cookie", in.cookie)
	if was, is := again(in), again(next); was != 401 || is != 200 {
		t.Errorf("once the browser opened another address, the session before is %d, the new one %d", was, is)
	}
}

// TestSessionOverTLS: there the cookie has the name that browsers let no other host and no plain server set.
func TestSessionOverTLS(t *testing.T) {
	made, handler := New(&engine.Engine{DataDir: t.TempDir(), Store: new(store.Memory)}, Options{Token: right})
	defer made.Close()
	server := httptest.NewTLSServer(handler)
	defer server.Close()
	response, err := server.Client().Post(server.URL+sessionPath, "application/json",
		strings.NewReader(`{"code":"`+made.Code()+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	at, _ := url.Parse(server.URL)
	if c := response.Cookies(); len(c) != 1 || c[0].Name != "__Host-hightide-session-"+at.Port() || !c[0].Secure ||
		c[0].Path != "/" {
		t.Errorf("%s: %+v", response.Status, c)
	}
}

// TestDoorForgets: codes last an hour, sessions a week after their last use, and there are not many of either.
func TestDoorForgets(t *testing.T) {
	d, now := newDoor(right, ""), time.Unix(1e9, 0)
	code := d.code(now, grant{})
	if _, _, ok := d.enter(code, "", now.Add(codeLasts+1)); ok {
		t.Error("a code is good after its time")
	}
	cookie, page, ok := d.enter(d.code(now, grant{}), "", now)
	name := func(cookie, page string, at time.Time) string {
		name, _ := d.session(cookie, page, at)
		return name
	}
	if !ok || name(cookie, page, now.Add(sessionLasts)) != "session 1" ||
		name(cookie, page, now.Add(2*sessionLasts)) == "" {
		t.Error("a session that is used ends")
	}
	if name(cookie, page, now.Add(3*sessionLasts+1)) != "" || name(cookie, "", now) != "" || name("", "", now) != "" {
		t.Error("a session that nobody used goes on")
	}
	for i := range 3 * sessionsKept {
		d.enter(d.code(now, grant{}), "", now.Add(time.Duration(i)))
	}
	for range 3 * codesKept {
		d.code(now, grant{})
	}
	if len(d.sessions) > sessionsKept || len(d.codes) > codesKept {
		t.Errorf("%d sessions, %d codes", len(d.sessions), len(d.codes))
	}
}

// TestJobLog: it names what was begun, the command without its secrets, and who asked from where.
func TestJobLog(t *testing.T) {
	var lines []string
	s := newSite(t, Options{AllowExec: true, Audit: func(act store.Act) { lines = append(lines, act.String()) }})
	_, b := s.enters(s.made.Code())
	body := `{"kind":"imagine","options":{"gpu":"a10","command":["/nothing/python","train.py","--api-key","geheim","a b\n"]}}`
	got, text := s.ask(http.MethodPost, "/api/v1/jobs", body, "Authorization", "", "Cookie", b.cookie, pageHeader, b.page)
	if j := decode[Job](t, text); got != 201 || !strings.HasPrefix(j.By, "session 1 at 127.0.0.1:") ||
		strings.Contains(text, "geheim") {
		t.Errorf("%d %s", got, text)
	}
	all := strings.Join(lines, "\n")
	if len(lines) != 3 || !strings.Contains(lines[1], "session 1 at 127.0.0.1:") ||
		!strings.Contains(lines[1], `began job-1`) ||
		!strings.Contains(lines[1], `/nothing/python train.py --api-key ***`) || strings.Contains(all, "geheim") ||
		strings.Contains(all, b.page) {
		t.Errorf("told %q", lines)
	}
}
