package growth

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// emptied is a container that is filled, and emptied again, as at the end of each epoch. It is no leak, but what it
// has when it is fullest is part of the peak.
type emptied struct {
	process uint32
	holder  mem.Holder // as it was fullest of the times that it was seen
	perStep float64    // items, while it grew; 0: not known
	bytes   float64    // of its items then
	falls   int64      // that were seen
}

// leastEmptied is the part of its process's peak from which on such a container is told.
const leastEmptied = 0.01

// emptiedContainers are those of a process that are no growth of their own, the fullest first.
func (in *Found) emptiedContainers(p *mem.Process) (all []emptied) {
	type key struct{ kind, name string }
	index := map[key]int{}
	least := max(leastHeap, leastEmptied*float64(in.ProcessPeak(p).Or(0)))
	for _, h := range in.Run.Holders {
		if h.Process != p.ID || h.Time > in.End {
			continue
		}
		i, known := index[key{h.Kind, h.Name}]
		if !known {
			i = len(all)
			index[key{h.Kind, h.Name}] = i
			all = append(all, emptied{process: p.ID, holder: h})
		}
		all[i].seeMoment(h)
	}
	all = slices.DeleteFunc(all, func(e emptied) bool {
		over := e.falls > 0 || e.holder.EmptiedBy != ""
		return e.bytes < least || !over || e.holder.Bound.Known() || used(in.growing, e.holder) || used(in.stopped, e.holder)
	})
	slices.SortStableFunc(all, func(a, b emptied) int { return cmp.Compare(b.bytes, a.bytes) })
	return all
}

// seeMoment takes in what was said of the container at one moment.
func (e *emptied) seeMoment(h mem.Holder) {
	e.falls = max(e.falls, h.Falls)
	e.perStep = max(e.perStep, h.PerStep)
	items := max(h.Items, h.Highest.Or(0))
	each := float64(h.Tensors.Or(0)) / float64(max(h.Items, 1))
	if keepsGraph(h) {
		each += float64(h.Saved.Or(0))
	}
	if bytes := each * float64(items); bytes >= e.bytes {
		e.holder, e.bytes = h, bytes
		e.holder.Items = items
	}
}

// untilEmptied says what of a growth whose lines are not known is of containers that are emptied, each of which is a
// good part of it; empty: nothing.
func (in *Found) untilEmptied(g *growing) string {
	p := in.Run.Process(g.process)
	if p == nil || g.minutes {
		return ""
	}
	for _, e := range in.emptiedContainers(p) {
		part := growing{slope: e.perStep * e.bytes / float64(max(e.holder.Items, 1))}
		if part.slope >= explainsSome*g.slope && part.slope <= g.slope {
			return fmt.Sprintf("`%s` takes %s of it (%s) until it is emptied. The rest the %s does not show: it is in "+
				"mappings, between blocks in malloc's arenas, or spread over many lines.", e.holder.Name, part.rate(),
				mem.Estimated, in.HeapName())
		}
	}
	return ""
}

// emptiedFindings tell the containers that are filled and emptied.
func (in *Found) emptiedFindings() (found []report.Finding) {
	for _, p := range in.Run.Processes {
		for _, e := range in.emptiedContainers(p) {
			found = append(found, in.emptiedFinding(&e))
		}
	}
	return found
}

func (in *Found) emptiedFinding(e *emptied) report.Finding {
	h, at := &e.holder, e.holder.Where
	f := report.Finding{Kind: report.KindBounded, Severity: report.Info, Process: e.process, Holder: h.Name,
		Bytes: mem.Some(int64(bytesPer(e.bytes))), Label: mem.Estimated}
	if at.Line > 0 {
		f.File, f.Line = at.File, at.Line
	}
	most := bytesPer(e.bytes).String()
	f.Title = fmt.Sprintf("`%s` (%s) is filled and emptied: up to %s", h.Name, lineNames(h), most)
	if at.Line <= 0 {
		f.Title = fmt.Sprintf("`%s` is filled and emptied: up to %s", h.Name, most)
	}
	g := &growing{process: e.process, holder: h}
	var b strings.Builder
	fmt.Fprintf(&b, "The %s `%s`%s", h.Kind, h.Name, in.atLine(g, at))
	if e.perStep > 0 && !oneBlock(*h) {
		g.holder.PerStep = e.perStep
		fmt.Fprintf(&b, " gains %s%s while it is filled. It", g.items(), contents(h))
	}
	fmt.Fprintf(&b, " had %s (%s, %s) when it was fullest of the times that it was looked at.", fullest(h), most,
		mem.Estimated)
	b.WriteString(e.emptiedWords())
	f.Text = b.String()
	f.Advice = in.emptiedAdvice(e)
	return f
}

// fullest is "73 items", or the bytes of what has none.
func fullest(h *mem.Holder) string {
	if oneBlock(*h) {
		return "one block of memory"
	}
	return report.Counted(h.Items, "item")
}

// emptiedWords say what is known of how it is emptied.
func (e *emptied) emptiedWords() string {
	by := e.holder.EmptiedBy
	switch {
	case e.falls == 0:
		return fmt.Sprintf(" It was not seen with fewer; %s empties it.", by)
	case by != "":
		return fmt.Sprintf(" It was seen with half of that or less %s later; %s empties it.", times(e.falls), by)
	}
	return fmt.Sprintf(" It was seen with half of what it had before, or less, %s.", times(e.falls))
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// emptiedAdvice says what would lower what it has when it is fullest.
func (in *Found) emptiedAdvice(e *emptied) string {
	at := e.holder.Where
	write, _, _ := ungraphed(&e.holder, in.itemName(&e.holder, at))
	switch {
	case keepsGraph(e.holder) && e.holder.Saved.Or(0) > 0:
		return "What it keeps is part of the peak. " + strings.TrimSpace(toStore(write, at))
	case len(viewsOf(&e.holder)) > 0:
		return "What it keeps is part of the peak, most of it because it stores views: copy them, as with .clone() or .copy()."
	}
	return fmt.Sprintf("What it keeps is part of the peak. To lower that, store less per item, or empty `%s` more often.",
		e.holder.Name)
}
