package tui

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/sampler"
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

// TestImaginaryGPUs: each imaginary GPU of a run that goes on is a bar, of what its living processes have in use.
// Where they are too many the last line says how full the rest is.
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
		frames = append(frames, mem.SeriesDef{ID: process, Process: process, Name: mem.SeriesDeviceUsed, Device: "nvidia:0",
			Unit: mem.UnitBytes},
			mem.Samples{Series: process, Times: []int64{1}, Values: []int64{used}})
	}
	update(s, Followed{ID: "a", Frames: frames})
	frame := ansi.Strip(s.Frame())
	for _, want := range []string{"50 %  11.0 GiB of 22.0 GiB, imagined  NVIDIA A10, sized",
		"    -  - of 22.0 GiB, imagined"} {
		if !strings.Contains(frame, want) {
			t.Errorf("without %q:\n%s", want, frame)
		}
	}
	update(s, Followed{ID: "a", Frames: []mem.Frame{mem.ImaginedSetup{Name: "NVIDIA A10", Count: 64, Total: 22 << 30}}})
	if frame := ansi.Strip(s.Frame()); !strings.Contains(frame, "more GPUs") || !strings.Contains(frame, "PID") {
		t.Errorf("64 of them leave no room:\n%s", frame)
	}
}

// TestProcess: Enter looks at a process alone, and goes on asking; Enter again opens the run that records it. One
// that has ended stays as it was last, and is asked for no more.
func TestProcess(t *testing.T) {
	s := demo(120, 40)
	press(s, "down", "down", "down", "down")
	p := s.process()
	if asks := press(s, "enter"); len(asks) != 1 || asks[0] != any(askDetails{procKey{p.PID, p.StartTicks}}) ||
		s.Dialog != processDialog {
		t.Fatalf("Enter asks for %v", asks)
	}
	again := func(i int, without int) []ask {
		next := demoMachine(i)
		next.Processes = slices.DeleteFunc(next.Processes, func(p sampler.Seen) bool { return p.PID == without })
		return update(s, Looked{Picture: next, Now: s.Now})
	}
	if asks := again(31, 0); len(asks) != 0 {
		t.Errorf("it is asked for again before the answer has come: %v", asks)
	}
	update(s, Detailed{PID: p.PID, Facts: &sampler.Details{PSS: mem.Some(12345 << 10)}})
	if frame := ansi.Strip(s.Frame()); !strings.Contains(frame, "PSS 12.1 MiB") {
		t.Errorf("its PSS is not shown:\n%s", frame)
	}
	if asks := again(32, 0); len(asks) != 1 {
		t.Errorf("what is asked for at the next look: %v", asks)
	}
	if len(s.Process.busy.Recent) != 3 {
		t.Errorf("%d readings of its processor", len(s.Process.busy.Recent))
	}
	update(s, Detailed{PID: p.PID, Err: errors.New("it has ended")})
	if asks := again(33, p.PID); len(asks) != 0 {
		t.Errorf("one that has ended is asked for: %v", asks)
	}
	if frame := ansi.Strip(s.Frame()); !strings.Contains(frame, "it has ended; as it was last") ||
		!strings.Contains(frame, "PSS 12.1 MiB") {
		t.Errorf("one that has ended:\n%s", frame)
	}
	press(s, "esc")
	again(34, 0)
	press(s, "enter", "enter")
	if s.Dialog != noDialog || s.tab().title != "Timeline" || s.Run != "06ffnx559k" {
		t.Errorf("Enter again: %s of run %q", s.tab().title, s.Run)
	}
}

// TestSmallTerminal: on the smallest one there are processes to choose from.
func TestSmallTerminal(t *testing.T) {
	s := demo(leastWidth, leastHeight)
	if frame := ansi.Strip(s.Frame()); !strings.Contains(frame, " 4711 ") {
		t.Errorf("no process is shown:\n%s", frame)
	}
}

// TestMeasures: the figures of the calls are called what they are.
func TestMeasures(t *testing.T) {
	s := demo(120, 40)
	r := demoReport()
	set := &r.Stacks[0]
	set.Measures = []report.FlameMeasure{{Name: "bytes", Title: "bytes at the moment explained", Unit: mem.UnitBytes},
		{Name: "bytes-time", Title: "bytes × time, as the average held", Unit: mem.UnitBytes},
		{Name: "count", Title: "number of allocations", Unit: mem.UnitCount}}
	for i := range set.Stacks {
		set.Stacks[i].Average, set.Stacks[i].Allocations = 1<<30, 812
	}
	press(s, "8")
	update(s, Reported{ID: "06ffnx559k", Report: r, Now: s.Now})
	s.refresh()
	for _, want := range []string{"HOLDS", "AVERAGE", "COUNT"} {
		if frame := ansi.Strip(s.Frame()); !strings.Contains(frame, want+" SHARE") ||
			strings.Contains(frame, "GiB bytes") || strings.Contains(frame, "number of allocations") != (want == "COUNT") {
			t.Errorf("no %s:\n%s", want, frame)
		}
		press(s, "m")
	}
}
