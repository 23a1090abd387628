package growth

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// Clause says whether memory grows with the steps, and why, and where runsOut, when it runs out; "" where that is not
// known.
func (in *Found) Clause(runsOut bool) string {
	var b strings.Builder
	if len(in.growing) == 0 && len(in.log.cards) > 0 {
		return in.log.cards[0].clause()
	}
	if len(in.growing) == 0 && len(in.stopped) > 0 {
		past := &in.stopped[0]
		return fmt.Sprintf("grew by %s (%s)%s", in.grewBy(past, past.where()), past.label, past.end())
	}
	if in.unevenly != nil {
		return fmt.Sprintf("`%s` (%s) grew to the end", in.unevenly.Name, lineNames(in.unevenly))
	}
	if len(in.growing) == 0 {
		if g, ok := in.Rate.Get(); ok && g == 0 && len(in.larger) == 0 {
			if in.Run.End == nil {
				return "no steady growth with the steps is seen so far" + toldFrom(in.LeastTold)
			}
			return "no steady growth with the steps is seen" + toldFrom(in.LeastTold)
		}
		for _, source := range []string{in.leadSource(), "rss", "device"} {
			if len(in.unjudged[source]) > 0 {
				return memoryName(source) + " rose, and whether it is kept is not known"
			}
		}
		return ""
	}
	worst := &in.growing[0]
	at := worst.where()
	shares, source, more := in.ofTheWhole(worst)
	bare := worst.holder == nil && !worst.graph && !worst.cycles && at.File == "" // no reason follows
	switch {
	case more && bare:
		fmt.Fprintf(&b, "grows %v per step (%s)", bytesPer(sumOf(shares)), in.RateLabel)
	case more:
		fmt.Fprintf(&b, "grows %v per step (%s), %v of it (%s)", bytesPer(sumOf(shares)), in.RateLabel,
			bytesPer(worst.slope), worst.label)
	default:
		fmt.Fprintf(&b, "grows %s (%s)", worst.rate(), worst.label)
	}
	switch {
	case in.ends(worst):
		fmt.Fprintf(&b, " as %s fills up to its bound (%s)", in.named(worst, at), worst.holder.BoundBy)
		return b.String()
	case worst.holder != nil && worst.graph:
		fmt.Fprintf(&b, " because %s keeps the graph of every step", in.named(worst, at))
	case worst.holder != nil && len(worst.beside) > 0:
		fmt.Fprintf(&b, " because %s (%s) keep growing", worst.holderNames(), worst.holderLines(at))
	case worst.holder != nil:
		fmt.Fprintf(&b, " because %s keeps growing", in.named(worst, at))
	case worst.graph:
		fmt.Fprintf(&b, " because something keeps the graph of every step (most of it from %s)", mem.LineName(at))
	case worst.cycles:
		fmt.Fprintf(&b, ", allocated at %s: it waits in reference cycles for Python's collector", mem.LineName(at))
	case at.File == mem.PythonObjects:
		b.WriteString(", in Python's small objects, and never freed")
	case at.File != "":
		fmt.Fprintf(&b, ", allocated at %s and never freed", mem.LineName(at))
	case worst.holes > 0:
		b.WriteString(", most of it free inside malloc's arenas")
	}
	if left, ok := in.left(shares, source); ok && runsOut {
		when := report.About(left.turns) + " steps"
		if worst.minutes {
			when = report.Duration(int64(left.turns * float64(time.Minute)))
		}
		fmt.Fprintf(&b, ": out of memory in about %s (estimated; %v %s were left)", when, left.room, left.of)
	}
	return b.String()
}

// toldFrom is how much growth is told, in parentheses.
func toldFrom(least mem.Optional) string {
	bytes, ok := least.Get()
	if !ok {
		return ""
	}
	return fmt.Sprintf(" (it is reported from %v on)", mem.Bytes(bytes))
}

// named is "`history.append(loss)` (train.py:61)", or the container's name where the line's text is
// not known.
func (in *Found) named(g *growing, at mem.Location) string {
	if at.File == "" {
		return "`" + g.holder.Name + "`"
	}
	quoted := cmp.Or(in.Source(at), g.holder.Name)
	return fmt.Sprintf("`%s` (%s)", quoted, mem.LineName(at))
}

// FilesClause is what RSS rose by that is no growth; "": nothing.
func (in *Found) FilesClause() string { return in.filesClause }

// Kept is what growing lines and containers of all processes kept by the end, or kept as they came to rest, in bytes.
func (in *Found) Kept() (kept int64) {
	for _, g := range slices.Concat(in.growing, in.stopped) {
		kept += int64(g.kept)
	}
	return kept
}

// Grows says whether anything does, or came to the end of its bound.
func (in *Found) Grows() bool { return len(in.growing) > 0 }

// OfProcess is what a process keeps with each step, of the host (rss) or a device: 0 where that was looked for and is
// not there.
func (in *Found) OfProcess(process uint32, source string) (slope, half mem.Optional) {
	if in.ClockOf(process).Minutes || slices.Contains(in.unjudged[source], process) || !slices.Contains(in.tested[process], source) {
		return
	}
	for _, t := range in.totals {
		if t.process == process && t.source == source {
			return mem.Some(int64(t.Slope)), mem.Some(int64(t.Half))
		}
	}
	return mem.Some(0), mem.Optional{}
}

// Deadline is when memory runs out, by the growth that is told first: slope is in bytes a turn, which is a step or a
// minute, left in turns and in ns. ok: it does, and when is known.
func (in *Found) Deadline() (slope, left, time float64, minutes, ok bool) {
	if len(in.growing) == 0 || in.ends(&in.growing[0]) {
		return
	}
	worst := &in.growing[0]
	shares, source, _ := in.ofTheWhole(worst)
	last, ok := in.left(shares, source)
	c := in.ClockOf(worst.process)
	from, to := c.Window(in.Run.Process(worst.process), in.End)
	return sumOf(shares), last.turns, last.turns * float64(to-from) / math.Max(c.At(to)-c.At(from), 1e-9), worst.minutes, ok
}

// Gains is "1 item per step (Tensor)", of a container.
func Gains(h *mem.Holder, minutes bool) string {
	return (&growing{holder: h, minutes: minutes}).items() + contents(h)
}
