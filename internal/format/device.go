package format

import (
	"fmt"
	"slices"

	"hightide/internal/mem"
)

// Only returns a Source with one device of a snapshot: its segments, events and annotations. Pinned memory of the
// host is not device's, and is left out. It is an error where the Source is not a snapshot or has no such device.
func (s Source) Only(device int) (Source, error) {
	if s.Snapshot == nil {
		return s, fmt.Errorf("%s has no devices to choose from", s.Kind())
	}
	if devices := s.Snapshot.AllDevices(); !slices.Contains(devices, device) {
		return s, fmt.Errorf("the snapshot has devices %v, and no device %d", devices, device)
	}
	one := *s.Snapshot
	one.Segments = slices.DeleteFunc(slices.Clone(one.Segments), func(g mem.Segment) bool { return g.Device != device })
	one.Traces = slices.DeleteFunc(slices.Clone(one.Traces), func(t mem.Trace) bool { return t.Device != device })
	one.Annotations = slices.DeleteFunc(slices.Clone(one.Annotations), func(a mem.Annotation) bool { return a.Device != device })
	one.Owners = slices.DeleteFunc(slices.Clone(one.Owners), func(o mem.BlockOwner) bool { return o.Device != device })
	one.HostSegments, one.HostTraces = nil, nil
	s.Snapshot = &one
	return s, nil
}
