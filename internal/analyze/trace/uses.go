package trace

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/analyze/graph"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

const longLives = 20

// stackUses are what all stacks did, and the blocks that occupied most for longest.
type stackUses struct {
	g       *grouper
	at      usage.Moment // of Activity.Bytes
	all     []usage.Activity
	longest []report.LongLife
}

// uses goes through all blocks once.
func (g *grouper) uses(at usage.Moment) *stackUses {
	var top longest
	u := &stackUses{g: g, at: at}
	u.all = g.d.Activity(at, g.wants, func(span int, held float64) {
		if top.may(held) {
			top.add(held, g.longLife(span))
		}
	})
	for _, of := range top {
		u.longest = append(u.longest, of.life)
	}
	return u
}

// longest is lives by what they held over time, the most first.
type longest []weighedLife

type weighedLife struct {
	held float64
	life report.LongLife
}

// may says whether a life that held so much could have a place.
func (l longest) may(held float64) bool { return len(l) < longLives || held >= l[len(l)-1].held }

// add counts a life with the one that is the same in all, or gives it a place of its own. What lost its place does not
// come again: those that are the same held as much.
func (l *longest) add(held float64, life report.LongLife) {
	for i := range *l {
		if of := &(*l)[i]; of.held == held && sameLife(&of.life, &life) {
			of.life.Blocks++
			return
		}
	}
	place, _ := slices.BinarySearchFunc(*l, held, func(of weighedLife,
		held float64) int {
		return cmp.Or(cmp.Compare(held, of.held), -1)
	})
	if place < longLives {
		*l = slices.Insert(*l, place, weighedLife{held, life})
		*l = (*l)[:min(len(*l), longLives)]
	}
}

func sameLife(l, as *report.LongLife) bool {
	if l.Name != as.Name || l.Category != as.Category || l.Bytes != as.Bytes || l.Allocated != as.Allocated {
		return false
	}
	return l.Freed == as.Freed || l.Freed != nil && as.Freed != nil && *l.Freed == *as.Freed
}

func (g *grouper) longLife(n int) report.LongLife {
	d, last := g.d, g.d.Moments-1
	from, to := int(d.From[n]), int(d.To[n])
	long := report.LongLife{Name: g.site(n), Category: g.sorter.Of(n), Bytes: d.Bytes[n], Blocks: 1, Allocated: from}
	if to <= last {
		long.Freed = &to
	}
	end := min(to, last)
	long.Events, long.Span = end-from, d.TimeOf(end)-d.TimeOf(from)
	return long
}

// turnover groups stacks by line, most churn first.
func (u *stackUses) turnover() []report.Turnover {
	type turnover struct {
		report.Turnover
		heaviest mem.Bytes // freed again by one stack
		stack    uint32    // that one
	}
	var sums mem.Tally[groupKey, turnover]
	for i := range u.all {
		use := &u.all[i]
		at := u.g.names.Of(use.Stack)
		key := groupKey{name: at.Name, at: at.Location}
		if use.Before {
			key = groupKey{name: usage.BeforeTrace}
		}
		t := sums.At(key)
		if use.Churn > t.heaviest || t.Name == "" {
			t.heaviest, t.stack = use.Churn, use.Stack
		}
		t.Name = key.name
		t.Allocations += int(use.Allocations)
		t.Churn += use.Churn
		t.Average += mem.Bytes(use.Average)
		t.SinceStart += use.Start
		t.StartBlocks += use.StartBlocks
	}
	all := make([]report.Turnover, 0, len(sums.All))
	for _, t := range sums.All {
		t.Frames = u.g.d.Stacks.Frames(t.stack)
		all = append(all, t.Turnover)
	}
	slices.SortFunc(all, func(p, q report.Turnover) int {
		return cmp.Or(cmp.Compare(q.Churn, p.Churn), cmp.Compare(q.Average, p.Average), cmp.Compare(p.Name, q.Name))
	})
	return all
}

// stackOf is what Activity keeps apart.
type stackOf struct {
	stack  uint32
	before bool
}

// kinds are the bytes of each stack at the moment by what they are for.
func (u *stackUses) kinds() map[stackOf]map[string]mem.Bytes {
	kinds := map[stackOf]map[string]mem.Bytes{}
	u.g.d.Each(u.at, func(n int) {
		of := stackOf{u.g.d.Stack[n], u.g.d.Stack[n] == 0 && u.g.d.From[n] < 0}
		if kinds[of] == nil {
			kinds[of] = map[string]mem.Bytes{}
		}
		kinds[of][u.g.sorter.Of(n)] += u.g.d.Bytes[n]
	})
	return kinds
}

// flames is what each stack did as a tree. Each measure's largest stacks are in it.
func (u *stackUses) flames(a *explanation) {
	tree := graph.New(u.g.names, report.StackSet{Name: "device", Subject: a.Subject(),
		Title: report.UpperFirst(a.InFile()), Event: mem.Some(int64(a.At.Event)),
		Label: a.Label, Total: a.At.Allocated})
	if a.Filter != "" {
		tree.Set.Title += fmt.Sprintf(", only what matches %q", a.Filter)
	}
	uses, kinds := make([]report.StackUse, len(u.all)), u.kinds()
	for i, did := range u.all {
		uses[i] = report.StackUse{Bytes: did.Bytes, Count: did.Blocks, Categories: kinds[stackOf{did.Stack, did.Before}],
			Average: mem.Bytes(did.Average), Allocations: did.Allocations, Churn: did.Churn}
	}
	set := &tree.Set
	set.Measures = tree.Fill(uses, report.Flames, graph.StacksShown, 0,
		func(i int) []mem.Location { return u.all[i].Pictured(u.g.names) })
	for m, what := range []report.FlameMeasure{
		{Title: "bytes at the moment explained", Unit: mem.UnitBytes},
		{Title: "bytes × time, as the average held", Unit: mem.UnitBytes},
		{Title: "number of allocations", Unit: mem.UnitCount}, {Title: "bytes allocated and freed again",
			Unit: mem.UnitBytes},
	} {
		set.Measures[m].Title, set.Measures[m].Unit = what.Title, what.Unit
	}
	set.Rest = mem.Bytes(set.Measures[0].Rest)
	a.tree = tree
}
