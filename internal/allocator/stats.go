package allocator

import "hightide/internal/mem"

// Stat follows one figure, as torch.cuda.memory_stats shows it.
type Stat struct {
	Current, Peak    int64
	Allocated, Freed int64 // sums of all increases and decreases
}

func (s *Stat) up(n int64) {
	s.Current += n
	s.Peak = max(s.Peak, s.Current)
	s.Allocated += n
}

func (s *Stat) down(n int64) {
	s.Current -= n
	s.Freed += n
}

// Kinds of pools that statistics are kept for.
const (
	AllPools = iota
	SmallPool
	LargePool
	kinds
)

// Figures are the statistics kept for each kind of pool.
type Figures struct {
	Allocation, Segment, Active, InactiveSplit                                Stat
	AllocatedBytes, ReservedBytes, ActiveBytes, InactiveBytes, RequestedBytes Stat
}

// Stats are all of torch.cuda.memory_stats.
type Stats struct {
	By [kinds]Figures // AllPools, SmallPool, LargePool

	OversizeAllocations, OversizeSegments  Stat
	AllocRetries, OOMs, SyncAllStreams     int64
	DeviceAllocs, DeviceFrees, OOMRejected int64
}

// handedOut counts a block that the program got.
func (f *Figures) handedOut(size, requested mem.Bytes) {
	f.Allocation.up(1)
	f.AllocatedBytes.up(int64(size))
	f.Active.up(1)
	f.ActiveBytes.up(int64(size))
	f.RequestedBytes.up(int64(requested))
}

func (f *Figures) letGo(size mem.Bytes) {
	f.Allocation.down(1)
	f.AllocatedBytes.down(int64(size))
}

func (f *Figures) reusable(size, requested mem.Bytes) {
	f.Active.down(1)
	f.ActiveBytes.down(int64(size))
	f.RequestedBytes.down(int64(requested))
}

// change moves the figure of cached parts of segments; the two counters move on their own.
func (f *Figures) change(blocks int64, size mem.Bytes) {
	move(&f.InactiveSplit, blocks)
	move(&f.InactiveBytes, int64(size))
}

func move(s *Stat, by int64) {
	if by > 0 {
		s.up(by)
	} else if by < 0 {
		s.down(-by)
	}
}
