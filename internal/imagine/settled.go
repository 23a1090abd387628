package imagine

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"hightide/internal/frameworks"
	"hightide/internal/mem"
)

// Setting is another value of an argument of an LLM server's engine.
type Setting = frameworks.Setting

// Start starts the server as it is, of which nothing is to be seen or kept but its figures.
func (s *Session) Start(ctx context.Context) (*Result, error) {
	r, err := s.attempt(ctx, s.first)
	if err == nil && r.Serving != nil {
		s.knows(r)
	}
	return r, err
}

// SettingsOf are settings with which a server may hold more, or start at all. It cannot do without those of must.
// eight: a KV cache of 8 bits is allowed; most: so many GPUs at most.
func (s *Session) SettingsOf(r *Result, eight bool, most int) (must, list []Setting) {
	v, t := r.Serving, s.first
	users, tokens := int64(s.Users), int64(s.Tokens)
	needed := &settings{base: t, engine: v.Engine, version: v.Version}
	if seqs := v.MaxSeqs.Or(users); seqs < users {
		needed.number("max_num_seqs", "--max-num-seqs", users)
	}
	if length := v.MaxModelLen.Or(0); tokens > 0 && (length < tokens || length == tokens && !saysLength(t.command)) {
		needed.number("max_model_len", "--max-model-len", tokens)
	}
	tries := &settings{base: t, engine: v.Engine, version: v.Version, users: max(users, 1)}
	if v.Ready {
		if share := s.roomy(r); share != v.Utilization && share > 0 {
			tries.utilization(share)
		}
		tries.smaller(v)
		tries.eager(v)
	} else {
		tries.starts(v, t.gpu.Total)
	}
	if eight && v.KVType == "auto" && !slices.ContainsFunc(tries.list, isEight) {
		tries.eightBits()
	}
	for n := 2 * max(t.count, 1); n <= most && v.TensorParallel.Or(1) == int64(max(t.count, 1)); n *= 2 {
		tries.try("tensor_parallel_size", n, fmt.Sprintf("--tensor-parallel-size %d", n), n)
	}
	list = settingsIn(tries.list)
	return settingsIn(needed.list), slices.DeleteFunc(list, func(one Setting) bool {
		return one.Argument == eightBits && !eight || one.Argument == "max_model_len" && tokens > 0
	})
}

// eightBits is the argument of the KV cache's type.
const eightBits = "kv_cache_dtype"

func isEight(a attempt) bool { return strings.HasPrefix(a.kind, engineSwitch+eightBits+"=") }

// settingsIn are the settings that attempts give an engine.
func settingsIn(list []attempt) (found []Setting) {
	for _, a := range list {
		argument, value, _ := strings.Cut(strings.TrimPrefix(a.kind, engineSwitch), "=")
		one := Setting{Argument: argument, Value: value, Flag: a.what}
		if argument == "tensor_parallel_size" {
			one.GPUs = a.trial.count
		}
		found = append(found, one)
	}
	return found
}

// roomy is the largest share, up to 0.95, that leaves what a verdict needs not to be tight, as far as the start that
// was seen tells; 0: it tells nothing.
func (s *Session) roomy(r *Result) float64 {
	left, known := r.Headroom.Get()
	if total := s.first.gpu.Total; known && r.Serving.Utilization > 0 {
		more := float64(left-int64(s.first.gpu.Tight())) / float64(total)
		share := math.Floor(100*(r.Serving.Utilization+more)+1e-9) / 100
		return min(0.95, share, shareOf(r.Serving.Free.Or(int64(total)), total))
	}
	return 0
}

// saysLength says whether a server's command gives the greatest length of a sequence.
func saysLength(command []string) bool {
	return slices.ContainsFunc(command, func(word string) bool {
		name, _, _ := strings.Cut(strings.ReplaceAll(word, "_", "-"), "=")
		return name == "--max-model-len" || name == "--context-length"
	})
}

// TrySettings starts the server with each set of settings. A result is nil where there is none, or where the engine has
// no such setting. Those of vLLM come from one start.
func (s *Session) TrySettings(ctx context.Context, sets [][]Setting) []*Result {
	trials := make([]trial, len(sets))
	for i, set := range sets {
		t := s.with(set)
		for _, one := range set {
			t.switches = append(t.switches, engineSwitch+one.Argument+"="+one.Value)
		}
		trials[i] = t
	}
	s.lock.Lock()
	s.all += len(sets)
	s.lock.Unlock()
	results := s.copies(ctx, trials)
	jobs := make([]func(), len(sets))
	for i := range sets {
		jobs[i] = func() {
			if results[i] == nil && ctx.Err() == nil {
				results[i], _ = s.attempt(ctx, trials[i])
			}
			verdict := mem.VerdictNone
			if r := results[i]; r != nil {
				verdict = r.Verdict
				if slices.ContainsFunc(trials[i].switches, func(name string) bool { return !r.switched(name) }) {
					results[i] = nil
				}
			}
			s.advance("%s: %s", strings.Join(FlagsOf(sets[i]), " "), verdict)
		}
	}
	s.atOnce(jobs)
	return results
}

// with is a trial with what settings need beside the engine's arguments.
func (s *Session) with(set []Setting) trial {
	t := s.first
	t.switches = slices.Clone(s.first.switches)
	for _, one := range set {
		t.count = max(t.count, one.GPUs)
		switch {
		case one.Argument == eightBits && t.load == "":
			t.load = "1x16+2" // see settings.eightBits
		case one.Argument == "gpu_memory_utilization" && s.largestPrompt != "":
			t.load = s.largestPrompt
		}
	}
	return t
}

// TryWhole starts the server by its command with the flags of these settings.
func (s *Session) TryWhole(ctx context.Context, set []Setting) (*Result, error) {
	t := s.with(set)
	t.command = slices.Concat(t.command, FlagsOf(set))
	return s.attempt(ctx, t)
}

// FlagsOf are the words that give a command these settings.
func FlagsOf(set []Setting) (words []string) {
	for _, one := range set {
		words = append(words, strings.Fields(one.Flag)...)
	}
	return words
}

// Noted is the verdict with what a failure says.
func (r *Result) Noted() mem.GPUVerdict { return r.noted() }
