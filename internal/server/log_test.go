package server

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"hightide/internal/store"
)

// lines are what a log was told.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// TestLog: each request is a line with its route, who asked and how it ended, and with none of its secrets.
func TestLog(t *testing.T) {
	told := new(lines)
	s := siteOf(t, new(store.Memory), Options{Log: slog.New(slog.NewJSONHandler(told, nil))})
	const secret = "NOBODYMAYREADTHIS"
	s.ask(http.MethodGet, "/api/v1/runs?limit=1", "")
	s.ask(http.MethodGet, "/api/v1/runs/"+secret, "")
	s.ask(http.MethodGet, "/api/v1/status?token="+secret, "", "Authorization", "Bearer "+secret)
	s.ask(http.MethodPost, sessionPath, `{"name":"a","password":"`+secret+`"}`, "Authorization", "")
	s.ask(http.MethodGet, "/nowhere/"+secret, "")
	s.stop()
	told.mu.Lock()
	defer told.mu.Unlock()
	if strings.Contains(told.text.String(), secret) || strings.Contains(told.text.String(), right) {
		t.Errorf("a secret is told: %s", told.text.String())
	}
	var got []string
	for line := range strings.Lines(told.text.String()) {
		var said struct {
			Msg, Route, Who, From string
			Status                int
			Took                  int64 `json:"took_ns"`
			Received              int64 `json:"received_bytes"`
		}
		if err := json.Unmarshal([]byte(line), &said); err != nil || said.Took <= 0 || said.From == "" || said.Msg != "request" {
			t.Errorf("%s: %v", line, err)
		}
		got = append(got, strings.Join([]string{said.Route, http.StatusText(said.Status), said.Who}, ", "))
		if posted := strings.HasPrefix(said.Route, "POST"); posted != (said.Received > 0) {
			t.Errorf("%s received %d bytes", said.Route, said.Received)
		}
	}
	t.Log(strings.Join(got, "\n"))
	if len(got) != 5 || !strings.HasPrefix(got[0], "GET /api/v1/runs, OK, ") || got[2] != "GET /api/v1/status, Unauthorized, " {
		t.Errorf("%q", got)
	}
}
