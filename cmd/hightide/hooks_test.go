package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"hightide/internal/hooks"
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
