package store

import (
	"errors"
	"testing"
	"time"

	"hightide/internal/testkit"
)

// TestTeamClockSetBack: what the database has of a time that is yet to come, as of before its clock was set back, holds
// up nobody.
func TestTeamClockSetBack(t *testing.T) {
	s, _ := machine(t, testkit.StartPostgres(t).New(t), t.TempDir(), t.TempDir())
	id, err := noted(t, s, 1)
	must(t, err)
	set := func(text string) {
		t.Helper()
		must(t, s.db.change(t.Context(), func(s *session) error { _, err := s.exec(text); return err }))
	}
	state := func(filter Filter) State {
		t.Helper()
		runs, err := s.List(filter)
		must(t, err)
		if len(runs) != 1 {
			t.Fatalf("%d runs", len(runs))
		}
		return runs[0].State
	}
	set("UPDATE recorded SET heard = now() + interval '10 seconds'") // clocks are set by seconds all the time
	if was := state(Filter{}); was != Running {
		t.Errorf("of which was heard now: %s", was)
	}
	if err := s.Remove(id); !errors.Is(err, ErrRunning) {
		t.Errorf("deleted while it is written: %v", err)
	}
	set("UPDATE recorded SET heard = now() + interval '1 hour', state = 'running'")
	if was := state(Filter{State: CutOff}); was != CutOff {
		t.Errorf("of which will have been heard in an hour: %s", was)
	}
	must(t, s.Tell(t.Context(), id, map[string]string{"hook": "body"}))
	set("UPDATE deliveries SET next = now() + interval '50 minutes'")
	if _, there, err := s.NextDelivery(t.Context()); err != nil || there {
		t.Errorf("a message whose time comes within the hour: %v %v", there, err)
	}
	set("UPDATE deliveries SET next = now() + interval '3 hours'")
	if _, there, err := s.NextDelivery(t.Context()); err != nil || !there {
		t.Errorf("a message that was planned for the future of another clock: %v %v", there, err)
	}
	must(t, s.Remove(id))
}

// TestTeamClockAhead: a machine whose clock is a year ahead deletes no run that is young.
func TestTeamClockAhead(t *testing.T) {
	s, _ := machine(t, testkit.StartPostgres(t).New(t), t.TempDir(), t.TempDir())
	id, err := noted(t, s, 1)
	must(t, err)
	must(t, s.db.change(t.Context(), func(s *session) error {
		_, err := s.exec("UPDATE recorded SET start_wall_ns = CAST(extract(epoch FROM now()) * 1e9 AS bigint)")
		return err
	}))
	ahead := time.Now().AddDate(1, 0, 0)
	gone, err := Prune(s, Limits{Now: ahead, Age: 90 * 24 * time.Hour})
	if err != nil || len(gone) > 0 {
		t.Errorf("deleted %v, %v", gone, err)
	}
	gone, err = Prune(s, Limits{Now: ahead, Age: time.Nanosecond})
	if err != nil || len(gone) != 1 || gone[0].ID != id {
		t.Errorf("of any age: %v, %v", gone, err)
	}
}
