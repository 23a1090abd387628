package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hightide/internal/event"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/store"
	"hightide/internal/testkit"

	"golang.org/x/sys/unix"
)

// TestTwoEnginesAtOnce: two engines of one process, as a server's, record a program each. Each takes its
// own events, and a context ends its own run and not the other's.
func TestTwoEnginesAtOnce(t *testing.T) {
	dir := t.TempDir()
	python, err := exec.Command("python3", "-c", "import sys; print(sys.executable, end='')").Output()
	if err != nil {
		t.Skip("no python3 here")
	}
	ready, done := filepath.Join(dir, "ready"), filepath.Join(dir, "done")
	small := "held = b's' * (40 << 20)\nopen('" + ready + "', 'w').close()\nimport time\nwhile True: time.sleep(0.01)"
	large := "held = b'l' * (90 << 20)\nimport os, time\nwhile not os.path.exists('" + done +
		"'): time.sleep(0.01)\nprint('ended by itself')"
	var group sync.WaitGroup
	over := make(chan struct{}) // the cancelled run is
	run := func(script string, tell func(observe.Status, context.CancelFunc), then func()) (result **RunResult,
		output *string) {
		ctx, cancel := context.WithCancel(t.Context())
		result, output = new(*RunResult), new(string)
		group.Go(func() {
			defer then()
			defer cancel()
			out, err := os.CreateTemp(dir, "output-")
			if err != nil {
				t.Error(err)
				return
			}
			defer out.Close()
			e := &Engine{DataDir: filepath.Join(dir, "data"), Runtime: launch.Runtime{Stdout: out,
				Shared: filepath.Join(dir, "shared")}}
			*result, err = e.Run(ctx, RunOptions{Options: observe.Options{Command: []string{string(python), "-c", script},
				Env: os.Environ(), Events: func(e event.Event) {
					if s, ok := e.(observe.Status); ok {
						tell(s, cancel)
					}
				}}})
			if err != nil {
				t.Error(err)
			}
			text, _ := os.ReadFile(out.Name())
			*output = string(text)
		})
		return result, output
	}
	cancelled, _ := run(small, func(s observe.Status, cancel context.CancelFunc) {
		if _, err := os.Stat(ready); err == nil && s.RSS.Or(0) > 40<<20 {
			cancel()
		}
	}, func() { close(over) })
	whole, output := run(large, func(s observe.Status, _ context.CancelFunc) {
		select {
		case <-over:
			if s.RSS.Or(0) > 90<<20 {
				_ = os.WriteFile(done, nil, 0o600)
			}
		default:
		}
	}, func() {})
	group.Wait()
	if t.Failed() {
		return
	}
	if o := (*cancelled).Outcome; !o.Stopped || o.ExitCode.Or(-1) == 0 {
		t.Errorf("the cancelled run ended with %+v", o)
	}
	if o := (*whole).Outcome; o.Stopped || o.ExitCode.Or(-1) != 0 || strings.TrimSpace(*output) != "ended by itself" {
		t.Errorf("the other one ended with %+v and said %q", o, *output)
	}
	checkRecording(t, dir, (*cancelled).ID, "stopped", 40<<20, 80<<20)
	checkRecording(t, dir, (*whole).ID, "exit", 90<<20, 150<<20)
	if left, _ := os.ReadDir(filepath.Join(dir, "shared")); len(left) > 0 {
		t.Errorf("left in shared memory: %v", left)
	}
}

// training takes steps until a file is there, and says how many it took.
const training = `
import os, sys, time, torch
model = torch.nn.Linear(64, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
steps = 0
try:
    while not os.path.exists(sys.argv[1]):
        model(torch.ones(4, 64)).sum().backward()
        steps += 1
        optimizer.step()
        optimizer.zero_grad()
        time.sleep(0.01)
finally:
    print(steps, "steps, cleaned up")
`

