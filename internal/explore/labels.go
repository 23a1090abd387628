package explore

import (
	"slices"
	"strconv"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Labels are what numbers of a tile stand for.
type Labels struct {
	Sites      []SiteLabel `json:"sites" doc:"Lines that allocate, by their numbers."`
	Categories []string    `json:"categories" doc:"What blocks are for, by their numbers."`
	Modules    []string    `json:"modules" doc:"Modules of the model, by their numbers."`
	Streams    []string    `json:"streams" doc:"Streams, by their numbers."`
}

// SiteLabel is a line that allocates.
type SiteLabel struct {
	Name string `json:"name" doc:"The line and its function, as reports show it."`
	File string `json:"file,omitempty" doc:"The file; absent: not recorded."`
	Line int    `json:"line,omitempty" doc:"The line, from 1."`
	User bool   `json:"user,omitempty" doc:"Whether it is the program's own, not an installed package's."`
}

// labels numbers labels at first sight.
type labels struct {
	Labels
	site             map[SiteLabel]uint32
	category, module map[string]uint32
}

func number[K comparable](known *map[K]uint32, all *[]K, key K) uint32 {
	n, ok := (*known)[key]
	if !ok {
		if *known == nil {
			*known = map[K]uint32{}
		}
		n = uint32(len(*all))
		(*known)[key] = n
		*all = append(*all, key)
	}
	return n
}

// label fills the columns of labels in.
func (e *Explorer) label(d *Drawn) {
	e.naming.Lock()
	defer e.naming.Unlock()
	for _, n := range d.N {
		d.Site = append(d.Site, e.siteOf(e.Stack[n]))
		d.Category = append(d.Category, e.categoryOf(int(n)))
		d.Module = append(d.Module, e.moduleOf(e.Stack[n]))
		d.Stream = append(d.Stream, e.Block.Lane[n])
	}
}

func (e *Explorer) siteOf(stack uint32) uint32 {
	n, ok := e.sites[stack]
	if !ok {
		n = number(&e.labels.site, &e.labels.Sites, siteLabel(e.Names.Of(stack)))
		e.sites[stack] = n
	}
	return n
}

func siteLabel(s *usage.Site) SiteLabel {
	l := SiteLabel{Name: s.Name, User: s.User}
	if s.File != mem.UnknownPlace {
		l.File, l.Line = s.File, int(s.Line)
	}
	return l
}

func (e *Explorer) categoryOf(n int) uint32 {
	return number(&e.labels.category, &e.labels.Categories, e.categories.Of(n))
}

// CategoryOf is the number of a block's category, as in Categories; of none it is that of blocks from before the trace.
func (e *Explorer) CategoryOf(n int) uint32 {
	e.naming.Lock()
	defer e.naming.Unlock()
	if n < 0 {
		return number(&e.labels.category, &e.labels.Categories, usage.BeforeTrace)
	}
	return e.categoryOf(n)
}

// Categories are the names of those that were numbered so far.
func (e *Explorer) Categories() []string {
	e.naming.Lock()
	defer e.naming.Unlock()
	return slices.Clone(e.labels.Categories)
}

func (e *Explorer) moduleOf(stack uint32) uint32 {
	n, ok := e.modules[stack]
	if !ok {
		n = number(&e.labels.module, &e.labels.Modules, e.Names.Of(stack).Module)
		e.modules[stack] = n
	}
	return n
}

// LabelsFrom gives the labels of all tiles so far, each list from a number on: a reader asks for what it does not
// know yet.
func (e *Explorer) LabelsFrom(sites, categories, modules int) Labels {
	e.naming.Lock()
	defer e.naming.Unlock()
	l := Labels{Sites: from(e.labels.Sites, sites), Categories: from(e.labels.Categories, categories),
		Modules: from(e.labels.Modules, modules), Streams: []string{}}
	for _, lane := range e.Lanes {
		l.Streams = append(l.Streams, laneName(lane))
	}
	return l
}

// mostLabels go into one answer; the next one has more.
const mostLabels = 400

func from[T any](all []T, n int) []T {
	if n < 0 || n > len(all) {
		n = len(all)
	}
	return append([]T{}, all[n:min(n+mostLabels, len(all))]...)
}

// laneName is how people know a stream: by its number on CUDA, 0 for the default one.
func laneName(l usage.Lane) string {
	name := "stream " + strconv.FormatUint(l.Stream, 10)
	if l.Stream > 1<<16 {
		name = "stream 0x" + strconv.FormatUint(l.Stream, 16)
	}
	if l.Stream == 0 {
		name = "default stream"
	}
	if pool := poolName(l.Pool); pool != "" {
		name += ", " + pool
	}
	return name
}

func poolName(p mem.PoolID) string {
	switch {
	case p == (mem.PoolID{}):
		return ""
	case p[0] != 0:
		return "pool of CUDA graph " + strconv.FormatUint(p[0], 10)
	}
	return "user pool " + strconv.FormatUint(p[1], 10)
}
