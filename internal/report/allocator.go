package report

import (
	"fmt"
	"path"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Allocator is what one device's caching allocator held at one moment.
type Allocator struct {
	Device         int          `json:"device" doc:"The number of the device in the file."`
	File           string       `json:"file" doc:"The file."`
	Name           string       `json:"name" doc:"What the device is called: device 0, or what it is where it is not a GPU."`
	Title          string       `json:"title" doc:"The same, with its file where there are several."`
	Events         int          `json:"events" doc:"How many events the trace of the device has."`
	First          int          `json:"first_event" doc:"The number of the first event explained."`
	Last           int          `json:"last_event" doc:"The number of the last event explained."`
	Stacks         int          `json:"stacks" doc:"How many distinct stacks the file has."`
	Peak           TracePeak    `json:"peak" doc:"The moment at which most was allocated."`
	At             TracePeak    `json:"at" doc:"The moment explained."`
	Highest        Levels       `json:"highest" doc:"The highest of each figure, each at its own moment."`
	By             string       `json:"by" doc:"What blame is grouped by."`
	Blame          []Blame      `json:"blame" nullable:"true" doc:"Who holds the memory at the moment explained, largest first; null: left out, as a page shows none."`
	Segments       mem.Optional `json:"segments,omitzero" doc:"How many segments there are at the end; absent where the file knows blocks alone."`
	InactiveSplit  mem.Optional `json:"inactive_split_bytes,omitzero" doc:"Bytes cached at the end in segments that are in use elsewhere; absent where the file knows blocks alone."`
	Rounding       mem.Optional `json:"rounding_bytes,omitzero" doc:"At the moment explained: bytes allocated less bytes requested; absent where the file knows blocks alone."`
	Unplaced       int          `json:"unplaced_events" doc:"How many allocations count with their rounded size, as the place of their block is not known."`
	Strange        int          `json:"inconsistent_events" doc:"How many events contradict those before them."`
	Pins           []Pin        `json:"pins,omitzero" doc:"Blocks that keep mostly empty segments at the moment explained, most first; absent where the file knows blocks alone."`
	Map            []SegmentMap `json:"segment_map,omitzero" doc:"The segments at the moment explained, by address; absent where the file knows blocks alone."`
	OOM            *TraceOOM    `json:"oom,omitempty" doc:"The last request that found no memory; absent: there is none."`
	OOMEvent       *int         `json:"oom_event,omitempty" doc:"The number of its event."`
	Filter         string       `json:"filter,omitempty" doc:"The expression that blocks of the moment explained were to match."`
	Matching       mem.Bytes    `json:"matching_bytes,omitempty" doc:"Bytes of the blocks that match it."`
	MatchingBlocks int          `json:"matching_blocks,omitempty" doc:"How many blocks match it."`

	Accuracy *Accuracy         `json:"category_accuracy,omitempty" doc:"How well stacks tell categories, where the program told the owners of blocks."`
	Curve    []CurvePoint      `json:"curve" nullable:"true" doc:"The course over the trace, thinned; null: left out, as a page shows none."`
	Label    mem.Label         `json:"label" doc:"Where the figures come from."`
	Settings map[string]string `json:"settings,omitempty" doc:"The settings of the allocator as the file has them, by their names."`

	Fragmentation *Fragmentation `json:"fragmentation,omitempty" doc:"What the segments are made of at the moment explained."`
	MapCategories []string       `json:"map_categories,omitempty" doc:"Names of the categories that blocks of the map have by number."`
	Turnover      []Turnover     `json:"turnover" nullable:"true" doc:"What was allocated and freed again by site, most first; null: left out, as a page shows none."`
	Longest       []LongLife     `json:"longest_lives" nullable:"true" doc:"Blocks that lived longest for their size; null: left out, as a page shows none."`
	Steps         *usage.Steps   `json:"steps,omitempty" doc:"The steps and phases of the trace; absent: none are seen."`
	Growth        []TraceGrowth  `json:"growth" nullable:"true" doc:"Sites that grow, largest first; null: left out, as a page shows none."`
	Timeline      *TraceTimeline `json:"timeline,omitempty" doc:"What was held over the trace by category and by site."`
}

// TracePeak is the levels just after an event; -1: before the first.
type TracePeak struct {
	Event     int          `json:"event" doc:"The number of the event after which it is; -1: before the first."`
	Time      int64        `json:"time_ns,omitempty" doc:"When, in ns since 1970; absent where the file has no times."`
	Allocated mem.Bytes    `json:"allocated_bytes" doc:"Bytes allocated."`
	Active    mem.Bytes    `json:"active_bytes" doc:"The same with blocks that wait for another stream, in bytes."`
	Reserved  mem.Optional `json:"reserved_bytes,omitzero" doc:"Bytes reserved; absent where a profiler did not note it."`
	Requested mem.Optional `json:"requested_bytes,omitzero" doc:"Bytes that the program asked for; absent where the file knows blocks alone."`
}

// Levels are highest values over a trace.
type Levels struct {
	Allocated mem.Bytes    `json:"allocated_bytes" doc:"Bytes allocated."`
	Active    mem.Bytes    `json:"active_bytes" doc:"The same with blocks that wait for another stream, in bytes."`
	Reserved  mem.Optional `json:"reserved_bytes,omitzero" doc:"Bytes reserved; absent where the file does not tell."`
	Requested mem.Optional `json:"requested_bytes,omitzero" doc:"Bytes that the program asked for; absent where the file knows blocks alone."`
}

// Blame is a group of blocks; its frames are those of the stack that holds most of it.
type Blame struct {
	Name     string         `json:"name" doc:"The group: a line, a module, a category or what else was asked for."`
	Bytes    mem.Bytes      `json:"bytes" doc:"What its blocks hold, in bytes."`
	Blocks   int            `json:"blocks" doc:"How many blocks it has."`
	Category string         `json:"category" doc:"What its largest block is for."`
	Frames   []mem.Location `json:"frames" nullable:"true" doc:"The stack of its largest block, innermost first; null: not recorded."`
}

// CurvePoint is the highest of a stretch of events.
type CurvePoint struct {
	Event     int          `json:"event" doc:"The number of the event."`
	Time      int64        `json:"time_ns,omitempty" doc:"When, in ns since 1970; absent where the file has no times."`
	Allocated mem.Bytes    `json:"allocated_bytes" doc:"Bytes allocated."`
	Reserved  mem.Optional `json:"reserved_bytes,omitzero" doc:"Bytes reserved; absent where the file does not tell."`

	Releasable mem.Optional `json:"releasable_bytes,omitzero" doc:"The most that empty_cache would have given back near it, in bytes."`
}

// Subject is what names this device in tables and flame graphs.
func (a *Allocator) Subject() Subject {
	return Subject{File: a.File, Number: mem.Some(int64(a.Device)), Of: a.InFile()}
}

// InFile is the name with the file, however many there are.
func (a *Allocator) InFile() string { return fmt.Sprintf("%s of %s", a.Name, path.Base(a.File)) }

// Fragmentation is where reserved memory goes at the moment explained:
//
//	reserved = requested + rounding + waiting + releasable + pooled + stuck
type Fragmentation struct {
	Reserved      mem.Bytes       `json:"reserved_bytes" doc:"Bytes of all segments: the sum of requested, rounding, waiting, releasable, pooled and stuck."`
	Requested     mem.Optional    `json:"requested_bytes,omitzero" doc:"Bytes that the program asked for, of blocks in use; absent where the file tells only the blocks' own sizes."`
	Rounding      mem.Optional    `json:"rounding_bytes,omitzero" doc:"Bytes that rounding adds to them; absent where what was asked for is."`
	Waiting       mem.Bytes       `json:"waiting_bytes" doc:"Bytes that are freed and that another stream still uses."`
	Releasable    mem.Bytes       `json:"releasable_bytes" doc:"Bytes that empty_cache would give back."`
	Pooled        mem.Bytes       `json:"pooled_bytes" doc:"Bytes cached in private pools, which keep them while they live."`
	Stuck         mem.Bytes       `json:"stuck_bytes" doc:"Bytes cached beside blocks in use."`
	InactiveSplit mem.Bytes       `json:"inactive_split_bytes" doc:"Bytes cached in segments that are in use elsewhere."`
	Segments      int             `json:"segments" doc:"How many segments there are."`
	Classes       []SizeClass     `json:"inactive_split_classes" doc:"What is cached beside blocks in use, by the size of the pieces."`
	ByRounding    []RoundingWaste `json:"rounding_by_site" doc:"What rounding adds, by site, most first."`
	EmptyCache    EmptyCache      `json:"empty_cache" doc:"When empty_cache would have given back most."`
}

// SizeClass counts cached pieces beside blocks in use from one power of two to the next.
type SizeClass struct {
	From   mem.Bytes `json:"from_bytes" doc:"The least size of a piece of this class, in bytes."`
	Bytes  mem.Bytes `json:"bytes" doc:"The sum of its pieces in bytes."`
	Pieces int       `json:"pieces" doc:"How many pieces there are."`
}

// RoundingWaste is what rounding costs the blocks of one line.
type RoundingWaste struct {
	Name   string    `json:"name" doc:"The site."`
	Waste  mem.Bytes `json:"waste_bytes" doc:"Bytes that rounding adds to its blocks."`
	Blocks int       `json:"blocks" doc:"How many blocks there are."`
}

// EmptyCache is the moment at which torch.cuda.empty_cache would have given back most.
type EmptyCache struct {
	Event int       `json:"event" doc:"The number of the event after which it would have given back most."`
	Time  int64     `json:"time_ns,omitempty" doc:"When that was, in ns since 1970; absent where the file has no times."`
	Most  mem.Bytes `json:"most_bytes" doc:"What it would have given back then, in bytes."`
	End   mem.Bytes `json:"end_bytes" doc:"What it would give back at the end, in bytes."`
}

// SegmentMap is a segment at the moment explained.
type SegmentMap struct {
	Address    uint64     `json:"address" doc:"Where it begins, as a number."`
	Size       mem.Bytes  `json:"size_bytes" doc:"Its size in bytes."`
	Active     mem.Bytes  `json:"active_bytes" doc:"Bytes of it that are in use or wait for another stream."`
	Large      bool       `json:"large" doc:"Whether it serves large requests."`
	Expandable bool       `json:"expandable,omitempty" doc:"Whether it is an expandable segment."`
	Stream     uint64     `json:"stream" doc:"The stream that it belongs to."`
	Pool       string     `json:"pool,omitempty" doc:"The private pool that it is of; absent: none."`
	Blocks     []MapBlock `json:"blocks" doc:"Its blocks by address, without gaps."`
}

// MapBlock is size, state (0 cached, 1 in use, 2 waiting for another stream). Then come category (index of
// map_categories, -1: none) and the innermost node of the stack in the flame graph's tree (-1: none).
type MapBlock [4]int64

// Pin is a place whose blocks keep mostly empty segments from going back to the device.
type Pin struct {
	Name   string         `json:"name" doc:"The site."`
	Bytes  mem.Bytes      `json:"bytes" doc:"The size of its blocks in bytes."`
	Blocks int            `json:"blocks" doc:"How many blocks there are."`
	Pinned mem.Bytes      `json:"pinned_bytes" doc:"Bytes cached in the segments where these blocks are the largest."`
	Frames []mem.Location `json:"frames" nullable:"true" doc:"The stack of the block that pins most, innermost first; null: not recorded."`
}

// TraceGrowth is a line that holds more after each step than after the one before.
type TraceGrowth struct {
	Name       string         `json:"name" doc:"The site."`
	PerStep    mem.Bytes      `json:"bytes_per_step" doc:"The median of its growth in bytes a step."`
	Grown      mem.Bytes      `json:"bytes" doc:"Its growth over the steps looked at, in bytes."`
	Steps      int            `json:"steps" doc:"How many steps were looked at."`
	Since      mem.Optional   `json:"since_step,omitzero" doc:"The step, from 1, at which it began, where it did not grow before."`
	Confidence float64        `json:"confidence" doc:"How sure that is, from 0 to 1."`
	Source     string         `json:"source" doc:"What steps were told from: annotations or inferred; stretches: no steps are known."`
	Frames     []mem.Location `json:"frames" nullable:"true" doc:"Its stack, innermost first; null: not recorded."`
}

// TraceOOM is a request that failed, and what the allocator held at that event. Cached memory counts
// whatever pool or stream it belongs to.
type TraceOOM struct {
	Event       int            `json:"event" doc:"The number of the event."`
	Asked       mem.Bytes      `json:"asked_bytes" doc:"What the request asked for, in bytes."`
	Segment     mem.Bytes      `json:"segment_bytes" doc:"What the allocator asks the device for to serve it, in bytes; where that is not known, what was asked for."`
	Limited     bool           `json:"limited,omitempty" doc:"Whether the file's settings limit the process to a part of the device."`
	OwnLimit    mem.Optional   `json:"own_limit_bytes,omitzero" doc:"The part of the device to which the program limits itself, in bytes, where it was seen to."`
	DeviceFree  mem.Optional   `json:"device_free_bytes,omitzero" doc:"What the device had free, as it said, in bytes."`
	DeviceTotal mem.Optional   `json:"device_total_bytes,omitzero" doc:"All that the device has, in bytes, where the file says it."`
	Allocated   mem.Bytes      `json:"allocated_bytes" doc:"Bytes allocated then."`
	Reserved    mem.Optional   `json:"reserved_bytes,omitzero" doc:"Bytes reserved then."`
	Cached      mem.Optional   `json:"cached_bytes,omitzero" doc:"Bytes cached then."`
	Pieces      mem.Optional   `json:"cached_pieces,omitzero" doc:"In how many pieces those are; absent where the file knows blocks alone."`
	LargestFree mem.Optional   `json:"largest_cached_bytes,omitzero" doc:"The largest of these pieces in bytes; absent where the file knows blocks alone."`
	WouldFit    *bool          `json:"fits_without_fragmentation,omitempty" doc:"Whether what is free and cached would have been enough in one piece."`
	Contiguous  *bool          `json:"contiguous,omitempty" doc:"Whether one piece alone was large enough."`
	Blame       []Blame        `json:"blame" doc:"The largest groups that were alive then."`
	Frames      []mem.Location `json:"frames" nullable:"true" doc:"The stack of the request, innermost first; null: not recorded."`
	Failures    int            `json:"failures" doc:"How many requests failed, of which this is the last."`
	Advice      string         `json:"advice,omitempty" doc:"Settings that avoid it, verified by replay."`
	Replayed    *mem.Advice    `json:"replayed,omitempty" doc:"The settings that were tried, and what became of them."`
}

// Accuracy compares what the rules say with what the program said, for the blocks whose owner it named
// among those alive at the moment explained. Buffers are left out: no rule tells them.
type Accuracy struct {
	Owned        mem.Bytes `json:"owned_bytes" doc:"Bytes of blocks whose owner the program told."`
	Agreed       mem.Bytes `json:"agreed_bytes" doc:"Bytes of these for which the stack alone tells the same category."`
	OwnedBlocks  int       `json:"owned_blocks" doc:"How many blocks those are whose owner the program told."`
	AgreedBlocks int       `json:"agreed_blocks" doc:"For how many of them the stack alone tells the same."`

	By []CategoryAccuracy `json:"by" doc:"The same by category."`
}

// CategoryAccuracy is the same for what the program called by one name.
type CategoryAccuracy struct {
	Category string    `json:"category" doc:"What the blocks are for, as the program told."`
	Owned    mem.Bytes `json:"owned_bytes" doc:"Bytes of these blocks."`
	Agreed   mem.Bytes `json:"agreed_bytes" doc:"Bytes of those for which the stack alone tells the same."`
}

// TraceTimeline is the course of the memory in columns of events. Each column is the moment in its stretch
// at which most was allocated, so no peak is lost; the bands of a column add up to what was then.
type TraceTimeline struct {
	Events     []int          `json:"events" doc:"By column: the number of the event, the highest moment of its stretch."`
	Time       []int64        `json:"time_ns,omitempty" doc:"By column: when, in ns since the first event."`
	Reserved   []mem.Optional `json:"reserved_bytes,omitzero" doc:"By column: bytes reserved; absent where the file does not tell."`
	Releasable []mem.Bytes    `json:"releasable_bytes,omitzero" doc:"By column: the most that empty_cache would have given back in the stretch, in bytes; absent where the file does not tell."`
	Category   []usage.Band   `json:"by_category" doc:"By column: what was allocated, by what it is for."`
	Site       []usage.Band   `json:"by_site" doc:"By column: what was allocated, by the largest sites and the rest."`
}

// Turnover is what one line allocated among the events explained.
type Turnover struct {
	Name        string         `json:"name" doc:"The site."`
	Allocations int            `json:"allocations" doc:"How often it allocated."`
	Churn       mem.Bytes      `json:"churn_bytes" doc:"What it allocated and freed again, in bytes."`
	Average     mem.Bytes      `json:"average_bytes" doc:"What it held on average over time, in bytes."`
	SinceStart  mem.Bytes      `json:"since_start_bytes" doc:"What is alive from before the trace to its end, in bytes."`
	StartBlocks int            `json:"since_start_blocks" doc:"How many blocks that is."`
	Frames      []mem.Location `json:"frames" nullable:"true" doc:"The stack that freed most again, innermost first; null: not recorded."`
}

// LongLife is blocks that occupied much for long: bytes times life-span of one rank them. Blocks are in one if nothing
// here tells them apart.
type LongLife struct {
	Name      string    `json:"name" doc:"The site."`
	Category  string    `json:"category" doc:"What the blocks are for."`
	Bytes     mem.Bytes `json:"bytes" doc:"The size of each block in bytes."`
	Blocks    int       `json:"blocks" doc:"How many blocks there are that nothing here tells apart."`
	Allocated int       `json:"allocated_event" doc:"The number of the event that allocated it; -1: before the trace."`
	Freed     *int      `json:"freed_event" doc:"The number of the event that freed it; null: alive at the end."`
	Span      int64     `json:"life_ns,omitempty" doc:"How long it lived, in ns."`
	Events    int       `json:"life_events" doc:"How long it lived, in events."`
}
