package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"hightide/internal/testkit"
)

// uiProcess is a hightide ui that runs.
type uiProcess struct {
	t       testing.TB
	process *exec.Cmd
	address string // as it is printed
	token   string // which it left for programs of this account
	client  *http.Client
	said    *sentences // after that
}

// serve starts hightide ui on a free port.
func (s *session) serve(args ...string) *uiProcess {
	s.t.Helper()
	return s.serveBy(s.command(append([]string{"ui", "--addr", "127.0.0.1:0"}, args...)...))
}

var listening = regexp.MustCompile(`^hightide (ui|serve): http`)

// serveBy is serve by a command of its own.
func (s *session) serveBy(c *exec.Cmd) *uiProcess {
	s.t.Helper()
	errors, err := c.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines, said := bufio.NewReader(errors), new(sentences)
	line, err := lines.ReadString('\n')
	for ; err == nil && !listening.MatchString(line); line, err = lines.ReadString('\n') {
		_, _ = said.Write([]byte(line)) // as of a push that fails at once
	}
	fields := strings.Fields(line)
	if len(fields) < 3 {
		s.t.Fatalf("it says %q after %q", line, said)
	}
	trusting := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	go func() { _, _ = io.Copy(said, lines) }()
	token := ""
	if strings.HasPrefix(line, "hightide ui") && !slices.Contains(c.Args, "--compat") {
		token = s.tokenOf(fields[2])
	}
	return &uiProcess{s.t, c, fields[2], token, &http.Client{Transport: trusting,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, said}
}

// sentences are what a program says, as it comes.
type sentences struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *sentences) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *sentences) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// tokenOf is what a server left for other programs of this account.
func (s *session) tokenOf(address string) string {
	s.t.Helper()
	at, err := url.Parse(address)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "data", "ui", "server-"+at.Port()+".json"))
	var door doorFile
	if err != nil || json.Unmarshal(text, &door) != nil {
		s.t.Fatalf("error %v, %s", err, text)
	}
	return door.Token
}

// at is an address of the server, whatever page the printed one leads to.
func (s *uiProcess) at(path string) string {
	whole, err := url.Parse(s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	return whole.Scheme + "://" + whole.Host + path
}

func (s *uiProcess) get(path string) (int, string) {
	s.t.Helper()
	return s.ask(http.MethodGet, path, "")
}

func (s *uiProcess) ask(method, path, body string) (int, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.at(path), strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// post sends a file as it is.
func (s *uiProcess) post(name string, body io.Reader, size int64) (int, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.at("/api/v1/snapshots?name="+name), body)
	if err != nil {
		s.t.Fatal(err)
	}
	request.ContentLength = size
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Content-Type", "application/octet-stream")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// TestUploads: a snapshot is taken in. What wants to run something, is broken, is not a snapshot or is too large is
// refused in one line, by a process that may take only so much. Nothing of it stays.
func TestUploads(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	ui := s.serve()
	whole := testkit.Data(t, "real/mosaic-synthetic.pickle")
	var packed strings.Builder
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(whole)
	_ = z.Close()
	wrong := []byte(packed.String())
	wrong[len(wrong)-6] ^= 1 // of the checksum
	for name, test := range map[string]struct {
		data string
		want int
		says string
	}{
		"a snapshot":          {string(whole), 201, `"devices":1`},
		"packed":              {packed.String(), 201, `"format":"torch-pickle"`},
		"runs something":      {"cos\nsystem\n(S'touch ran'\ntR.", 422, "do not load this file"},
		"truncated":           {string(whole[:len(whole)/2]), 422, "the file"},
		"a wrong checksum":    {string(wrong), 422, "checksum"},
		"a recording's start": {"HIGHTIDE", 422, "hightide"},
		"nothing":             {"", 422, "empty"},
		"no snapshot":         {"Torch was not compiled with CUDA enabled", 422, ""},
	} {
		status, text := ui.post("x.pickle", strings.NewReader(test.data), int64(len(test.data)))
		if status != test.want || !strings.Contains(text, test.says) {
			t.Errorf("%s: %d %s; want %d with %q", name, status, text, test.want, test.says)
		}
		if status != 201 && strings.Contains(text, s.dir) {
			t.Errorf("%s: the answer names a place on this machine: %s", name, text)
		}
	}
	if status, text := ui.post("sparse", io.LimitReader(zeros{}, 3<<30), 3<<30); status != 413 && !strings.Contains(text, "reset") && !strings.Contains(text, "broken pipe") {
		t.Errorf("3 GB: %d %s", status, text)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "ran")); err == nil {
		t.Error("the upload ran")
	}
	if kept, _ := filepath.Glob(filepath.Join(s.dir, "data", "uploads", "ui-*", "*")); len(kept) != 2 {
		t.Errorf("kept are %v; want the two snapshots", kept)
	}
	if err := ui.process.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := ui.process.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "uploads", "*")); len(left) != 0 {
		t.Errorf("the server left %v", left)
	}
}

