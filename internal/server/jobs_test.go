package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/fit"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// front is a server in a test, asked as a page of it would ask.
type front struct {
	*testing.T
	*httptest.Server
	of    *Server
	token string
}

func open(t *testing.T, o Options) *front {
	t.Helper()
	shared := t.TempDir()
	o.Token = cmp.Or(o.Token, right)
	s, handler := New(&engine.Engine{DataDir: t.TempDir(), Runtime: launch.Runtime{Shared: shared, Cores: 2}}, o)
	d := &front{t, httptest.NewServer(handler), s, o.Token}
	t.Cleanup(func() { d.Server.Close(); s.Close() })
	return d
}

func (d *front) ask(method, path, body string) *http.Response {
	d.Helper()
	r, err := http.NewRequestWithContext(d.Context(), method, d.URL+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		d.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+d.token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := d.Client().Do(r)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { _ = answer.Body.Close() })
	return answer
}

// get asks and decodes; the status must be as wanted. What was not decoded is the text.
func (d *front) get(method, path, body string, status int, into any) string {
	d.Helper()
	answer := d.ask(method, path, body)
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != status {
		d.Fatalf("%s %s: %s: %s", method, path, answer.Status, text)
	}
	if into != nil {
		if err := json.Unmarshal(text, into); err != nil {
			d.Fatalf("%s %s: %v: %s", method, path, err, text)
		}
	}
	return string(text)
}

// follow reads a job's events until it has ended.
func (d *front) follow(id string, each func(name string, data []byte)) {
	d.Helper()
	answer := d.ask("GET", "/jobs/"+id+"/events", "")
	name := ""
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			name = value
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			each(name, []byte(data))
		}
	}
}

// until follows a job until a state is told.
func (d *front) until(id string, state JobState) (last Job, told []string) {
	d.Helper()
	d.follow(id, func(name string, data []byte) {
		if name == "job" || name == "end" {
			if err := json.Unmarshal(data, &last); err != nil {
				d.Fatal(err)
			}
			return
		}
		var t struct{ Name string }
		_ = json.Unmarshal(data, &t)
		told = append(told, t.Name)
	})
	if last.State != state {
		d.Fatalf("%s ended %s: %s", id, last.State, last.Problem)
	}
	return last, told
}

const tinyMatrix = `
axes: {n: [1, 2]}
command: sh -c "true {n}"
repeats: {least: 1, most: 1}
`

func TestJobsThatStartProgramsNeedLeave(t *testing.T) {
	ask := fmt.Sprintf(`{"kind": "bench", "options": {"spec": %q, "name": "tiny"}}`, tinyMatrix)
	d := open(t, Options{})
	for _, kind := range []string{"imagine", "fit", "tune", "bench"} {
		text := d.get("POST", "/jobs", strings.Replace(ask, "bench", kind, 1), http.StatusForbidden, nil)
		if !strings.Contains(text, "hightide ui --allow-exec") {
			t.Errorf("%s does not say how: %s", kind, text)
		}
	}
	var all JobList
	if d.get("GET", "/jobs", "", 200, &all); len(all.Jobs) > 0 {
		t.Errorf("%+v was begun", all)
	}
}

func TestBenchJob(t *testing.T) {
	t.Parallel()
	d := open(t, Options{AllowExec: true, Token: "secret", Env: os.Environ()})
	var j Job
	d.get("POST", "/jobs", fmt.Sprintf(`{"kind": "bench", "options": {"spec": %q, "name": "tiny"}}`, tinyMatrix),
		http.StatusCreated, &j)
	if j.ID == "" || j.Title != "bench tiny" {
		t.Fatalf("%+v", j)
	}
	last, told := d.until(j.ID, JobDone)
	if len(told) == 0 || told[len(told)-1] != "matrix" || last.Matrix != "tiny" || last.Ended < last.Started {
		t.Errorf("told %v, then %+v", told, last)
	}
	var whole struct {
		Job
		Result benchSummary `json:"result"`
	}
	if d.get("GET", "/jobs/"+j.ID, "", 200, &whole); whole.Result.Trials != 2 || whole.Result.Matrix != "tiny" {
		t.Errorf("result %+v", whole.Result)
	}

	var list MatrixList
	d.get("GET", "/matrices", "", 200, &list)
	if len(list.Matrices) != 1 || list.Matrices[0].Cells != 2 || list.Matrices[0].Trials != 2 || list.Matrices[0].Running {
		t.Errorf("matrices %+v", list)
	}
	var page struct {
		Name string
		Page struct {
			Keys    []string
			Trials  struct{ Run []string }
			Reports map[string]string
		}
	}
	d.get("GET", "/matrices/tiny", "", 200, &page)
	if len(page.Page.Keys) != 2 || len(page.Page.Trials.Run) != 2 ||
		page.Page.Reports[page.Page.Trials.Run[0]] != "/runs/"+page.Page.Trials.Run[0] {
		t.Errorf("page %+v", page)
	}
	for _, name := range []string{"none", "..", "%2e%2e%2fruns"} {
		d.get("GET", "/matrices/"+name, "", 404, nil)
	}
}

