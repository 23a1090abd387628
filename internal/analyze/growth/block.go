package growth

import (
	"slices"

	"hightide/internal/mem"
)

// ofItsSizes takes the figures of a growth from the sizes of the one block that grows, where they are known: the line
// that makes it also holds what it is made of, for a moment, and the sampled heap sees now one, now both.
func (in *Found) ofItsSizes(g *growing) {
	if g.holder == nil || g.graph || len(g.beside) > 0 || !oneBlock(*g.holder) || holderRate(*g.holder) <= 0 {
		return
	}
	g.slope, g.kept = in.blockGrowth(g.process, *g.holder)
	g.half, g.keptHalf, g.label = 0, 0, mem.Estimated
}

// copies is the rate of what a block that grows takes besides, for a moment: it and what it is made of are held at once.
func (g *growing) copies() float64 {
	freed := func(l growingLine) bool { return l.Larger }
	if g.holder == nil || !slices.Contains(replacedKinds, g.holder.Kind) || !slices.ContainsFunc(g.lines, freed) {
		return 0
	}
	return g.slope
}
