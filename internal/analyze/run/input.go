package run

import (
	"hightide/internal/analyze/facts"
	"hightide/internal/analyze/growth"
	"hightide/internal/analyze/trace"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// Input is what analyses are handed: the facts of a run, and what several of them tell of. Each value is made of those
// above it, and nothing changes once it is made.
type Input struct {
	*facts.Facts
	taken    taken         // by snapshots of allocators
	profiled profiled      // by frameworks
	grown    *growth.Found // what grows
	ending   []deadline    // supplies that come to their end
	first    *deadline     // what the program runs out of first; nil: of nothing that was seen to grow
	scored   scored        // the efficiency
}

// heldIn is what held a device in snapshots that agree.
type heldIn struct {
	table report.Table
	files []string
}

// taken is what the allocator snapshots that travel in a recording tell.
type taken struct {
	held   []heldIn                   // who held a device's memory then
	pinned []*report.Finding          // blocks that keep segments
	failed map[uint32]*trace.Shortage // by process: the last request that failed, as an allocator recorded it
}

// profiled is what a framework's own profiles of its devices tell.
type profiled struct {
	tables []report.Table
	alive  map[uint32]string // by process: what its last one says of who held most
}

// supply is something of which there is only so much, and what is used of it.
type supply struct {
	name    string // "open files"
	process uint32 // whose it is; 0: the run, or the machine
	use     *mem.Series
	used    int64 // of the limit, at the end: others may use it, too
	limit   mem.Optional
	whose   string  // if of no process: "the run's processes together"
	counted string  // of whom used is, where that is not who use is of: "on the machine"
	source  string  // of the limit: "that the process may have (`ulimit -n`)"
	others  bool    // besides use, others count to the limit that are not seen
	least   float64 // of a growth that is told
	ended   string  // what an exception says where there is none left
	advice  string
	silent  bool // its growth alone is no finding: only that it comes to the limit
}

// deadline is when a supply is used up, if it goes on as it did.
type deadline struct {
	supply
	slope, half float64 // per step, or minute
	minutes     bool
	left        float64 // steps or minutes; +Inf: not known
	time        float64 // the same in ns
	gone        bool    // there was none left at the end
	memory      bool    // it is memory, of which growth tells
}

// scored is a score from 0 to 10 of how well a run uses the memory that it needs to have. It is the mean of those
// of four parts that are known, each from 0 to 1. It compares runs of one program; docs/observed.md has the formula.
type scored struct {
	milli mem.Optional // thousandths; absent: nothing is known to score
	parts report.Table
}
