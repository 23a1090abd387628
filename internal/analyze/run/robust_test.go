package run

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestNonsense: a recording may hold anything that its format allows. Whatever it says, there is a
// report, in every form, and no panic.
func TestNonsense(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 3))
		run := nonsense(rng)
		r := Analyze(run, Options{})
		if _, err := json.Marshal(r); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		_, _ = r.Text(report.TextOptions{Width: rng.IntN(200), Color: seed%2 == 0}), r.Markdown()
	}
}

// number is what a counter, a clock or a size may be when somebody wants to do harm.
func number(rng *rand.Rand) int64 {
	switch rng.IntN(8) {
	case 0:
		return 0
	case 1:
		return math.MaxInt64
	case 2:
		return math.MinInt64
	case 3:
		return -rng.Int64N(1e12)
	}
	return rng.Int64N(1e12)
}

func nonsense(rng *rand.Rand) *mem.Run {
	run := mem.NewRun()
	some := func() mem.Optional {
		if rng.IntN(3) == 0 {
			return mem.Optional{}
		}
		return mem.Some(number(rng))
	}
	id := func() uint32 { return rng.Uint32N(4) }
	phase := func() mem.Phase { return mem.Phases[rng.IntN(len(mem.Phases))] }
	kinds := []string{"oom", "kill", "alert", "unobserved", "drop", "exception", "traced", "program", "donation",
		mem.EventUnusedGraphs}
	frame := func() mem.Frame {
		switch rng.IntN(16) {
		case 0:
			return mem.Process{ID: id(), Parent: id(), Role: "dataloader", Start: number(rng), End: some(), MaxRSS: some(),
				Facts: map[string]string{"heap_mean_bytes": "-1"}}
		case 1:
			return mem.SeriesDef{ID: id() + 1, Process: id(), Name: facts.CurveNames[rng.IntN(len(facts.CurveNames))].Name,
				Unit: mem.UnitBytes}
		case 2:
			n := rng.IntN(60)
			s := mem.Samples{Series: id() + 1, Times: make([]int64, n), Values: make([]int64, n)}
			for i := range n {
				s.Times[i], s.Values[i] = number(rng), number(rng)
			}
			return s
		case 3:
			return mem.Spans{{Process: id(), Phase: phase(), Step: rng.Uint64(), Start: number(rng), End: number(rng)}}
		case 4:
			return mem.PhaseStats{Process: id(), Phase: phase(), Count: rng.Uint64N(3), Total: number(rng), RSSPeak: some()}
		case 5, 6, 7:
			return mem.Steps{{Process: id(), Number: rng.Uint64N(500), Time: number(rng), Duration: number(rng), RSS: some(),
				Heap: some(), Device: some()}}
		case 8:
			return mem.StepTotal{Process: id(), Steps: rng.Uint64()}
		case 9:
			return mem.StackDef{ID: id(), Locations: []mem.Location{{File: "<string>", Line: int(number(rng))},
				{Native: rng.IntN(2) == 0}}}
		case 10, 11:
			use := mem.HeapUse{Process: id(), Time: number(rng), Live: mem.Bytes(number(rng)), Variance: float64(number(rng)),
				Peak: rng.IntN(4) == 0}
			for range rng.IntN(4) {
				use.Sites = append(use.Sites, mem.SiteUse{Stack: id(), Phase: phase(), Live: mem.Bytes(number(rng)),
					Count: rng.Uint64N(5), Allocated: mem.Bytes(number(rng))})
			}
			return use
		case 12:
			return mem.Holder{Process: id(), Kind: "list", Items: number(rng), PerStep: float64(number(rng)), Tensors: some(),
				Graph: rng.IntN(2) == 0}
		case 13:
			return mem.ModelUse{Process: id(), Device: "cpu", Parameters: some(), Gradients: some()}
		case 14:
			return mem.Event{Time: number(rng), Process: id(), Kind: kinds[rng.IntN(len(kinds))], Text: "\x1b", Step: some(),
				Bytes: some(), Where: &mem.Location{}, Facts: map[string]string{"count": "99",
					"temp_bytes": "-9223372036854775808", "argument_bytes": "9223372036854775807", "output_bytes": "1"}}
		}
		return mem.RunInfo{StartMono: number(rng), Host: mem.Host{Memory: some(), PageSize: int(number(rng))}}
	}
	for range rng.IntN(400) {
		_ = run.Add(frame())
	}
	return run
}
