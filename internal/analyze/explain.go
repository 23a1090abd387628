package analyze

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// ExplainOptions choose what of a snapshot is explained. The zero value: every device, at its peak, by line.
type ExplainOptions struct {
	Device mem.Optional
	Range  *EventRange // nil: the whole trace
	At     string      // "", "peak", "end", "event N" or ns of the wall clock
	By     string      // one of Groupings; "": site
	Top    int         // groups listed; 0: all
	Filter *regexp.Regexp
	Rules  []CategoryRule
}

// EventRange is a stretch of a trace, both ends in it. From is -1 where the state before the first event
// belongs to it.
type EventRange struct{ From, To int }

var wholeTrace = EventRange{-1, never}

// ParseRange reads "a:b", "a:" or ":b".
func ParseRange(text string) (EventRange, error) {
	r := wholeTrace
	from, to, ok := strings.Cut(text, ":")
	for _, end := range []struct {
		text string
		to   *int
	}{{from, &r.From}, {to, &r.To}} {
		if end.text == "" {
			continue
		}
		n, err := strconv.ParseInt(end.text, 10, 32)
		if err != nil || n < 0 {
			return r, fmt.Errorf("%q is no range of events such as 1000:2000", text)
		}
		*end.to = int(n)
	}
	if !ok || r.From > r.To {
		return r, fmt.Errorf("%q is no range of events such as 1000:2000", text)
	}
	return r, nil
}

// Groupings are what blocks can be grouped by.
var Groupings = []string{"site", "module", "category", "file", "function", "size", "stream", "pool", "annotation", "age"}

// Allocator is what one device's caching allocator held at one moment.
type Allocator struct {
	Device        int          `json:"device"`
	File          string       `json:"file"`
	Events        int          `json:"events"`
	Stacks        int          `json:"stacks"`
	Peak          TracePeak    `json:"peak"`
	At            TracePeak    `json:"at"`      // the moment explained
	Highest       Levels       `json:"highest"` // each at its own moment
	By            string       `json:"by"`
	Blame         []Blame      `json:"blame"`
	Segments      int          `json:"segments"`
	InactiveSplit mem.Bytes    `json:"inactive_split_bytes"`
	Rounding      mem.Bytes    `json:"rounding_bytes"` // at the moment explained: allocated less requested
	Unplaced      int          `json:"unplaced_events"`
	Strange       int          `json:"inconsistent_events"`
	Pins          []Pin        `json:"pins"`
	Map           []SegmentMap `json:"segment_map"`
	OOM           *TraceOOM    `json:"oom,omitempty"`
	Accuracy      *Accuracy    `json:"category_accuracy,omitempty"`
	Curve         []CurvePoint `json:"curve"`
	Label         mem.Label    `json:"label"`

	stacks []stackHold // most bytes first
}

// TracePeak is the levels just after an event; -1: before the first.
type TracePeak struct {
	Event     int       `json:"event"`
	Time      int64     `json:"time_ns,omitempty"` // of the wall clock
	Allocated mem.Bytes `json:"allocated_bytes"`
	Active    mem.Bytes `json:"active_bytes"`
	Reserved  mem.Bytes `json:"reserved_bytes"`
	Requested mem.Bytes `json:"requested_bytes"`
}

// Levels are highest values over a trace.
type Levels struct {
	Allocated mem.Bytes `json:"allocated_bytes"`
	Active    mem.Bytes `json:"active_bytes"`
	Reserved  mem.Bytes `json:"reserved_bytes"`
	Requested mem.Bytes `json:"requested_bytes"`
}

// Blame is a group of blocks; its frames are those of the stack that holds most of it.
type Blame struct {
	Name     string         `json:"name"`
	Bytes    mem.Bytes      `json:"bytes"`
	Blocks   int            `json:"blocks"`
	Category string         `json:"category"`
	Frames   []mem.Location `json:"frames"`
	most     mem.Bytes
	stack    uint32
}

// SegmentMap is a segment of the final state.
type SegmentMap struct {
	Address uint64     `json:"address"`
	Size    mem.Bytes  `json:"size_bytes"`
	Active  mem.Bytes  `json:"active_bytes"`
	Large   bool       `json:"large"`
	Blocks  [][2]int64 `json:"blocks"` // size and state: 0 cached, 1 in use, 2 waiting for another stream
}

// CurvePoint is the highest of a stretch of events.
type CurvePoint struct {
	Event     int       `json:"event"`
	Time      int64     `json:"time_ns,omitempty"`
	Allocated mem.Bytes `json:"allocated_bytes"`
	Reserved  mem.Bytes `json:"reserved_bytes"`
}

