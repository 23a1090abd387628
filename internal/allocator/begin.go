package allocator

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
)

// Beginning is the state in which a trace starts: what was held before its first event.
type Beginning struct {
	Segments     []mem.Segment // by address
	Reservations []Reservation // the address space of expandable segments, as far as the trace shows it
}

// Reservation is address space that an expandable segment may fill.
type Reservation struct {
	Address uint64
	Size    mem.Bytes
	Page    mem.Bytes
	Stream  uint64
	Large   bool
	Pool    mem.PoolID
}

// rewind plays a trace backwards from the final state.
type rewind struct {
	settings *Settings
	plain    map[uint64]*mem.Segment // by address
	ranges   []mem.Segment           // expandable: stretches of memory, by address, apart
	live     map[uint64]mem.Block
	lowest   map[streamPool]uint64 // where expandable memory of a stream was seen
	highest  map[streamPool]uint64
	poolOf   func(event int) mem.PoolID
}

type streamPool struct {
	stream uint64
	large  bool
	pool   mem.PoolID
}

// Rewind finds the state in which a device's trace begins, from the final state and the events
// backwards. The sizes of blocks that were freed in the trace follow from the rules of splitting under
// the settings. An error says where trace and state contradict each other.
func Rewind(s *mem.AllocatorSnapshot, t *mem.Trace, settings Settings) (*Beginning, error) {
	r := &rewind{settings: &settings, plain: map[uint64]*mem.Segment{}, live: map[uint64]mem.Block{},
		lowest: map[streamPool]uint64{}, highest: map[streamPool]uint64{}}
	r.poolOf = poolsOf(s, t)
	for _, g := range s.Segments {
		if g.Device == t.Device {
			r.start(g)
		}
	}
	if err := checkCovered(s, t); err != nil {
		return nil, err
	}
	for i := t.Len() - 1; i >= 0; i-- {
		if err := r.undo(t, i); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	return r.result()
}

// checkCovered refuses blocks at addresses where there never was a segment.
func checkCovered(s *mem.AllocatorSnapshot, t *mem.Trace) error {
	type span struct{ from, to uint64 }
	var spans []span
	for _, g := range s.Segments {
		if g.Device == t.Device {
			spans = append(spans, span{g.Address, g.Address + uint64(g.Size)})
		}
	}
	for i, action := range t.Action {
		if action == mem.ActionSegmentFree || action == mem.ActionSegmentUnmap {
			spans = append(spans, span{t.Address[i], t.Address[i] + uint64(t.Size[i])})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	joined := spans[:0]
	for _, next := range spans {
		if n := len(joined); n > 0 && next.from <= joined[n-1].to {
			joined[n-1].to = max(joined[n-1].to, next.to)
			continue
		}
		joined = append(joined, next)
	}
	for i, action := range t.Action {
		if action != mem.ActionAlloc {
			continue
		}
		at, _ := slices.BinarySearchFunc(joined, t.Address[i]+1, func(x span, address uint64) int { return cmp.Compare(x.from, address) })
		if at == 0 || t.Address[i]+uint64(t.Size[i]) > joined[at-1].to {
			return fmt.Errorf("event %d: block %#x of %d bytes lies where the allocator never had memory, so it did not make this trace",
				i, t.Address[i], int64(t.Size[i]))
		}
	}
	return nil
}

func (r *rewind) start(g mem.Segment) {
	for _, b := range g.Blocks {
		if b.State != mem.BlockInactive {
			r.live[b.Address] = b
		}
	}
	g.Blocks = nil
	if g.Expandable {
		r.seen(&g)
		r.ranges = append(r.ranges, g)
		return
	}
	r.plain[g.Address] = &g
}

// seen widens what is known of an expandable segment's addresses.
func (r *rewind) seen(g *mem.Segment) {
	k := streamPool{g.Stream, g.Large, g.Pool}
	if low, ok := r.lowest[k]; !ok || g.Address < low {
		r.lowest[k] = g.Address
	}
	r.highest[k] = max(r.highest[k], g.Address+uint64(g.Size))
}

func (r *rewind) undo(t *mem.Trace, i int) error {
	address, size := t.Address[i], t.Size[i]
	switch t.Action[i] {
	case mem.ActionAlloc:
		if _, ok := r.live[address]; !ok {
			return fmt.Errorf("block %#x of %d bytes is allocated but never freed, and not in the final state", address, int64(size))
		}
		delete(r.live, address)
	case mem.ActionFreeCompleted:
		if _, ok := r.live[address]; ok {
			return fmt.Errorf("block %#x of %d bytes is freed while a later one lives there", address, int64(size))
		}
		r.live[address] = mem.Block{Address: address, Requested: size, State: mem.BlockPendingFree, Stack: t.Stack[i]}
	case mem.ActionFreeRequested:
		b, ok := r.live[address]
		if !ok {
			return fmt.Errorf("block %#x of %d bytes is freed, never completely, and not in the final state", address, int64(size))
		}
		if b.State != mem.BlockPendingFree {
			return fmt.Errorf("block %#x of %d bytes is freed, and lives on", address, int64(size))
		}
		b.State = mem.BlockAllocated
		r.live[address] = b
	case mem.ActionSegmentAlloc:
		if g, ok := r.plain[address]; !ok || g.Size != size {
			return fmt.Errorf("segment %#x of %d bytes is allocated but never freed, and not in the final state", address, int64(size))
		}
		delete(r.plain, address)
	case mem.ActionSegmentFree:
		if _, ok := r.plain[address]; ok {
			return fmt.Errorf("segment %#x of %d bytes is freed while a later one lies there", address, int64(size))
		}
		r.plain[address] = &mem.Segment{Device: t.Device, Address: address, Size: size, Stream: t.Stream[i], Large: size != smallSegment,
			Pool: r.poolOf(i), Stack: t.Stack[i]}
	case mem.ActionSegmentMap:
		return r.cut(address, size)
	case mem.ActionSegmentUnmap:
		r.add(t, i)
	}
	return nil
}

// cut takes a range out of the expandable memory.
func (r *rewind) cut(address uint64, size mem.Bytes) error {
	end := address + uint64(size)
	i := slices.IndexFunc(r.ranges, func(g mem.Segment) bool { return g.Address <= address && end <= g.Address+uint64(g.Size) })
	if i < 0 {
		return fmt.Errorf("memory at %#x of %d bytes is mapped but never unmapped, and not in the final state", address, int64(size))
	}
	g := r.ranges[i]
	r.ranges = slices.Delete(r.ranges, i, i+1)
	for _, part := range [2][2]uint64{{g.Address, address}, {end, g.Address + uint64(g.Size)}} {
		if part[0] < part[1] {
			piece := g
			piece.Address, piece.Size = part[0], mem.Bytes(part[1]-part[0])
			r.ranges = append(r.ranges, piece)
		}
	}
	return nil
}

// add puts an unmapped range back, joined with its neighbours of the same stream and pool.
func (r *rewind) add(t *mem.Trace, i int) {
	g := mem.Segment{Device: t.Device, Address: t.Address[i], Size: t.Size[i], Stream: t.Stream[i], Expandable: true, Pool: r.poolOf(i)}
	g.Large = r.large(g)
	for j := 0; j < len(r.ranges); j++ {
		o := r.ranges[j]
		if o.Stream != g.Stream || o.Pool != g.Pool || o.Address+uint64(o.Size) != g.Address && g.Address+uint64(g.Size) != o.Address {
			continue
		}
		g.Address, g.Size, g.Large = min(g.Address, o.Address), g.Size+o.Size, o.Large
		r.ranges = slices.Delete(r.ranges, j, j+1)
		j--
	}
	r.seen(&g)
	r.ranges = append(r.ranges, g)
}

// large guesses which pool an unmapped range belonged to: that of the nearest known one of its stream,
// else by the granularity.
func (r *rewind) large(g mem.Segment) bool {
	var nearest uint64
	found, large := false, g.Size%r.settings.page(false) == 0
	for k, low := range r.lowest {
		if k.stream != g.Stream {
			continue
		}
		distance := low - g.Address
		if low < g.Address {
			distance = g.Address - low
		}
		if !found || distance < nearest {
			found, nearest = true, distance
			large = k.large
		}
	}
	return large
}

// result gives the segments their blocks.
func (r *rewind) result() (*Beginning, error) {
	b := &Beginning{Segments: r.ranges}
	for _, g := range r.plain {
		b.Segments = append(b.Segments, *g)
	}
	slices.SortFunc(b.Segments, func(x, y mem.Segment) int { return cmp.Compare(x.Address, y.Address) })
	var live []mem.Block
	for _, block := range r.live {
		live = append(live, block)
	}
	slices.SortFunc(live, func(x, y mem.Block) int { return cmp.Compare(x.Address, y.Address) })
	before := uint64(0)
	for i := range b.Segments {
		g := &b.Segments[i]
		end := g.Address + uint64(g.Size)
		if g.Address < before || end <= g.Address {
			return nil, fmt.Errorf("segment %#x of %d bytes overlaps the one before it, or is empty", g.Address, int64(g.Size))
		}
		before = end
		n := 0
		for n < len(live) && live[n].Address < end {
			n++
		}
		if n > 0 && live[0].Address < g.Address {
			return nil, fmt.Errorf("block %#x of %d bytes lies in no segment", live[0].Address, int64(live[0].Requested))
		}
		if err := r.fill(g, live[:n]); err != nil {
			return nil, err
		}
		live = live[n:]
	}
	if len(live) > 0 {
		return nil, fmt.Errorf("block %#x of %d bytes lies in no segment", live[0].Address, int64(live[0].Requested))
	}
	for k, low := range r.lowest {
		page := r.settings.page(!k.large)
		b.Reservations = append(b.Reservations, Reservation{low, mem.Bytes(r.highest[k] - low), page, k.stream, k.large, k.pool})
	}
	slices.SortFunc(b.Reservations, func(x, y Reservation) int { return cmp.Compare(x.Address, y.Address) })
	return b, nil
}

// fill lays live blocks and what is free between them out over a segment.
func (r *rewind) fill(g *mem.Segment, live []mem.Block) error {
	at, end := g.Address, g.Address+uint64(g.Size)
	for i, b := range live {
		if b.Address > at {
			g.Blocks = append(g.Blocks, mem.Block{Address: at, Size: mem.Bytes(b.Address - at)})
		}
		next := end
		if i+1 < len(live) {
			next = live[i+1].Address
		}
		if b.Size == 0 {
			b.Size = r.blockSize(g, b.Requested, mem.Bytes(next-b.Address))
		}
		if at = b.Address + uint64(b.Size); at > next {
			return fmt.Errorf("block %#x of %d bytes does not fit before %#x", b.Address, int64(b.Requested), next)
		}
		g.Blocks = append(g.Blocks, b)
	}
	if at < end {
		g.Blocks = append(g.Blocks, mem.Block{Address: at, Size: mem.Bytes(end - at)})
	}
	return nil
}

// blockSize is what a block must have had before a gap: no rest stays that would not have been split off.
func (r *rewind) blockSize(g *mem.Segment, requested, gap mem.Bytes) mem.Bytes {
	size := r.settings.Round(requested)
	if g.Large && !g.Expandable && (gap-size <= smallLimit || size >= r.settings.maxSplit()) && gap >= size {
		return gap
	}
	return size
}

// poolsOf says which pool an event belongs to: as the trace has it, or of the final segment there, from when on what
// lay there before was freed.
func poolsOf(s *mem.AllocatorSnapshot, t *mem.Trace) func(event int) mem.PoolID {
	if len(t.Pool) > 0 {
		return func(i int) mem.PoolID { return t.Pool[i] }
	}
	type span struct {
		from, to uint64
		since    int
		pool     mem.PoolID
	}
	var private []span
	for _, g := range s.Segments {
		if g.Device == t.Device && g.Pool != (mem.PoolID{}) {
			private = append(private, span{g.Address, g.Address + uint64(g.Size), 0, g.Pool})
		}
	}
	for i, action := range t.Action {
		if action != mem.ActionSegmentFree {
			continue
		}
		for j := range private {
			if p := &private[j]; t.Address[i] < p.to && p.from < t.Address[i]+uint64(t.Size[i]) {
				p.since = i + 1
			}
		}
	}
	return func(i int) mem.PoolID {
		for _, p := range private {
			if p.since <= i && p.from <= t.Address[i] && t.Address[i] < p.to {
				return p.pool
			}
		}
		return mem.PoolID{}
	}
}

// SettingsOf reads the settings that a snapshot states. What is set by a function (memory fraction) is
// in no file.
func SettingsOf(s *mem.AllocatorSnapshot) (Settings, error) {
	settings, err := RulesFor(s)[0].Parse(s.Settings["PYTORCH_CUDA_ALLOC_CONF"])
	if err != nil {
		return Settings{}, err
	}
	if v, ok := s.Settings["max_split_size"]; ok {
		n, _ := strconv.ParseInt(v, 10, 64)
		settings.MaxSplit = max(mem.Bytes(n), 0)
	}
	if v, ok := s.Settings["garbage_collection_threshold"]; ok {
		settings.GCThreshold, _ = strconv.ParseFloat(v, 64)
	}
	if v, ok := s.Settings["expandable_segments"]; ok {
		settings.Expandable = strings.EqualFold(v, "true")
	}
	if v, ok := s.Settings["roundup_power2_divisions"]; ok {
		settings.Divisions = [16]int{}
		for i, pair := range strings.Split(v, ",") {
			_, divisions, _ := strings.Cut(pair, ":")
			n, err := strconv.Atoi(divisions)
			if i < len(settings.Divisions) && err == nil {
				settings.Divisions[i] = n
			}
		}
	}
	return settings, nil
}

// RulesFor lists the rules that may have made a snapshot, the likelier first: no file says which
// version of PyTorch wrote it.
func RulesFor(s *mem.AllocatorSnapshot) []Rules {
	var major, minor int
	if n, _ := fmt.Sscanf(s.Versions, "%d.%d", &major, &minor); n != 2 {
		return []Rules{RulesOf(2, 15), RulesOf(2, 9)}
	}
	if s.Versions == "2.10 to 2.12" {
		return []Rules{RulesOf(2, 11), RulesOf(2, 10)}
	}
	return []Rules{RulesOf(major, minor)}
}
