package usage

import (
	"cmp"
	"slices"
	"sort"

	"hightide/internal/mem"
)

// Larger finds the sites of an exact history that hold more at the end of each bin while most of their blocks are
// freed, what grew most first. Such are a cache that is copied to be extended, work on ever longer sequences. Growing
// does not see them.
func (h *History) Larger(names *Names, bins Bins, least float64, wants func(stack uint32) bool) []Growing {
	if len(bins.Stretches) < 2 {
		return nil
	}
	sites := groupSites(h, names, wants)
	kept := h.Kept(bins.Stretches, len(sites.list), sites.of)
	var found []Growing
	for n, held := range h.atEnds(bins.Stretches, len(sites.list), sites.of) {
		if held == nil {
			continue
		}
		c := Curve{X: bins.X, Whole: bins.Whole}
		for _, bytes := range held {
			c.Y = append(c.Y, float64(bytes))
		}
		last, stayed := len(held)-1, 0.0
		if kept[n] != nil {
			stayed = float64(kept[n][last] - kept[n][0])
		}
		if t := TrendOf(c, Noise{}, least); t.Steady && stayed < keptLeast*t.Growth {
			found = append(found, Growing{Trend: t, Site: sites.list[n], Held: held[last], Larger: true})
		}
	}
	slices.SortStableFunc(found, func(a, b Growing) int {
		return cmp.Or(cmp.Compare(b.Growth, a.Growth), cmp.Compare(a.Site.Name, b.Site.Name))
	})
	return found
}

// atEnds is what each group held after the last moment of each of some stretches, see Kept; nil: never anything.
func (h *History) atEnds(stretches []Stretch, groups int, group func(span int) int) [][]mem.Bytes {
	held := make([][]mem.Bytes, groups)
	for i, from := range h.From {
		first := sort.Search(len(stretches), func(k int) bool { return stretches[k].To >= int(from) })
		beyond := sort.Search(len(stretches), func(k int) bool { return stretches[k].To >= int(h.To[i]) })
		if first >= beyond {
			continue
		}
		g := group(i)
		if g < 0 {
			continue
		}
		if held[g] == nil {
			held[g] = make([]mem.Bytes, len(stretches))
		}
		for k := first; k < beyond; k++ {
			held[g][k] += h.Bytes[i]
		}
	}
	return held
}
