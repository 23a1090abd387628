package explore

import (
	"cmp"
	"slices"

	"hightide/internal/mem"
)

// Found is what a search came to.
type Found struct {
	Blocks  int         `json:"blocks" doc:"How many blocks of the whole trace match."`
	Bytes   mem.Bytes   `json:"bytes" doc:"The sum of their sizes in bytes."`
	AtPeak  mem.Bytes   `json:"at_peak" doc:"The bytes of those that lived at the peak."`
	Largest []FoundOne  `json:"largest" doc:"The largest of them."`
	Sites   []FoundSite `json:"sites" doc:"Their lines: most bytes at the peak first, then most at all."`
}

// FoundOne is a block that matches.
type FoundOne struct {
	N     int       `json:"n" doc:"The number of the block in the trace."`
	Begin int       `json:"begin" doc:"The point from which on it was allocated; 0: before the trace."`
	End   int       `json:"end" doc:"The point from which on it was not; -1: it outlives the trace."`
	Size  mem.Bytes `json:"size" doc:"Its size in bytes."`
	Site  string    `json:"site" doc:"The line that allocated it."`
}

// FoundSite sums the matching blocks of a site.
type FoundSite struct {
	SiteLabel
	Site   uint32    `json:"site" doc:"The number of the line among the sites of the labels."`
	Blocks int       `json:"blocks" doc:"How many of its blocks match."`
	Bytes  mem.Bytes `json:"bytes" doc:"The sum of their sizes in bytes."`
	AtPeak mem.Bytes `json:"at_peak" doc:"The bytes of those that lived at the peak."`
}

const mostFound = 100

// Search looks for the blocks of a filter in the whole trace.
func (e *Explorer) Search(of Filter) (Found, error) {
	e.naming.Lock()
	defer e.naming.Unlock()
	f := Found{Largest: []FoundOne{}, Sites: []FoundSite{}}
	wants, err := e.wants(of)
	if err != nil {
		return f, err
	}
	top := largestOf{e: e}
	var sites mem.Tally[uint32, FoundSite]
	for n := range e.Len() {
		if wants != nil && !wants(n) {
			continue
		}
		top.add(int32(n))
		number, size := e.siteOf(e.Stack[n]), e.Bytes[n]
		site := sites.At(number)
		site.Site = number
		site.Blocks++
		site.Bytes += size
		if e.HeldAt(n, e.Peak.Moment) {
			site.AtPeak += size
		}
	}
	for i := range sites.All {
		s := &sites.All[i]
		s.SiteLabel = e.labels.Sites[s.Site]
		f.Blocks += s.Blocks
		f.Bytes += s.Bytes
		f.AtPeak += s.AtPeak
	}
	f.Sites = append(f.Sites, sites.All...)
	slices.SortStableFunc(f.Sites, func(a, b FoundSite) int {
		return cmp.Or(cmp.Compare(b.AtPeak, a.AtPeak), cmp.Compare(b.Bytes, a.Bytes))
	})
	f.Sites = f.Sites[:min(len(f.Sites), mostFound)]
	for _, n := range top.cut() {
		f.Largest = append(f.Largest, FoundOne{int(n), int(e.From[n]) + 1, e.pointOf(e.To[n]), e.Bytes[n],
			e.Names.Of(e.Stack[n]).Name})
	}
	return f, nil
}

// largestOf keeps the largest blocks of many.
type largestOf struct {
	e   *Explorer
	all []int32
}

func (l *largestOf) add(n int32) {
	if l.all = append(l.all, n); len(l.all) == 20*mostFound {
		l.cut()
	}
}

func (l *largestOf) cut() []int32 {
	slices.SortStableFunc(l.all, func(p, q int32) int { return cmp.Compare(l.e.Bytes[q], l.e.Bytes[p]) })
	l.all = l.all[:min(len(l.all), mostFound)]
	return l.all
}
