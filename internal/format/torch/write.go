package torch

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/pytorch"
)

// pickler writes plain data as Python's pickle, protocol 2: what every viewer reads. Frames, stacks
// and short strings are written once and referred to.
type pickler struct {
	w       *bufio.Writer
	memo    uint32
	strings map[string]uint32
	frames  map[uint32]uint32 // location → memo entry
	stacks  map[uint32]uint32 // stack → memo entry
	s       *mem.AllocatorSnapshot
}

func (p *pickler) op(ops ...byte) { _, _ = p.w.Write(ops) } // the buffer keeps the first error

func (p *pickler) little(op byte, v uint32) {
	var b [5]byte
	b[0] = op
	binary.LittleEndian.PutUint32(b[1:], v)
	p.op(b[:]...)
}

// memoize remembers the top of the stack and returns its entry.
func (p *pickler) memoize() uint32 {
	id := p.memo
	p.memo++
	if id < 256 {
		p.op('q', byte(id))
	} else {
		p.little('r', id)
	}
	return id
}

func (p *pickler) get(id uint32) {
	if id < 256 {
		p.op('h', byte(id))
	} else {
		p.little('j', id)
	}
}

func (p *pickler) text(s string) {
	if id, ok := p.strings[s]; ok {
		p.get(id)
		return
	}
	p.string(s)
	p.strings[s] = p.memoize()
}

// string writes a text that is not to be remembered.
func (p *pickler) string(s string) {
	p.little('X', uint32(len(s)))
	_, _ = p.w.WriteString(s)
}

func (p *pickler) int(v int64) {
	switch {
	case v >= 0 && v < 256:
		p.op('K', byte(v))
	case v >= 0 && v < 1<<16:
		p.op('M', byte(v), byte(v>>8))
	case v >= math.MinInt32 && v <= math.MaxInt32:
		p.little('J', uint32(int32(v)))
	default:
		p.long(uint64(v), v < 0)
	}
}

// unsigned writes an address: from 2^63 on it needs a ninth byte.
func (p *pickler) unsigned(v uint64) {
	if v <= math.MaxInt64 {
		p.int(int64(v))
		return
	}
	p.long(v, false)
}

func (p *pickler) long(v uint64, negative bool) {
	b := []byte{0x8a, 8}
	if !negative && v > math.MaxInt64 {
		b[1] = 9
	}
	b = binary.LittleEndian.AppendUint64(b, v)
	if b[1] == 9 {
		b = append(b, 0)
	}
	p.op(b...)
}

func (p *pickler) float(v float64) {
	p.op(binary.BigEndian.AppendUint64([]byte{'G'}, math.Float64bits(v))...)
}

func (p *pickler) bool(v bool) {
	if v {
		p.op(0x88)
	} else {
		p.op(0x89)
	}
}

func (p *pickler) pair(pool mem.PoolID) {
	p.unsigned(pool[0])
	p.unsigned(pool[1])
	p.op(0x86)
}

// dict writes keys and values that body puts.
func (p *pickler) dict(body func()) {
	p.op('}', '(')
	body()
	p.op('u')
}

const pickleBatch = 1000

// list writes n items in batches.
func (p *pickler) list(n int, item func(i int)) {
	p.op(']')
	for i := range n {
		if i%pickleBatch == 0 {
			p.op('(')
		}
		item(i)
		if i%pickleBatch == pickleBatch-1 || i == n-1 {
			p.op('e')
		}
	}
}

func (p *pickler) stack(stack uint32) {
	if id, ok := p.stacks[stack]; ok {
		p.get(id)
		return
	}
	locations := p.s.Stacks.Numbers(stack)
	p.list(len(locations), func(i int) { p.frame(locations[i]) })
	p.stacks[stack] = p.memoize()
}

