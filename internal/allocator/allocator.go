// Package allocator re-runs what a program asked of a framework's caching allocator, and so answers
// "what if": other settings, another GPU, another allocator.
//
//	mem.AllocatorSnapshot ──▶ Compile ──▶ Program ──▶ Run(Policy) ──▶ Outcome
//	  (a recorded trace)                  (asks, frees)  │            (peaks, waste, OOM, events)
//	                     ──▶ Verify: every address and segment against the record
//
// Native is PyTorch's CUDA caching allocator, exact to the address; policies.go lists the others.
// Everything is a pure function of its input: the same requests, settings and driver give the same
// addresses. What a real driver would answer (addresses, out of memory) comes from a Driver.
// Start reading at Native.Malloc in native.go; a new model is one file and one line in policies.go.
package allocator

import "hightide/internal/mem"

// Handle names a live allocation to the Policy that made it. 0 is none.
type Handle int32

// Request is one call for memory.
type Request struct {
	Size   mem.Bytes // as the program asked, before rounding; positive
	Stream uint64
	Pool   mem.PoolID // zero: the default pool

	// Capturing says that a CUDA graph is being captured or a pool's scope is open, where the allocator
	// must not wait for the device. It then neither completes pending frees nor empties its cache to
	// retry.
	Capturing bool
}

// Policy is a model of a caching allocator on one device.
type Policy interface {
	// Malloc hands out a block, or 0 where memory ran out after all retries.
	Malloc(Request) Handle
	// FreeRequested is the program letting go of a block that other streams may still use;
	// FreeCompleted is the moment from which it can be reused. Both must be called, in this order.
	FreeRequested(Handle)
	FreeCompleted(Handle)
	// EmptyCache is the program's own call to give back what is cached.
	EmptyCache()
	// Usage is what the allocator holds now and held at most.
	Usage() Usage
}

// Usage is what a Policy holds. Peaks are since its beginning.
type Usage struct {
	Requested, Allocated, Active, Reserved                 mem.Bytes
	PeakRequested, PeakAllocated, PeakActive, PeakReserved mem.Bytes

	DeviceAllocs, DeviceFrees int64 // calls of the driver: segments, or pages mapped
	Retries                   int64 // times it emptied its cache because the device had no more
	OOMs                      int64
}

// Driver answers as a GPU's driver would: with addresses, or with "out of memory".
type Driver interface {
	// Malloc is cudaMalloc.
	Malloc(size mem.Bytes) (address uint64, ok bool)
	// Reserve takes address space without memory, for an expandable segment.
	Reserve(size mem.Bytes) (address uint64)
	// Map puts memory behind a reserved range, or says that there is not as much.
	Map(size mem.Bytes) bool
	// Free takes back memory of either kind.
	Free(size mem.Bytes)
}

// Event is one line of an allocator's own history, in the order and with the meaning of PyTorch's:
// of an alloc and its frees, Size is what was asked for. Of an OOM, what was asked for, rounded.
type Event struct {
	Action  mem.Action
	Address uint64
	Size    mem.Bytes
	Stream  uint64
}
