package tune

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// engine is a server whose tokens are arithmetic: what each setting adds, and what the whole command holds in the end.
type engine struct {
	tokens, length, sequences int64 // as it is; no tokens: it does not start
	adds                      map[string]int64
	tight                     string // a setting with which nothing is left to spare
	whole                     int64  // more than as it was tried
	runs                      [][]Setting
}

func (e *engine) start(set []Setting) *Start {
	e.runs = append(e.runs, set)
	s := &Start{Engine: "vLLM", Version: "0.11.0", Ready: true}
	s.GPU, s.GPUName, s.Total, s.Label, s.Verdict = "a10", "NVIDIA A10", 22*mem.GiB, mem.Imagined, mem.VerdictFits
	tokens, length, sequences := e.tokens, e.length, e.sequences
	for _, one := range set {
		tokens += e.adds[one.Flag]
		number, _ := strconv.ParseInt(one.Value, 10, 64)
		switch {
		case one.Argument == lengthOf:
			length = number
		case one.Argument == "max_num_seqs":
			sequences = number
		case one.GPUs > 0:
			s.Figures.TensorParallel = mem.Some(number)
		}
		if one.Flag == e.tight {
			s.Verdict, s.Headroom = mem.VerdictTight, mem.Some(1<<20)
		}
	}
	s.Figures.MaxModelLen, s.Figures.MaxSeqs = mem.Some(length), mem.Some(sequences)
	if tokens <= 0 {
		s.Verdict, s.Ready = mem.VerdictOOM, false
		return s
	}
	s.KVTokens, s.Figures.MaxConcurrency = mem.Some(tokens), float64(tokens)/float64(length)
	return s
}

var (
	share  = Setting{Argument: "gpu_memory_utilization", Value: "0.93", Flag: "--share"}
	batch  = Setting{Argument: "max_num_batched_tokens", Value: "512", Flag: "--batch 512"}
	seqs   = Setting{Argument: "max_num_seqs", Value: "64", Flag: "--seqs 64"}
	eager  = Setting{Argument: "enforce_eager", Value: "true", Flag: "--eager"}
	eight  = Setting{Argument: "kv_cache_dtype", Value: "fp8", Flag: "--fp8"}
	two    = Setting{Argument: "tensor_parallel_size", Value: "2", Flag: "--two", GPUs: 2}
	longer = Setting{Argument: lengthOf, Value: "1000", Flag: "--length 1000"}
)

