package explore

import (
	"strconv"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Event is one event of the trace, for people.
type Event struct {
	Number  int       `json:"number" doc:"The number of the event in the trace, from 0."`
	Action  string    `json:"action" doc:"What the allocator did, as PyTorch names it: alloc, free_requested, segment_alloc and others."`
	Address string    `json:"address,omitempty" doc:"Where, in hexadecimal."`
	Size    mem.Bytes `json:"size" doc:"How much, in bytes."`
	Time    int64     `json:"time_ns,omitempty" doc:"When, in ns since the first event."`
	Stream  string    `json:"stream,omitempty" doc:"The stream that it is of."`
	Block   int       `json:"block" doc:"The number of the block that it allocates or frees; -1: none."`
}

func (e *Explorer) eventOf(i int) *Event {
	t := e.Trace
	v := &Event{Number: i, Action: mem.ActionNames[t.Action[i]], Size: t.Size[i], Stream: streamName(mem.At(t.Stream, i)),
		Block: int(e.spanOf[i]), Time: e.since(i)}
	if t.Action[i] != mem.ActionOOM {
		v.Address = address(t.Address[i])
	}
	return v
}

// since is when an event was, in ns after the first; 0 where the file has no times.
func (e *Explorer) since(event int) int64 { return e.TimeOf(event) - e.TimeOf(0) }

func address(a uint64) string { return "0x" + strconv.FormatUint(a, 16) }

func streamName(stream uint64) string { return laneName(usage.Lane{Stream: stream}) }

// Block is what is known of one block.
type Block struct {
	N         int       `json:"n" doc:"The number of the block in the trace."`
	Address   string    `json:"address" doc:"Where it begins, in hexadecimal."`
	Size      mem.Bytes `json:"size" doc:"What the allocator gave, in bytes."`
	Requested mem.Bytes `json:"requested" doc:"What the program asked for, in bytes."`
	Class     string    `json:"class" doc:"Which of the allocator's pools serves such a request."`
	Stream    string    `json:"stream" doc:"The stream that it belongs to."`
	Category  string    `json:"category" doc:"What it is for."`
	Owner     string    `json:"owner,omitempty" doc:"Its name, as the program gave it."`
	Module    string    `json:"module" doc:"The module of the model that allocated it."`
	Site      uint32    `json:"site" doc:"The number of the line that allocated it, among the sites of the labels."`
	Place     SiteLabel `json:"place" doc:"The line that allocated it."`

	Begin     int   `json:"begin" doc:"The point from which on it was allocated; 0: before the trace. A point is a number of events."`
	End       int   `json:"end" doc:"The point from which on it was not; -1: it outlives the trace."`
	Gone      int   `json:"gone" doc:"The point from which on its memory could be used again; -1: it outlives the trace."`
	BeginTime int64 `json:"begin_ns,omitempty" doc:"When it was allocated, in ns since the first event."`
	EndTime   int64 `json:"end_ns,omitempty" doc:"When it was freed, in ns since the first event."`

	Offset   mem.Bytes       `json:"offset" doc:"Where it lies in the stack of blocks at the point asked about, in bytes."`
	Stack    []BlockFrame    `json:"stack" doc:"The calls that allocated it, innermost first."`
	Freed    []BlockFrame    `json:"freed" doc:"The calls that freed it, innermost first, where they differ from those that allocated it."`
	FreedBy  string          `json:"freed_by,omitempty" enum:"same,other" doc:"The stack that freed it: the same that allocated it, or another; absent: not recorded, or not freed."`
	Forward  []BlockFrame    `json:"forward" doc:"The calls of the forward pass that a block of the backward pass belongs to, innermost first."`
	Texts    []string        `json:"texts" doc:"What the program attached to it."`
	Siblings SiblingsOfBlock `json:"siblings" doc:"The blocks of the same stack."`
}

// BlockFrame is a frame of a stack.
type BlockFrame struct {
	mem.Location
	Place uint32 `json:"place" doc:"The number of the place, by which its source is asked for."`
	User  bool   `json:"user,omitempty" doc:"Whether it is the program's own, not an installed package's."`
}

// SiblingsOfBlock are the blocks of the same site.
type SiblingsOfBlock struct {
	Blocks   int       `json:"blocks" doc:"How many blocks of the whole trace have the same stack."`
	Bytes    mem.Bytes `json:"bytes" doc:"The sum of their sizes in bytes."`
	Lasting  int       `json:"lasting" doc:"How many of them outlive the trace."`
	Together mem.Bytes `json:"together" doc:"The bytes of those that lived at the point asked about."`
}

// Has says whether there is a block of that number.
func (e *Explorer) Has(n int) bool { return n >= 0 && n < e.Len() }

// MadeBy is the block that an event allocated; -1: it allocated none.
func (e *Explorer) MadeBy(event int) int {
	if event < 0 || event >= e.Moments {
		return noBlock
	}
	if n := int(e.spanOf[event]); n >= 0 && int(e.From[n]) == event {
		return n
	}
	return noBlock
}

// Find is the block that lies at an offset of the stack at a point; false: nothing does.
func (e *Explorer) Find(point int, offset mem.Bytes) (found int, ok bool) {
	e.eachAt(point, func(n int) bool {
		if !e.allocated(n, point) {
			return true
		}
		if offset -= e.Bytes[n]; offset < 0 {
			found, ok = n, true
		}
		return !ok
	})
	return found, ok
}

// BlockAt tells of a block, which there is, as at a point of its life; another point is moved to where its life begins.
func (e *Explorer) BlockAt(n, point int) Block {
	if !e.allocated(n, point) {
		point = int(e.From[n]) + 1
	}
	b := Block{N: n, Address: address(e.AddressOf(n)), Size: e.Bytes[n], Requested: e.RequestedOf(n),
		Class:  classOf(e.RequestedOf(n)),
		Stream: laneName(e.Lanes[e.Block.Lane[n]]), Begin: int(e.From[n]) + 1, End: e.pointOf(e.To[n]),
		Gone:  e.pointOf(e.Block.Gone[n]),
		Freed: []BlockFrame{}, Forward: []BlockFrame{}, Texts: []string{}}
	e.naming.Lock()
	defer e.naming.Unlock()
	stack := e.Stack[n]
	b.Site, b.Category, b.Owner, b.Module = e.siteOf(stack), e.categories.Of(n), e.ownerOf(n), e.Names.Of(stack).Module
	b.Place = e.labels.Sites[b.Site]
	b.Stack = e.frames(stack)
	if from := int(e.From[n]); from >= 0 {
		b.BeginTime = e.since(from)
		b.Forward = e.frames(mem.At(e.Trace.Forward, from))
		b.Texts = e.textsOf(from)
	}
	if b.End > 0 {
		b.EndTime = e.since(b.End - 1)
		switch freed := e.Trace.Stack[b.End-1]; freed {
		case 0:
		case stack:
			b.FreedBy = "same"
		default:
			b.Freed, b.FreedBy = e.frames(freed), "other"
		}
	}
	e.stackAt(&b, n, point)
	return b
}

// pointOf is the point after an event, -1 where there is none.
func (e *Explorer) pointOf(event int32) int {
	if int(event) >= e.Moments {
		return -1
	}
	return int(event) + 1
}

// stackAt finds what lies below a block, and how its siblings fare.
func (e *Explorer) stackAt(b *Block, n, point int) {
	e.eachAt(point, func(k int) bool {
		if k < n && e.allocated(k, point) {
			b.Offset += e.Bytes[k]
		}
		return k < n
	})
	same := map[uint32]bool{}
	for k, stack := range e.Stack {
		is, seen := same[stack]
		if !seen {
			is = e.siteOf(stack) == b.Site
			same[stack] = is
		}
		if !is {
			continue
		}
		b.Siblings.Blocks++
		b.Siblings.Bytes += e.Bytes[k]
		if int(e.To[k]) >= e.Moments {
			b.Siblings.Lasting++
		}
		if e.allocated(k, point) {
			b.Siblings.Together += e.Bytes[k]
		}
	}
}

// ownerOf is what the program called a block; "": nothing.
func (e *Explorer) ownerOf(n int) string {
	if e.Owner(n) == "" {
		return ""
	}
	for _, o := range e.Snapshot.Owners {
		if o.Device == e.Number && o.Address == e.AddressOf(n) && e.Covers(n, o.Seen) {
			return o.Name
		}
	}
	return ""
}

// textColumns number the texts that the program attached, by event.
func (e *Explorer) textColumns() [3][]uint32 {
	return [3][]uint32{e.Trace.Metadata, e.Trace.Context, e.Trace.Internal}
}

func (e *Explorer) textsOf(event int) []string {
	texts := []string{}
	for _, column := range e.textColumns() {
		if text := e.Snapshot.Text(mem.At(column, event)); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

const mostFrames = 200

func (e *Explorer) frames(stack uint32) []BlockFrame {
	all := []BlockFrame{}
	for _, l := range e.Names.Pictured(stack) {
		if len(all) == mostFrames {
			break
		}
		all = append(all, BlockFrame{l, e.Stacks.Location(l), !l.Native && e.Names.Kind(l.File) == usage.UserFile})
	}
	return all
}

// classOf is how PyTorch's caching allocator serves a request, in its own terms. Source: kSmallSize, kMinLargeAlloc
// in c10's allocator.
func classOf(requested mem.Bytes) string {
	switch {
	case requested <= mem.MiB:
		return "small: at most 1 MiB, shares 2 MiB segments"
	case requested < 10*mem.MiB:
		return "large: below 10 MiB, shares 20 MiB segments"
	}
	return "large: 10 MiB or more, a segment of its own size"
}
