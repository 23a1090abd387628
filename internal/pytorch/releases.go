// Package pytorch says what differs between PyTorch's releases, as data: by which rules its caching allocator works, and
// what its snapshots of memory hold. scripts/new-pytorch holds a new release against it; what differs there is a line
// here.
package pytorch

import "hightide/internal/mem"

// Oldest is the first release whose allocator is followed, and Newest the last one that the model was held against.
var (
	Oldest = mem.Version{Major: 2, Minor: 0}
	Newest = mem.Version{Major: 2, Minor: 15}
)

// The release from which on the allocator works so.
var (
	ExpandableSegments = mem.Version{Major: 2, Minor: 1}  // expandable_segments is a setting
	NonSplitRounding   = mem.Version{Major: 2, Minor: 6}  // max_non_split_rounding_mb is one; perhaps since 2.4
	RestAfterLast      = mem.Version{Major: 2, Minor: 10} // ">" in roundup_power2_divisions begins after the last size
	LargeSegmentSize   = mem.Version{Major: 2, Minor: 11} // large_segment_size_mb is a setting
	TiesByBlock        = mem.Version{Major: 2, Minor: 12} // between free blocks of one size: by their age, not by address
	TiesBySegment      = mem.Version{Major: 2, Minor: 13} // by the age of their segments, then by address
	FractionOfOneFrees = mem.Version{Major: 2, Minor: 13} // a memory fraction of 1 takes the limit away again
)

// What a snapshot holds tells its release, which no file states. testdata/imagined has one of each.
var (
	WithHost        = mem.Versions{First: mem.Version{Major: 2, Minor: 14}} // host_segments or host_traces
	WithMaxRound    = between(13, 13)                                       // max_round_threshold among the settings
	WithMetadata    = between(10, 12)                                       // user_metadata on events
	WithContext     = between(8, 9)                                         // compile_context on events
	WithAnnotations = between(5, 7)                                         // external_annotations, and none of these
	WithTimes       = between(2, 4)                                         // times on events, and none of these
	WithEvents      = mem.Versions{Last: mem.Version{Major: 2, Minor: 1}}   // events without times
	WithHistory     = mem.Versions{Last: mem.Version{Major: 2, Minor: 0}}   // blocks with a history instead of frames
)

// The release from which on an event of a snapshot holds this.
var (
	Pools    = WithHost.First     // pool_id
	Metadata = WithMetadata.First // user_metadata
	Context  = WithContext.First  // compile_context
)

func between(first, last int) mem.Versions {
	return mem.Versions{First: mem.Version{Major: 2, Minor: first}, Last: mem.Version{Major: 2, Minor: last}}
}
