package tui

import (
	"errors"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"hightide/internal/mem"
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

// TestImaginaryGPUs: each imaginary GPU of a run that goes on is a bar, of what its living processes have in use; where they are too
// many the last line says how full the rest is.
func TestImaginaryGPUs(t *testing.T) {
	s := demo(100, 24)
	s.Runs = []store.Run{{ID: "a", Name: "sized", State: store.Running}}
	update(s, Listed{Runs: s.Runs})
	frames := []mem.Frame{
		mem.RunInfo{Label: mem.Imagined},
		mem.ImaginedSetup{Name: "NVIDIA A10", Count: 2, Total: 22 << 30},
		mem.Process{ID: 1, PID: 8}, mem.Process{ID: 2, PID: 9}, mem.Process{ID: 3, PID: 10, End: mem.Some(5)},
	}
	for process, used := range map[uint32]int64{1: 8 << 30, 2: 3 << 30, 3: 9 << 30} {
		frames = append(frames, mem.SeriesDef{ID: process, Process: process, Name: mem.SeriesDeviceUsed, Device: "nvidia:0", Unit: mem.UnitBytes},
			mem.Samples{Series: process, Times: []int64{1}, Values: []int64{used}})
	}
	update(s, Followed{ID: "a", Frames: frames})
	frame := ansi.Strip(s.Frame())
	for _, want := range []string{"50 %  11.0 GiB of 22.0 GiB, imagined  NVIDIA A10, sized", "    -  - of 22.0 GiB, imagined"} {
		if !strings.Contains(frame, want) {
			t.Errorf("without %q:\n%s", want, frame)
		}
	}
	update(s, Followed{ID: "a", Frames: []mem.Frame{mem.ImaginedSetup{Name: "NVIDIA A10", Count: 64, Total: 22 << 30}}})
	if frame := ansi.Strip(s.Frame()); !strings.Contains(frame, "more GPUs") || !strings.Contains(frame, "PID") {
		t.Errorf("64 of them leave no room:\n%s", frame)
	}
}
