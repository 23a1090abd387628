package growth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// A growth that stopped is told as past. Up to its end it is a growth like any other, so it is looked for in the run
// as it was then: until the moment at which its lines came to rest. Whether it is a cache that is full, data that was
// loaded once, or a leak in a part of the program that is over, no recording tells.

const (
	leastStopped      = float64(16 * mem.MiB) // kept by a growth that stopped,
	leastStoppedShare = 0.05                  // and of the highest memory of its process
	stopsTold         = 4                     // moments of one process at which something stopped
	sameStop          = 2                     // bins, by which lines of one growth stop apart
)

// stoppedCauses finds what grew in the sampled heaps and came to rest before the end, the largest first.
func (in *Found) stoppedCauses() (causes []growing) {
	for _, p := range in.Run.Processes {
		h := in.Histories[p.ID]
		if h == nil {
			continue
		}
		c := in.ClockOf(p.ID)
		bins := heapBins(h, c, p, in.End, 0)
		least := max(leastStopped, leastStoppedShare*float64(in.ProcessPeak(p).Or(0)))
		rested := in.atRest(p.ID, h.Stopped(in.Names, bins, leastLine, in.notImporting))
		for n := 0; len(rested) > 0 && n < stopsTold; n++ {
			last := rested[0].At + sameStop
			beyond := slices.IndexFunc(rested, func(s usage.Stopped) bool { return s.At > last })
			if beyond < 0 {
				beyond = len(rested)
			}
			together := rested[:beyond]
			rested = rested[beyond:]
			then := bins.Stretches[together[len(together)-1].At]
			for _, g := range in.upTo(h.TimeOf(then.To)).grownUntilThen(p, together, least) {
				g.stopped = h.TimeOf(then.From)
				g.cut = in.cutShort(p, g.stopped)
				causes = append(causes, g)
			}
		}
	}
	causes = in.merged(causes)
	slices.SortStableFunc(causes, func(a, b growing) int { return cmp.Compare(b.kept, a.kept) })
	return causes
}

// missable is how many means of the sample lines that seem to rest may have allocated, without one of them sampled.
const missable = 5

// goesOnUnseen takes a growth back to those that go on, where its container gained items after its lines came to
// rest. They may rest by chance of the sample alone.
func (in *Found) goesOnUnseen(g growing) bool {
	if g.holder == nil || g.cut || len(g.shares) != 1 {
		return false
	}
	c := in.ClockOf(g.process)
	missed := g.slope * (c.At(in.End) - c.At(g.stopped))
	before, last, ok := in.lastLooks(g.process, *g.holder)
	if !ok || last.Time <= g.stopped || !wentOn(before, last) ||
		missed > missable*usage.SamplingOf(in.Run, g.process).Mean {
		return false
	}
	g.stopped = 0
	in.growing = append(in.growing, g)
	return true
}

// cutShort says that a process was killed so soon after a moment that what rested from there on may only have been late.
func (in *Found) cutShort(p *mem.Process, from int64) bool {
	const killed = 9
	end := p.End.Or(in.End)
	return p.Signal.Or(0) == killed && end-from < max(int64(time.Second), (end-p.Start)/10)
}

// atRest leaves out the lines that grow to the end.
func (in *Found) atRest(process uint32, all []usage.Stopped) []usage.Stopped {
	return slices.DeleteFunc(all, func(s usage.Stopped) bool {
		return slices.ContainsFunc(in.growing, func(g growing) bool {
			return slices.ContainsFunc(g.lines, func(l growingLine) bool {
				return l.process == process &&
					sameSite(l.Site, s.Site)
			})
		})
	})
}

func sameSite(a, b *usage.Site) bool { return a.Location == b.Location && a.Name == b.Name }

// upTo is the run as it was until a moment.
func (in *Found) upTo(end int64) *Found {
	then := *in
	then.Facts, then.larger, then.unsure = in.Until(end), nil, nil
	return &then
}

