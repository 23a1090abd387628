package allocator

import (
	"math"
	"math/bits"

	"hightide/internal/mem"
	"hightide/internal/pytorch"
)

// Sizes of PyTorch's allocator (c10/core/AllocatorConfig.h, c10/cuda/CUDACachingAllocator.cpp).
const (
	minBlock     = 512          // kMinBlockSize
	smallLimit   = 1 * mem.MiB  // kSmallSize: up to here the small pool serves
	smallSegment = 2 * mem.MiB  // kSmallBuffer
	largeSegment = 20 * mem.MiB // kLargeBuffer, large_segment_size since 2.11
	minOwn       = 10 * mem.MiB // kMinLargeAlloc: from here on a segment is made for one request
	ownStep      = 2 * mem.MiB  // kRoundLarge
	hugeRequest  = 1 << 60      // refused before the allocator is entered
)

// Variable is the environment variable that holds the settings. Every version of PyTorch reads it, and before
// PYTORCH_ALLOC_CONF, which 2.9 already asks for and does not read.
const Variable = mem.AllocConf

// Settings are the knobs of PYTORCH_CUDA_ALLOC_CONF that move memory. The zero value is the default.
type Settings struct {
	MaxSplit          mem.Bytes // max_split_size_mb; 0: unlimited
	MaxNonSplitRound  mem.Bytes // max_non_split_rounding_mb; 0: as large segments
	Divisions         [16]int   // roundup_power2_divisions by power of two from 1 MiB
	GCThreshold       float64   // garbage_collection_threshold; 0: off
	Expandable        bool      // expandable_segments
	LargeSegment      mem.Bytes // large_segment_size_mb; 0: 20 MiB
	Fraction          float64   // per_process_memory_fraction; 0 or 1: no limit
	ThrowOnCudaMalloc bool      // throw_on_cudamalloc_oom
	ReserveFraction   float64   // expandable_segments_reserve as a part of the memory; 0: 9/8
	ReserveBytes      mem.Bytes // expandable_segments_reserve in bytes; 0: not set
	Backend           string    // "", "native" or "cudaMallocAsync"
	Host              bool      // of page-locked memory: events tell the size of the block, a power of two
}

// Rules are what differs between versions of PyTorch.
type Rules struct {
	// Ties says which of several free blocks of one size is taken.
	Ties Ties
	// FractionAlwaysLimits keeps a memory limit once a fraction was set, were it 1 (up to 2.9). The
	// limit also switches garbage collection on.
	FractionAlwaysLimits bool
	// RestFromLast makes ">" in roundup_power2_divisions begin at the last size named, not after it
	// (up to 2.9).
	RestFromLast bool
	// NoExpandable says that expandable_segments is not a setting yet (2.0).
	NoExpandable bool
	// NoRounding says so of max_non_split_rounding_mb (before 2.6, perhaps 2.4).
	NoRounding bool
	// NoLargeSegment says so of large_segment_size_mb (before 2.11).
	NoLargeSegment bool
}

// Ties is an order between free blocks of one size.
type Ties uint8

const (
	// ByAddress takes the lowest (up to 2.11).
	ByAddress Ties = iota
	// ByBlock takes the one that was made first, by whatever made it: a segment, or a split, whose
	// front is the new block (2.12).
	ByBlock
	// BySegment takes the lowest of the oldest segment (2.13 and later).
	BySegment
)

func tiesOf(v mem.Version) Ties {
	switch {
	case v.Before(pytorch.TiesByBlock):
		return ByAddress
	case v.Before(pytorch.TiesBySegment):
		return ByBlock
	}
	return BySegment
}

// RulesOf gives the rules of a release of PyTorch.
func RulesOf(v mem.Version) Rules {
	return Rules{
		Ties:                 tiesOf(v),
		FractionAlwaysLimits: v.Before(pytorch.FractionOfOneFrees),
		RestFromLast:         v.Before(pytorch.RestAfterLast),
		NoExpandable:         v.Before(pytorch.ExpandableSegments),
		NoRounding:           v.Before(pytorch.NonSplitRounding),
		NoLargeSegment:       v.Before(pytorch.LargeSegmentSize),
	}
}

// Round is the size of the block that a request of n bytes gets, before any surplus of an unsplit
// one.
func (s *Settings) Round(n mem.Bytes) mem.Bytes {
	if s.Host {
		return n
	}
	if n < minBlock {
		return minBlock
	}
	if d := s.divisions(n); d > 1 && n > minBlock*mem.Bytes(d) {
		return roundPowerOfTwo(n, d)
	}
	return roundUp(n, minBlock)
}

func (s *Settings) divisions(n mem.Bytes) int {
	slot := bits.Len64(uint64(n)) - 1 - 20
	return s.Divisions[min(max(slot, 0), len(s.Divisions)-1)]
}

func roundPowerOfTwo(n mem.Bytes, divisions int) mem.Bytes {
	if n&(n-1) == 0 {
		return n
	}
	floor := mem.Bytes(1) << (bits.Len64(uint64(n)) - 1)
	return roundUp(n, floor/mem.Bytes(divisions)) // n > 512*divisions, so the step is not 0
}

// SegmentSize is what a new segment takes from the device for a request of rounded bytes.
func (s *Settings) SegmentSize(rounded mem.Bytes) mem.Bytes {
	switch {
	case rounded <= smallLimit:
		return smallSegment
	case rounded < minOwn:
		return s.largeSegment()
	}
	return roundUp(rounded, ownStep)
}

func (s *Settings) largeSegment() mem.Bytes {
	if s.LargeSegment > 0 {
		return s.LargeSegment
	}
	return largeSegment
}

// splits says whether what a request leaves of a free block is worth keeping apart. Small and expandable segments are
// divided finely.
func (s *Settings) splits(rounded, rest mem.Bytes, fine bool) bool {
	if fine {
		return rest >= minBlock
	}
	return rest > smallLimit && (s.MaxSplit <= 0 || rounded < s.MaxSplit)
}

func (s *Settings) maxSplit() mem.Bytes {
	if s.MaxSplit > 0 {
		return s.MaxSplit
	}
	return math.MaxInt64
}

func (s *Settings) maxNonSplitRound() mem.Bytes {
	if s.MaxNonSplitRound > 0 {
		return s.MaxNonSplitRound
	}
	return s.largeSegment()
}

// page is the granularity of expandable segments.
func (s *Settings) page(small bool) mem.Bytes {
	if small {
		return smallSegment
	}
	return s.largeSegment()
}

// reservation is the address space of a new expandable segment on a device of so much memory.
func (s *Settings) reservation(memory, page mem.Bytes) mem.Bytes {
	if memory <= 0 {
		memory = unlimitedMemory
	}
	size := memory + memory/8
	switch {
	case s.ReserveBytes > 0:
		size = min(size, s.ReserveBytes)
	case s.ReserveFraction > 0:
		size = min(size, mem.Bytes(s.ReserveFraction*float64(memory)))
	}
	return roundUp(size, page)
}
