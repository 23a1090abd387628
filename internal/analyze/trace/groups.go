package trace

import (
	"cmp"
	"fmt"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// grouper names the group of a block.
type grouper struct {
	d       *usage.Device
	o       *Options
	at      int
	by      string
	names   *usage.Names
	sorter  *usage.Categories
	wants   func(stack uint32) bool // whether the filter lets its blocks through
	regions []openRegion            // see annotation
}

func newGrouper(d *usage.Device, at int, by string, o *Options) *grouper {
	g := &grouper{d: d, o: o, at: at, by: by, names: usage.NewNames(d.Stacks), sorter: usage.NewCategories(d, o.Rules)}
	g.wants = func(uint32) bool { return true }
	if o.Filter != nil {
		g.wants = d.Stacks.Matcher(o.Filter)
	}
	return g
}

// groupKey is a group of blocks: lines of different files may have one name.
type groupKey struct {
	name, category string
	at             mem.Location
}

// group is blocks of one group, as they add up.
type group struct {
	report.Blame
	largest mem.Bytes // block
	stack   uint32    // its stack
	mixed   bool      // of several categories: Category is that of the most
}

// blames are groups as a report has them.
func blames(groups []group) []report.Blame {
	all := make([]report.Blame, len(groups))
	for i := range groups {
		all[i] = groups[i].Blame
	}
	return all
}

// blame groups the blocks in use after an event, largest group first, and says what rounding costs them.
func (g *grouper) blame(at int) ([]group, mem.Bytes, error) {
	if !slices.Contains(Groupings, g.by) {
		return nil, 0, fmt.Errorf("blocks are grouped by one of %q, not by %s", Groupings, g.by)
	}
	var groups mem.Tally[groupKey, group]
	d, waste := g.d, mem.Bytes(0)
	d.Each(at, func(n int) {
		if !g.wants(d.Stack[n]) {
			return
		}
		category := g.sorter.Of(n)
		key := groupKey{name: g.name(n, category), category: category}
		if g.by == "site" {
			key.at = g.names.Of(d.Stack[n]).Location
		}
		of := groups.At(key)
		of.Name, of.Category = key.name, category
		of.Bytes += d.Bytes[n]
		of.Blocks++
		waste += d.Bytes[n] - d.RequestedOf(n)
		if d.Bytes[n] > of.largest {
			of.largest, of.stack = d.Bytes[n], d.Stack[n]
		}
	})
	all := groups.All
	for i := range all {
		all[i].Frames = d.Stacks.Frames(all[i].stack)
	}
	slices.SortFunc(all, func(p, q group) int {
		return cmp.Or(cmp.Compare(q.Bytes, p.Bytes), cmp.Compare(p.Name, q.Name), cmp.Compare(p.Category, q.Category))
	})
	return all, waste, nil
}

// bulk is groups that are one thing to a reader: those of one name, mostly of the category that holds most, or of one
// kind.
type bulk struct {
	group        // the largest, with the bytes and blocks of all
	lines int    // names in it
	line  *group // the largest of them
}

// bulkBy puts groups together by a key, those of "" nowhere, and returns what holds most.
func bulkBy(groups []group, key func(*group) string) (most bulk) {
	var sums mem.Tally[string, bulk]
	for i := range groups { // largest first
		one := &groups[i]
		name := key(one)
		if name == "" {
			continue
		}
		sum := sums.At(name)
		if sum.lines++; sum.lines == 1 {
			sum.group, sum.line = *one, one
		} else {
			sum.Bytes, sum.Blocks, sum.mixed = sum.Bytes+one.Bytes, sum.Blocks+one.Blocks, sum.mixed ||
				one.Category != sum.Category
		}
	}
	for _, one := range sums.All {
		if one.Bytes > most.Bytes {
			most = one
		}
	}
	return most
}

// largestOf is what holds most among groups, and whether that is a kind: blocks of one known category are one thing
// whichever lines allocated them, and so are those of one line.
func largestOf(groups []group, by string) (most bulk, kind bool) {
	most = bulkBy(groups, func(g *group) string { return g.Name })
	if by != "site" {
		return most, false
	}
	of := bulkBy(groups, func(g *group) string {
		if g.Category == usage.UnknownCategory || g.Category == usage.BeforeTrace { // which say nothing of what it is for
			return ""
		}
		return g.Category
	})
	if of.Bytes > most.Bytes {
		return of, true
	}
	return most, false
}

// who is a group in the middle of a sentence.
func who(b *group) string {
	switch b.Name {
	case mem.NoFrames:
		return "what has " + mem.NoFrames
	case usage.BeforeTrace:
		return "what was there before the trace"
	}
	return b.Name
}

func (g *grouper) name(n int, category string) string {
	switch g.by {
	case "category":
		return category
	case "size":
		return "from " + sizeClass(g.d.RequestedOf(n)).String()
	case "stream":
		return fmt.Sprintf("stream %d", g.lane(n).Stream)
	case "pool":
		return poolName(g.lane(n).Pool)
	case "age":
		return g.age(n)
	case "annotation":
		return g.annotation(n)
	case "site":
		return g.site(n)
	}
	if g.fromBefore(n) {
		return usage.BeforeTrace
	}
	at := g.names.Of(g.d.Stack[n])
	switch g.by {
	case "file":
		if at.Native && (at.File == "" || at.File == "??" || at.File == mem.UnknownPlace) {
			return at.Name
		}
		return at.File
	case "function":
		return at.Innermost
	}
	return at.Module
}

func (g *grouper) lane(n int) usage.Lane { return g.d.Lanes[g.d.Block.Lane[n]] }

// fromBefore says whether a block is from before the trace and has no stack.
func (g *grouper) fromBefore(n int) bool { return g.d.Stack[n] == 0 && g.d.From[n] < 0 }

// site is the name of the line that allocated a block.
func (g *grouper) site(n int) string {
	if g.fromBefore(n) {
		return usage.BeforeTrace
	}
	return g.names.Of(g.d.Stack[n]).Name
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

func (g *grouper) age(n int) string {
	if g.d.From[n] < 0 {
		return usage.BeforeTrace
	}
	events, class := g.at-int(g.d.From[n]), 1
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
func (g *grouper) annotation(n int) string {
	if g.d.From[n] < 0 {
		return usage.BeforeTrace
	}
	if g.regions == nil {
		g.regions = openRegions(g.d.Snapshot.Annotations)
	}
	at := g.d.TimeOf(int(g.d.From[n]))
	i, _ := slices.BinarySearchFunc(g.regions, at+1, func(r openRegion, t int64) int { return cmp.Compare(r.from, t) })
	return g.regions[max(i-1, 0)].name
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

// accuracy of the rules; nil where the program named no owner.
func (g *grouper) accuracy(at usage.Moment) *report.Accuracy {
	if len(g.d.Snapshot.Owners) == 0 {
		return nil
	}
	a := &report.Accuracy{By: []report.CategoryAccuracy{{Category: "parameters"}, {Category: "gradients"},
		{Category: "optimizer state"}}}
	g.d.Each(at, func(n int) {
		owner, bytes := g.d.Owner(n), g.d.Bytes[n]
		i := slices.IndexFunc(a.By, func(c report.CategoryAccuracy) bool { return c.Category == owner })
		if i < 0 {
			return
		}
		a.By[i].Owned += bytes
		a.Owned += bytes
		a.OwnedBlocks++
		if g.sorter.ByRules(n) == owner {
			a.By[i].Agreed += bytes
			a.Agreed += bytes
			a.AgreedBlocks++
		}
	})
	a.By = slices.DeleteFunc(a.By, func(c report.CategoryAccuracy) bool { return c.Owned == 0 })
	return a
}

const siteBands = 11 // and one of all others

// timeline is the course of the memory at the highest moment of each column.
func (g *grouper) timeline(columns int) *report.TraceTimeline {
	d, points := g.d, g.d.Highest(columns)
	if len(points) < 2 {
		return nil
	}
	t := &report.TraceTimeline{}
	begin := d.TimeOf(points[0].Moment)
	for _, p := range points {
		t.Events = append(t.Events, p.Moment)
		if knows := d.KnowsSegments(); knows || d.Trace.Reserved != nil {
			t.Reserved = append(t.Reserved, d.ReservedAt(p.Moment, p.Levels))
			if knows {
				t.Releasable = append(t.Releasable, p.Releasable)
			}
		}
		if len(d.Times) > 0 {
			t.Time = append(t.Time, d.TimeOf(p.Moment)-begin)
		}
	}
	t.Category = d.Bands(t.Events, len(usage.CategoryNames)+1, g.sorter.Of, g.wants)
	t.Site = d.Bands(t.Events, siteBands, g.site, g.wants)
	return t
}
