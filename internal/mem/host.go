package mem

// HostDevice is the number of pinned host memory among the devices of a snapshot.
const HostDevice = -1

// Host is the part of a snapshot that tells of pinned host memory, as a snapshot of one device of its own, HostDevice; nil:
// there is none, or it was not recorded.
func (s *AllocatorSnapshot) Host() *AllocatorSnapshot {
	events := 0
	for i := range s.HostTraces {
		events += s.HostTraces[i].Len()
	}
	if len(s.HostSegments) == 0 && events == 0 {
		return nil
	}
	host := *s
	host.Segments, host.Traces, host.HostSegments, host.HostTraces = s.HostSegments, s.HostTraces, nil, nil
	host.Annotations, host.Owners, host.Settings, host.DeviceMemory = nil, nil, nil, nil
	if host.Label == Imagined { // the host is as real as ever
		host.Label = Measured
	}
	host.DeviceNames = map[int]string{HostDevice: "pinned host memory"}
	return &host
}
