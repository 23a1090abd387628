package growth

import (
	"fmt"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
)

// bySizes says what a container's items keep by their own sizes, where the sampled heap shows less and the memory of
// the process rose by as much. Else they share memory, with each other or with what another container keeps.
func (in *Found) bySizes(g *growing) string {
	if !g.largerBySizes() || !in.roseBy(g.process, holderRate(*g.holder)) {
		return ""
	}
	all := *g
	all.slope = holderRate(*g.holder)
	return fmt.Sprintf(" By the sizes of its newest items it is %s (%s), and the process rose by as much: %s.", all.rate(),
		mem.Estimated, leftOut)
}

// largerBySizes says whether the items of the one container of a growth are larger than what the sampled heap shows.
func (g *growing) largerBySizes() bool {
	return g.holder != nil && !g.graph && len(g.lines) > 0 && len(g.beside) == 0 && !oneBlock(*g.holder) &&
		holderRate(*g.holder) >= 1.2*(g.slope+g.half)
}

// roseBy says whether the resident memory of a process rose at a rate over the second half of its time.
func (in *Found) roseBy(process uint32, rate float64) bool {
	rss, c := in.Find(process, mem.SeriesRSS), in.ClockOf(process)
	from, to := c.Window(in.Run.Process(process), in.End)
	middle := from + (to-from)/2
	rose := facts.ValueAt(rss, to) - facts.ValueAt(rss, middle)
	return float64(rose) >= agrees*rate*(c.At(to)-c.At(middle))
}

// leftOut is why the rate of a line may be less than what its container gains: a table that doubles is a jump.
const leftOut = "the sampled rate leaves out single jumps, and what a library allocates unseen"

// seenOfIt says how much of a growth that is told by the sizes of items the sampled heap shows.
func (g *growing) seenOfIt(heap string) string {
	if g.seen == 0 {
		return ""
	}
	return fmt.Sprintf(" That is by the sizes of its newest items, and the process grows as fast. The %s shows "+
		"%v of it: %s.", heap, bytesPer(g.seen), leftOut)
}

// sizedGrowth takes the rates of containers from the sizes of their items where the sampled heap shows much less, and
// the growth of the process as a whole says that the sizes are right.
func (in *Found) sizedGrowth() {
	for i := range in.growing {
		g := &in.growing[i]
		if !g.largerBySizes() || len(g.shares) != 1 {
			continue
		}
		rate := holderRate(*g.holder)
		if whole := in.totalOf(g.process, g.minutes); whole < agrees*rate {
			continue
		}
		g.kept, g.keptHalf = g.kept*rate/g.slope, 0
		g.seen, g.slope, g.half, g.whole, g.label = g.slope, rate, 0, 0, mem.Estimated
		g.shares = []share{{process: g.process, slope: rate}}
	}
}

// agrees is the part of a rate that the growth of the whole process must have, so that the rate is believed.
const agrees = 0.85
