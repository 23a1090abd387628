package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// machine is one of a person's, which knows the server and a key, and has no password of the database.
func (s *teamSession) machine(key string) *teamSession {
	dir := s.t.TempDir()
	own := &session{t: s.t, dir: dir, env: []string{"XDG_CONFIG_HOME=" + filepath.Join(dir, "config"), "HOME=" + dir}}
	if key != "" {
		own.env = append(own.env, "HIGHTIDE_KEY="+key)
	}
	return &teamSession{session: own, served: s.served}
}

// fails runs a command that has to fail, and returns what it says.
func (s *teamSession) fails(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err == nil {
		s.t.Errorf("hightide %q went well: %s", args, out)
	}
	return string(out)
}

// both runs a command, and returns all that it says.
func (s *teamSession) both(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("hightide %q: %v %s", args, err, out)
	}
	return string(out)
}

// pushFile has a project whose runs leave a machine without its name, the home of its user, and a customer's number.
var pushFile = strings.Replace(teamFile, "[projects.secret]",
	`redact = { hosts = true, paths = ["~"], text = ['cust-\d+'] }
[projects.secret]`, 1)

// TestPushToServer: a person with a key sends a run, once, into a project that it is in. What the project does not want
// does not leave the machine. Others of the project see the run, and nobody else.
func TestPushToServer(t *testing.T) {
	s := startTeam(t, pushFile)
	keys := map[string]string{}
	for _, who := range []string{"anna", "bob", "carol"} {
		keys[who] = s.key(who, "--may", "push")
	}
	anna, at := s.machine(keys["anna"]), s.served.at("")
	anna.env = append(anna.env, "HIGHTIDE_SERVER="+at, "HIGHTIDE_PROJECT=ranker")
	script := write(t, anna.dir, "cust-17.py", "held = bytearray(9 << 20)")
	anna.both("run", "--quiet", "--name", "first", "--", pythonPath(t), script)
	seen := anna.must("push", "first", "--dry-run")
	for _, want := range []string{"would go into ranker: run.hightide,", "text in ", "hosts in ", "left out report.html"} {
		if !strings.Contains(seen, want) {
			t.Errorf("looked at as %s; want %s", seen, want)
		}
	}
	if _, text := s.as(keys["anna"], "GET", "/api/v1/runs", ""); strings.Contains(text, "first") {
		t.Error("what was only looked at is there")
	}
	for path, body := range map[string]string{"/%C2%B0/files/run.hightide": `{"size_bytes":5}`, // no id of a run
		"/%C2%B0/live/0?stream=abcdefghijklmnop":                                                       "RIFF",
		fmt.Sprintf("/06frxy7rv0/files/run.hightide/parts/0?sha256=%x", sha256.Sum256([]byte("RIFF"))): "RIFF"} { // not begun
		if status, text := s.as(keys["anna"], "PUT", "/api/v1/projects/ranker/pushes"+path, body); status != 404 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	said := anna.must("push", "first")
	if !strings.Contains(said, "sent into ranker") || !strings.Contains(said, at+"/runs/") {
		t.Errorf("sent: %s", said)
	}
	if said := anna.must("push", "first"); !strings.Contains(said, "there already") {
		t.Errorf("again: %s", said)
	}
	status, text := s.as(keys["bob"], "GET", "/api/v1/runs/first/report", "")
	host, _ := os.Hostname()
	for _, secret := range []string{"cust-17", anna.dir, `"` + host + `"`} {
		if strings.Contains(text, secret) {
			t.Errorf("%s has left the machine", secret)
		}
	}
	if status != 200 || !strings.Contains(text, "***.py") {
		t.Errorf("a viewer gets %d", status)
	}
	if status, _ := s.as(keys["carol"], "GET", "/api/v1/runs/first", ""); status != 404 {
		t.Errorf("another project gets %d", status)
	}
	bob := s.machine(keys["bob"])
	bob.both("run", "--quiet", "--name", "his", "--", "/bin/true")
	said = bob.fails("push", "his", "--server", at, "--project", "ranker")
	if !strings.Contains(said, "may not do that") {
		t.Errorf("a viewer sends: %s", said)
	}
	for _, project := range []string{"secret", "nothing"} {
		said := bob.fails("push", "his", "--server", at, "--project", project)
		if !strings.Contains(said, `no project "`+project) {
			t.Errorf("into %s: %s", project, said)
		}
	}
}

// TestPushLater: while the server is away a run is recorded as ever, and goes with the next push.
func TestPushLater(t *testing.T) {
	s := startTeam(t, teamFile)
	key := s.key("anna", "--may", "push")
	anna, at := s.machine(key), s.served.at("")
	write(t, s.dir, "team.toml", strings.Replace(teamFile, "127.0.0.1:0", strings.TrimPrefix(at, "http://"), 1))
	_ = s.served.process.Process.Kill()
	_ = s.served.process.Wait()
	to := []string{"--push", "--server", at, "--project", "ranker"}
	said := anna.both(append(append([]string{"run", "--name", "late"}, to...), "--", "/bin/true")...)
	if !strings.Contains(said, "the run was not sent: cannot ask "+at) {
		t.Errorf("it says %s", said)
	}
	anna.fails("push")
	s.start()
	if said := anna.both("push"); !strings.Contains(said, "sent into ranker") {
		t.Errorf("later: %s", said)
	}
	if said := anna.both("push"); !strings.Contains(said, "Nothing waits") {
		t.Errorf("then: %s", said)
	}
	said = anna.both(append(append([]string{"run", "--name", "now"}, to...), "--", "/bin/true")...)
	if !strings.Contains(said, "sent: "+at+"/runs/") {
		t.Errorf("with the server there: %s", said)
	}
	_, text := s.as(key, "GET", "/api/v1/runs", "")
	if !strings.Contains(text, `"late"`) || !strings.Contains(text, `"now"`) {
		t.Errorf("the server has %s", text)
	}
	if said := s.must("audit"); strings.Contains(said, "/parts/") || !strings.Contains(said, "/pushes/") {
		t.Errorf("the log tells %s", said)
	}
}

// TestStrangersProjectFile: a project file has runs sent nowhere before the person confirms it, nor when it changes.
func TestStrangersProjectFile(t *testing.T) {
	s := startTeam(t, teamFile)
	anna, at := s.machine(""), s.served.at("")
	keys := s.key("anna", "--may", "push")
	file := func(server string) {
		write(t, anna.dir, ".hightide.toml", "server = '"+server+"'\nproject = 'ranker'\n[redact]\nhosts = true\n")
	}
	file(at)
	anna.both("run", "--quiet", "--name", "one", "--", "/bin/true")
	for _, args := range [][]string{{"push", "one"}, {"push"}, {"run", "--push", "--", "/bin/true"}} {
		if said := anna.fails(args...); !strings.Contains(said, "not confirmed") {
			t.Errorf("%q: %s", args, said)
		}
	}
	if said := anna.must("allow"); !strings.Contains(said, "sends into ranker of "+at) {
		t.Errorf("allowed: %s", said)
	}
	if said := anna.fails("push", "one"); !strings.Contains(said, "you have no key") {
		t.Errorf("without a key: %s", said)
	}
	login := anna.command("login", at)
	login.Stdin = strings.NewReader(keys + "\n")
	if out, err := login.CombinedOutput(); err != nil || !strings.Contains(string(out), "ranker: member") {
		t.Errorf("login: %v %s", err, out)
	}
	info, err := os.Stat(filepath.Join(anna.dir, "config", "hightide", "servers.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key is kept as %v, %v", info.Mode(), err)
	}
	said := anna.must("push", "one")
	if !strings.Contains(said, "sent into ranker") || !strings.Contains(said, "hosts in ") {
		t.Errorf("allowed, with a key: %s", said)
	}
	file("https://evil.example")
	if said := anna.fails("push", "one"); !strings.Contains(said, "not confirmed") {
		t.Errorf("another server: %s", said)
	}
	for _, wrong := range []string{"http://runs.example.org", "ftp://x", "https://a:b@c", "https://x/y",
		"runs.example.org"} {
		if said := anna.fails("push", "one", "--server", wrong, "--project", "ranker"); !strings.Contains(said, "hint:") {
			t.Errorf("%s: %s", wrong, said)
		}
	}
	for command, setting := range map[string]string{"run": "push = true", "push": "server = 'https://evil.example'"} {
		write(t, anna.dir, ".hightide.toml", "["+command+"]\n"+setting)
		if said := anna.fails(command, "x"); !strings.Contains(said, "a project cannot set") {
			t.Errorf("%s: %s", setting, said)
		}
	}
}
