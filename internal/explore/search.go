package explore

import (
	"cmp"
	"regexp"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Found is what a search came to.
type Found struct {
	Blocks  int         `json:"blocks"` // in the whole trace
	Bytes   mem.Bytes   `json:"bytes"`
	AtPeak  mem.Bytes   `json:"at_peak"`
	Largest []FoundOne  `json:"largest"`
	Sites   []FoundSite `json:"sites"` // most bytes at the peak first, then most at all
}

// FoundOne is a block that matches.
type FoundOne struct {
	N     int       `json:"n"`
	Begin int       `json:"begin"`
	End   int       `json:"end"`
	Size  mem.Bytes `json:"size"`
	Site  string    `json:"site"`
}

// FoundSite sums the matching blocks of a site.
type FoundSite struct {
	SiteLabel
	Site   uint32    `json:"site"`
	Blocks int       `json:"blocks"`
	Bytes  mem.Bytes `json:"bytes"`
	AtPeak mem.Bytes `json:"at_peak"`
}

const mostFound = 100

// Matcher says of blocks whether a frame ("file:function"), the line's name, the category or the module match. It remembers its
// answers, and is for one goroutine.
func (e *Explorer) Matcher(pattern *regexp.Regexp) func(n int) bool {
	match := e.matcher(pattern)
	return func(n int) bool {
		e.naming.Lock()
		defer e.naming.Unlock()
		return match(n)
	}
}

// matcher likewise, for who holds the lock.
func (e *Explorer) matcher(pattern *regexp.Regexp) func(n int) bool {
	frame := e.Stacks.Matcher(pattern)
	const no, yes = 1, 2
	stacks := make([]uint8, e.Stacks.Len())
	byCategory := slices.ContainsFunc(usage.CategoryNames, pattern.MatchString)
	return func(n int) bool {
		stack := e.Stack[n]
		if stacks[stack] == 0 {
			stacks[stack] = no
			if site := e.Names.Of(stack); frame(stack) || pattern.MatchString(site.Name) || pattern.MatchString(site.Module) {
				stacks[stack] = yes
			}
		}
		return stacks[stack] == yes || byCategory && pattern.MatchString(e.categories.Of(n))
	}
}

// Search looks for blocks of the whole trace.
func (e *Explorer) Search(pattern *regexp.Regexp) Found {
	e.naming.Lock()
	defer e.naming.Unlock()
	f := Found{Largest: []FoundOne{}, Sites: []FoundSite{}}
	matches, top := e.matcher(pattern), largestOf{e: e}
	var sites mem.Tally[uint32, FoundSite]
	for n := range e.Len() {
		if !matches(n) {
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
		f.Largest = append(f.Largest, FoundOne{int(n), int(e.From[n]) + 1, e.pointOf(e.To[n]), e.Bytes[n], e.Names.Of(e.Stack[n]).Name})
	}
	return f
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
