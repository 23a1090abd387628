package growth

import (
	"fmt"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// filling is how a container with a bound that is known goes on.
type filling struct {
	items float64   // that it takes until it is full
	turns float64   // steps or minutes until then
	more  mem.Bytes // that it takes until then
	fits  bool      // memory lasts until then
}

// filling is that of the container of a growth; ok where it has a bound. Of several processes each has one of its own.
func (in *Found) filling(g *growing) (f filling, ok bool) {
	if g.holder == nil || g.holder.PerStep <= 0 {
		return f, false
	}
	bound, ok := g.holder.Bound.Get()
	if !ok {
		return f, false
	}
	processes, _ := g.among()
	c := in.ClockOf(g.process)
	_, to := c.Window(in.Run.Process(g.process), in.End)
	each := g.holder.PerStep / float64(max(processes, 1))
	has := float64(g.holder.Items) + max(c.At(to)-c.At(g.holder.Time), 0)*each
	f.items = max(float64(bound)-has, 0)
	f.turns = f.items / each
	f.more = bytesPer(f.turns * max(g.slope, holderRate(*g.holder))) // the sampler may not see all of an item
	left, known := in.left(g.shares, g.source)
	f.fits = !known || left.turns > f.turns
	return f, true
}

// ends says whether a growth comes to an end of its own, for which memory lasts.
func (in *Found) ends(g *growing) bool {
	f, ok := in.filling(g)
	return ok && f.fits
}

// boundWords say where a container with a bound ends.
func (in *Found) boundWords(g *growing) string {
	f, ok := in.filling(g)
	if !ok {
		return ""
	}
	said := fmt.Sprintf(" It takes at most %s (%s)", report.Counted(g.holder.Bound.Or(0), "item"), g.holder.BoundBy)
	switch {
	case f.items < 1:
		return said + ", and is full: it grows no more."
	case !f.fits:
		return said + fmt.Sprintf(": until then it takes another %v, for which there is no room.", f.more)
	}
	until := report.About(f.turns) + " steps"
	if g.minutes {
		until = report.Duration(int64(f.turns * float64(time.Minute)))
	}
	return said + fmt.Sprintf(": that is another %v, in about %s (%s). Then it stops.", f.more, until, mem.Estimated)
}

// asBounded turns the finding of a growth that ends into one that accuses nobody.
func asBounded(f *report.Finding, g *growing) {
	f.Kind, f.Severity = report.KindBounded, report.Info
	f.Title = fmt.Sprintf("`%s` (%s) fills up to %s (%s)", g.holder.Name, lineNames(g.holder),
		report.Counted(g.holder.Bound.Or(0), "item"), g.holder.BoundBy)
	f.Advice = "If that is more than it is worth, give it a lower bound."
}
