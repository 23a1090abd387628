package imagine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"hightide/internal/fail"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
	"hightide/internal/report"
)

// kept is a sink that keeps what it gets.
type kept struct {
	lock sync.Mutex
	run  *mem.Run
}

func (k *kept) Write(f mem.Frame) error {
	k.lock.Lock()
	defer k.lock.Unlock()
	return k.run.Add(f)
}

func (k *kept) Flush() error { return nil }

// TestTwoSessionsAtOnce: sessions side by side in one process share nothing. Each records its own GPU, in folders of
// its own, and the trials of one that is cancelled end while the other's go on.
func TestTwoSessionsAtOnce(t *testing.T) {
	python := filepath.Join(t.TempDir(), "python3")
	if err := os.WriteFile(python, []byte("#!/bin/sh\necho '{\"version\":\"3.12.1\",\"frameworks\":{\"torch\":\"2.15.0\"},\"torch_cuda\":\"13.0\"}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	shared := t.TempDir()
	var lock sync.Mutex
	folders := map[string]string{}
	var group sync.WaitGroup
	for _, gpu := range []string{"a10", "t4"} {
		group.Go(func() {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			s, err := New(ctx, Options{GPU: gpu, Vary: true}, observe.Options{ID: "same",
				Command: []string{python, "train.py"}, Runtime: launch.Runtime{Shared: shared}})
			if err != nil {
				t.Error(err)
				return
			}
			s.Record = func(ctx context.Context, o *observe.Options, sink observe.Sink) (observe.Outcome, error) {
				lock.Lock()
				if other, taken := folders[o.Channels]; taken {
					t.Errorf("%s and %s record in one folder, %s", gpu, other, o.Channels)
				}
				folders[o.Channels] = gpu
				lock.Unlock()
				if ctx.Err() != nil {
					return observe.Outcome{}, ctx.Err()
				}
				if gpu == "t4" {
					cancel() // during its first run: nothing beside it is tried
				}
				_ = sink.Write(mem.DeviceUse{Process: 1, Device: "nvidia:0", Used: 1 << 30})
				_ = sink.Write(mem.ImaginedDevice{GPU: gpu, Total: 16 << 30, Used: 1 << 30})
				end := mem.End{Time: 1, ExitCode: mem.Some(0), Reason: "exit"}
				return observe.Outcome{ExitCode: end.ExitCode}, sink.Write(end)
			}
			to := &kept{run: mem.NewRun()}
			result, err := s.Run(ctx, to)
			if err != nil || !result.Fits() || result.GPU != gpu || to.run.Imagined.Setup.GPU != gpu {
				t.Errorf("%s: %+v %v", gpu, result, err)
			}
			if tried := len(to.run.Imagined.Trials); (tried == 0) != (gpu == "t4") {
				t.Errorf("%s: %d variations", gpu, tried)
			}
		})
	}
	group.Wait()
}

// watched is a sink that is read while it is written.
type watched struct{ kept }

func (*watched) Followed() bool { return true }

// TestATrialIsFollowedWhereItsRecordingIs: the engine looks more often only where somebody reads what it writes.
func TestATrialIsFollowedWhereItsRecordingIs(t *testing.T) {
	for _, test := range []struct {
		to   observe.Sink
		want bool
	}{{nil, false}, {&kept{}, false}, {&watched{}, true}} {
		if got := observe.Followed(&tee{to: test.to}); got != test.want {
			t.Errorf("%T: %v", test.to, got)
		}
	}
}

// TestLargeWorldsWaitForNobody: with more ranks than share a root, NCCL's backend would wait for the next root.
func TestLargeWorldsWaitForNobody(t *testing.T) {
	s := &Session{Options: Options{World: 256}, play: []int{0}}
	command := []string{"python", "train.py"}
	o, _ := s.recordOptions(&trial{command: command, count: 8}, "run", "", "")
	device := o.Helpers[len(o.Helpers)-1]
	if got := device.Env["TORCH_NCCL_RANKS_PER_ROOT"]; got != "256" {
		t.Errorf("ranks that share a root: %q", got)
	}
}

// TestRuntimeInside: a script whose PyTorch keeps CUDA's runtime to itself is seen when it runs. The signal that ends it
// is not the answer.
func TestRuntimeInside(t *testing.T) {
	run := mem.NewRun()
	run.Processes = append(run.Processes, &mem.Process{Command: []string{"python", "train.py"},
		Frameworks: map[string]string{"torch": "1.13.1"}, Facts: map[string]string{"torch.runtime": "inside"}})
	main := &Result{run: run, Imagined: &report.Imagined{GPUVerdict: mem.GPUVerdict{Verdict: mem.VerdictFailed}}}
	err := (&Session{}).usable(main)
	if fail.Code(err) != fail.ExitEnvironment || !strings.Contains(err.Error(), "torch 1.13.1 of python has CUDA's runtime inside") {
		t.Error(err)
	}
}
