package imagine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/observe"
)

// TestTheGPUThatServesIsRecorded: of several GPUs the recording is of the one that serves the users, and where none
// does, of the one that came nearest. A failure that is the same on two GPUs does not lie in them.
func TestTheGPUThatServesIsRecorded(t *testing.T) {
	for _, test := range []struct {
		name, gpus string
		users      int
		tokens     map[string]int64 // of the KV cache, by GPU; 0: the weights do not fit; -1: the program fails
		recorded   string
		verdict    mem.Verdict
		started    string
	}{
		{"the second serves", "a10,t4,a100-80g", 4, map[string]int64{"t4": 0, "a10": 40_000, "a100-80g": 400_000}, "a10",
			mem.VerdictFits, "t4 a10"},
		{"the first serves", "a10,t4", 1, map[string]int64{"t4": 10_000}, "t4", mem.VerdictFits, "t4"},
		{"none does", "a10,t4,l4", 40, map[string]int64{"t4": 0, "a10": 30_000, "l4": 20_000}, "a10", mem.VerdictFew,
			"t4 l4 a10"},
		{"one fails alone", "a10,t4", 1, map[string]int64{"t4": -1, "a10": 10_000}, "a10", mem.VerdictFits, "t4 a10"},
		{"the program is wrong", "a10,t4,l4", 1, map[string]int64{"t4": -1, "l4": -1, "a10": 9000}, "t4",
			mem.VerdictFailed, "t4 l4"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var started []string
			s, err := New(t.Context(), Options{GPU: test.gpus, Users: test.users, Tokens: 8192, NoSuggest: true},
				observe.Options{ID: "run", Command: []string{"/bin/sh", "serve.sh"}, Runtime: launch.Runtime{Shared: t.TempDir()}})
			if err != nil {
				t.Fatal(err)
			}
			s.Record = func(_ context.Context, o *observe.Options, sink observe.Sink) (observe.Outcome, error) {
				gpu := slugOf(o)
				started = append(started, gpu)
				return server(gpu, test.tokens[gpu], sink)
			}
			to := &kept{run: mem.NewRun()}
			result, err := s.Run(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			facts := &to.run.Imagined
			if result.GPU != test.recorded || facts.Setup.GPU != test.recorded || len(facts.Devices) != 1 ||
				facts.Devices[0].GPU != test.recorded {
				t.Errorf("recorded %s (%s), %+v; want %s", facts.Setup.GPU, result.GPU, facts.Devices, test.recorded)
			}
			if result.Verdict != test.verdict || strings.Join(started, " ") != test.started {
				t.Errorf("%s, started on %s; want %s, on %s", result.Verdict, started, test.verdict, test.started)
			}
			if len(facts.Trials) != len(started) {
				t.Errorf("verdicts on %d GPUs, of %d that were started", len(facts.Trials), len(started))
			}
		})
	}
}

// slugOf is the GPU that a run is given.
func slugOf(o *observe.Options) string {
	_, after, _ := strings.Cut(o.Helpers[len(o.Helpers)-1].Env["HIGHTIDE_DEVICE_SPEC"], "slug=")
	slug, _, _ := strings.Cut(after, ";")
	return slug
}

// server records a start that comes to so many tokens of KV cache.
func server(gpu string, tokens int64, sink observe.Sink) (observe.Outcome, error) {
	told, code := mem.Serving{Process: 1, Engine: "vLLM", Step: mem.ServingWeights}, int64(1)
	switch {
	case tokens > 0:
		told.Step, told.Answers, code = mem.ServingReady, true, 0
		told.KVTokens, told.AskedAtOnce, told.MaxModelLen = mem.Some(tokens), float64(tokens)/8192, mem.Some(8192)
	case tokens == 0:
		_ = sink.Write(mem.Event{Kind: "oom", Process: 1, Facts: map[string]string{"device": "cuda:0"}})
	}
	end := mem.End{Time: 1, ExitCode: mem.Some(code), Reason: "exit"}
	for _, f := range []mem.Frame{told, mem.DeviceUse{Process: 1, Device: "nvidia:0", Used: 1 << 30},
		mem.ImaginedDevice{GPU: gpu, Total: 16 << 30, Used: 1 << 30}, end} {
		if err := sink.Write(f); err != nil {
			return observe.Outcome{}, fmt.Errorf("record: %w", err)
		}
	}
	return observe.Outcome{ExitCode: end.ExitCode}, nil
}

// TestWhyAGPUIsExcluded: one on which the engine does not run lacks no memory.
func TestWhyAGPUIsExcluded(t *testing.T) {
	for why, want := range map[string]mem.Verdict{
		"weights 15.0 GiB and the KV cache of 20 × 4096 tokens, 10.0 GiB, are more": mem.VerdictOOM,
		"SGLang needs compute capability 7.5, it has none":                          mem.VerdictNone,
	} {
		if got := excludedAs(why); got != want {
			t.Errorf("%s: %s, want %s", why, got, want)
		}
	}
}
