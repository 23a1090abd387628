package growth

import (
	"fmt"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/words"
)

// What to store in place of what a container keeps follows from what an item is: its arrays, how many elements they
// have, whether their graph holds anything, and how much memory they keep beside their own. Nothing is advised that
// would save nothing.

// itemAdvice is for a growth whose container is known.
func (in *Found) itemAdvice(g *growing, at mem.Location) string {
	item := in.itemName(g.holder, at)
	switch {
	case g.graph:
		return in.withoutGraph(g, at, item)
	case len(viewsOf(g.holder)) > 0 && len(g.beside) == 0:
		return withoutBase(g, at, item)
	}
	if advice := toRelease[g.holder.Contains]; advice != "" && len(g.beside) == 0 {
		return fmt.Sprintf(advice, g.holderNames()) + " " + g.saves(1)
	}
	if g.holder.Traceback && len(g.beside) == 0 && at.File != "" {
		return withoutTraceback(g, at)
	}
	where := ""
	if at.File != "" {
		where = " at " + g.holderLines(at)
	}
	bound := fmt.Sprintf("Bound %s: drop what is no longer needed%s, or store less per item%s. ",
		g.holderNames(), dropping(g.holder), where)
	return mayFill(g.holder) + bound + emptyGraph(g.holder) + g.saves(1)
}

// toRelease is what frees items that hold more than Python's memory, by their type, with %s for the container: dropping
// them is not enough.
var toRelease = map[string]string{
	"SharedMemory": "Call close() and, in one process, unlink() of what %s no longer needs, and drop it from there: without " +
		"unlink() the block stays in /dev/shm.",
	"LogRecord": "Have a MemoryHandler flush: give it a target, and a capacity that is reached. Where %s is a list of your " +
		"own, drop records from there.",
	// of an event loop
	"TimerHandle": "Cancel the timers that are no longer needed, with cancel() of what loop.call_later() returned, or have " +
		"them due sooner: until then %s keeps each with its callback and what that was given.",
}

// withoutTraceback keeps what is needed of exceptions, without the variables that their tracebacks keep.
func withoutTraceback(g *growing, at mem.Location) string {
	return fmt.Sprintf("Keep no exceptions: a traceback keeps the local variables of each function that it leads through. "+
		"At %s store what is needed of them, as their class and their text. %s Where the exceptions themselves are needed, "+
		"`.with_traceback(None)` lets those variables go.", mem.LineName(at), g.saves(1))
}

// dropping says how the oldest of a container's items are dropped.
func dropping(h *mem.Holder) string {
	switch {
	case h.Renewed:
		return ""
	case h.Kind == "list", h.Kind == "deque":
		return ", as with collections.deque(maxlen=…)"
	case h.Kind == "dict", h.Kind == "OrderedDict", h.Kind == "defaultdict":
		return ", as its oldest key with `del d[next(iter(d))]`"
	}
	return ""
}

// saves promises a share of a growth.
func (g *growing) saves(share float64) string {
	part := *g
	part.slope, part.kept = g.slope*share, g.kept*share
	return fmt.Sprintf("That saves %s, %v over this run.", part.rate(), bytesPer(part.kept))
}

// withoutGraph keeps the values of what has a graph: the number of one element, the tensor of more.
func (in *Found) withoutGraph(g *growing, at mem.Location, item string) string {
	write, stays, all := ungraphed(g.holder, item)
	advice := toStore(write, at)
	if len(write) == 0 {
		return advice + g.saves(1)
	}
	saved, known := g.holder.Saved.Get()
	if !known || stays == 0 {
		return advice + g.saves(1)
	}
	advice += g.saves(float64(saved+all-stays) / float64(saved+all))
	return advice + fmt.Sprintf(" The tensors themselves stay, %v an item.", mem.Bytes(stays))
}

// toStore says what to write in place of what has a graph.
func toStore(write []string, at mem.Location) string {
	if len(write) == 0 {
		return fmt.Sprintf("Keep no graph: at %s store `.item()` of what is one number, and `.detach()` of other tensors. ",
			mem.LineName(at))
	}
	return fmt.Sprintf("Keep the values, not the graph: at %s store %s. ", mem.LineName(at), strings.Join(write, " and "))
}

// ungraphed are expressions of the parts of an item without their graphs, with the bytes that stay so, and all.
func ungraphed(h *mem.Holder, item string) (write []string, stays, all int64) {
	for _, p := range h.Parts {
		all += p.Storage
		switch {
		case p.GradFn == "":
			stays += p.Storage
		case p.Elements == 1:
			write = append(write, "`"+item+p.At+".item()`")
		default:
			write = append(write, "`"+item+p.At+".detach()`")
			stays += p.Storage
		}
	}
	return write, stays, all
}

// withoutBase copies views, so that what they are views of is freed.
func withoutBase(g *growing, at mem.Location, item string) string {
	var write []string
	var seen, kept, all int64
	for _, p := range g.holder.Parts {
		all += p.Storage
	}
	for _, p := range viewsOf(g.holder) {
		how := ".copy()"
		if strings.Contains(p.Type, "Tensor") {
			how = ".clone()"
			if p.GradFn != "" {
				how = ".detach().clone()"
			}
		}
		write = append(write, "`"+item+p.At+how+"`")
		seen, kept = seen+p.Bytes, kept+p.Storage
	}
	advice := fmt.Sprintf("What is stored is a view, and keeps the whole that it is a part of: %v of %v an item. At %s "+
		"store %s",
		mem.Bytes(seen), mem.Bytes(kept), mem.LineName(at), strings.Join(write, " and "))
	if g.source != "device" && seen < mmapThreshold && kept >= mmapThreshold {
		advice += ", and set MALLOC_MMAP_THRESHOLD_=131072 in the environment: else small copies between large blocks may " +
			"keep malloc from giving these back"
	}
	return advice + ". " + g.saves(float64(kept-seen)/float64(all))
}

// mmapThreshold is from what size on, in bytes, malloc gives a block a mapping of its own, before it has freed one
// that was larger. Source: DEFAULT_MMAP_THRESHOLD_MIN in glibc's malloc.c.
const mmapThreshold = 128 << 10

// viewsOf are the parts of an item that keep at least twice the memory of their own elements.
func viewsOf(h *mem.Holder) (views []mem.HeldPart) {
	for _, p := range h.Parts {
		if p.Bytes > 0 && p.Storage >= 2*p.Bytes && p.Storage >= int64(64*mem.KiB) {
			views = append(views, p)
		}
	}
	return views
}

// emptyGraph says that `.detach()` would save nothing, where somebody would try it.
func emptyGraph(h *mem.Holder) string {
	if saved, known := h.Saved.Get(); h.Graph && known && saved == 0 {
		return "Its graph holds nothing any more, so `.detach()` would save nothing. "
	}
	return ""
}

// stored matches a statement that puts one variable or attribute into a container.
var stored = words.Lazy(`^[A-Za-z_][\w.\[\]'"]*(?:\.(?:append|add|appendleft|put|put_nowait)\(([A-Za-z_][\w.]*(?:\[[^\]]*\])?)\)|\s*=\s*([A-Za-z_][\w.]*))$`)

// itemName is what the program calls what it stores, or "item".
func (in *Found) itemName(h *mem.Holder, at mem.Location) string {
	if len(h.Others) == 0 {
		if m := stored.FindStringSubmatch(in.Source(at)); m != nil {
			return m[1] + m[2]
		}
	}
	return "item"
}