// TestJobsAreCancelled: one that runs, one that waits, and all when the server ends. What they started is gone then.
func TestJobsAreCancelled(t *testing.T) {
	t.Parallel()
	d := open(t, Options{AllowExec: true, Token: "secret", Env: os.Environ()})
	ids := []string{}
	for n := range jobsAtOnce + 2 {
		var j Job
		spec := fmt.Sprintf("axes: {n: [%d]}\ncommand: sleep 1000 # {n}\n", n)
		spec = strings.Replace(spec, "sleep 1000 # {n}", `sh -c "sleep 1000; true {n}"`, 1)
		d.get("POST", "/jobs", fmt.Sprintf(`{"kind": "bench", "options": {"spec": %q, "name": "m%d"}}`, spec, n),
			http.StatusCreated, &j)
		ids = append(ids, j.ID)
	}
	var all JobList
	d.get("GET", "/jobs", "", 200, &all)
	states := map[JobState]int{}
	for _, j := range all.Jobs {
		states[j.State]++
	}
	if states[JobRunning] != jobsAtOnce || states[JobQueued] != 2 {
		t.Errorf("%v, want %d to run", states, jobsAtOnce)
	}
	d.get("DELETE", "/jobs/"+ids[len(ids)-1], "", 200, nil)
	d.until(ids[len(ids)-1], JobCancelled)
	d.get("DELETE", "/jobs/"+ids[0], "", 200, nil)
	d.until(ids[0], JobCancelled)
	d.of.Close()
	for _, id := range ids {
		if last, _ := d.until(id, JobCancelled); last.Ended == 0 {
			t.Errorf("%+v", last)
		}
	}
}

func TestJobsRefuseNonsense(t *testing.T) {
	d := open(t, Options{AllowExec: true, Token: "secret"})
	for body, status := range map[string]int{
		`{"kind": "nothing", "options": {}}`:                                     422,
		`{"kind": "imagine", "options": {}}`:                                     422,
		`{"kind": "imagine", "options": {"command": ["x"], "gpuu": "a10"}}`:      422,
		`{"kind": "imagine", "options": {"command": ["x"], "memory": "plenty"}}`: 422,
		`{"kind": "imagine", "options": {"command": ["x"], "steps": "some"}}`:    422,
		`{"kind": "fit", "options": {}}`:                                         422,
		`{"kind": "bench", "options": {"spec": "axes: 3", "name": "x"}}`:         404,
		`{"kind": "bench", "options": {"spec": "", "name": "../x"}}`:             404,
		`{"kind": "explain", "options": {"run": "nothere"}}`:                     404,
	} {
		d.get("POST", "/jobs", body, status, nil)
	}
	if text := d.get("POST", "/jobs", `{"kind": "imagine", "options": {"command": ["x"], "gpus": 1.5}}`, 422, nil); !strings.Contains(text, "gpus is a number 1.5, not a whole number") {
		t.Errorf("not in words for people: %s", text)
	}
	d.get("GET", "/jobs/job-7", "", 404, nil)
	d.get("DELETE", "/jobs/job-7", "", 404, nil)
}

// TestJobTellsThoseWhoComeLater: of what is told over and over only the last is kept, the rest is not, and nobody is
// told twice.
func TestJobTellsThoseWhoComeLater(t *testing.T) {
	js := newJobs()
	defer js.close()
	go_on := make(chan struct{})
	j, err := js.add("test", work{"a test", nil, func(ctx context.Context, j *job) (any, error) {
		for i := range 5 {
			j.takeEvent(event.Progress{Done: i, All: 5})
			j.takeEvent(event.Alert{Text: fmt.Sprint(i)})
		}
		<-go_on
		return nil, errors.New("at the end")
	}}, "somebody")
	if err != nil {
		t.Fatal(err)
	}
	close(go_on)
	js.ended.Wait()
	progress, alerts := 0, 0
	for _, e := range j.events {
		switch e.of.EventName() {
		case "progress":
			progress++
		case "alert":
			alerts++
		}
	}
	if told := j.told(true); progress != 1 || alerts != 5 || told.State != JobFailed || told.Problem != "at the end" {
		t.Errorf("%d progress, %d alerts: %+v", progress, alerts, told)
	}
}

// TestAnswersInWords: the list of jobs says what came of one, not only that it is done.
func TestAnswersInWords(t *testing.T) {
	imagined := func(v mem.Verdict) imagineOutcome {
		o := imagineOutcome{ImagineSummary: engine.ImagineSummary{Imagined: &report.Imagined{}}}
		o.Verdict = v
		return o
	}
	for want, result := range map[string]resultInWords{
		"fits":                imagined(mem.VerdictFits),
		"fits tightly":        imagined(mem.VerdictTight),
		"fits on a condition": imagined(mem.VerdictConditional),
		"out of memory":       imagined(mem.VerdictOOM),
		"no verdict":          imagined(mem.VerdictFailed),
		"at most 1,064":       fitOutcome{Result: &fit.Result{Largest: 1064}},
		"no batch fits":       fitOutcome{Result: &fit.Result{}},
	} {
		j := newJob(t.Context(), "1", "imagine", work{"", nil,
			func(context.Context, *job) (any, error) { return result, nil }})
		if j.run(); j.told(false).Answer != want {
			t.Errorf("%q, not %q", j.told(false).Answer, want)
		}
	}
}
