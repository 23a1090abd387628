package tune

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"hightide/internal/mem"
)

// drawn is a recorded pass of a model of up to 12 blocks: alike, of a few kinds, or each of its own size.
func drawn(random *rand.Rand) *Recorded {
	n, kinds := 1+random.IntN(12), 1+random.IntN(12)
	type size struct{ kept, out, flops, inside int64 }
	sizes := make([]size, kinds)
	for i := range sizes {
		kept := 1 + random.Int64N(1000)
		sizes[i] = size{kept, random.Int64N(kept), random.Int64N(1 << 30), random.Int64N(300)}
	}
	r := &Recorded{FLOPs: 1}
	at := mem.Bytes(random.Int64N(2000))
	before := make([]mem.Bytes, n)
	for i := range n {
		s := sizes[random.IntN(kinds)]
		before[i] = at
		r.Blocks = append(r.Blocks, Block{Name: string(rune('a' + i)), Kept: mem.Bytes(s.kept), Out: mem.Bytes(s.out),
			FLOPs: s.flops, Forward: at + mem.Bytes(s.kept+s.inside)})
		r.FLOPs += s.flops
		at += mem.Bytes(s.kept)
	}
	r.Middle = at + mem.Bytes(random.Int64N(1500)) // as of a loss over a large vocabulary
	r.Highest = r.Middle
	for i := range r.Blocks {
		b := &r.Blocks[i]
		b.Backward = before[i] + b.Kept + mem.Bytes(random.Int64N(300))
		r.Highest = max(r.Highest, b.Forward, b.Backward)
	}
	return r
}

// subsets are all sets of blocks with their cost.
func subsets(r *Recorded) (sets [][]string, costs []int64) {
	for bits := range 1 << len(r.Blocks) {
		var set []string
		var cost int64
		for i := range r.Blocks {
			if bits>>i&1 == 1 {
				set, cost = append(set, r.Blocks[i].Name), cost+r.Blocks[i].cost()
			}
		}
		sets, costs = append(sets, set), append(costs, cost)
	}
	return sets, costs
}

func (r *Recorded) costOf(set []string) (cost int64) {
	for i := range r.Blocks {
		for _, name := range set {
			if r.Blocks[i].Name == name {
				cost += r.Blocks[i].cost()
			}
		}
	}
	return cost
}

// TestCheapest: of all sets of blocks that stay below a peak, the cheapest is found, in 300 models.
func TestCheapest(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	reached := 0
	for range 300 {
		r := drawn(random)
		budget := r.Highest - mem.Bytes(random.Int64N(int64(r.Highest)))
		best, found := int64(-1), false
		sets, costs := subsets(r)
		for i, set := range sets {
			if r.Peak(set) <= budget && (!found || costs[i] < best) {
				best, found = costs[i], true
			}
		}
		got := r.cheapest(budget)
		switch {
		case !found && got != nil:
			t.Fatalf("%v for a peak of %d that no set has", got, budget)
		case found && (r.Peak(got) > budget || r.costOf(got) != best):
			t.Fatalf("%v costs %d at a peak of %d; %d is enough for %d", got, r.costOf(got), r.Peak(got), best, budget)
		case found && len(got) > 0:
			reached++
		}
	}
	if reached < 50 {
		t.Errorf("only %d models needed a block", reached)
	}
}

// TestFrontier: it begins without a block, costs more and takes less from set to set, and ends at the lowest peak.
func TestFrontier(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		r := drawn(random)
		sets := r.Frontier()
		if len(sets[0]) != 0 {
			t.Fatalf("it begins with %v", sets[0])
		}
		for i := 1; i < len(sets); i++ {
			if r.costOf(sets[i]) <= r.costOf(sets[i-1]) || r.Peak(sets[i]) >= r.Peak(sets[i-1]) {
				t.Fatalf("set %d %v: cost %d, peak %d after %v: cost %d, peak %d", i, sets[i], r.costOf(sets[i]), r.Peak(sets[i]),
					sets[i-1], r.costOf(sets[i-1]), r.Peak(sets[i-1]))
			}
		}
		if last := sets[len(sets)-1]; r.Peak(last) != r.Peak(r.names()) {
			t.Fatalf("it ends at a peak of %d, and all blocks give %d", r.Peak(last), r.Peak(r.names()))
		}
	}
}

// TestFurther: beyond the lowest peak by the recorded pass, the block of the highest moment is next, then all others.
func TestFurther(t *testing.T) {
	r := &Recorded{Highest: 950, Middle: 900, Blocks: []Block{{Name: "a", Kept: 60, Out: 10, FLOPs: 1, Forward: 100, Backward: 150},
		{Name: "b", Kept: 570, Out: 10, FLOPs: 9, Forward: 650, Backward: 950}, {Name: "c", Kept: 100, Out: 10, FLOPs: 2,
			Forward: 750, Backward: 800}, {Name: "d", Kept: 10, Out: 10, FLOPs: 2, Forward: 760, Backward: 790}}}
	sets := r.Frontier()
	last := sets[len(sets)-1]
	if got, want := fmt.Sprint(last, r.further(last)), "[a] [[a b] [a b c]]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
