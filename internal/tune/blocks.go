package tune

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"hightide/internal/mem"
)

// Recorded is what the agent saw of a training pass (agent/python/src/hightide_agent/levers/recorded.py).
type Recorded struct {
	Highest mem.Bytes `json:"highest_bytes"` // of the whole step
	Middle  mem.Bytes `json:"middle_bytes"`  // between the last block's forward and its backward pass
	FLOPs   int64     `json:"flops"`         // of the model's forward pass
	Blocks  []Block   `json:"blocks"`        // in the order in which they are called
}

// Block is one repeated block.
type Block struct {
	Name              string
	Kept              mem.Bytes // of its forward pass until its backward pass, outputs among them
	Out               mem.Bytes // its outputs
	FLOPs             int64     // of its forward pass
	Forward, Backward mem.Bytes // the highest of the whole device in these passes
}

// UnmarshalJSON reads the list that the agent writes.
func (b *Block) UnmarshalJSON(text []byte) error {
	list := []any{&b.Name, &b.Kept, &b.Out, &b.FLOPs, &b.Forward, &b.Backward}
	n := len(list)
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	if len(list) != n {
		return fmt.Errorf("a block has %d fields, not %d", n, len(list))
	}
	return nil
}

// saves is what is free between the block's two passes where it is checkpointed.
func (b *Block) saves() mem.Bytes { return max(0, b.Kept-b.Out) }

// cost is what its second forward pass takes; 1 where operators whose FLOPs nobody counts do the work.
func (b *Block) cost() int64 { return max(1, b.FLOPs) }

// Share is the part of the forward pass that some blocks make again, and whether it is known.
func (r *Recorded) Share(names []string) (float64, bool) {
	if r == nil || r.FLOPs <= 0 {
		return 0, false
	}
	var sum int64
	for i := range r.Blocks {
		if slices.Contains(names, r.Blocks[i].Name) {
			sum += r.Blocks[i].FLOPs
		}
	}
	return float64(sum) / float64(r.FLOPs), true
}

// Peak is the highest of all moments of the step where a set of blocks is checkpointed, by the recorded pass: each moment
// less what the blocks before it save. A block that is checkpointed saves nothing in its own backward pass, where it has
// all its activations again. It says nothing of moments outside the model, as of the optimizer's step.
func (r *Recorded) Peak(set []string) mem.Bytes {
	highest, saved := mem.Bytes(0), mem.Bytes(0)
	for i := range r.Blocks {
		b := &r.Blocks[i]
		highest = max(highest, max(b.Forward, b.Backward)-saved)
		if slices.Contains(set, b.Name) {
			saved += b.saves()
		}
	}
	return max(highest, r.Middle-saved)
}

// budgets is for how many peaks, evenly spaced, the cheapest plan is looked for.
const budgets = 64

// mostStates bounds the plans that are kept at a time: among blocks of a few kinds there are far fewer.
const mostStates = 4096

// Frontier are sets of blocks by their cost: each is the cheapest that brings the peak so far down. The first has no block.
func (r *Recorded) Frontier() [][]string {
	all := [][]string{nil}
	lowest := r.Peak(r.names())
	for i := 1; i <= budgets; i++ {
		budget := r.Highest - (r.Highest-lowest)*mem.Bytes(i)/budgets
		set := r.cheapest(budget)
		if !slices.ContainsFunc(all, func(s []string) bool { return slices.Equal(s, set) }) {
			all = append(all, set)
		}
	}
	return all
}

// further are sets of one block more each, beyond what the recorded pass promises: a second forward pass ends as soon as
// it has all that the backward pass needs, so a block takes a little less in it. The block of the highest moment is next.
func (r *Recorded) further(set []string) (sets [][]string) {
	for {
		next, highest, saved := -1, mem.Bytes(0), mem.Bytes(0)
		for i := range r.Blocks {
			b := &r.Blocks[i]
			if slices.Contains(set, b.Name) {
				saved += b.saves()
			} else if at := max(b.Forward, b.Backward) - saved; b.saves() > 0 && (next < 0 || at > highest) {
				next, highest = i, at
			}
		}
		if next < 0 {
			return sets
		}
		var more []string
		for i := range r.Blocks {
			if name := r.Blocks[i].Name; i == next || slices.Contains(set, name) {
				more = append(more, name)
			}
		}
		set = more
		sets = append(sets, set)
	}
}

func (r *Recorded) names() (names []string) {
	if r != nil {
		for i := range r.Blocks {
			names = append(names, r.Blocks[i].Name)
		}
	}
	return names
}

// state is a set of the blocks so far.
type state struct {
	saved mem.Bytes
	cost  int64
	block int // that it took last; -1: none
	rest  *state
}

// cheapest is the set of least cost by which no moment is above the budget; nil where there is none.
func (r *Recorded) cheapest(budget mem.Bytes) []string {
	states := []*state{{block: -1}}
	for i := range r.Blocks {
		b := &r.Blocks[i]
		states = enough(states, max(b.Forward, b.Backward)-budget)
		for _, s := range states {
			if b.saves() > 0 {
				states = append(states, &state{s.saved + b.saves(), s.cost + b.cost(), i, s})
			}
		}
		states = undominated(states)
	}
	states = enough(states, r.Middle-budget)
	if len(states) == 0 {
		return nil
	}
	var set []string
	best := slices.MinFunc(states, func(a, b *state) int { return cmp.Compare(a.cost, b.cost) })
	for s := best; s.rest != nil; s = s.rest {
		set = append(set, r.Blocks[s.block].Name)
	}
	slices.Reverse(set)
	return set
}

// enough are the states that have saved what is needed.
func enough(states []*state, need mem.Bytes) []*state {
	return slices.DeleteFunc(states, func(s *state) bool { return s.saved < need })
}

// undominated drops states that another one beats in what it saves at no more cost.
func undominated(states []*state) []*state {
	slices.SortStableFunc(states, func(a, b *state) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(b.saved, a.saved))
	})
	kept, most := states[:0], mem.Bytes(-1)
	for _, s := range states {
		if s.saved > most {
			kept, most = append(kept, s), s.saved
		}
	}
	for len(kept) > mostStates { // every second one, but for the ends
		thin := kept[:0]
		for i, s := range kept {
			if i%2 == 0 || i == len(kept)-1 {
				thin = append(thin, s)
			}
		}
		kept = thin
	}
	return kept
}