func (p *pickler) frame(location uint32) {
	if id, ok := p.frames[location]; ok {
		p.get(id)
		return
	}
	l := p.s.Stacks.Locations[location]
	p.dict(func() {
		p.field("filename", l.File)
		p.text("line")
		p.int(int64(l.Line))
		p.field("name", l.Function)
		if node, ok := p.s.FX[location]; ok {
			p.field("fx_node_op", node.Op)
			p.field("fx_node_name", node.Name)
			p.field("fx_node_target", node.Target)
			if node.Trace != "" {
				p.field("fx_original_trace", node.Trace)
			}
		}
	})
	p.frames[location] = p.memoize()
}

func (p *pickler) field(key, value string) {
	p.text(key)
	p.text(value)
}

func (p *pickler) number(key string, value int64) {
	p.text(key)
	p.int(value)
}

// Write writes a snapshot as torch.cuda.memory._dump_snapshot does, for memory_viz and every
// other reader of such files. Of inactive blocks, stale sizes of earlier requests are left out.
func Write(w io.Writer, s *mem.AllocatorSnapshot) error {
	p := &pickler{w: bufio.NewWriterSize(w, 64<<10), strings: map[string]uint32{}, frames: map[uint32]uint32{},
		stacks: map[uint32]uint32{}, s: s}
	p.op(0x80, 2)
	p.dict(func() {
		p.text("segments")
		p.list(len(s.Segments), func(i int) { p.segment(&s.Segments[i]) })
		p.text("device_traces")
		p.traces(s.Traces)
		p.text("allocator_settings")
		p.settings(s.Settings)
		p.text("external_annotations")
		p.list(len(s.Annotations), func(i int) { p.annotation(s.Annotations[i]) })
		if s.Label != mem.Measured && s.Label != "" { // PyTorch has no such key, and no viewer minds
			p.field("hightide_label", string(s.Label))
		}
		if s.Filter != "" {
			p.field("hightide_filter", s.Filter)
		}
		if len(s.HostSegments)+len(s.HostTraces) > 0 {
			p.text("host_segments")
			p.list(len(s.HostSegments), func(i int) { p.segment(&s.HostSegments[i]) })
			p.text("host_traces") // one list of events, as the host is one device
			if len(s.HostTraces) == 1 {
				p.trace(&s.HostTraces[0])
			} else {
				p.list(len(s.HostTraces), func(i int) { p.trace(&s.HostTraces[i]) })
			}
		}
	})
	p.op('.')
	return p.w.Flush()
}

func (p *pickler) segment(g *mem.Segment) {
	var allocated, active, requested mem.Bytes
	for _, b := range g.Blocks {
		switch b.State {
		case mem.BlockAllocated:
			allocated += b.Size
			fallthrough
		case mem.BlockPendingFree:
			active += b.Size
			requested += b.Requested
		}
	}
	kind := "small"
	if g.Large {
		kind = "large"
	}
	p.dict(func() {
		p.number("device", int64(g.Device))
		p.text("address")
		p.unsigned(g.Address)
		p.number("total_size", int64(g.Size))
		p.number("allocated_size", int64(allocated))
		p.number("active_size", int64(active))
		p.number("requested_size", int64(requested))
		p.text("stream")
		p.unsigned(g.Stream)
		p.field("segment_type", kind)
		p.text("segment_pool_id")
		p.pair(g.Pool)
		p.text("is_expandable")
		p.bool(g.Expandable)
		p.text("frames")
		p.stack(g.Stack)
		p.text("blocks")
		p.list(len(g.Blocks), func(i int) { p.block(&g.Blocks[i]) })
	})
}

func (p *pickler) block(b *mem.Block) {
	p.dict(func() {
		p.text("address")
		p.unsigned(b.Address)
		p.number("size", int64(b.Size))
		p.number("requested_size", int64(b.Requested))
		p.field("state", StateNames[b.State])
		p.text("frames")
		p.stack(b.Stack)
		p.forward(b.Forward)
	})
}

// traces writes a list by device, empty lists for those without events.
func (p *pickler) traces(traces []mem.Trace) {
	n := 0
	byDevice := map[int]*mem.Trace{}
	for i := range traces {
		byDevice[traces[i].Device] = &traces[i]
		n = max(n, traces[i].Device+1)
	}
	p.list(n, func(i int) {
		if t := byDevice[i]; t != nil {
			p.trace(t)
		} else {
			p.op(']')
		}
	})
}