// TestCancelledTraining: of two trainings that two engines record at once, a context ends one through its agent, after
// a step and with the program's own cleaning up. The other one takes all its steps.
func TestCancelledTraining(t *testing.T) {
	python := testkit.Torch(t)
	dir := t.TempDir()
	stop := filepath.Join(dir, "stop")
	results, outputs := make([]*RunResult, 2), make([]*os.File, 2)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	train := func(n int, ctx context.Context, until string, tell func(observe.Status)) {
		e := &Engine{DataDir: filepath.Join(dir, "data"), Runtime: launch.Runtime{Stdout: outputs[n],
			Shared: filepath.Join(dir, "shared")}}
		var err error
		results[n], err = e.Run(ctx, RunOptions{Options: observe.Options{Command: []string{python, "-c", training, until},
			Env: os.Environ(), NoStacks: true,
			Grace: 5 * time.Minute, // a busy machine takes long for a step: nothing but the agent is to end it
			Events: func(e event.Event) {
				if s, ok := e.(observe.Status); ok {
					tell(s)
				}
			}}})
		if err != nil {
			t.Error(err)
		}
	}
	for i := range outputs {
		out, err := os.CreateTemp(dir, "output-")
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		outputs[i] = out
	}
	var group sync.WaitGroup
	var others atomic.Uint64 // steps of the other one
	over := make(chan struct{})
	group.Go(func() {
		defer close(over)
		train(0, ctx, filepath.Join(dir, "never"), func(s observe.Status) {
			if s.Steps >= 5 && others.Load() >= 5 {
				cancel()
			}
		})
	})
	group.Go(func() {
		train(1, t.Context(), stop, func(s observe.Status) {
			select {
			case <-over: // and goes on for a while
				if s.Steps > others.Load()+5 {
					_ = os.WriteFile(stop, nil, 0o600)
				}
			default:
				others.Store(s.Steps)
			}
		})
	})
	group.Wait()
	if t.Failed() {
		return
	}
	for i, reason := range []string{"stopped", "exit"} {
		text, _ := os.ReadFile(outputs[i].Name())
		var steps uint64
		if n, _ := fmt.Sscanf(string(text), "%d steps, cleaned up", &steps); n != 1 {
			t.Fatalf("the training that ends by %q said %q", reason, text)
		}
		o := results[i].Outcome
		if o.Stopped != (reason == "stopped") || o.Signal.Known() {
			t.Errorf("the training that ends by %q: %+v", reason, o)
		}
		_, run, err := (&Engine{DataDir: filepath.Join(dir, "data")}).Load(t.Context(), results[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		if run.End == nil || run.End.Reason != reason || results[i].Report.Headline.Steps != steps {
			t.Errorf("%s: end %+v, %d steps recorded of %d", reason, run.End, results[i].Report.Headline.Steps, steps)
		}
	}
}

// checkRecording holds a recording against what its program did: it ended so, its peak lies between
// these, and it knows of its own process alone.
func checkRecording(t *testing.T, dir, id, reason string, least, most int64) {
	t.Helper()
	_, run, err := (&Engine{DataDir: filepath.Join(dir, "data")}).Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if run.End == nil || run.End.Reason != reason || len(run.Damage) > 0 || len(run.Drops) > 0 {
		t.Errorf("%s run: end %+v, damage %v, drops %v", reason, run.End, run.Damage, run.Drops)
	}
	if len(run.Processes) != 1 || !run.Processes[0].End.Known() {
		t.Errorf("%s run: %d processes", reason, len(run.Processes))
	}
	rss := run.Find(0, mem.SeriesTreeRSS)
	if rss == nil {
		t.Fatalf("%s run: no RSS", reason)
	}
	if peak := rss.Values[rss.Peak()]; peak < least || peak > most {
		t.Errorf("%s run: peak %v, want it between %v and %v", reason, mem.Bytes(peak), mem.Bytes(least), mem.Bytes(most))
	}
}

// TestFollowARun: who follows a run sees half of the samples within 200 ms, up to the end, where a process is left behind
// that the engine waits for. It has all of them. One who stops reading for the length of the run slows nobody,
// and has all of it too. A machine that is busy may add what it makes others wait for.
func TestFollowARun(t *testing.T) {
	for name, e := range map[string]*Engine{"files": {DataDir: t.TempDir()},
		"memory": {DataDir: t.TempDir(), Store: &store.Memory{}}} {
		t.Run(name, func(t *testing.T) {
			e.Runtime.Shared = filepath.Join(t.TempDir(), "shared")
			stop := filepath.Join(t.TempDir(), "stop")
			command := []string{"/bin/sh", "-c", "until [ -e " + stop + " ]; do sleep 0.05; done; sleep 3 &"}
			var result *RunResult
			var group sync.WaitGroup
			started, over := make(chan struct{}), make(chan struct{})
			begun := sync.OnceFunc(func() { close(started) })
			group.Go(func() {
				defer close(over)
				var err error
				result, err = e.Run(t.Context(), RunOptions{Options: observe.Options{Command: command, Env: os.Environ(),
					Interval: 50 * time.Millisecond, Events: func(ev event.Event) {
						if s, ok := ev.(observe.Status); ok && s.RSS.Known() {
							begun()
						}
					}}})
				if err != nil {
					t.Error(err)
				}
			})
			<-started
			sleeper := mem.NewRun()
			group.Go(func() {
				for batch, err := range e.Follow(t.Context(), "last", 0) {
					if err != nil {
						t.Error(err)
					}
					<-over // reads nothing while the run goes on
					addAll(t, sleeper, batch)
				}
			})
			reader, batches, ages := mem.NewRun(), 0, []int64{}
			stalls := watchStalls()
			attached := monotonic()
			for batch, err := range e.Follow(t.Context(), "last", 0) {
				if err != nil {
					t.Fatal(err)
				}
				addAll(t, reader, batch)
				if age := ageOf(batch, attached); age > 0 {
					ages = append(ages, age)
				}
				if batches++; batches == 50 {
					_ = os.WriteFile(stop, nil, 0o600)
				}
			}
			group.Wait()
			stall := stalls()
			slices.Sort(ages)
			half := time.Duration(ages[len(ages)/2])
			t.Logf("half of the samples were seen within %v, the last after %v; the machine made others wait for up to %v",
				half, time.Duration(ages[len(ages)-1]), stall)
			if half > 200*time.Millisecond+stall {
				t.Errorf("half of the samples were seen after %v, where the machine made others wait for %v", half, stall)
			}
			_, whole, err := e.Load(t.Context(), result.ID)
			if err != nil {
				t.Fatal(err)
			}
			want := whole.Find(0, mem.SeriesTreeRSS)
			for who, run := range map[string]*mem.Run{"reader": reader, "sleeper": sleeper} {
				got := run.Find(0, mem.SeriesTreeRSS)
				if run.End == nil || got == nil || !slices.Equal(got.Times, want.Times) || !slices.Equal(got.Values, want.Values) {
					t.Errorf("the %s does not have what was recorded", who)
				}
			}
		})
	}
}

func addAll(t *testing.T, run *mem.Run, batch store.Batch) {
	for _, f := range batch.Frames {
		if err := run.Add(f); err != nil {
			t.Errorf("frame %T: %v", f, err)
		}
	}
}

// ageOf is the age in ns of the oldest sample in a batch that was made after a moment.
func ageOf(batch store.Batch, after int64) (age int64) {
	now := monotonic()
	for _, f := range batch.Frames {
		if s, is := f.(mem.Samples); is {
			for _, made := range s.Times {
				if made > after {
					age = max(age, now-made)
				}
			}
		}
	}
	return age
}

// watchStalls sees how long this machine makes a process wait that has little to do. The engine, its follower and
// what they run wait one after the other, so what it tells is three times the longest.
func watchStalls() (end func() time.Duration) {
	over, worst := make(chan struct{}), make(chan time.Duration)
	go func() {
		longest := time.Duration(0)
		for {
			began := time.Now()
			select {
			case <-over:
				worst <- longest
				return
			case <-time.After(10 * time.Millisecond):
				longest = max(longest, time.Since(began)-10*time.Millisecond)
			}
		}
	}()
	return func() time.Duration {
		close(over)
		return 3 * <-worst
	}
}

// monotonic is the clock of recordings.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
	return now.Nano()
}
