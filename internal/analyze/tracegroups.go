package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// grouper names the group of a block.
type grouper struct {
	b       *traceBooks
	o       *ExplainOptions
	at      int
	by      string
	names   *traceNames
	sorter  *sorter
	wants   func(stack uint32) bool // whether the filter lets its blocks through
	regions []openRegion            // see annotation
}

func newGrouper(b *traceBooks, at int, by string, o *ExplainOptions) *grouper {
	g := &grouper{b: b, o: o, at: at, by: by, names: newTraceNames(&b.snapshot.Stacks), sorter: newSorter(b, o.Rules)}
	g.wants = func(uint32) bool { return true }
	if o.Filter != nil {
		g.wants = b.snapshot.Stacks.Matcher(o.Filter)
	}
	return g
}

// blame groups the blocks in use after an event, largest group first, and says what rounding costs them.
func (g *grouper) blame(at int) ([]report.Blame, mem.Bytes, error) {
	if !slices.Contains(Groupings, g.by) {
		return nil, 0, fmt.Errorf("blocks are grouped by one of %q, not by %s", Groupings, g.by)
	}
	groups, waste := map[[2]string]*report.Blame{}, mem.Bytes(0)
	g.b.aliveNumbers(at, func(n int) {
		l := &g.b.lives[n]
		if !g.wants(l.stack) {
			return
		}
		category := g.sorter.of(n)
		key := [2]string{g.name(l, category), category}
		of := groups[key]
		if of == nil {
			of = &report.Blame{Name: key[0], Category: category}
			groups[key] = of
		}
		of.Bytes += l.size
		of.Blocks++
		waste += l.size - l.requested
		if l.size > of.Largest {
			of.Largest, of.Stack = l.size, l.stack
		}
	})
	all := make([]report.Blame, 0, len(groups))
	for _, of := range groups {
		of.Frames = g.b.snapshot.Stacks.Frames(of.Stack)
		all = append(all, *of)
	}
	slices.SortFunc(all, func(p, q report.Blame) int {
		return cmp.Or(cmp.Compare(q.Bytes, p.Bytes), cmp.Compare(p.Name, q.Name), cmp.Compare(p.Category, q.Category))
	})
	return all, waste, nil
}

// mostOf is the largest group by name: those of one name and several categories are one, which is mostly of the category
// that holds most.
func mostOf(groups []report.Blame) (most report.Blame) {
	byName := map[string]int{} // place in sums
	var sums []report.Blame
	for _, one := range groups { // largest first
		at, ok := byName[one.Name]
		if !ok {
			byName[one.Name] = len(sums)
			sums = append(sums, one)
			continue
		}
		of := &sums[at]
		of.Bytes, of.Blocks, of.Mixed = of.Bytes+one.Bytes, of.Blocks+one.Blocks, true
	}
	for _, one := range sums {
		if one.Bytes > most.Bytes {
			most = one
		}
	}
	return most
}

// who is a group in the middle of a sentence.
func who(b *report.Blame) string {
	switch b.Name {
	case report.NoFrames:
		return "what has " + report.NoFrames
	case beforeTrace:
		return "what was there before the trace"
	}
	return b.Name
}

func (g *grouper) name(l *life, category string) string {
	switch g.by {
	case "category":
		return category
	case "size":
		return "from " + sizeClass(l.requested).String()
	case "stream":
		return fmt.Sprintf("stream %d", g.b.lanes[l.lane].stream)
	case "pool":
		return poolName(g.b.lanes[l.lane].pool)
	case "age":
		return g.age(l)
	case "annotation":
		return g.annotation(l)
	}
	if l.stack == 0 && l.born < 0 {
		return beforeTrace
	}
	n := g.names.of(l.stack)
	switch g.by {
	case "file":
		return n.file
	case "function":
		return n.function
	case "module":
		return n.module
	}
	return n.site
}

// site is the name of the line that allocated a block.
func (g *grouper) site(l *life) string {
	if l.stack == 0 && l.born < 0 {
		return beforeTrace
	}
	return g.names.of(l.stack).site
}

func poolName(id mem.PoolID) string {
	switch {
	case id == mem.PoolID{}:
		return "default pool"
	case id[1] == 0:
		return fmt.Sprintf("pool of graph %d", id[0])
	}
	return fmt.Sprintf("user's pool %d", id[1])
}

// sizeClass is the power of two, from 512 on, that a size begins with.
func sizeClass(n mem.Bytes) mem.Bytes {
	class := mem.Bytes(512)
	for class*2 <= n {
		class *= 2
	}
	return class
}

func (g *grouper) age(l *life) string {
	if l.born < 0 {
		return beforeTrace
	}
	events, class := g.at-int(l.born), 1
	for class*10 <= events {
		class *= 10
	}
	if events == 0 {
		return "new at this event"
	}
	return fmt.Sprintf("%s to %s events old", report.Count(int64(class)), report.Count(int64(class*10-1)))
}

// openRegion is what was the innermost open annotation from a moment on.
type openRegion struct {
	from int64
	name string
}

// annotation is the innermost named region that was open when the block was allocated.
func (g *grouper) annotation(l *life) string {
	if l.born < 0 {
		return beforeTrace
	}
	if g.regions == nil {
		g.regions = openRegions(g.b.snapshot.Annotations)
	}
	at := g.b.time(int(l.born))
	n, _ := slices.BinarySearchFunc(g.regions, at+1, func(r openRegion, t int64) int { return cmp.Compare(r.from, t) })
	return g.regions[max(n-1, 0)].name
}

const noRegion = "outside of annotations"

func openRegions(notes []mem.Annotation) []openRegion {
	regions, open := []openRegion{{-1 << 62, noRegion}}, []string{}
	for _, note := range notes {
		if !note.End {
			open = append(open, note.Name)
		} else {
			for i := len(open) - 1; i >= 0; i-- {
				if open[i] == note.Name {
					open = slices.Delete(open, i, i+1)
					break
				}
			}
		}
		name := noRegion
		if len(open) > 0 {
			name = open[len(open)-1]
		}
		regions = append(regions, openRegion{note.Time, name})
	}
	return regions
}
