package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// read is a file of the session's folder, without the line's end.
func (s *session) read(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, name))
	if err != nil {
		s.t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// enter opens an address as a browser does, and gives the status of what it then asks for.
func (s *uiProcess) enter(address string) (entered, asks int) {
	s.t.Helper()
	_, code, _ := strings.Cut(address, "#code=")
	answer, err := s.client.Post(s.at("/api/v1/session"), "application/json", strings.NewReader(`{"code":"`+code+`"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	var in struct{ Page string }
	_ = json.NewDecoder(answer.Body).Decode(&in)
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, s.at("/api/v1/status"), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, cookie := range answer.Cookies() {
		request.AddCookie(cookie)
	}
	request.Header.Set("X-Hightide-Page", in.Page)
	status, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	status.Body.Close()
	return answer.StatusCode, status.StatusCode
}

// TestAddressOpensOnce: what is printed lets one browser in, once. hightide ui prints another while the server runs,
// and what a server that was killed left leads nobody anywhere.
func TestAddressOpensOnce(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	ui := s.serve()
	if strings.Contains(ui.address, ui.token) || ui.said.String() != "" {
		t.Errorf("it says %s, %s", ui.address, ui.said)
	}
	if entered, asks := ui.enter(ui.address); entered != 201 || asks != 200 {
		t.Errorf("the first time: %d, then %d", entered, asks)
	}
	if entered, asks := ui.enter(ui.address); entered != 401 || asks != 401 {
		t.Errorf("the second time: %d, then %d", entered, asks)
	}
	at, _ := url.Parse(ui.address)
	out, err := s.command("ui", "--addr", at.Host).CombinedOutput()
	if fields := strings.Fields(string(out)); err != nil || len(fields) < 3 ||
		!strings.Contains(string(out), "a server that runs already") {
		t.Errorf("a second hightide ui: %v %s", err, out)
	} else if entered, asks := ui.enter(fields[2]); entered != 201 || asks != 200 {
		t.Errorf("its address: %d, then %d", entered, asks)
	}
	if out, err := s.command("ui", "--addr", "localhost:"+at.Port()).CombinedOutput(); err != nil || !strings.Contains(string(out), "http://127.0.0.1:"+at.Port()+"/#code=") {
		t.Errorf("by name: %v %s", err, out)
	}
	out, err = s.command("ui", "--addr", at.Host, "--allow-exec").CombinedOutput()
	if err == nil || err.(*exec.ExitError).ExitCode() != 4 || strings.Contains(string(out), "#code=") ||
		!strings.Contains(string(out), "--addr 127.0.0.1:0") {
		t.Errorf("with more asked for: %v %s", err, out)
	}
	if out, err := newSession(t).command("ui", "--addr", at.Host).CombinedOutput(); err == nil || !strings.Contains(string(out), "address already in use") {
		t.Errorf("of another data directory: %v %s", err, out)
	}
	_ = ui.process.Process.Kill()
	_ = ui.process.Wait()
	left := filepath.Join(s.dir, "data", "ui", "server-"+at.Port()+".json")
	if _, err := os.Stat(left); err != nil {
		t.Fatal(err)
	}
	stranger := http.Server{Addr: at.Host, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another account's server on the port is sent %v", r.Header)
	})}
	go func() { _ = stranger.ListenAndServe() }()
	defer stranger.Close()
	waitFor(t, func() bool {
		out, err = s.command("ui", "--addr", at.Host).CombinedOutput()
		return err != nil // until the other one listens
	})
	if _, err := os.Stat(left); !strings.Contains(string(out), "address already in use") || !os.IsNotExist(err) {
		t.Errorf("%s; the file: %v", out, err)
	}
}

// TestTokenIsOfThisAccount: the file with the token is closed to other accounts, which the server then does not know,
// and goes with it.
func TestTokenIsOfThisAccount(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	ui := s.serve()
	at, _ := url.Parse(ui.address)
	path := filepath.Join(s.dir, "data", "ui", "server-"+at.Port()+".json")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if nobody := (&syscall.Credential{Uid: 65534, Gid: 65534}); os.Getuid() == 0 {
		for _, name := range []string{path, filepath.Join(s.dir, "data", "ui"), filepath.Join(s.dir, "data", "hightide.db")} {
			look := exec.Command("cat", name)
			if look.SysProcAttr = (&syscall.SysProcAttr{Credential: nobody}); look.Run() == nil {
				t.Errorf("another account reads %s", name)
			}
		}
	}
	ui.token = ""
	for _, path := range []string{"/api/v1/runs", "/api/v1/live", "/metrics", "/openapi.json"} {
		if status, text := ui.get(path); status != 401 {
			t.Errorf("%s without the token: %d %s", path, status, text)
		}
	}
	if err := ui.process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = ui.process.Wait()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s stays: %v", path, err)
	}
}

// TestTokenFiles: a token of one's own stays over restarts. One that others can read, or can guess, is refused.
func TestTokenFiles(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	first := s.serve("--token-file", "token")
	if again := s.serve("--token-file", "token"); again.token != first.token || again.token != s.read("token") || len(again.token) < 20 {
		t.Errorf("%q, then %q", first.token, again.token)
	}
	for name, test := range map[string]struct {
		text string
		mode os.FileMode
		says string
	}{
		"open to others": {strings.Repeat("x", 30), 0o644, "chmod o="},
		"short":          {"secret", 0o600, "does not hold one word of 16 letters or more"},
		"two words":      {strings.Repeat("x", 30) + " y", 0o600, "does not hold one word"},
		"empty":          {"", 0o600, "does not hold one word"},
	} {
		write(t, s.dir, "wrong", test.text)
		if err := os.Chmod(filepath.Join(s.dir, "wrong"), test.mode); err != nil {
			t.Fatal(err)
		}
		for _, flag := range []string{"--token-file", "--metrics-token-file"} {
			out, err := s.command("ui", "--addr", "127.0.0.1:0", flag, "wrong").CombinedOutput()
			if err == nil || err.(*exec.ExitError).ExitCode() != 3 || !strings.Contains(string(out), test.says) ||
				!strings.Contains(string(out), flag) || test.text != "" && strings.Contains(string(out), test.text) {
				t.Errorf("%s: %v %s", name, err, out)
			}
		}
	}
}

// TestAddressForOthers: where other machines can reach the server, it says where the token is. Without TLS it warns.
func TestAddressForOthers(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	s.certificate()
	const warns = "warning: without TLS"
	for _, test := range []struct {
		args  []string
		warns bool
	}{
		{[]string{"--addr", "0.0.0.0:0"}, true},
		{[]string{"--addr", "0.0.0.0:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem"}, false},
	} {
		ui := s.serve(test.args...)
		at, _ := url.Parse(ui.address)
		ui.address = at.Scheme + "://127.0.0.1:" + at.Port()
		waitFor(t, func() bool {
			return strings.Contains(ui.said.String(), "\n") && (!test.warns || strings.Contains(ui.said.String(), warns))
		})
		if says := ui.said.String(); strings.Contains(says, warns) != test.warns ||
			!strings.Contains(says, filepath.Join("data", "ui", "server-"+at.Port()+".json")) ||
			strings.Contains(says, ui.token) {
			t.Errorf("%v: it says %s", test.args, says)
		}
		if with, _ := ui.get("/api/v1/status"); with != 200 {
			t.Errorf("%v: with the token %d", test.args, with)
		}
		ui.token = "wrong"
		if without, _ := ui.get("/api/v1/status"); without != 401 {
			t.Errorf("%v: without the token %d", test.args, without)
		}
	}
	if ui := s.serve(); ui.said.String() != "" {
		t.Errorf("on the loopback it says %s", ui.said)
	}
}

// certificate makes one for this machine, in cert.pem and key.pem.
func (s *session) certificate() {
	s.t.Helper()
	made := exec.Command("openssl", "req", "-x509", "-newkey", "ed25519", "-noenc", "-days", "2", "-subj",
		"/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem")
	made.Dir = s.dir
	if out, err := made.CombinedOutput(); err != nil {
		s.t.Skipf("openssl makes no certificate here: %v %s", err, out)
	}
}

// TestOpenTellsNobodyTheCode: a browser is not handed the code as an argument, which other users of the machine would
// see. It is handed a file that nobody else may read.
func TestOpenTellsNobodyTheCode(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	browser := s.fakeBrowser()
	ui := s.serve("--open")
	opened := browser()
	if _, code, _ := strings.Cut(ui.address, "#code="); len(code) < 20 || strings.Contains(opened, code) {
		t.Fatalf("%s was opened as %s", ui.address, opened)
	}
	if page := readFile(t, opened); !strings.Contains(page, ui.address) {
		t.Errorf("%s has %s", opened, page)
	}
	if info, err := os.Stat(opened); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
