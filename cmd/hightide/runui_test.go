package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestRunUI: the page of a run is opened while it runs, and its server is there after the run has ended, until nobody
// looks.
func TestRunUI(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	opened := s.fakeBrowser()
	t.Cleanup(func() { endServers(s.dir) })
	c := s.command("run", "--quiet", "--ui", "--", "sh", "-c", "until test -e done; do sleep 0.05; done; exit 7")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, page, _ := strings.Cut(readFile(t, opened()), "url=")
	page, _, _ = strings.Cut(page, "\"")
	token := s.tokenOf(page)
	address, id, _ := strings.Cut(page, "runs/")
	id, _, _ = strings.Cut(id, "#code=")
	state := func() string {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, address+"api/v1/runs/"+id, nil)
		request.Header.Set("Authorization", "Bearer "+token)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var row struct{ State string }
		_ = json.NewDecoder(response.Body).Decode(&row)
		return row.State
	}
	if got := state(); got != "running" {
		t.Errorf("%s shows a run that is %q", page, got)
	}
	write(t, s.dir, "done", "")
	if err := c.Wait(); c.ProcessState.ExitCode() != 7 {
		t.Errorf("the run ended with %v; want the program's own 7", err)
	}
	if got := state(); got != "finished" {
		t.Errorf("after the run the page shows it as %q", got)
	}
}

// fakeBrowser stands in for the browser of the session's commands; opened waits for what it is told to open.
func (s *session) fakeBrowser() (opened func() string) {
	s.t.Helper()
	write(s.t, s.dir, "xdg-open", "#!/bin/sh\necho \"$1\" > \"$(dirname \"$0\")/opened.part\" && mv \"$(dirname "+
		"\"$0\")/opened.part\" \"$(dirname \"$0\")/opened\"\n")
	if err := os.Chmod(filepath.Join(s.dir, "xdg-open"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	s.env = append(s.env, "PATH="+s.dir+":"+os.Getenv("PATH"))
	return func() (what string) {
		waitFor(s.t, func() bool {
			text, err := os.ReadFile(filepath.Join(s.dir, "opened"))
			what = strings.TrimSpace(string(text))
			return err == nil
		})
		return what
	}
}

// TestIdleServer: a server that nobody looks at ends by itself.
func TestIdleServer(t *testing.T) {
	t.Parallel()
	s := newSession(t)
	if out, err := s.command("ui", "--addr", "127.0.0.1:0", "--idle", "1s").CombinedOutput(); err != nil {
		t.Errorf("%v %s", err, out)
	}
}

// endServers ends what runs in the background for the recordings of a folder.
func endServers(dir string) {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		text, _ := os.ReadFile(path)
		if words := strings.Split(string(text), "\x00"); len(words) > 1 && words[1] == "ui" && strings.Contains(string(text), dir) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		}
	}
}
