package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/trend"
	"hightide/internal/wire"
)

// walk is a team of three people with a machine each, and a program that they work on.
type walk struct {
	*faultyTeam
	python string
	pushed map[string]*teamSession // by name of the run: whose machine has it
}

// git does something in the folder of a machine.
func (w *walk) git(m *teamSession, args ...string) {
	w.t.Helper()
	c := exec.Command("git", args...)
	c.Dir = m.dir
	c.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	if out, err := c.CombinedOutput(); err != nil {
		w.t.Fatalf("git %q: %v %s", args, err, out)
	}
}

// commit commits what a program is from now on.
func (w *walk) commit(m *teamSession, program, why string) {
	w.t.Helper()
	write(w.t, m.dir, ".gitignore", "/data/\n/config/\n/outbox/\n*.bin\n.*\n")
	write(w.t, m.dir, "train.py", program)
	w.git(m, "add", "train.py")
	w.git(m, "commit", "-qm", why)
}

// member is another person with a machine of its own.
func (w *walk) member(name string) *teamSession {
	m := w.machine(w.key(name, "--may", "push"))
	m.env = append(m.env, "HIGHTIDE_SERVER=http://"+w.toServe.Address().String(), "HIGHTIDE_PROJECT=ranker")
	return m
}

// record has a machine run the program twice, and sends the first run. The second, with files of its own, is left.
func (w *walk) record(m *teamSession, name string) {
	w.t.Helper()
	for _, of := range []string{name + "-1", name + "-2"} {
		m.both("run", "--quiet", "--name", of, "--", w.python, "train.py")
		w.pushed[of] = m
	}
	m.both("push", name+"-1")
}

// kill ends the server as the kernel does where memory runs out, and starts it again.
func (w *walk) kill() {
	_ = w.served.process.Process.Kill()
	_ = w.served.process.Wait()
	w.start()
}

// sendKilled sends a run while the server is killed in the middle of it.
func (w *walk) sendKilled(m *teamSession, name string) {
	w.t.Helper()
	before, said := w.kept(), new(sentences)
	push := m.command("push", name)
	push.Stdout, push.Stderr = said, said
	if err := push.Start(); err != nil {
		w.t.Fatal(err)
	}
	waitFor(w.t, func() bool { return w.kept() >= before+2 })
	w.kill()
	if err := push.Wait(); err != nil {
		w.t.Errorf("a push does not outlast the server: %v %s", err, said)
	}
}

// liveKilled records a run that others see, while the server is killed in the middle of it.
func (w *walk) liveKilled(m *teamSession, name string) {
	w.t.Helper()
	run, said := m.command("run", "--push", "--quiet", "--name", name, "--", "/bin/sh", "-c",
		"while [ ! -e go.bin ]; do sleep 0.05; done"), new(sentences)
	run.Stdout, run.Stderr = said, said
	if err := run.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.pushed[name] = m
	running := func() bool {
		status, text := w.get("GET", "/runs/"+name)
		return status == 200 && strings.Contains(text, `"running"`)
	}
	waitFor(w.t, running)
	w.kill()
	waitFor(w.t, running)
	write(w.t, m.dir, "go.bin", "")
	if err := run.Wait(); err != nil {
		w.t.Errorf("a run does not outlast the server: %v %s", err, said)
	}
}

// reads is what a browser that has signed in gets.
func (b browserOf) reads(path string) string {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.served.at(path), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	request.Header.Set("Cookie", b.cookie)
	request.Header.Set("X-Hightide-Page", b.page)
	answer, err := b.served.client.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.t.Fatalf("%s: %d %s %v", path, answer.StatusCode, text, err)
	}
	return string(text)
}

// TestTeamWalk: three people on three machines push runs into one server, which is killed twice meanwhile. One of them
// opens another's regression from the link of a pull request, and reads the line that caused it. Every run is there in
// the end, byte for byte.
func TestTeamWalk(t *testing.T) {
	w := &walk{startFaulty(t), pythonPath(t), map[string]*teamSession{}}
	file, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	write(t, w.dir, "team.toml", strings.Replace(string(file), `["anna"]`, `["anna", "bob", "dora", "checks"]`, 1))
	if err := w.password("dora", "correct horse"); err != nil {
		t.Fatal(err)
	}
	anna, bob, dora := w.anna, w.member("bob"), w.member("dora")
	w.git(anna, "init", "-q", ".")
	const first = `import os, time
held = bytearray(30 << 20)
with open(os.environ["HIGHTIDE_OUT"] + "/big.bin", "wb") as f: f.write(os.urandom(20_000_000))
time.sleep(0.3)
`
	w.commit(anna, first, "a program")
	w.record(anna, "base")
	anna.both("push", "base-2")

	w.git(bob, "clone", "-q", anna.dir, ".")
	w.commit(bob, strings.Replace(first, "time.sleep", "cache = bytearray(90 << 20)\ntime.sleep", 1), "a cache")
	w.record(bob, "cached")
	w.sendKilled(bob, "cached-2")
	w.liveKilled(dora, "others")

	w.readsLine(w.signIn("dora", "correct horse"), w.comment())
	w.againstBase(bob)
	w.areThere()
}

// comment is what a pull request is told of bob's commit.
func (w *walk) comment() string {
	checks := w.machine(w.key("checks", "--may", "read"))
	text := checks.must("trend", "--server", "http://"+w.toServe.Address().String(), "--tag", "project=ranker", "--comment")
	for _, want := range []string{"**Memory: +", "That is more than the noise", "` 2 commits, the newest at the right", "| `train.py:4` | `<module>` |",
		"/runs/", "/trend?tag=project%3Dranker)"} {
		if !strings.Contains(text, want) {
			w.t.Errorf("the comment does not say %q: %s", want, text)
		}
	}
	return text
}

