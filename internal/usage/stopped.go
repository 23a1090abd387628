package usage

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// Stopped is a site that came to hold more, then rested, and still holds it at the end. Whether it grew steadily
// until then, Growing says of the bins up to At.
type Stopped struct {
	Site *Site
	At   int       // the bin from which on it rested
	Grew mem.Bytes // by so much, from the first bin on
}

const (
	risesFor  = 0.15 // of the bins, at least: else it is warm-up
	restsFor  = 0.06 // likewise: else it may just go on
	restsNear = 0.03 // of its rise: what it changes by while it rests
)

// Stopped finds the sites of which that is so, in the order in which they stopped. least is the smallest rise that
// matters, in bytes.
func (h *History) Stopped(names *Names, bins Bins, least float64, wants func(stack uint32) bool) []Stopped {
	if len(bins.Stretches) < leastBins {
		return nil
	}
	sites := groupSites(h, names, wants)
	var found []Stopped
	for n, low := range h.Kept(bins.Stretches, len(sites.list), sites.of) {
		if low == nil {
			continue
		}
		p := bins.part(low)
		kept := slices.Clone(low[:p.to+1])
		for i := p.to - 1; i >= 0; i-- {
			kept[i] = min(kept[i], kept[i+1])
		}
		rise := kept[p.to] - kept[0]
		at := slices.IndexFunc(kept, func(b mem.Bytes) bool { return float64(kept[p.to]-b) <= restsNear*float64(rise) })
		span := bins.X[p.to] - bins.X[0]
		if float64(rise) >= least && bins.X[at]-bins.X[0] >= risesFor*span && bins.X[p.to]-bins.X[at] >= restsFor*span {
			found = append(found, Stopped{sites.list[n], at, rise})
		}
	}
	slices.SortStableFunc(found, func(a, b Stopped) int { return cmp.Compare(a.At, b.At) })
	return found
}