func (p *pickler) trace(t *mem.Trace) {
	since := func(v mem.Version) bool { return !p.s.Versions.First.Before(v) }
	pools, metadata, context := since(pytorch.Pools), since(pytorch.Metadata), since(pytorch.Context)
	p.list(t.Len(), func(i int) {
		p.dict(func() {
			p.field("action", mem.ActionNames[t.Action[i]])
			switch {
			case t.Action[i] != mem.ActionOOM:
				p.text("addr")
				p.unsigned(t.Address[i])
			case t.Address[i] != mem.FreeUnknown:
				p.text("device_free")
				p.unsigned(t.Address[i])
			}
			p.number("size", int64(t.Size[i]))
			p.text("stream")
			p.unsigned(mem.At(t.Stream, i))
			if t.Time != nil {
				p.number("time_us", t.Time[i]/1000)
			}
			if t.Stack[i] != 0 {
				p.text("frames")
				p.stack(t.Stack[i])
			}
			if pools || t.Pool != nil {
				p.text("pool_id")
				p.pair(mem.At(t.Pool, i))
			}
			if context || t.Context != nil {
				none := "N/A"
				if t.Device < 0 { // the host's events have none
					none = ""
				}
				p.field("compile_context", cmp.Or(p.s.Text(mem.At(t.Context, i)), none))
			}
			if metadata || t.Metadata != nil {
				p.field("user_metadata", p.s.Text(mem.At(t.Metadata, i)))
			}
			p.optional("category", mem.At(t.Category, i))
			p.optional("internal_metadata", mem.At(t.Internal, i))
			p.forward(mem.At(t.Forward, i))
		})
	})
}

func (p *pickler) optional(key string, number uint32) {
	if value := p.s.Text(number); value != "" {
		p.field(key, value)
	}
}

// forward writes the stack of the forward call as Python prints it: outermost first.
func (p *pickler) forward(stack uint32) {
	if stack == 0 {
		return
	}
	p.text("forward_frames")
	frames := p.s.Stacks.Frames(stack)
	slices.Reverse(frames)
	p.list(len(frames), func(i int) {
		l := frames[i]
		if l.Line == 0 {
			p.text(l.Function)
			return
		}
		p.text("  File \"" + l.File + "\", line " + strconv.Itoa(l.Line) + ", in " + l.Function + "\n")
	})
}

func (p *pickler) annotation(a mem.Annotation) {
	stage := "START"
	if a.End {
		stage = "END"
	}
	p.dict(func() {
		p.field("name", a.Name)
		p.field("stage", stage)
		p.number("device", int64(a.Device))
		p.number("time_us", a.Time/1000)
	})
}

// settings gives each setting the type that torch writes it in.
func (p *pickler) settings(settings map[string]string) {
	p.dict(func() {
		for _, key := range slices.Sorted(maps.Keys(settings)) {
			p.text(key)
			if value := settings[key]; key == "roundup_power2_divisions" {
				p.divisions(value)
			} else if strings.HasSuffix(key, "_CONF") {
				p.text(value)
			} else {
				p.scalar(value)
			}
		}
	})
}

func (p *pickler) divisions(value string) {
	p.dict(func() {
		for pair := range strings.SplitSeq(value, ",") {
			if key, number, ok := strings.Cut(pair, ":"); ok {
				p.text(key)
				p.scalar(number)
			}
		}
	})
}

func (p *pickler) scalar(value string) {
	if i, err := strconv.ParseInt(value, 10, 64); err == nil {
		p.int(i)
	} else if f, err := strconv.ParseFloat(value, 64); err == nil {
		p.float(f)
	} else if value == "true" || value == "false" {
		p.bool(value == "true")
	} else {
		p.text(value)
	}
}

// StateNames are the states of blocks, as PyTorch calls them.
var StateNames = map[mem.BlockState]string{mem.BlockInactive: "inactive", mem.BlockAllocated: "active_allocated",
	mem.BlockPendingFree: "active_pending_free"}
