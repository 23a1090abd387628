package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hightide/internal/server"
	"hightide/internal/testkit"
)

// teamFile serves two projects on a free port of the loopback.
const teamFile = `
address = "127.0.0.1:0"
admins = ["root"]
[projects.ranker]
members = ["anna"]
viewers = ["bob"]
[projects.secret]
members = ["carol"]
`

// teamSession is a store of a team in a PostgreSQL of the test, and a server of it.
type teamSession struct {
	*session
	config string
	served *uiProcess
}

func startTeam(t *testing.T, config string) *teamSession {
	t.Helper()
	s := &teamSession{session: newSession(t)}
	s.env = append(s.env, "HIGHTIDE_STORE="+testkit.StartPostgres(t).New(t), "HIGHTIDE_OBJECTS=file://"+t.TempDir())
	s.config = write(t, s.dir, "team.toml", config)
	s.start()
	return s
}

func (s *teamSession) start() { s.served = s.serveBy(s.command("serve", "--config", s.config)) }

// must runs a command that has to succeed, and returns what it prints.
func (s *teamSession) must(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).Output()
	if err != nil {
		s.t.Fatalf("hightide %q: %v", args, err)
	}
	return string(out)
}

// key makes one, and returns its secret.
func (s *teamSession) key(args ...string) string {
	s.t.Helper()
	return strings.TrimSpace(s.must(append([]string{"key"}, args...)...))
}

// as is what somebody with a key gets.
func (s *teamSession) as(key, method, path, body string) (int, string) {
	s.t.Helper()
	asker := *s.served
	asker.token = key
	return asker.ask(method, path, body)
}

// TestServe: each sees the runs of its projects, as the file says it now, by keys that end at once; who changed what is
// kept, also when the server was killed.
func TestServe(t *testing.T) {
	s := startTeam(t, teamFile)
	s.must("run", "--quiet", "--tag", "project=ranker", "--name", "shown", "--", "/bin/true")
	s.must("run", "--quiet", "--tag", "project=secret", "--name", "hidden", "--", "/bin/true")
	anna, root := s.key("anna", "--may", "push"), s.key("root", "--may", "admin")
	bob := s.key("laptop", "--of", "bob", "--may", "push")
	for who, want := range map[string][2]bool{anna: {true, false}, bob: {true, false}, root: {true, true}} {
		status, text := s.as(who, "GET", "/api/v1/runs", "")
		if got := [2]bool{strings.Contains(text, "shown"), strings.Contains(text, "hidden")}; status != 200 || got != want {
			t.Errorf("%d, sees %v; want %v", status, got, want)
		}
	}
	rename := func(who, run string) int {
		status, _ := s.as(who, "PATCH", "/api/v1/runs/"+run, `{"set":{"seen":"yes"}}`)
		return status
	}
	if a, b, c := rename(anna, "shown"), rename(bob, "shown"), rename(anna, "hidden"); a != 200 || b != 403 || c != 404 {
		t.Errorf("a member %d, a viewer %d, who does not see it %d", a, b, c)
	}
	write(t, s.dir, "team.toml", strings.NewReplacer("viewers", "admins", `"anna"`, `"dora"`).Replace(teamFile))
	waitFor(t, func() bool {
		return rename(bob, "shown") == 200 && rename(anna, "shown") == 403
	})
	write(t, s.dir, "team.toml", "members = 1")
	waitFor(t, func() bool {
		s.as(bob, "GET", "/api/v1/status", "")
		return strings.Contains(s.served.said.String(), "stay as they were")
	})
	if rename(bob, "shown") != 200 {
		t.Error("a wrong file has changed roles")
	}
	s.must("key", "laptop", "--revoke")
	if status, _ := s.as(bob, "GET", "/api/v1/status", ""); status != 401 {
		t.Errorf("a revoked key: %d", status)
	}
	_ = s.served.process.Process.Kill()
	write(t, s.dir, "team.toml", teamFile)
	s.start()
	s.audited(root)
	if status, _ := s.as(anna, "GET", "/api/v1/audit", ""); status != 403 {
		t.Errorf("the log for a member: %d", status)
	}
}

