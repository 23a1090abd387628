package server

import (
	"encoding/json"
	"net/http"
	"testing"

	"hightide/internal/mem"
)

// sparks asks as the page does: again, until those of all runs are read.
func (s *site) sparks(query string, runs int) (list SparkList) {
	s.t.Helper()
	for len(list.Sparks) < runs && s.t.Context().Err() == nil {
		got, text := s.ask(http.MethodGet, "/api/v1/sparks?"+query, "")
		if got != http.StatusOK {
			s.t.Fatalf("%d %s", got, text)
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			s.t.Fatal(err)
		}
	}
	return list
}

// TestSparks: many runs in one answer, each with its lowest and highest reading; one that goes on grows, and what it
// was told before is not read again.
func TestSparks(t *testing.T) {
	s := newSite(t, Options{})
	long := s.begin("long", 5000)
	s.finish(long)
	live := s.begin("live", 3)
	empty := s.begin("empty", 0)
	s.finish(empty)

	list := s.sparks("run="+long.ID()+"&run="+live.ID()+"&run="+empty.ID()+"&run=nobody", 3)
	if len(list.Sparks) != 3 {
		t.Fatalf("%d sparks: %+v", len(list.Sparks), list.Sparks)
	}
	for _, got := range list.Sparks {
		switch got.ID {
		case long.ID():
			if n := len(got.Y); n < 32 || n > 70 || got.Y[0] != 1<<20 || got.Y[n-1] != 1<<20+4999 {
				t.Errorf("of 5000 readings it keeps %d: %v", n, got.Y)
			}
			if got.Name != mem.SeriesRSS || got.Label != mem.Measured {
				t.Errorf("it is %q, %q", got.Name, got.Label)
			}
		case live.ID():
			if len(got.X) != 3 || got.X[2] != 2e8 {
				t.Errorf("of a run that goes on: %v", got.X)
			}
		case empty.ID():
			if got.X == nil || len(got.X) != 0 {
				t.Errorf("of a run without readings: %v", got.X)
			}
		}
	}

	for i := 3; i < 6; i++ {
		s.write(live, reading(i))
	}
	s.finish(live)
	if got := s.sparks("run="+live.ID(), 1).Sparks; len(got) != 1 || len(got[0].X) != 6 {
		t.Errorf("after its end: %+v", got)
	}

	if got, _ := s.ask(http.MethodGet, "/api/v1/sparks", ""); got != http.StatusUnprocessableEntity {
		t.Errorf("without a run: %d", got)
	}
}