// grownUntilThen are the causes of growth among some lines that rest from now on.
func (in *Found) grownUntilThen(p *mem.Process, rest []usage.Stopped, least float64) (causes []growing) {
	found, _ := in.heapCauses(p)
	for _, g := range found {
		g.kept = 0
		for _, l := range g.lines {
			for _, s := range rest {
				if sameSite(l.Site, s.Site) {
					g.kept += float64(s.Grew)
				}
			}
		}
		if g.kept >= least {
			causes = append(causes, g)
		}
	}
	return causes
}

// stoppedFinding puts a growth that stopped into words.
func (in *Found) stoppedFinding(g *growing) report.Finding {
	at := g.where()
	f := in.growthFinding(g)
	f.Kind, f.Severity, f.BytesPerStep, f.Error = report.KindBounded, report.Info, mem.Optional{},
		mem.Some(int64(bytesPer(g.keptHalf)))
	f.Title = "Grew by " + in.grewBy(g, at) + g.end()
	rest := "and then no more. It is still held at the end."
	if g.cut {
		rest = "shortly before the process was killed: whether it would have gone on is not known."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %v (%s, ± %v), until about %s after %s, %s", in.grew(g, at), bytesPer(g.kept), g.label,
		bytesPer(g.keptHalf), report.Duration(in.Since(g.stopped)), in.Beginning(), rest)
	if g.holder != nil && g.holder.Bound.Known() {
		fmt.Fprintf(&b, " It takes at most %s (%s).", report.Counted(g.holder.Bound.Or(0), "item"), g.holder.BoundBy)
	}
	if g.holder != nil && len(g.lines) > 0 {
		b.WriteString(in.siteWords(g))
	}
	b.WriteString(in.among(g))
	f.Text = b.String()
	f.Advice = in.stoppedAdvice(g, at)
	return f
}

// end is how a growth that is past ended, in a title.
func (g *growing) end() string {
	if g.cut {
		return ", until the process was killed"
	}
	return ", then stopped"
}

// grewBy is "400 MiB at train.py:11".
func (in *Found) grewBy(g *growing, at mem.Location) string {
	switch {
	case at.File == mem.PythonObjects:
		return fmt.Sprintf("%v of %s", bytesPer(g.kept), at.File)
	case at.Native:
		return fmt.Sprintf("%v inside %s", bytesPer(g.kept), at.File)
	case at.File == "":
		return bytesPer(g.kept).String()
	}
	return fmt.Sprintf("%v at %s", bytesPer(g.kept), mem.LineName(at))
}

// grew is "The list `kept` (train.py:11: `kept.append(x)`) grew by".
func (in *Found) grew(g *growing, at mem.Location) string {
	switch {
	case g.holder != nil && oneBlock(*g.holder):
		return fmt.Sprintf("The %s `%s`%s grew by", g.holder.Kind, g.holder.Name, in.atLine(g, at))
	case g.holder != nil:
		return fmt.Sprintf("The %s `%s`%s gained %s%s, and grew by", g.holder.Kind, g.holder.Name, in.atLine(g, at),
			g.items(), contents(g.holder))
	case at.File == mem.PythonObjects:
		return fmt.Sprintf("Memory of Python's small objects, asked for %s, grew by", in.askedAt(g))
	case at.Native:
		return fmt.Sprintf("Memory allocated inside %s grew by", at.File)
	}
	return fmt.Sprintf("Memory allocated at %s%s grew by", mem.LineName(at), in.quoted(at))
}

func (in *Found) stoppedAdvice(g *growing, at mem.Location) string {
	if g.holder != nil {
		if g.holder.Bound.Known() {
			return ""
		}
		return fmt.Sprintf("If `%s` is a cache that is full, or data that was loaded once, this is as it should be. If it "+
			"is not needed any more, drop it from there: that gives back %v.%s", g.holder.Name, bytesPer(g.kept),
			objectsBeside(g, in.stopped, "grew", "given back"))
	}
	if at.File == mem.PythonObjects {
		return "If this is a cache that is full, or data that was loaded once, it is as it should be. If not, run again with " +
			"PYTHONMALLOC=malloc in the environment: each object is then sampled at its own line."
	}
	if at.Native || at.File == "" {
		return ""
	}
	return fmt.Sprintf("If this is a cache that is full, or data that was loaded once, it is as it should be. If not, "+
		"find what keeps the result of %s: that gives back %v.", mem.LineName(at), bytesPer(g.kept))
}
