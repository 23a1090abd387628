package store

import (
	"context"
	"testing"
	"time"

	"hightide/internal/testkit"
)

// TestSilentNetwork: a question ends with its context although the network to the database swallows it, however it is
// asked; what it had locked is free; and the next one is answered as soon as the network is back.
func TestSilentNetwork(t *testing.T) {
	server := testkit.StartPostgres(t)
	wire := testkit.NewWire(t, "unix", server.Socket())
	database := server.New(t)
	objects := t.TempDir()
	s, _ := machine(t, server.Over(database, wire), objects, t.TempDir())
	other, _ := machine(t, database, objects, t.TempDir())
	id, err := noted(t, s, 1)
	must(t, err)
	locks := func(s *session) error {
		_, err := s.exec("UPDATE recorded SET steps = steps + 1 WHERE id = ?", id)
		return err
	}
	for name, ask := range map[string]func(context.Context) error{
		"a question": func(ctx context.Context) error {
			return s.db.look(ctx, func(s *session) error { wire.Silence(); var n int; return s.row("SELECT 1").Scan(&n) })
		},
		"a transaction": func(ctx context.Context) error {
			wire.Silence()
			return s.db.change(ctx, locks)
		},
		"a change": func(ctx context.Context) error {
			return s.db.change(ctx, func(s *session) error {
				if err := locks(s); err != nil {
					return err
				}
				wire.Silence()
				return locks(s)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			done := make(chan error)
			go func() { done <- ask(ctx) }()
			select {
			case err := <-done:
				if err == nil {
					t.Error("it was answered")
				}
			case <-time.After(time.Minute):
				t.Error("it waits for good")
				wire.Mend()
				<-done
			}
			wire.Mend()
			must(t, s.db.change(t.Context(), locks))
			must(t, other.db.change(t.Context(), locks))
		})
	}
	isThere(t, other, id, 1)
}

// TestNobodyLocksForGood: what a program that was stopped has locked is free after a while.
func TestNobodyLocksForGood(t *testing.T) {
	server := testkit.StartPostgres(t)
	s, _ := machine(t, server.New(t), t.TempDir(), t.TempDir())
	must(t, s.db.look(t.Context(), func(s *session) error {
		var limit string
		err := s.row("SHOW idle_in_transaction_session_timeout").Scan(&limit)
		if limit != "15min" {
			t.Errorf("a program that was stopped keeps what it has locked for %s", limit)
		}
		return err
	}))
}