// audited looks for what was done in the log: by the API and by the command, which are one.
func (s *teamSession) audited(root string) {
	s.t.Helper()
	status, text := s.as(root, "GET", "/api/v1/audit?limit=1000", "")
	var list server.ActList
	if err := json.Unmarshal([]byte(text), &list); err != nil || status != 200 {
		s.t.Fatalf("%d %v", status, err)
	}
	told := s.must("audit", "--limit", "1000", "--json")
	for _, want := range []string{`key \"anna\"`, `key \"laptop\" of \"bob\"`, `PATCH \"/api/v1/runs/shown\"`,
		`127.0.0.1:`,
		`made key \"root\" of \"root\" for admin`, `revoked key \"laptop\"`, `"status": 403`} {
		if !strings.Contains(told, want) || !strings.Contains(text, strings.ReplaceAll(want, ": 403", ":403")) {
			s.t.Errorf("the log does not tell %s:\n%s", want, told)
		}
	}
	if strings.Contains(told, "seen") || len(list.Acts) < 8 {
		s.t.Errorf("the log has %d acts, and what a request held: %s", len(list.Acts), told)
	}
}

// TestServeRefuses: a file that is wrong serves nobody.
func TestServeRefuses(t *testing.T) {
	s := newSession(t)
	s.env = append(s.env, "HIGHTIDE_STORE=postgres://nobody@127.0.0.1:1/none",
		"HIGHTIDE_OBJECTS=file://"+t.TempDir())
	for text, want := range map[string]string{"": "cannot use the store", "role = 1": "line 1: there is no setting role",
		"store = '/tmp'": "/tmp is no store of a team"} {
		path := write(t, s.dir, "team.toml", text)
		out, err := s.command("serve", "--config", path).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%q: %v %s; want %s", text, err, out, want)
		}
	}
	out, err := s.command("serve").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "no file of the team") {
		t.Errorf("without a file: %v %s", err, out)
	}
}

// TestServeKeeps: a project's runs go when the file says so, with their rows and objects and nobody else's, but those
// with the tag keep; and the log tells.
func TestServeKeeps(t *testing.T) {
	s := startTeam(t, teamFile)
	objects := func() (n int) {
		_ = filepath.WalkDir(strings.TrimPrefix(s.env[1], "HIGHTIDE_OBJECTS=file://"), func(_ string, d os.DirEntry,
			err error) error {
			if err == nil && d.Type().IsRegular() {
				n++
			}
			return nil
		})
		return n
	}
	record := func(name string, tags ...string) {
		args := []string{"run", "--quiet", "--name", name}
		for _, tag := range tags {
			args = append(args, "--tag", tag)
		}
		s.must(append(args, "--", "/bin/true")...)
	}
	record("old", "project=ranker")
	record("kept", "project=ranker", "keep=yes")
	before := objects()
	record("other", "project=secret")
	others := objects() - before
	said := s.must("prune", "--project", "secret", "--older-than", "1h", "--dry-run")
	if !strings.Contains(said, "0 runs") {
		t.Errorf("a young run: %s", said)
	}
	_ = s.served.process.Process.Kill()
	write(t, s.dir, "team.toml", strings.Replace(teamFile, "[projects.secret]",
		`keep = { size = "1B" }`+"\n[projects.secret]", 1))
	s.start()
	waitFor(t, func() bool { return !strings.Contains(s.must("ls", "--json"), `"old"`) })
	if told := s.must("ls", "--json"); !strings.Contains(told, `"kept"`) || !strings.Contains(told, `"other"`) {
		t.Errorf("left %s", told)
	}
	said = s.must("prune", "--project", "secret", "--max-size", "1B", "--yes")
	if !strings.Contains(said, "deleted 1 run") {
		t.Errorf("by the command: %s", said)
	}
	s.must("rm", "kept")
	if n := objects(); n != 0 || others == 0 {
		t.Errorf("%d objects are left of runs that were deleted", n)
	}
	waitFor(t, func() bool { return strings.Contains(s.must("audit"), `deleted run `) })
}
