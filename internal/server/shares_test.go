package server

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"hightide/internal/store"
)

// links are kept in memory, as the store of a team keeps them.
type links struct {
	all     []store.Share
	secrets []string
}

func (l *links) AddShare(_ context.Context, run, maker string, lasts time.Duration) (string, store.Share, error) {
	l.all = append(l.all, store.Share{ID: int64(len(l.all) + 1), Run: run, Maker: maker, Made: time.Now(),
		Expires: time.Now().Add(lasts)})
	l.secrets = append(l.secrets, fmt.Sprintf("SECRET%dOFALINK", len(l.all)))
	return l.secrets[len(l.all)-1], l.all[len(l.all)-1], nil
}

func (l *links) RevokeShare(_ context.Context, run string, id int64) error {
	for i := range l.all {
		if l.all[i].ID == id && l.all[i].Run == run {
			now := time.Now()
			l.all[i].Revoked = &now
			return nil
		}
	}
	return &store.Error{Kind: store.ErrNotFound, Text: "no link"}
}

func (l *links) Shares(context.Context, string) ([]store.Share, error) { return l.all, nil }

func (l *links) ShareOf(_ context.Context, digest string) (store.Share, bool, error) {
	for i, secret := range l.secrets {
		if d := digestOf(secret); hex.EncodeToString(d[:]) == digest && l.all[i].Open(time.Now()) {
			return l.all[i], true, nil
		}
	}
	return store.Share{}, false, nil
}

// entersBy opens an address with a link.
func (s *site) entersBy(share string) (status int, headers []string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.URL+sessionPath,
		strings.NewReader(`{"share":"`+share+`"}`))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	b := entered(s.t, response)
	return response.StatusCode, []string{"Authorization", "", "Cookie", b.cookie, pageHeader, b.page}
}

// TestShares: a link shows its run alone, on every route, and changes nothing; it ends at once, with the browsers that it
// let in, when it is revoked and when its time is over; and what is told of it never has its secret.
func TestShares(t *testing.T) {
	s, own, other := teamSite(t)
	member := []string{"Authorization", "Bearer " + person{"member", MayChange}.secret()}
	makes := func(run, body string) *MadeShare {
		status, text := s.ask(http.MethodPost, "/api/v1/runs/"+run+"/shares", body, member...)
		if status != 200 {
			t.Fatalf("a link is not made: %d %s", status, text)
		}
		made := decode[MadeShare](t, text)
		return &made
	}
	made := makes(own, `{}`)
	if lasts := time.Until(made.Share.Expires); made.Share.Maker != "member" || lasts > store.ShareLasts ||
		lasts < store.ShareLasts-time.Hour {
		t.Errorf("made %+v", made.Share)
	}
	if status, _ := s.ask(http.MethodPost, "/api/v1/runs/"+own+"/shares", `{"lasts_s":7776001}`, member...); status != 422 {
		t.Errorf("a link for longer than 90 days: %d", status)
	}
	if status, text := s.ask(http.MethodGet, "/api/v1/status", "", "Authorization", "Bearer "+made.Secret); status != 401 {
		t.Errorf("the secret of a link as a token: %d %s", status, text)
	}
	status, outside := s.entersBy(made.Secret)
	if status != 201 {
		t.Fatalf("a link opens no session: %d", status)
	}
	s.seesOne(own, other, outside)
	if status, text := s.ask(http.MethodGet, "/api/v1/status", "", outside...); status != 200 ||
		!strings.Contains(text, `"outside":"`+own+`"`) || strings.Contains(text, `"shares"`) {
		t.Errorf("the status for people outside: %d %s", status, text)
	}
	soon := makes(own, `{"lasts_s":1}`)
	_, short := s.entersBy(soon.Secret)
	for asked := 0; ; asked++ {
		if status, _ := s.ask(http.MethodGet, "/api/v1/runs/"+own, "", short...); status == 401 {
			break
		} else if status != 200 || asked > 1e4 {
			t.Fatalf("a link whose time is over: %d", status)
		}
		time.Sleep(10 * time.Millisecond)
	}
	to := fmt.Sprintf("/api/v1/runs/%s/shares/%d", own, made.Share.ID)
	if status, text := s.ask(http.MethodDelete, to, "", member...); status != 200 || strings.Contains(text, made.Secret) {
		t.Errorf("revoked: %d %s", status, text)
	}
	if status, _ := s.ask(http.MethodGet, "/api/v1/runs/"+own, "", outside...); status != 401 {
		t.Errorf("a browser goes on after its link was revoked: %d", status)
	}
	if status, _ := s.entersBy(made.Secret); status != 401 {
		t.Errorf("a revoked link opens: %d", status)
	}
}

// seesOne asks every route of two runs, as somebody who may see the first alone.
func (s *site) seesOne(own, other string, headers []string) {
	s.t.Helper()
	shown := 0
	for _, pattern := range s.made.mux.patterns {
		row, _ := rowOf(pattern)
		for _, id := range []string{own, other} {
			route, body := request(pattern, id)
			route[1] = strings.ReplaceAll(route[1], "{project}", "own")
			if pattern == "GET /api/v1/live" || strings.HasSuffix(pattern, "/live") || pattern == "DELETE /api/v1/session" {
				continue // these last, and this one ends what is looked at
			}
			status, text := s.ask(route[0], route[1], body, headers...)
			if strings.Contains(text, "other.py") {
				s.t.Errorf("%s shows people outside another run: %.300s", pattern, text)
			}
			one := strings.Contains(pattern, "/runs/{id}") && id == other
			switch {
			case status >= 500 || status == 401:
				s.t.Errorf("%s for people outside: %d %.300s", pattern, status, text)
			case row == forRead && one && status != 404:
				s.t.Errorf("%s of another run for people outside: %d %.300s", pattern, status, text)
			case (strings.HasSuffix(pattern, "/shares") || strings.HasSuffix(pattern, "/comments")) && row == forRead && status != 404:
				s.t.Errorf("people outside: %s is %d %s", pattern, status, text)
			case row == forSeen && status != 404:
				s.t.Errorf("%s for people outside: %d %.300s", pattern, status, text)
			case row != forSeen && row != forRead && row != forAll && row != forSession && status != 403:
				s.t.Errorf("%s for people outside: %d %.300s", pattern, status, text)
			case row == forRead && status == 200 && strings.Contains(text, "of own"):
				shown++
			}
		}
	}
	if shown < 4 {
		s.t.Errorf("the run is shown by %d routes", shown)
	}
}