// ExplainDevice plays the trace of one device and says who holds its memory.
func ExplainDevice(s *mem.AllocatorSnapshot, device int, file string, o ExplainOptions) (*Allocator, error) {
	among := wholeTrace
	if o.Range != nil {
		among = *o.Range
	}
	b := newBooksOf(s, device, among)
	if n := b.trace.Len(); n > 0 && among.From >= n {
		return nil, fmt.Errorf("device %d has %d events, and none from %d on", device, n, among.From)
	}
	at, err := b.moment(o.At)
	if err != nil {
		return nil, err
	}
	totals := s.Totals(device)
	a := &Allocator{Device: device, File: file, Events: b.trace.Len(), Stacks: s.Stacks.Len() - 1, By: cmp.Or(o.By, "site"), Label: s.Label,
		Peak: b.tracePeak(b.peakAt, b.peak), Segments: totals.Segments, InactiveSplit: totals.InactiveSplit, Unplaced: b.unplaced, Strange: b.strange}
	a.At, a.Highest = a.Peak, Levels{b.maximum.allocated, b.maximum.active, b.maximum.reserved, b.maximum.requested}
	if at != b.peakAt {
		a.At = b.tracePeak(at, b.levelsAt(at))
	}
	if a.Blame, a.Rounding, err = b.blame(at, a.By, o); err != nil {
		return nil, err
	}
	a.stacks, a.Accuracy = b.holds(at, o), b.accuracy(at, o.Rules)
	if o.Top > 0 {
		a.Blame = a.Blame[:min(o.Top, len(a.Blame))]
	}
	for _, point := range b.curve {
		a.Curve = append(a.Curve, CurvePoint{point.event, b.time(point.event), point.allocated, point.reserved})
	}
	a.segmentMap(s)
	a.Pins = b.pins()
	if a.OOM, err = b.oom(o); err != nil {
		return nil, err
	}
	return a, nil
}

func (b *traceBooks) tracePeak(event int, l levels) TracePeak {
	return TracePeak{event, b.time(event), l.allocated, l.active, l.reserved, l.requested}
}

// stackHold is what one stack held.
type stackHold struct {
	stack  uint32
	bytes  mem.Bytes
	blocks uint64
}

func (b *traceBooks) holds(at int, o ExplainOptions) []stackHold {
	byStack := map[uint32]*stackHold{}
	g := &grouper{b: b, filter: map[uint32]bool{}}
	b.alive(at, func(l *life) {
		if o.Filter != nil && !g.matches(l.stack, o.Filter) {
			return
		}
		h := byStack[l.stack]
		if h == nil {
			h = &stackHold{stack: l.stack}
			byStack[l.stack] = h
		}
		h.bytes += l.size
		h.blocks++
	})
	all := make([]stackHold, 0, len(byStack))
	for _, h := range byStack {
		all = append(all, *h)
	}
	slices.SortFunc(all, func(p, q stackHold) int { return cmp.Or(cmp.Compare(q.bytes, p.bytes), cmp.Compare(p.stack, q.stack)) })
	return all
}

// moment is the event after which the memory is looked at.
func (b *traceBooks) moment(at string) (int, error) {
	var n int64
	switch {
	case at == "" || at == "peak":
		return b.peakAt, nil
	case at == "end":
		return min(b.trace.Len()-1, b.to), nil
	case len(at) > 6 && at[:6] == "event ":
		n, err := strconv.ParseInt(at[6:], 10, 32)
		if err != nil || n < -1 || int(n) >= b.trace.Len() {
			return 0, fmt.Errorf("device %d has events 0 to %d, and no %s", b.device, b.trace.Len()-1, at)
		}
		return int(n), nil
	}
	n, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is none of peak, end, event N, and no time in ns", at)
	}
	return b.eventAt(n), nil
}