// tune has the engine serve so many sequences of 1,000 tokens; no users: none were asked for.
func (e *engine) tune(t *testing.T, users int, must []Setting, list ...Setting) *Result {
	t.Helper()
	o := Options{Command: []string{"vllm", "serve", "m"}, GPU: "a10", Users: users}
	if users > 0 {
		o.Tokens = 1000
	}
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	judged := func(set []Setting) *Start {
		s := e.start(set)
		if held, ok := s.KVTokens.Get(); ok && users > 0 {
			s.Users = mem.Some(min(held/1000, s.Figures.MaxSeqs.Or(0)))
			if s.Users.Or(0) < int64(users) {
				s.Verdict = mem.VerdictFew
			}
		}
		return s
	}
	r, err := Serve(t.Context(), o, ServerHost{
		Start:    func(context.Context) (*Start, error) { return judged(nil), nil },
		Settings: func() ([]Setting, []Setting) { return must, list },
		Try: func(_ context.Context, sets [][]Setting) (starts []*Start) {
			for _, set := range sets {
				starts = append(starts, judged(set))
			}
			return starts
		},
		Whole: func(_ context.Context, set []Setting) (*Start, error) {
			e.tokens += e.whole
			defer func() { e.tokens -= e.whole }()
			return judged(set), nil
		},
		Command: func(set []Setting) []string { return slices.Concat(o.Command, strings.Fields(flags(set))) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestServe: the cheapest settings that reach the goal are recommended, and nothing that was not started whole.
func TestServe(t *testing.T) {
	all := []Setting{share, batch, seqs, eager, two, eight}
	adds := map[string]int64{"--share": 2000, "--batch 512": 500, "--seqs 64": 1500, "--eager": 1000,
		"--two": 12000, "--fp8": 9000}
	for _, test := range []struct {
		name   string
		engine engine
		users  int
		must   []Setting
		list   []Setting
		want   string // that is chosen; "": nothing
		says   string
	}{
		{"as it is", engine{tokens: 20000}, 20, nil, all,
			"as it is", "Leave the command as it is: 20,000 tokens"},
		{"a share", engine{tokens: 9000}, 10, nil, all,
			"--share", "Add --share: 11,000 tokens of KV cache, 11 sequences of 1,000 " +
				"tokens at once on NVIDIA A10."},
		{"no more than it takes", engine{tokens: 9600}, 13, nil, all,
			"--seqs 64 --share", "at most 64 sequences run at once"},
		{"graphs after sequences", engine{tokens: 9600}, 14, nil, all,
			"--eager --share --seqs 64", "no CUDA graphs: slower decoding"},
		{"two GPUs before other numbers", engine{tokens: 9000}, 20, nil, all,
			"--two", "on 2 × NVIDIA A10; 2 GPUs, which"},
		{"all of it", engine{tokens: 9000}, 35, nil, all,
			"", "No settings that were tried reach the goal on NVIDIA A10: the most"},
		{"what the users need", engine{tokens: 90000, sequences: 8}, 70, []Setting{longer,
			{Argument: "max_num_seqs", Value: "70", Flag: "--seqs 70"}}, all, "--length 1000 --seqs 70", "70 sequences of 1,000 tokens"},
		{"without users no step is slower", engine{tokens: 9000}, 0, nil, all,
			"--share", "Add --share: 11,000 tokens"},
		{"does not start", engine{tokens: -1200}, 0, nil, []Setting{seqs, eight, eager},
			"--seqs 64", "Add --seqs 64: 300 tokens"},
		{"starts by two", engine{tokens: -2200}, 0, nil, []Setting{seqs, eager},
			"", "No settings that were tried have the server start"},
		{"tight", engine{tokens: 9000, tight: "--share"}, 10, nil, []Setting{share},
			"--share", "Add --share: 11,000 tokens"},
		{"less with its flags", engine{tokens: 9000, whole: -2000}, 10, nil, []Setting{share},
			"", "No settings"},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := test.engine
			e.adds = adds
			if e.length == 0 {
				e.length = 1000
			}
			if e.sequences == 0 {
				e.sequences = 256
			}
			r := e.tune(t, test.users, test.must, test.list...)
			got := ""
			if r.Server.Chosen != nil {
				got = r.Server.Chosen.What
			}
			words := func(text string) []string { return slices.Sorted(slices.Values(strings.Split(" "+text, " --"))) }
			if !slices.Equal(words(got), words(test.want)) || !strings.Contains(r.Answer, test.says) {
				t.Fatalf("%q: %s\nwant %q: %s\n%s", got, r.Answer, test.want, test.says, r.Text(report.TextOptions{}))
			}
			if got != "" && got != asItIs {
				last := e.runs[len(e.runs)-1]
				if flags(last) != got || !slices.Equal(r.Server.Command[3:], strings.Fields(got)) {
					t.Errorf("the last start was %q, the command is %q", flags(last), r.Server.Command)
				}
			}
			if len(e.runs) != r.Runs || r.Runs > 20 {
				t.Errorf("%d starts, and %d told", len(e.runs), r.Runs)
			}
			text := r.Text(report.TextOptions{})
			for _, word := range []string{"loss", "train", "gradient", "step", "plan"} {
				if strings.Contains(text, word) {
					t.Errorf("%q of a server:\n%s", word, text)
				}
			}
		})
	}
}

// TestFrontierOfAServer: a start is on the frontier where no other holds as many tokens at no more cost of any kind.
func TestFrontierOfAServer(t *testing.T) {
	e := engine{tokens: 9000, length: 1000, sequences: 256,
		adds: map[string]int64{"--share": 2000, "--batch 512": 3000, "--seqs 64": 100}}
	r := e.tune(t, 0, nil, share, batch, seqs)
	var best []string
	for _, p := range r.Server.Points {
		if p.Best {
			best = append(best, fmt.Sprintf("%s: %d", p.What, p.Verdict.KVTokens.Or(0)))
		}
	}
	want := []string{"--share: 11000", "--share --batch 512: 14000", "--share --batch 512 --seqs 64: 14100"}
	if !slices.Equal(best, want) {
		t.Errorf("%q, want %q", best, want)
	}
}

// TestNotOfAServer: what is made for trainings is refused by name, and so is what is asked of a server alone.
func TestNotOfAServer(t *testing.T) {
	serve, train := []string{"vllm", "serve", "m"}, []string{"python", "train.py"}
	sglang := []string{"python", "-m", "sglang.launch_server"}
	for want, o := range map[string]Options{
		"--goal cost is made for trainings":            {Command: serve, GPU: "a10", Goal: Cost},
		"--goal headroom=10% is made for trainings":    {Command: serve, GPU: "a10", Goal: "headroom=10%"},
		"--patch is made for trainings":                {Command: serve, GPU: "a10", Patch: true},
		"--host-memory is made for trainings":          {Command: serve, GPU: "a10", Host: mem.GiB},
		"--allow bf16 is made for trainings":           {Command: serve, GPU: "a10", Allow: []string{"bf16"}},
		"no plan is written for a command that serves": {Command: serve, GPU: "a10", Output: "x.toml"},
		"--tokens says how long":                       {Command: serve, GPU: "a10", Tokens: 5},
		"no GPU to fit on":                             {Command: serve},
		"this command starts none":                     {Command: train, GPU: "a10", Users: 5},
		"--allow kv_fp8: a training keeps no cache":    {Command: train, GPU: "a10", Allow: []string{EightBits}},
		"this command serves with SGLang":              {Command: sglang, GPU: "a10", Patch: true},
	} {
		if err := o.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
