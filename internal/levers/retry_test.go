package levers

import (
	"slices"
	"testing"
)

// TestRetry: each start after one that ran out of memory has the next plan; a lever that is refused is left out, and is
// not asked for again.
func TestRetry(t *testing.T) {
	for name, test := range map[string]struct {
		plan *Plan
		ran  []Ran
		want []string
	}{
		"enough memory": {nil, []Ran{{}}, []string{"0 none"}},
		"until it fits": {nil, []Ran{{Again: true}, {Again: true}, {}}, []string{"0 none",
			"1 expandable_segments:True, checkpointing of all blocks",
			"2 expandable_segments:True, checkpointing of all blocks, activations on the host"}},
		"at most so often": {nil, []Ran{{Again: true}, {Again: true}, {Again: true}, {Again: true}}, []string{"0 none",
			"1 expandable_segments:True, checkpointing of all blocks",
			"2 expandable_segments:True, checkpointing of all blocks, activations on the host",
			"3 expandable_segments:True, checkpointing of all blocks, activations on the host"}},
		"a lever is refused": {nil, []Ran{{Again: true}, {Refused: "checkpoint: Net has no repeated blocks"}, {Again: true}, {}},
			[]string{"0 none", "1 expandable_segments:True, checkpointing of all blocks", "1 expandable_segments:True",
				"2 expandable_segments:True, activations on the host"}},
		"the user's plan is refused": {&Plan{Levers: map[string]Settings{"foreach": {}}}, []Ran{{Refused: "foreach: it is fused"}},
			[]string{"0 foreach=False"}},
		"of the user's plan": {&Plan{Levers: map[string]Settings{Checkpoint: {Blocks: []string{"h.0", "h.1"}}}},
			[]Ran{{Again: true}, {}},
			[]string{"0 checkpointing of 2 blocks", "1 expandable_segments:True, checkpointing of all blocks"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			err := Retry(Start{Most: 3}, test.plan, func(s Start, p *Plan) (Ran, error) {
				changes := "none"
				if p != nil {
					changes = p.Changes()
				}
				got = append(got, string(rune('0'+s.Number))+" "+changes)
				return test.ran[len(got)-1], nil
			}, func(Start, *Plan) {})
			if err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%v, %q", err, got)
			}
		})
	}
}
