package growth

import (
	"strings"
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
)

// TestWorkersInTurn: what workers of one epoch keep is gone in the next, so only those that ran at once are summed, and
// nothing says when memory runs out.
func TestWorkersInTurn(t *testing.T) {
	run := trained(300, func(int64) int64 { return 400 << 20 }, func(int64) int64 { return 400 << 20 })
	for id := uint32(2); id < 6; id++ {
		epoch := int64(id/2-1) * 15e9
		if err := run.Add(mem.Process{ID: id, Parent: 1, Role: "dataloader", Start: epoch, End: mem.Some(epoch + 15e9)}); err != nil {
			t.Fatal(err)
		}
	}
	in := &Found{Facts: facts.Of(run, nil)}
	in.Leader = 1
	var causes []growing
	for id := uint32(2); id < 6; id++ {
		causes = append(causes, growing{process: id, slope: 1 << 20, kept: 150 << 20, source: "heap", label: mem.Sampled,
			shares: []share{{process: id, slope: 1 << 20}}, holder: &mem.Holder{Name: "D.seen", Kind: "dict", PerStep: 8}})
	}
	all := in.merged(causes)
	if len(all) != 1 || all[0].slope != 2<<20 || all[0].kept != 300<<20 || all[0].holder.PerStep != 16 || all[0].others != 2 {
		t.Fatalf("%+v", all)
	}
	if said := in.among(&all[0]); !strings.Contains(said, "2 processes at once") ||
		!strings.Contains(said, "2 processes showed the same at other times") {
		t.Error(said)
	}
	if left, ok := in.left(all[0].shares, "heap"); ok {
		t.Errorf("memory runs out in %v steps", left.turns)
	}
	if sum := sumOf(in.sharesAtOnce([]share{{process: 2, slope: 1}, {process: 4, slope: 3}, {process: 1, slope: 1}})); sum != 4 {
		t.Errorf("%v a step together", sum)
	}
}