// blame groups the blocks in use after an event, largest group first, and says what rounding costs them.
func (b *traceBooks) blame(at int, by string, o ExplainOptions) ([]Blame, mem.Bytes, error) {
	if !slices.Contains(Groupings, by) {
		return nil, 0, fmt.Errorf("blocks are grouped by one of %q, not by %s", Groupings, by)
	}
	g := &grouper{b: b, at: at, by: by, places: newPlaces(nil), sorter: newSorter(&b.snapshot.Stacks, o.Rules), names: map[uint32]string{}, filter: map[uint32]bool{}}
	groups, waste := map[[2]string]*Blame{}, mem.Bytes(0)
	last, later := b.trace.Len()-1, b.eighth()
	b.alive(at, func(l *life) {
		if o.Filter != nil && !g.matches(l.stack, o.Filter) {
			return
		}
		next := int32(0)
		if l.born >= 0 {
			next = later[l.born]
		}
		category := g.sorter.of(l, last, next)
		key := [2]string{g.name(l, category), category}
		of := groups[key]
		if of == nil {
			of = &Blame{Name: key[0], Category: category}
			groups[key] = of
		}
		of.Bytes += l.size
		of.Blocks++
		waste += l.size - l.requested
		if l.size > of.most {
			of.most, of.stack = l.size, l.stack
		}
	})
	all := make([]Blame, 0, len(groups))
	for _, of := range groups {
		of.Frames = b.snapshot.Stacks.Frames(of.stack)
		all = append(all, *of)
	}
	slices.SortFunc(all, func(p, q Blame) int {
		return cmp.Or(cmp.Compare(q.Bytes, p.Bytes), cmp.Compare(p.Name, q.Name), cmp.Compare(p.Category, q.Category))
	})
	return all, waste, nil
}

// eighth tells for each event the eighth allocation after it.
func (b *traceBooks) eighth() []int32 {
	next := make([]int32, b.trace.Len())
	var ring [8]int32
	for i := range ring {
		ring[i] = never - 2
	}
	n := 0
	for i := b.trace.Len() - 1; i >= 0; i-- {
		next[i] = ring[n%8]
		if b.trace.Action[i] == mem.ActionAlloc {
			ring[n%8] = int32(i)
			n++
		}
	}
	return next
}

// grouper names the group of a block.
type grouper struct {
	b      *traceBooks
	at     int
	by     string
	places *places
	sorter *sorter
	names  map[uint32]string
	filter map[uint32]bool
}

func (g *grouper) matches(stack uint32, filter *regexp.Regexp) bool {
	if known, ok := g.filter[stack]; ok {
		return known
	}
	match := slices.ContainsFunc(g.b.snapshot.Stacks.Frames(stack), func(l mem.Location) bool {
		return filter.MatchString(l.File + ":" + l.Function)
	})
	g.filter[stack] = match
	return match
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
		return fmt.Sprintf("pool (%d, %d)", g.b.lanes[l.lane].pool[0], g.b.lanes[l.lane].pool[1])
	case "age":
		return g.age(l)
	case "annotation":
		return g.annotation(l)
	}
	if name, ok := g.names[l.stack]; ok {
		return name
	}
	frames := g.b.snapshot.Stacks.Frames(l.stack)
	at := g.places.search(frames)
	name := lineName(at.Location)
	switch g.by {
	case "file":
		name = at.File
	case "function":
		name = path.Base(at.File) + ":" + at.Function
	case "module":
		name = moduleOf(frames)
	}
	g.names[l.stack] = name
	return name
}

func sizeClass(n mem.Bytes) mem.Bytes {
	class := mem.Bytes(512)
	for class*2 <= n {
		class *= 2
	}
	return class
}

func (g *grouper) age(l *life) string {
	if l.born < 0 {
		return "before the trace"
	}
	return fmt.Sprintf("%s events or more", Count(int64(sizeClass(mem.Bytes(g.at)-mem.Bytes(l.born)+512))-512))
}

// annotation is the innermost named region that was open when the block was allocated.
func (g *grouper) annotation(l *life) string {
	if l.born < 0 {
		return "before the trace"
	}
	var open []string
	at := g.b.time(int(l.born))
	for _, note := range g.b.snapshot.Annotations {
		if note.Time > at {
			break
		}
		if !note.End {
			open = append(open, note.Name)
		} else if i := slices.Index(open, note.Name); i >= 0 {
			open = slices.Delete(open, i, i+1)
		}
	}
	if len(open) == 0 {
		return "outside of annotations"
	}
	return open[len(open)-1]
}

// moduleOf is the innermost forward method on a stack.
func moduleOf(frames []mem.Location) string {
	for _, f := range frames {
		if f.Function == "forward" && !f.Native {
			return lineName(mem.Location{File: f.File}) + ":forward:" + strconv.Itoa(f.Line)
		}
	}
	return "outside of modules"
}

func (a *Allocator) segmentMap(s *mem.AllocatorSnapshot) {
	for _, segment := range s.Segments {
		if segment.Device != a.Device {
			continue
		}
		m := SegmentMap{Address: segment.Address, Size: segment.Size, Large: segment.Large, Blocks: [][2]int64{}}
		for _, b := range segment.Blocks {
			m.Blocks = append(m.Blocks, [2]int64{int64(b.Size), int64(b.State)})
			if b.State != mem.BlockInactive {
				m.Active += b.Size
			}
		}
		a.Map = append(a.Map, m)
	}
}
