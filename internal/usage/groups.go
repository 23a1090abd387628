package usage

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// Group is what the stacks of one site held at a moment.
type Group struct {
	Site     *Site
	Bytes    mem.Bytes
	Blocks   uint64
	Variance float64
	Stack    uint32 // the one that held most
	Largest  mem.Bytes
	Phase    mem.Phase // of that stack's first allocation, where it is known
	Absent   mem.Bytes // as in Use
}

// siteKey tells sites apart: lines of different files may have one name, and native code has no lines.
type siteKey struct {
	mem.Location
	name string
}

func (s *Site) key() siteKey { return siteKey{s.Location, s.Name} }

// Groups sums uses by site, most bytes first.
func Groups(names *Names, uses []Use) []Group {
	var groups mem.Tally[siteKey, Group]
	for _, u := range uses {
		site := names.Of(u.Stack)
		g := groups.At(site.key())
		g.Site = cmp.Or(g.Site, site)
		g.Bytes += u.Bytes
		g.Blocks += u.Blocks
		g.Absent += u.Absent
		g.Variance += u.Variance
		if u.Bytes > g.Largest {
			g.Stack, g.Largest, g.Phase = u.Stack, u.Bytes, u.Phase
		}
	}
	slices.SortStableFunc(groups.All, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Site.File, b.Site.File), cmp.Compare(a.Site.Line, b.Site.Line), cmp.Compare(a.Site.Name, b.Site.Name))
	})
	return groups.All
}
