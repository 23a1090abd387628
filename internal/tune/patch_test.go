package tune

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"hightide/internal/levers"
	"hightide/internal/mem"
)

const edits = `{"checkpoint": {"edits": [{"file": "/p/train.py", "line": 2, "end_line": 2, "text": "for b in BLOCKS: pass\n"}]},
 "step_in_backward": {"why": "it is more than a change of some lines"}}`

// TestPatch: a patch is of the cheapest plan that can be written whole; it is shown if the copy with it ran, and it says
// where the copy's peak is not the plan's.
func TestPatch(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*program, *Outcome)
		shown  bool
		says   string
		saves  mem.Bytes // by the step in the backward pass, which cannot be written
	}{
		"as planned":  {func(*program, *Outcome) {}, true, "as with the plan, to the byte", 0},
		"other peak":  {func(_ *program, o *Outcome) { o.Allocated = mem.Some(7 << 20) }, true, "7.00 MiB allocated, ", 0},
		"did not run": {func(_ *program, o *Outcome) { o.Verdict, o.How = mem.VerdictFailed, "NameError" }, false, "did not run: NameError", 0},
		"other model": {func(_ *program, o *Outcome) { o.Refused = "the plan is for GPT" }, false, "trains something else: the plan is for GPT", 0},
		"other files": {func(_ *program, o *Outcome) { o.Applied = false }, false, "not the changed copy", 0},
		"out of memory": {func(_ *program, o *Outcome) {
			o.Verdict, o.Used, o.Allocated = mem.VerdictOOM, mem.Optional{}, mem.Optional{}
		}, true, "ran out of memory; the run with the plan took", 0},
		"another plan": {func(*program, *Outcome) {}, true, "The patch is of another plan, as the recommended one cannot " +
			"be written whole: checkpointing of ", 300 * mem.MiB},
		"a little more": {func(_ *program, o *Outcome) { o.Allocated = mem.Some(o.Allocated.Or(0) + 5) }, true,
			" 5 B more than with the plan", 0},
		"a little less": {func(_ *program, o *Outcome) { o.Allocated = mem.Some(o.Allocated.Or(0) - 5) }, true,
			" 5 B less than with the plan", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, o := gpt(), Options{Command: []string{"python", "train.py"}, GPU: "a10", Patch: true}
			if err := o.Check(); err != nil {
				t.Fatal(err)
			}
			p.saves = map[string]mem.Bytes{"step_in_backward": test.saves}
			try := func(ctx context.Context, runs []Run) []*Outcome {
				outcomes := p.try(ctx, runs)
				outcomes[0].Code = edits
				return outcomes
			}
			var text string
			result, err := Find(t.Context(), o, Host{Try: try, Folder: "/p/sub", Source: func(string) (string, error) { return "one\ntwo\n", nil },
				Patched: func(_ context.Context, _ *levers.Plan, folder string, changed map[string]string) (*Outcome, error) {
					text = folder + ": " + changed["/p/train.py"]
					out := p.run(Run{Plan: asWritten(text)})
					test.change(p, out)
					return out, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			if got := result.Patch; (got.Text != "") != test.shown || !strings.Contains(got.Says, test.says) ||
				strings.Contains(got.Says, "another plan") != (test.saves > 0) {
				t.Errorf("%q: %s\n%s", got.Problem, got.Says, got.Text)
			}
			if !strings.HasPrefix(text, "/p: one\nfor b in [f\"h.{n}\" for n in range(0, ") {
				t.Errorf("the copy is %s", text)
			}
		})
	}
}

// asWritten is the plan that a changed program follows.
func asWritten(text string) *levers.Plan {
	_, blocks, _ := strings.Cut(text, "range(0, ")
	n, _ := strconv.Atoi(blocks[:strings.Index(blocks, ")")])
	plan := &levers.Plan{Levers: map[string]levers.Settings{}}
	names := make([]string, n)
	for i := range names {
		names[i] = "h." + strconv.Itoa(i)
	}
	plan.Levers[levers.Checkpoint] = levers.Settings{Blocks: names}
	return plan
}

// TestFilled: what the agent writes has the plan's own figures.
func TestFilled(t *testing.T) {
	settings := levers.Settings{Blocks: []string{"h.0", "h.2"}, Value: "a:b", Budget: 0.4, Parts: 4}
	const text = "BLOCKS, VALUE, BUDGET, PARTS, PART_OF_32, PART_OF_16"
	if got := filled(text, settings); got != `["h.0", "h.2"], "a:b", 0.4, 4, 8, 4` {
		t.Error(got)
	}
}
