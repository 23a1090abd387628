package tune

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"hightide/internal/levers"
	"hightide/internal/mem"
)

// TestUnequal: what the agent's tests have of such loops is refused, and what adds up is not.
func TestUnequal(t *testing.T) {
	step := func(passes int, kind string, scale float64, more ...func(*addedStep)) addedStep {
		s := addedStep{Passes: passes, Alike: true, Kept: true, Inputs: 512, Losses: []addend{{kind, scale}}, Rates: []float64{0.01}}
		for _, change := range more {
			change(&s)
		}
		return s
	}
	none := func(s *addedStep) { s.Losses = nil }
	for name, c := range map[string]struct {
		whole, parts addedStep
		want         string
	}{
		"a mean":           {step(1, "mean", 1), step(2, "mean", 0.5), ""},
		"a third of it":    {step(3, "mean", 1/3.0), step(6, "mean", 1/6.0), ""},
		"its own kind":     {step(1, "CompiledFunctionBackward", 1), step(2, "CompiledFunctionBackward", 0.5), ""},
		"a sum":            {step(1, sumOfAll, 1), step(2, sumOfAll, 1), ""},
		"undivided":        {step(1, "mean", 1), step(2, "mean", 1), "is not divided by the count"},
		"a divided sum":    {step(1, sumOfAll, 1), step(2, sumOfAll, 0.5), "is a sum over the samples"},
		"by a tensor":      {step(1, perTensor, 1), step(2, perTensor, 0.5), "by a number that is not known"},
		"another kind":     {step(1, "mean", 1), step(2, sumOfAll, 0.5), "by a number that is not known"},
		"ignored":          {step(1, "mean", 1), step(1, "mean", 1), "has 1 backward passes in place of 1"},
		"let go":           {step(1, "mean", 1), step(2, "mean", 0.5, func(s *addedStep) { s.Kept = false }), "are let go"},
		"unlike":           {step(1, "mean", 1), step(2, "mean", 0.5, func(s *addedStep) { s.Alike = false }), "not made alike"},
		"of other rates":   {step(1, "mean", 1), step(2, "mean", 0.5, func(s *addedStep) { s.Rates[0] = 0.1 }), "the learning rate"},
		"of other batches": {step(1, "mean", 1), step(2, "mean", 0.5, func(s *addedStep) { s.Inputs = 1024 }), "another number of samples"},
		"without losses":   {step(1, "mean", 1, none), step(2, "mean", 0.5, none), "not made alike"},
	} {
		if got := c.parts.against(&c.whole, 2); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSlice: the mean of the ranks' gradients is that of the whole batch where each has a slice and its loss is a mean.
func TestSlice(t *testing.T) {
	step := func(inputs int64, kind string, scale float64) addedStep {
		return addedStep{Passes: 1, Alike: true, Inputs: inputs, Losses: []addend{{kind, scale}}}
	}
	for name, c := range map[string]struct {
		whole, rank addedStep
		want        string
	}{
		"a mean":        {step(64, "mean", 1), step(32, "mean", 1), ""},
		"its own kind":  {step(64, "NllLossBackward0", 2), step(32, "NllLossBackward0", 2), ""},
		"a sum":         {step(64, sumOfAll, 1), step(32, sumOfAll, 1), "a sum over the samples"},
		"by the batch":  {step(64, sumOfAll, 1/64.0), step(32, sumOfAll, 1/32.0), "not made as that of the whole batch"},
		"by a tensor":   {step(64, perTensor, 1), step(32, perTensor, 1), "by a number that is not known"},
		"no slice":      {step(64, "mean", 1), step(64, "mean", 1), "has 64 numbers of 64, for 2 ranks"},
		"without a sum": {addedStep{Inputs: 64}, addedStep{Inputs: 32}, "not made as"},
		"more passes":   {step(64, "mean", 1), addedStep{Passes: 2, Inputs: 32}, "has 2 backward passes in place of 1"},
	} {
		if got := c.rank.slice(&c.whole, 2); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestSmallerByCommand: the fewest parts that reach the goal are taken, with the command in the plan; a loop that does not add up,
// a batch norm and a command without a count are refused by name.
func TestSmallerByCommand(t *testing.T) {
	said := func(norm string, passes int, scale float64) string {
		text, _ := json.Marshal(counted{norm, []addedStep{{passes, true, true, 64, []addend{{"mean", scale}}, []float64{0.1}}}})
		return string(text)
	}
	for name, c := range map[string]struct {
		scale     func(parts int) float64
		norm, why string
		want      string // of the refusal; "": 4 parts are recommended
	}{
		"divided":   {func(parts int) float64 { return 1 / float64(parts) }, "", "", ""},
		"undivided": {func(int) float64 { return 1 }, "", "", "its loss is not divided by the count"},
		"normed":    {func(parts int) float64 { return 1 / float64(parts) }, "bn", "", "bn is a batch norm, which would see the parts alone"},
		"nameless":  {nil, "", "the command names no size of a batch", "the command names no size of a batch"},
	} {
		try := func(_ context.Context, runs []Run) (outcomes []*Outcome) {
			for _, run := range runs {
				parts := max(1, run.Plan.Levers[levers.Words].Parts)
				need := 8 * mem.GiB / mem.Bytes(parts)
				if _, early := run.Plan.Levers["step_in_backward"]; early && parts > 1 {
					t.Errorf("%s: %s, which would find gradients that are accumulated", name, run.Plan.Changes())
				}
				o := &Outcome{Applied: true, Model: "Net 10"}
				o.Total, o.Verdict = 3*mem.GiB, mem.VerdictOOM
				if run.Roomy || need < o.Total {
					o.Verdict, o.Used, o.Allocated = mem.VerdictFits, mem.Some(int64(need)), mem.Some(int64(need))
					o.Reserved, o.Headroom = o.Used, mem.Some(int64(o.Total-need))
				}
				if run.Counted {
					o.Counted = said(c.norm, parts, c.scale(parts))
				}
				outcomes = append(outcomes, o)
			}
			return outcomes
		}
		parted := func(parts int) ([]string, string) {
			return []string{"python", "t.py", "--parts", strings.Repeat("i", parts)}, c.why
		}
		o := Options{Command: []string{"python", "t.py"}, GPU: "a10", Goal: fitGoal, Allow: []string{levers.Words}}
		r, err := Find(t.Context(), o, Host{Try: try, Parted: parted})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := r.Refused[levers.Words]; got != c.want {
			t.Errorf("%s: refused as %q, want %q", name, got, c.want)
		}
		has := slices.ContainsFunc(r.Points, func(p *Point) bool { return p.Plan.Cuts() && p.Verdict.Fits() })
		if has != (c.want == "") || (r.Recommended != nil) != has {
			t.Errorf("%s: recommended %+v of %d points", name, r.Recommended, len(r.Points))
		}
		if has && r.Recommended.Levers[levers.Words].Command != "python t.py --parts iiii" {
			t.Errorf("%s: recommended %+v", name, r.Recommended.Levers)
		}
	}
}
