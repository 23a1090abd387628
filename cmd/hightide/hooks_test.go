package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hightide/internal/hooks"
	"hightide/internal/store"
)

// receiver is who is told of runs. It refuses until it is said to take.
type receiver struct {
	mu      sync.Mutex
	takes   bool
	refused int
	got     []*http.Request
	bodies  []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.takes {
		r.refused++
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	r.got, r.bodies = append(r.got, request), append(r.bodies, string(body))
}

func (r *receiver) set(takes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes = takes
}

func (r *receiver) counts() (refused, got int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refused, len(r.got)
}

// TestHooks: what was found in a run is told to its project's hooks, signed, as they take it, also after the server was
// killed; to no other project's, and of no run that has nothing. One that does not answer holds up nobody, and no
// address stands in the log or the database.
func TestHooks(t *testing.T) {
	var signed, chat, others receiver
	at := func(r *receiver) string {
		s := httptest.NewServer(r)
		t.Cleanup(s.Close)
		return s.URL + "/SECRETADDRESS"
	}
	chat.set(true)
	others.set(true)
	s := startTeam(t, teamFile)
	write(t, s.dir, "chat-url", at(&chat)+"\n")
	write(t, s.dir, "sign", "a secret\n")
	config := "url = 'https://runs.example.org'\n" + strings.Replace(teamFile, "[projects.secret]", "[[projects.ranker.hooks]]\nurl = '"+at(&signed)+
		"'\nsecret-file = 'sign'\n[[projects.ranker.hooks]]\nurl-file = 'chat-url'\nas = 'slack'\non = ['alert']\n"+
		"[[projects.ranker.hooks]]\nurl = 'http://127.0.0.1:1/SECRETADDRESS'\n[[projects.secret.hooks]]\nurl = '"+at(&others)+
		"'\n[projects.secret]", 1)
	write(t, s.dir, "team.toml", config)
	record := func(name string, more ...string) {
		s.must(append(append([]string{"run", "--quiet", "--tag", "project=ranker", "--name", name}, more...), "--", "/bin/sleep",
			"0.2")...)
	}
	record("nothing")
	record("<!everybody>", "--alert", "host.rss > 1KiB")
	waitFor(t, func() bool { refused, _ := signed.counts(); return refused > 0 })
	_ = s.served.process.Process.Kill()
	_ = s.served.process.Wait()
	before := s.served.said.String()
	s.start()
	signed.set(true)
	waitFor(t, func() bool {
		_, one := signed.counts()
		_, two := chat.counts()
		return one > 0 && two > 0
	})
	request, body := signed.got[0], signed.bodies[0]
	var m hooks.Message
	if err := json.Unmarshal([]byte(body), &m); err != nil || m.Project != "ranker" || m.Run.Name != "<!everybody>" ||
		len(m.Findings) == 0 || m.Findings[0].Kind != "alert" || m.Run.URL != "https://runs.example.org/runs/"+m.Run.ID {
		t.Errorf("told %s, %v", body, err)
	}
	if want := "sha256=" + hooks.Sign("a secret", request.Header.Get("X-Hightide-Timestamp"), body); request.Header.Get(
		"X-Hightide-Signature") != want || request.Header.Get("X-Hightide-Delivery") == "" {
		t.Errorf("signed %v; want %s", request.Header, want)
	}
	var text struct{ Text string }
	if err := json.Unmarshal([]byte(chat.bodies[0]), &text); err != nil || strings.Contains(text.Text, "<!everybody>") ||
		!strings.Contains(text.Text, "|&lt;!everybody&gt;> of project ranker") || !strings.Contains(text.Text, "\n• ") {
		t.Errorf("the chat is told %s, %v", chat.bodies[0], err)
	}
	record("second", "--alert", "host.rss > 1KiB")
	waitFor(t, func() bool { _, n := signed.counts(); return n > 1 })
	if _, n := others.counts(); n > 0 {
		t.Errorf("another project is told %s", others.bodies)
	}
	if _, n := signed.counts(); n != 2 || strings.Contains(signed.bodies[1], "nothing") {
		t.Errorf("told %d times: %s", n, signed.bodies)
	}
	if said := before + s.served.said.String() + s.must("audit", "--json"); strings.Contains(said, "SECRETADDRESS") {
		t.Errorf("the address of a hook is told: %s", said)
	}
}

// TestHooksWhileRecorded: an alert of a run that goes on is told at once, and once, also after the server was killed; what
// is told at its end lacks it.
func TestHooksWhileRecorded(t *testing.T) {
	chat := receiver{takes: true}
	at := httptest.NewServer(&chat)
	t.Cleanup(at.Close)
	s := startLive(t)
	address := strings.TrimPrefix(s.served.at(""), "http://")
	config := strings.Replace(pushFile, "127.0.0.1:0", address, 1) + "\n[[projects.ranker.hooks]]\nurl = '" + at.URL +
		"'\non = ['alert', 'oom']\n"
	write(t, s.dir, "team.toml", config)
	c := s.anna.command("run", "--push", "--name", "alerted", "--alert", "host.rss > 1KiB", "--alert", "host.rss > 2KiB", "--",
		s.python, s.script)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	waitFor(t, func() bool { _, got := chat.counts(); return got >= 2 })
	if row := s.row("bob", "alerted"); row.State != store.Running {
		t.Errorf("told when the run was %s", row.State)
	}
	_ = s.served.process.Process.Kill()
	_ = s.served.process.Wait()
	s.start()
	write(t, s.anna.dir, "go", "")
	if err := c.Wait(); err != nil {
		t.Fatal(err)
	}
	s.reaches("alerted", store.Finished, 0)
	db := s.database()
	waitFor(t, func() bool {
		var told bool
		var waits int
		err := db.QueryRow("SELECT bool_and(told), (SELECT count(*) FROM deliveries) FROM recorded").Scan(&told, &waits)
		return err == nil && told && waits == 0
	})
	said := map[string]string{}
	chat.mu.Lock()
	defer chat.mu.Unlock()
	for i, body := range chat.bodies {
		var m hooks.Message
		if err := json.Unmarshal([]byte(body), &m); err != nil || m.Event != "alert" || m.Run.Name != "alerted" ||
			m.Run.Ended != "running" || len(m.Findings) != 1 {
			t.Errorf("told %s, %v", body, err)
			continue
		}
		alert, _, _ := strings.Cut(m.Findings[0].Title, ":")
		number := chat.got[i].Header.Get("X-Hightide-Delivery")
		if before, again := said[alert]; again && before != number { // one of the same number may arrive twice
			t.Errorf("%s is told as %s and as %s", alert, before, number)
		}
		said[alert] = number
	}
	if len(said) != 2 || said["alert host.rss > 1KiB"] == "" || said["alert host.rss > 2KiB"] == "" {
		t.Errorf("told %v", chat.bodies)
	}
}

// TestMessagesWaitOnce: while the database is away, one line says so, whatever each try says and however many try.
func TestMessagesWaitOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var said []string
		away, tries := true, 0
		teller := &teller{file: &roleFile{warn: func(text string) {
			mu.Lock()
			defer mu.Unlock()
			said = append(said, text)
		}}}
		ctx, cancel := context.WithCancel(t.Context())
		for range 5 {
			go teller.repeat(ctx, func(context.Context) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				if tries++; away {
					return false, fmt.Errorf("no answer to try %d", tries)
				}
				return false, nil
			})
		}
		for _, now := range []bool{true, false, true} {
			mu.Lock()
			away = now
			mu.Unlock()
			time.Sleep(time.Minute)
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if len(said) != 3 || said[1] != "messages go on" || !strings.HasPrefix(said[2], "messages wait: no answer to try ") {
			t.Errorf("said %q", said)
		}
	})
}
