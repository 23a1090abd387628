package allocator

// What torch.cuda.reset_peak_memory_stats and reset_accumulated_memory_stats do: the oracle's programs call them, and
// no replay does.

// resetPeaks makes the present values the peaks.
func (s *Stats) resetPeaks() {
	s.each(func(stat *Stat) { stat.Peak = stat.Current })
}

// resetAccumulated zeroes sums and counters.
func (s *Stats) resetAccumulated() {
	s.each(func(stat *Stat) { stat.Allocated, stat.Freed = 0, 0 })
	s.AllocRetries, s.OOMs, s.SyncAllStreams, s.DeviceAllocs, s.DeviceFrees, s.OOMRejected = 0, 0, 0, 0, 0, 0
}

func (s *Stats) each(do func(*Stat)) {
	for i := range s.By {
		f := &s.By[i]
		for _, stat := range []*Stat{&f.Allocation, &f.Segment, &f.Active, &f.InactiveSplit, &f.AllocatedBytes,
			&f.ReservedBytes, &f.ActiveBytes, &f.InactiveBytes, &f.RequestedBytes} {
			do(stat)
		}
	}
	do(&s.OversizeAllocations)
	do(&s.OversizeSegments)
}
