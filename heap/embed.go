// Package heap carries the host-heap sampler: a C library that is preloaded into the observed
// process and writes sampled allocations, with their Python stacks, into a channel.
//
//	heap/src/*.c ──make──▶ packed/ARCH/libhightide_heap.so.gz ──embed──▶ Library ──▶ extracted, LD_PRELOAD
//
// This file only embeds the built library; DESIGN.md says how the sampler works.
package heap

// LibraryName is the library's file name, by which it is recognised in LD_PRELOAD.
const LibraryName = "libhightide_heap.so"

// Library returns the built library, an ELF shared object for this processor compressed by gzip, and whether there is one: a
// binary built before `make -C heap` records everything but the heap.
func Library() (gzipped []byte, ok bool) {
	data, err := built.ReadFile(folder + LibraryName + ".gz")
	return data, err == nil
}
