package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

const longLives = 20

// stackUse is what one stack did among the events explained.
type stackUse struct {
	stack       uint32
	bytes       mem.Bytes // held at the moment explained
	blocks      uint64
	average     float64 // bytes held, over the time of the events
	allocations uint64
	churn       mem.Bytes
	start       mem.Bytes // of blocks from before the trace that outlive it
	startBlocks int
	before      bool // blocks of before the trace that have no stack
}

// stackUses are those of all stacks, and the blocks that occupied most for longest.
type stackUses struct {
	g       *grouper
	all     []stackUse
	longest []report.LongLife
}

// uses goes through all lives once.
func (g *grouper) uses(at int) *stackUses {
	b := g.b
	byStack := make([]stackUse, b.snapshot.Stacks.Len()+1) // the last is of blocks from before that have no stack
	clock := b.clock()
	low, high := max(b.from, -1), min(b.to, b.trace.Len()-1)
	whole := max(clock(high)-clock(low), 1)
	var top longest
	for i := range b.lives {
		l := &b.lives[i]
		if int(l.born) > high || int(l.freed) <= low && l.freed >= 0 || l.freed == -2 || !g.wants(l.stack) {
			continue
		}
		n := l.stack
		if n == 0 && l.born < 0 {
			n = uint32(len(byStack) - 1)
		}
		u := &byStack[n]
		u.stack, u.before = l.stack, int(n) == len(byStack)-1
		first, last := max(int(l.born), low), min(int(l.freed), high)
		held := float64(l.size) * (clock(last) - clock(first))
		u.average += held / whole
		if int(l.born) >= low && l.born >= 0 {
			u.allocations++
			if int(l.freed) <= high {
				u.churn += l.size
			}
		}
		if l.born < 0 && int(l.freed) > b.trace.Len()-1 {
			u.start += l.size
			u.startBlocks++
		}
		if int(l.born) <= at && int(l.freed) > at {
			u.bytes += l.size
			u.blocks++
		}
		if top.may(held) {
			top.add(held, g.longLife(i))
		}
	}
	u := &stackUses{g: g}
	for _, use := range byStack {
		if use.allocations+use.blocks > 0 || use.average > 0 {
			u.all = append(u.all, use)
		}
	}
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
	place, _ := slices.BinarySearchFunc(*l, held, func(of weighedLife, held float64) int { return cmp.Or(cmp.Compare(held, of.held), -1) })
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

// clock gives the time of an event: of the wall where the trace has it and it moves, else its number.
func (b *traceBooks) clock() func(event int) float64 {
	n := len(b.trace.Time)
	if n == 0 || b.trace.Time[n-1] <= b.trace.Time[0] {
		return func(event int) float64 { return float64(event) }
	}
	begin := b.trace.Time[0]
	return func(event int) float64 { return float64(b.trace.Time[min(max(event, 0), n-1)] - begin) }
}

func (g *grouper) longLife(n int) report.LongLife {
	l, last := &g.b.lives[n], g.b.trace.Len()-1
	long := report.LongLife{Name: g.site(l), Category: g.sorter.of(n), Bytes: l.size, Blocks: 1, Allocated: int(l.born)}
	end := min(int(l.freed), last)
	if int(l.freed) <= last {
		freed := int(l.freed)
		long.Freed = &freed
	}
	long.Events, long.Span = end-int(l.born), g.b.time(end)-g.b.time(int(l.born))
	return long
}

// turnover groups stacks by line, most churn first.
func (u *stackUses) turnover() []report.Turnover {
	byName := map[string]*report.Turnover{}
	for i := range u.all {
		use := &u.all[i]
		name := u.g.names.of(use.stack).site
		if use.before {
			name = beforeTrace
		}
		t := byName[name]
		if t == nil {
			t = &report.Turnover{Name: name, Heaviest: -1}
			byName[name] = t
		}
		t.Allocations += int(use.allocations)
		t.Churn += use.churn
		t.Average += mem.Bytes(use.average)
		t.SinceStart += use.start
		t.StartBlocks += use.startBlocks
		if use.churn > t.Heaviest {
			t.Heaviest, t.Frames = use.churn, u.g.b.snapshot.Stacks.Frames(use.stack)
		}
	}
	all := make([]report.Turnover, 0, len(byName))
	for _, t := range byName {
		all = append(all, *t)
	}
	slices.SortFunc(all, func(p, q report.Turnover) int {
		return cmp.Or(cmp.Compare(q.Churn, p.Churn), cmp.Compare(q.Average, p.Average), cmp.Compare(p.Name, q.Name))
	})
	return all
}

// flames is what each stack did as a tree. Each measure's largest stacks are in it.
func (u *stackUses) flames(a *explanation) *report.StackSet {
	in := &Input{places: newPlaces(nil)}
	tree := stackTree{in: in, frames: map[mem.Location]int{}, nodes: map[[2]int]int{}, set: report.StackSet{
		Name: "device", Subject: a.Subject(), Title: report.UpperFirst(a.InFile()), Event: mem.Some(int64(a.At.Event)), Label: a.Label, Total: a.At.Allocated,
		Frames: []report.FramePlace{}, Parents: []int{}, Places: []int{}, Stacks: []report.StackUse{},
	}}
	if a.Filter != "" {
		tree.set.Title += fmt.Sprintf(", only what matches %q", a.Filter)
	}
	measures := []report.FlameMeasure{
		{Name: "bytes", Title: "bytes at the moment explained", Unit: mem.UnitBytes},
		{Name: "bytes-time", Title: "bytes × time, as the average held", Unit: mem.UnitBytes},
		{Name: "count", Title: "number of allocations", Unit: mem.UnitCount},
		{Name: "churn", Title: "bytes allocated and freed again", Unit: mem.UnitBytes},
	}
	chosen := map[int]bool{}
	for m := range measures {
		value := func(i int) int64 { return u.all[i].measure(m) }
		order := make([]int, len(u.all))
		for i := range order {
			order[i] = i
			measures[m].Total += value(i)
		}
		slices.SortStableFunc(order, func(p, q int) int { return cmp.Compare(value(q), value(p)) })
		for _, i := range order[:min(len(order), stacksShown)] {
			if value(i) > 0 {
				chosen[i] = true
			}
		}
	}
	for i := range u.all {
		if !chosen[i] {
			for m := range measures {
				measures[m].Rest += u.all[i].measure(m)
			}
			continue
		}
		use := &u.all[i]
		node := tree.add(u.g.pictured(use))
		tree.set.Stacks = append(tree.set.Stacks, report.StackUse{Node: node, Bytes: use.bytes, Count: use.blocks,
			Average: mem.Bytes(use.average), Allocations: use.allocations, Churn: use.churn})
	}
	slices.SortStableFunc(tree.set.Stacks, func(p, q report.StackUse) int { return cmp.Compare(q.Bytes, p.Bytes) })
	tree.set.Measures, tree.set.Rest = measures, mem.Bytes(measures[0].Rest)
	a.tree = &tree
	return &tree.set
}

func (u *stackUse) measure(m int) int64 {
	return [...]int64{int64(u.bytes), int64(u.average), int64(u.allocations), int64(u.churn)}[m]
}