// againstBase asks for comments against a named base: as git calls it, and of two runs by their names. The command and the
// API say the same of each, to the letter.
func (w *walk) againstBase(bob *teamSession) {
	key := w.key("bobs-page", "--of", "bob", "--may", "read")
	for _, two := range []struct{ commit, base, asked, want string }{
		{"HEAD", "HEAD~1", "", "). The base has "},
		{"cached-1", "base-2", "commit=cached-1&base=base-2", " MiB with run `"},
	} {
		said := bob.must("trend", "--server", "http://"+w.toServe.Address().String(), "--tag", "project=ranker", "--comment",
			"--commit", two.commit, "--base", two.base)
		for _, want := range []string{"**Memory: +", "That is more than the noise", "` 2 commits, the newest at the right",
			"| `train.py:4` | `<module>` |", two.want} {
			if !strings.Contains(said, want) {
				w.t.Errorf("%s against %s: the comment does not say %q: %s", two.commit, two.base, want, said)
			}
		}
		if two.asked == "" {
			continue
		}
		var told trend.PullComment
		status, text := w.as(key, "GET", "/api/v1/trend/comment?tag=project%3Dranker&"+two.asked, "")
		if err := json.Unmarshal([]byte(text), &told); err != nil || status != 200 ||
			strings.ReplaceAll(told.Text, w.served.at(""), "http://"+w.toServe.Address().String()) != said {
			w.t.Errorf("%d %v: the API says %s\nthe command %s", status, err, text, said)
		}
	}
}

// readsLine follows the link of a comment to what a pull request changed, down to the line.
func (w *walk) readsLine(dora browserOf, comment string) {
	t := w.t
	var told trend.Trend
	if err := json.Unmarshal([]byte(dora.reads("/api/v1/trend?tag=project%3Dranker")), &told); err != nil {
		t.Fatal(err)
	}
	if len(told.Commits) != 2 || told.Commits[1].Verdict != trend.Changed || told.Commits[1].Runs != 2 {
		t.Fatalf("the trend: %+v", told)
	}
	before, after := told.Commits[1].Before, told.Commits[1].First
	link := "/diff?a=" + before + "&b=" + after
	if !strings.Contains(comment, "[Compare the two runs](http://"+w.toServe.Address().String()+link+")") {
		t.Errorf("the comment has no link to %s: %s", link, comment)
	}
	if page := dora.reads(link); !strings.Contains(page, "<script") {
		t.Errorf("the link opens %s", page)
	}
	var r report.Report
	if err := json.Unmarshal([]byte(dora.reads("/api/v1/diff/figures?a="+before+"&b="+after)), &r); err != nil {
		t.Fatal(err)
	}
	if tables, _ := json.Marshal(r.Tables); !strings.Contains(string(tables), `"train.py:\u003cmodule\u003e"`) {
		t.Errorf("the function that took more is not told: %s", tables)
	}
	for run, want := range map[string]bool{before: false, after: true} {
		var r report.Report
		if err := json.Unmarshal([]byte(dora.reads("/api/v1/runs/"+run+"/report")), &r); err != nil || r.Lines == nil {
			t.Fatalf("the report of %s: %v", run, err)
		}
		if told := slices.ContainsFunc(r.Lines.Lines, func(l report.Holding) bool {
			return l.Name == "train.py:4" && l.Line == 4 && l.Bytes >= 80<<20
		}); told != want {
			t.Errorf("the line that took more is told of run %s: %v", run, told)
		}
	}
	var list struct{ Runs []store.Run }
	if err := json.Unmarshal([]byte(dora.reads("/api/v1/runs?line=train.py:4")), &list); err != nil || len(list.Runs) != 2 {
		t.Errorf("runs of the line: %+v %v", list, err)
	}
}

// same compares two recordings by what they hold: what is sent is packed anew, with the project as a tag and the id that
// the server gives.
func (w *walk) same(name string, kept, sent []byte) {
	here, err := wire.Load(bytes.NewReader(kept))
	if err != nil {
		w.t.Fatal(err)
	}
	there, err := wire.Load(bytes.NewReader(sent))
	if err != nil {
		w.t.Fatalf("%s on the server: %v", name, err)
	}
	if len(there.Damage) > 0 || there.Info.Tags[store.ProjectTag] != "ranker" {
		w.t.Errorf("%s on the server: damage %v, tags %v", name, there.Damage, there.Info.Tags)
	}
	here.Info.Tags, here.Info.ID = there.Info.Tags, there.Info.ID
	if !reflect.DeepEqual(here, there) {
		w.t.Errorf("%s is another on the server", name)
	}
}

// areThere compares every run with what its machine recorded.
func (w *walk) areThere() {
	for name, of := range w.pushed {
		var list struct{ Runs []store.Run }
		if err := json.Unmarshal([]byte(of.must("ls", "--name", name, "--json")), &list); err != nil || len(list.Runs) != 1 {
			w.t.Fatalf("%s: %+v %v", name, list, err)
		}
		files, err := os.ReadDir(list.Runs[0].Dir)
		if err != nil {
			w.t.Fatal(err)
		}
		for _, file := range files {
			kept, err := os.ReadFile(filepath.Join(list.Runs[0].Dir, file.Name()))
			if err != nil {
				w.t.Fatal(err)
			}
			status, text := w.get("GET", "/runs/"+name+"/artifacts/"+file.Name())
			if file.Name() == store.Recording && status == 200 {
				w.same(name, kept, []byte(text))
			} else if status != 200 || !bytes.Equal([]byte(text), kept) {
				w.t.Errorf("%s of %s: %d, %d bytes of %d", file.Name(), name, status, len(text), len(kept))
			}
		}
	}
}
