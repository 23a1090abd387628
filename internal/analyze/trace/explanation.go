package trace

import (
	"hightide/internal/analyze/graph"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// explanation is an Allocator in the making.
type explanation struct {
	*report.Allocator
	tree     *graph.Tree      // the flame graph's
	nodes    map[uint32]int64 // see mapNode
	among    string           // the range of events that the peak was looked for in, in words
	began    mem.Bytes        // in use when the trace began
	most     bulk             // what holds most
	kind     bool             // that is blocks of one kind, from several lines
	failed   []group          // what was held when memory ran out, largest first
	bare     bool             // its file knows nothing of segments
	unlooked string           // that growth was not looked for, and why; "": it was
	counts   string           // what of the device's memory the file tells of, in words; "": all
	looked   string           // what growth would have been told; "": it was not looked for
	pinned   *report.Finding  // what rounding may take of pinned host memory; nil: nothing to tell
	larger   []string         // notes on lines whose blocks are replaced by larger ones
	noStacks bool             // no allocation has frames
	rounds   bool             // blocks are rounded as the settings say that were in force when the file was written
	filtered bool             // its file holds only some blocks, as export left them

	before usage.FromBefore // of no bytes where --filter leaves that out
}

// noHistory is what blocks are called of a file that was written without a memory history.
const noHistory = "not recorded"

func tracePeak(d *usage.Device, event usage.Moment, l usage.Levels) report.TracePeak {
	return report.TracePeak{Event: event, Time: d.TimeOf(event), Allocated: l.Allocated, Active: l.Active,
		Reserved: d.ReservedAt(event, l), Requested: ofRequests(d, l.Requested)}
}

// ofRequests is a figure that only a file can give which knows what was asked for.
func ofRequests(d *usage.Device, n mem.Bytes) mem.Optional {
	if d.Snapshot.Bare || d.Snapshot.NoRequests {
		return mem.Optional{}
	}
	return mem.Some(int64(n))
}
