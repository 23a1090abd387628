package report

import (
	"fmt"
	"path"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Allocator is what one device's caching allocator held at one moment.
type Allocator struct {
	Device         int          `json:"device"`
	File           string       `json:"file"`
	Name           string       `json:"name"`  // "device 0", or what it is where it is not a GPU
	Title          string       `json:"title"` // the same, with its file where there are several
	Events         int          `json:"events"`
	First          int          `json:"first_event"` // of those explained
	Last           int          `json:"last_event"`
	Stacks         int          `json:"stacks"`
	Peak           TracePeak    `json:"peak"`
	At             TracePeak    `json:"at"`      // the moment explained
	Highest        Levels       `json:"highest"` // each at its own moment
	By             string       `json:"by"`
	Blame          []Blame      `json:"blame"`
	Segments       mem.Optional `json:"segments,omitzero"` // this and what follows to Map, but for counts of events: absent where the file knows blocks alone
	InactiveSplit  mem.Optional `json:"inactive_split_bytes,omitzero"`
	Rounding       mem.Optional `json:"rounding_bytes,omitzero"` // at the moment explained: allocated less requested
	Unplaced       int          `json:"unplaced_events"`
	Strange        int          `json:"inconsistent_events"`
	Pins           []Pin        `json:"pins,omitzero"`
	Map            []SegmentMap `json:"segment_map,omitzero"` // at the moment explained
	OOM            *TraceOOM    `json:"oom,omitempty"`
	OOMEvent       *int         `json:"oom_event,omitempty"`
	Filter         string       `json:"filter,omitempty"` // and what it lets through, of the blocks of the moment explained:
	Matching       mem.Bytes    `json:"matching_bytes,omitempty"`
	MatchingBlocks int          `json:"matching_blocks,omitempty"`

	Accuracy *Accuracy         `json:"category_accuracy,omitempty"`
	Curve    []CurvePoint      `json:"curve"`
	Label    mem.Label         `json:"label"`
	Settings map[string]string `json:"settings,omitempty"` // of the allocator as the file has them, by their names

	Fragmentation *Fragmentation `json:"fragmentation,omitempty"`
	MapCategories []string       `json:"map_categories,omitempty"`
	Turnover      []Turnover     `json:"turnover"` // most churn first
	Longest       []LongLife     `json:"longest_lives"`
	Steps         *usage.Steps   `json:"steps,omitempty"`
	Growth        []TraceGrowth  `json:"growth"`
	Timeline      *TraceTimeline `json:"timeline,omitempty"`
}

// TracePeak is the levels just after an event; -1: before the first.
type TracePeak struct {
	Event     int          `json:"event"`
	Time      int64        `json:"time_ns,omitempty"` // of the wall clock
	Allocated mem.Bytes    `json:"allocated_bytes"`
	Active    mem.Bytes    `json:"active_bytes"`
	Reserved  mem.Optional `json:"reserved_bytes,omitzero"`  // absent where a profiler did not note it
	Requested mem.Optional `json:"requested_bytes,omitzero"` // absent where the file knows blocks alone
}

// Levels are highest values over a trace.
type Levels struct {
	Allocated mem.Bytes    `json:"allocated_bytes"`
	Active    mem.Bytes    `json:"active_bytes"`
	Reserved  mem.Optional `json:"reserved_bytes,omitzero"`
	Requested mem.Optional `json:"requested_bytes,omitzero"`
}

// Blame is a group of blocks; its frames are those of the stack that holds most of it.
type Blame struct {
	Name     string         `json:"name"`
	Bytes    mem.Bytes      `json:"bytes"`
	Blocks   int            `json:"blocks"`
	Category string         `json:"category"`
	Frames   []mem.Location `json:"frames"`
}

// CurvePoint is the highest of a stretch of events.
type CurvePoint struct {
	Event     int          `json:"event"`
	Time      int64        `json:"time_ns,omitempty"`
	Allocated mem.Bytes    `json:"allocated_bytes"`
	Reserved  mem.Optional `json:"reserved_bytes,omitzero"`

	Releasable mem.Optional `json:"releasable_bytes,omitzero"` // the most that empty_cache would have given back
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
	Reserved      mem.Bytes       `json:"reserved_bytes"`
	Requested     mem.Bytes       `json:"requested_bytes"`  // of blocks in use
	Rounding      mem.Bytes       `json:"rounding_bytes"`   // of blocks in use: allocated less requested
	Waiting       mem.Bytes       `json:"waiting_bytes"`    // freed, another stream still uses them
	Releasable    mem.Bytes       `json:"releasable_bytes"` // what empty_cache would give back
	Pooled        mem.Bytes       `json:"pooled_bytes"`     // cached in private pools, which keep it while they live
	Stuck         mem.Bytes       `json:"stuck_bytes"`      // cached beside blocks in use
	InactiveSplit mem.Bytes       `json:"inactive_split_bytes"`
	Segments      int             `json:"segments"`
	Classes       []SizeClass     `json:"inactive_split_classes"`
	ByRounding    []RoundingWaste `json:"rounding_by_site"`
	EmptyCache    EmptyCache      `json:"empty_cache"`
}

// SizeClass counts cached pieces beside blocks in use from one power of two to the next.
type SizeClass struct {
	From   mem.Bytes `json:"from_bytes"`
	Bytes  mem.Bytes `json:"bytes"`
	Pieces int       `json:"pieces"`
}

// RoundingWaste is what rounding costs the blocks of one line.
type RoundingWaste struct {
	Name   string    `json:"name"`
	Waste  mem.Bytes `json:"waste_bytes"`
	Blocks int       `json:"blocks"`
}

// EmptyCache is the moment at which torch.cuda.empty_cache would have given back most.
type EmptyCache struct {
	Event int       `json:"event"`
	Time  int64     `json:"time_ns,omitempty"`
	Most  mem.Bytes `json:"most_bytes"`
	End   mem.Bytes `json:"end_bytes"`
}

// SegmentMap is a segment at the moment explained.
type SegmentMap struct {
	Address    uint64     `json:"address"`
	Size       mem.Bytes  `json:"size_bytes"`
	Active     mem.Bytes  `json:"active_bytes"`
	Large      bool       `json:"large"`
	Expandable bool       `json:"expandable,omitempty"`
	Stream     uint64     `json:"stream"`
	Pool       string     `json:"pool,omitempty"`
	Blocks     []MapBlock `json:"blocks"` // by address, no gaps
}

// MapBlock is size, state (0 cached, 1 in use, 2 waiting for another stream). Then come category (index of
// map_categories, -1: none) and the innermost node of the stack in the flame graph's tree (-1: none).
type MapBlock [4]int64

// Pin is a place whose blocks keep mostly empty segments from going back to the device.
type Pin struct {
	Name   string         `json:"name"`
	Bytes  mem.Bytes      `json:"bytes"` // of the blocks
	Blocks int            `json:"blocks"`
	Pinned mem.Bytes      `json:"pinned_bytes"` // cached in the segments where these blocks are the largest
	Frames []mem.Location `json:"frames"`       // of the block that pins most
}

// TraceGrowth is a line that holds more after each step than after the one before.
type TraceGrowth struct {
	Name       string         `json:"name"`
	PerStep    mem.Bytes      `json:"bytes_per_step"` // median
	Grown      mem.Bytes      `json:"bytes"`          // over the steps looked at
	Steps      int            `json:"steps"`
	Since      mem.Optional   `json:"since_step,omitzero"` // the step, from 1, at which it began, where it did not grow before
	Confidence float64        `json:"confidence"`          // 0 to 1
	Source     string         `json:"source"`              // annotations, inferred; stretches: no steps are known
	Frames     []mem.Location `json:"frames"`
}

// TraceOOM is a request that failed, and what the allocator held at that event. Cached memory counts
// whatever pool or stream it belongs to.
type TraceOOM struct {
	Event       int            `json:"event"`
	Asked       mem.Bytes      `json:"asked_bytes"`
	Segment     mem.Bytes      `json:"segment_bytes"`               // what the allocator asks the device for to serve it; Asked where that is not known
	Limited     bool           `json:"limited,omitempty"`           // the file's settings limit the process to a part of the device
	DeviceFree  mem.Optional   `json:"device_free_bytes,omitzero"`  // as the device said
	DeviceTotal mem.Optional   `json:"device_total_bytes,omitzero"` // all it has, where the file says
	Allocated   mem.Bytes      `json:"allocated_bytes"`
	Reserved    mem.Optional   `json:"reserved_bytes,omitzero"`
	Cached      mem.Optional   `json:"cached_bytes,omitzero"`
	Pieces      mem.Optional   `json:"cached_pieces,omitzero"` // this and the next: of files that tell of segments
	LargestFree mem.Optional   `json:"largest_cached_bytes,omitzero"`
	WouldFit    *bool          `json:"fits_without_fragmentation,omitempty"` // what is free and cached, if it lay in one piece
	Contiguous  *bool          `json:"contiguous,omitempty"`                 // one piece alone was large enough
	Blame       []Blame        `json:"blame"`                                // the largest groups alive then
	Frames      []mem.Location `json:"frames"`
	Failures    int            `json:"failures"`           // requests that failed, of which this is the last
	Advice      string         `json:"advice,omitempty"`   // verified by replay
	Replayed    any            `json:"replayed,omitempty"` // the settings tried, and what became of them
}

// Accuracy compares what the rules say with what the program said, for the blocks whose owner it named
// among those alive at the moment explained. Buffers are left out: no rule tells them.
type Accuracy struct {
	Owned        mem.Bytes `json:"owned_bytes"`
	Agreed       mem.Bytes `json:"agreed_bytes"`
	OwnedBlocks  int       `json:"owned_blocks"`
	AgreedBlocks int       `json:"agreed_blocks"`

	By []CategoryAccuracy `json:"by"`
}

// CategoryAccuracy is the same for what the program called by one name.
type CategoryAccuracy struct {
	Category string    `json:"category"`
	Owned    mem.Bytes `json:"owned_bytes"`
	Agreed   mem.Bytes `json:"agreed_bytes"`
}

// TraceTimeline is the course of the memory in columns of events. Each column is the moment in its stretch
// at which most was allocated, so no peak is lost; the bands of a column add up to what was then.
type TraceTimeline struct {
	Events     []int          `json:"events"`
	Time       []int64        `json:"time_ns,omitempty"`         // since the first
	Reserved   []mem.Optional `json:"reserved_bytes,omitzero"`   // absent where the file does not tell
	Releasable []mem.Bytes    `json:"releasable_bytes,omitzero"` // the most of the stretch; likewise
	Category   []usage.Band   `json:"by_category"`
	Site       []usage.Band   `json:"by_site"` // the largest, and the rest
}

// Turnover is what one line allocated among the events explained.
type Turnover struct {
	Name        string         `json:"name"`
	Allocations int            `json:"allocations"`
	Churn       mem.Bytes      `json:"churn_bytes"`       // allocated and freed again
	Average     mem.Bytes      `json:"average_bytes"`     // held, over time
	SinceStart  mem.Bytes      `json:"since_start_bytes"` // alive from before the trace to its end
	StartBlocks int            `json:"since_start_blocks"`
	Frames      []mem.Location `json:"frames"` // of the stack that freed most again
}

// LongLife is blocks that occupied much for long: bytes times life-span of one rank them. Blocks are in one if nothing
// here tells them apart.
type LongLife struct {
	Name      string    `json:"name"`
	Category  string    `json:"category"`
	Bytes     mem.Bytes `json:"bytes"` // of each block
	Blocks    int       `json:"blocks"`
	Allocated int       `json:"allocated_event"` // -1: before the trace
	Freed     *int      `json:"freed_event"`     // null: alive at the end
	Span      int64     `json:"life_ns,omitempty"`
	Events    int       `json:"life_events"`
}
