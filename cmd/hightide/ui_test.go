package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"hightide/internal/testkit"
)

// uiProcess is a hightide ui that runs.
type uiProcess struct {
	t       testing.TB
	process *exec.Cmd
	address string // as it is printed
	client  *http.Client
}

// serve starts hightide ui on a free port.
func (s *session) serve(args ...string) *uiProcess {
	s.t.Helper()
	c := s.command(append([]string{"ui", "--addr", "127.0.0.1:0"}, args...)...)
	errors, err := c.StderrPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	lines := bufio.NewReader(errors)
	line, _ := lines.ReadString('\n')
	fields := strings.Fields(line)
	if len(fields) < 3 || !strings.HasPrefix(line, "hightide ui: http") {
		s.t.Fatalf("it says %q", line)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	trusting := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	return &uiProcess{s.t, c, fields[2], &http.Client{Transport: trusting, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// post sends a file as it is.
func (s *uiProcess) post(name string, body io.Reader, size int64) (int, string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, strings.TrimSuffix(s.address, "/")+"/api/v1/snapshots?name="+name, body)
	if err != nil {
		s.t.Fatal(err)
	}
	request.ContentLength = size
	request.Header.Set("Content-Type", "application/octet-stream")
	response, err := s.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(text)
}

// TestUploads: a snapshot is taken in; what wants to run something, is broken, is no snapshot or is too large is refused in one line,
// by a process that may take only so much, and nothing of it stays.
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

// TestAddressForOthers: where others can reach the server it asks for the token, which it prints once; TLS is spoken with the
// certificate that it is given.
func TestAddressForOthers(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	made := exec.Command("openssl", "req", "-x509", "-newkey", "ed25519", "-noenc", "-days", "2", "-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem")
	made.Dir = s.dir
	if out, err := made.CombinedOutput(); err != nil {
		t.Skipf("openssl makes no certificate here: %v %s", err, out)
	}
	ui := s.serve("--addr", "0.0.0.0:0", "--tls-cert", "cert.pem", "--tls-key", "key.pem")
	address, token, _ := strings.Cut(ui.address, "?token=")
	_, port, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(address, "https://"), "/"), ":")
	here := "https://127.0.0.1:" + port + "/api/v1/status"
	if len(token) < 20 {
		t.Fatalf("it says %q", ui.address)
	}
	get := func(ctx context.Context, token string) int {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, here, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		response, err := ui.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var status struct{ Version string }
		if response.StatusCode == 200 && (json.NewDecoder(response.Body).Decode(&status) != nil || status.Version == "") {
			t.Error("the answer has no version")
		}
		return response.StatusCode
	}
	if without, with := get(t.Context(), ""), get(t.Context(), token); without != 401 || with != 200 {
		t.Errorf("without the token %d, with it %d", without, with)
	}
}
