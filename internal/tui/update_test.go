package tui

import (
	"errors"
	"reflect"
	"syscall"
	"testing"

	"hightide/internal/store"
)

// TestSignalsNeedTwoKeys: nothing is sent before the question is answered with y, and to whom it was asked of.
func TestSignalsNeedTwoKeys(t *testing.T) {
	s := demo(80, 24)
	press(s, "down", "down", "down", "down", "x")
	if asks := press(s, "enter"); asks != nil || !s.Signal.sure {
		t.Fatalf("Enter asks for %v", asks)
	}
	if asks := press(s, "n"); asks != nil || s.Dialog != noDialog {
		t.Fatalf("n asks for %v", asks)
	}
	press(s, "x", "down", "enter")
	if got, want := press(s, "y"), []ask{askSignal{procKey{4711, 4711}, syscall.SIGKILL, "SIGKILL"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("y asks for %v, want %v", got, want)
	}
}

// TestCursorStaysOnItsProcess: another order, and processes that end, move no cursor.
func TestCursorStaysOnItsProcess(t *testing.T) {
	s := demo(80, 24)
	press(s, "down", "down", "down", "down")
	chosen := s.process()
	if chosen == nil || chosen.PID != 4711 {
		t.Fatalf("the cursor is on %v", chosen)
	}
	press(s, "N")
	if s.process().PID != 4711 {
		t.Errorf("after sorting it is on %d", s.process().PID)
	}
	next := demoMachine(31)
	next.Processes = next.Processes[1:]
	update(s, Looked{Picture: next, Now: s.Now})
	if s.process() != nil {
		t.Error("it is on a process that has ended")
	}
	press(s, "x")
	if s.Dialog != noDialog || s.Message == "" {
		t.Error("an ended process can be signalled")
	}
}

// TestARunIsFollowedOnce, however often it is listed, and forgotten when it is gone.
func TestARunIsFollowedOnce(t *testing.T) {
	s := NewState()
	runs := []store.Run{{ID: "a", State: store.Running}}
	if asks := update(s, Listed{Runs: runs}); !reflect.DeepEqual(asks, []ask{askFollow{"a"}}) {
		t.Fatalf("asked for %v", asks)
	}
	if asks := update(s, Listed{Runs: runs}); asks != nil {
		t.Errorf("asked again for %v", asks)
	}
	update(s, Followed{ID: "a", Done: true, Gone: true, Err: errors.New("run a was removed")})
	if len(s.Runs) != 0 || s.Live["a"] != nil || s.Message == "" {
		t.Errorf("it is still there: %v, %q", s.Runs, s.Message)
	}
}
