package explore

import (
	"strconv"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Event is one event of the trace, for people.
type Event struct {
	Number  int       `json:"number"`
	Action  string    `json:"action"`
	Address string    `json:"address,omitempty"`
	Size    mem.Bytes `json:"size"`
	Time    int64     `json:"time_ns,omitempty"` // since the first event
	Stream  string    `json:"stream,omitempty"`
	Block   int       `json:"block"` // that it allocates or frees; -1: none
}

func (e *Explorer) eventOf(i int) *Event {
	t := e.Trace
	v := &Event{Number: i, Action: mem.ActionNames[t.Action[i]], Size: t.Size[i], Stream: streamName(t.Stream[i]), Block: int(e.spanOf[i]), Time: e.since(i)}
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
	N         int       `json:"n"`
	Address   string    `json:"address"`
	Size      mem.Bytes `json:"size"`
	Requested mem.Bytes `json:"requested"`
	Class     string    `json:"class"` // which of the allocator's pools serves such a request
	Stream    string    `json:"stream"`
	Category  string    `json:"category"`
	Owner     string    `json:"owner,omitempty"` // as the program named it
	Module    string    `json:"module"`
	Site      uint32    `json:"site"`
	Place     SiteLabel `json:"place"`

	Begin     int   `json:"begin"`              // point from which on it was allocated; 0: before the trace
	End       int   `json:"end"`                // point from which on it was not; -1: it outlives the trace
	Gone      int   `json:"gone"`               // point from which on its memory could be used again; -1 likewise
	BeginTime int64 `json:"begin_ns,omitempty"` // since the first event
	EndTime   int64 `json:"end_ns,omitempty"`

	Offset   mem.Bytes       `json:"offset"`                               // in the stack at the point asked about
	Stack    []BlockFrame    `json:"stack"`                                // innermost first
	Freed    []BlockFrame    `json:"freed"`                                // of the free, where it differs
	FreedBy  string          `json:"freed_by,omitempty" enum:"same,other"` // the stack that allocated it, or Freed; absent: not recorded, or not freed
	Forward  []BlockFrame    `json:"forward"`
	Texts    []string        `json:"texts"` // what the program attached
	Siblings SiblingsOfBlock `json:"siblings"`
}

// BlockFrame is a frame of a stack.
type BlockFrame struct {
	mem.Location
	Place uint32 `json:"place"` // its number, by which its source is asked for
	User  bool   `json:"user,omitempty"`
}

// SiblingsOfBlock are the blocks of the same site.
type SiblingsOfBlock struct {
	Blocks   int       `json:"blocks"` // in the whole trace
	Bytes    mem.Bytes `json:"bytes"`
	Lasting  int       `json:"lasting"`  // that outlive it
	Together mem.Bytes `json:"together"` // that lived at the point asked about
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
	b := Block{N: n, Address: address(e.Block.Address[n]), Size: e.Bytes[n], Requested: e.Block.Requested[n], Class: classOf(e.Block.Requested[n]),
		Stream: laneName(e.Lanes[e.Block.Lane[n]]), Begin: int(e.From[n]) + 1, End: e.pointOf(e.To[n]), Gone: e.pointOf(e.Block.Gone[n]),
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
		if o.Device == e.Number && o.Address == e.Block.Address[n] && e.Covers(n, o.Seen) {
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

// classOf is how PyTorch's caching allocator serves a request, in its own terms. Source: kSmallSize, kMinLargeAlloc in c10's allocator.
func classOf(requested mem.Bytes) string {
	switch {
	case requested <= mem.MiB:
		return "small: at most 1 MiB, shares 2 MiB segments"
	case requested < 10*mem.MiB:
		return "large: below 10 MiB, shares 20 MiB segments"
	}
	return "large: 10 MiB or more, a segment of its own size"
}