// TestUploadOfRecording: a recording that is sent becomes a run until the server ends or it is deleted, and nothing
// of it comes into the data directory.
func TestUploadOfRecording(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	elsewhere := filepath.Join(s.dir, "elsewhere")
	if out, err := s.command("--data-dir", elsewhere, "run", "--quiet", "--name", "guest", "--",
		"true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found, _ := filepath.Glob(filepath.Join(elsewhere, "runs", "*", "run.hightide"))
	if len(found) != 1 {
		t.Fatalf("recorded are %v", found)
	}
	recording, err := os.ReadFile(found[0])
	if err != nil {
		t.Fatal(err)
	}
	ui := s.serve()
	status, text := ui.post("run.hightide", bytes.NewReader(recording), int64(len(recording)))
	var told struct{ ID, Run, Format string }
	if err := json.Unmarshal([]byte(text), &told); err != nil || status != 201 || told.Run == "" || told.ID != "" || told.Format != "recording" {
		t.Fatalf("%d %s", status, text)
	}
	status, text = ui.get("/api/v1/runs/" + told.Run)
	if status != 200 || !strings.Contains(text, `"from":"upload"`) || !strings.Contains(text, `"name":"guest"`) ||
		strings.Contains(text, s.dir) {
		t.Errorf("its row: %d %s", status, text)
	}
	for _, path := range []string{"/report", "/series?name=main", "/artifacts/run.hightide"} {
		if status, text := ui.get("/api/v1/runs/" + told.Run + path); status != 200 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	if status, text := ui.ask(http.MethodPatch, "/api/v1/runs/"+told.Run, `{"name":"x"}`); status != 409 || !strings.Contains(text, "only looked at") {
		t.Errorf("renamed: %d %s", status, text)
	}
	if status, text = ui.ask(http.MethodDelete, "/api/v1/runs/"+told.Run, ""); status != 200 {
		t.Errorf("deleted: %d %s", status, text)
	}
	if status, text = ui.get("/api/v1/runs/" + told.Run); status != 404 {
		t.Errorf("after that: %d %s", status, text)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "uploads", "ui-*", "*")); len(left) != 0 {
		t.Errorf("its file is still there: %v", left)
	}
	broken := append([]byte{}, recording[:len(recording)/2]...)
	// what was cut off is read as far as it goes
	if status, text := ui.post("half", bytes.NewReader(broken), int64(len(broken))); status != 201 && status != 422 {
		t.Errorf("half of it: %d %s", status, text)
	}
	broken[12] ^= 0xff
	if status, _ := ui.post("mangled", bytes.NewReader(broken[:14]), 14); status != 422 {
		t.Errorf("a damaged head: %d", status)
	}
}

// TestSnapshotIsClosed: an upload is deleted with its file, a file that was named stays.
func TestSnapshotIsClosed(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	file := filepath.Join(s.dir, "mine.pickle")
	whole := testkit.Data(t, "real/mosaic-synthetic.pickle")
	if err := os.WriteFile(file, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	ui := s.serve(file)
	ui.post("theirs.pickle", bytes.NewReader(whole), int64(len(whole)))
	var list struct {
		Snapshots []struct{ ID, Name, From string }
	}
	if _, text := ui.get("/api/v1/snapshots"); json.Unmarshal([]byte(text), &list) != nil || len(list.Snapshots) != 2 {
		t.Fatalf("open are %s", text)
	}
	for _, one := range list.Snapshots {
		if status, text := ui.ask(http.MethodDelete, "/api/v1/snapshots/"+one.ID, ""); status != 200 {
			t.Errorf("%s: %d %s", one.Name, status, text)
		}
		if status, _ := ui.get("/api/v1/snapshots/" + one.ID); status != 404 {
			t.Errorf("%s is still open: %d", one.Name, status)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "data", "uploads", "ui-*", "*")); len(left) != 0 {
		t.Errorf("uploads that are still there: %v", left)
	}
	if _, err := os.Stat(file); err != nil {
		t.Errorf("the file that was named: %v", err)
	}
}

// TestUIFiles: what is named is what is shown, and the address leads there; what cannot be shown is one line.
func TestUIFiles(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	elsewhere, folder := filepath.Join(s.dir, "elsewhere"), filepath.Join(s.dir, "snapshots")
	if out, err := s.command("--data-dir", elsewhere, "run", "--quiet", "--name", "guest", "--",
		"true").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	found, _ := filepath.Glob(filepath.Join(elsewhere, "runs", "*"))
	recording := filepath.Join(found[0], "run.hightide")
	whole := testkit.Data(t, "real/mosaic-synthetic.pickle")
	for name, text := range map[string]string{"snapshots/a.pickle": string(whole), "snapshots/b.pickle": string(whole),
		"snapshots/readme.txt": "about them", "empty": "", "words.txt": "nothing to see"} {
		_ = os.MkdirAll(folder, 0o700)
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	id := filepath.Base(found[0])
	for _, test := range []struct {
		args       []string
		page       string
		runs, open int
	}{
		{[]string{recording}, "/runs/" + id, 1, 0},
		{[]string{found[0]}, "/runs/" + id, 1, 0}, // its folder
		{[]string{folder}, "/snapshots", 0, 2},
		{[]string{filepath.Join(folder, "a.pickle")}, "/snapshots/", 0, 1},
		{[]string{filepath.Join(folder, "a.pickle"), recording}, "/", 1, 1},
	} {
		ui := s.serve(test.args...)
		if _, page, _ := strings.Cut(strings.TrimPrefix(ui.address, "http://"), "/"); !strings.HasPrefix("/"+page, test.page) {
			t.Errorf("%v leads to %s", test.args, ui.address)
		}
		var runs struct{ Runs []struct{ ID, From string } }
		var snapshots struct{ Snapshots []struct{ Name string } }
		_, text := ui.get("/api/v1/runs")
		_ = json.Unmarshal([]byte(text), &runs)
		_, text = ui.get("/api/v1/snapshots")
		_ = json.Unmarshal([]byte(text), &snapshots)
		if len(runs.Runs) != test.runs || len(snapshots.Snapshots) != test.open ||
			test.runs == 1 && runs.Runs[0].From != "file" {
			t.Errorf("%v shows %v and %v", test.args, runs, snapshots)
		}
		if test.runs == 1 {
			if status, text := ui.get("/api/v1/runs/" + id + "/report"); status != 200 {
				t.Errorf("its report: %d %s", status, text)
			}
		}
	}
	for arg, says := range map[string]string{
		"nothere.pickle": "nothere.pickle", "empty": "is empty", "words.txt": "unknown file format", "-": "stdin",
		filepath.Dir(recording) + "/../..": "holds neither a snapshot nor a recording",
	} {
		out, err := s.command("ui", "--addr", "127.0.0.1:0", arg).CombinedOutput()
		if err == nil || !strings.Contains(string(out), says) || strings.Count(string(out), "\n") > 2 ||
			strings.Contains(string(out), "http://") {
			t.Errorf("ui %s: %v %s", arg, err, out)
		}
	}
}

// zeros is a file of holes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// TestCheckUploadIsLimited: what takes more memory than it may ends, and with it only the process that reads.
func TestCheckUploadIsLimited(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	file := testkit.Path(t, "real/h100-lm-ctx128-train-step.pickle")
	if out, err := s.command("check-upload", file).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := s.command("check-upload", "--memory", "8388608", file).CombinedOutput()
	if err == nil || strings.Contains(string(out), `"format"`) {
		t.Errorf("with 8 MiB: %v %.200s", err, out)
	}
}

// TestMoreStreamsThanDescriptors: a server that may have 200 descriptors is asked for 400 streams. It says to those
// without room that there is none, answers everything else meanwhile, and has room again once some have gone.
func TestMoreStreamsThanDescriptors(t *testing.T) {
	s := newSession(t)
	c := s.command()
	c.Path, c.Args = "/bin/sh", []string{"sh", "-c", "ulimit -n 200; ulimit -S -n 64; exec hightide ui --addr 127.0.0.1:0"}
	p := s.serveBy(c)
	var streams, refused []*http.Response
	for range 400 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.at("/api/v1/live"), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+p.token)
		answer, err := p.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			streams = append(streams, answer)
			continue
		}
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" ||
			!bytes.Contains(text, []byte("as 200 open files allow")) {
			t.Fatalf("%s, %v: %s", answer.Status, answer.Header, text)
		}
		refused = append(refused, answer)
	}
	if len(streams) < 100 || len(refused) == 0 { // 64 would be what it began with
		t.Errorf("%d streams, %d refused", len(streams), len(refused))
	}
	for range 20 {
		if code, text := p.get("/api/v1/runs"); code != http.StatusOK {
			t.Fatalf("beside %d streams: %d %s", len(streams), code, text)
		}
	}
	for _, gone := range streams[:50] {
		gone.Body.Close()
	}
	for code := 0; code != http.StatusOK; {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.at("/api/v1/live"), nil)
		request.Header.Set("Authorization", "Bearer "+p.token)
		answer, err := p.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		code = answer.StatusCode
	}
}
