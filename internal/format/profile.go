package format

import (
	"fmt"
	"maps"
	"slices"

	"hightide/internal/mem"
	"hightide/internal/usage"
)

// OfSnapshot is a snapshot as a profile, by stack and device. It has what was in use when most bytes were (on each
// device at its own peak), and what the whole trace did. The sizes are those of blocks, as in a report.
func OfSnapshot(s *mem.AllocatorSnapshot) *mem.Profile {
	p := &mem.Profile{Label: s.Label, Default: 1, Kinds: slices.Clone(usage.Kinds)}
	devices := s.AllDevices()
	for _, device := range devices {
		history, name := usage.FromTrace(s, device, usage.Whole), deviceName(s, device)
		if history.Peak.Time > 0 {
			p.Time = history.Peak.Time
		}
		p.Notes = append(p.Notes, fmt.Sprintf("%s: %d bytes allocated at the peak", name, int64(history.Peak.Bytes)))
		names := usage.NewNames(history.Stacks)
		for _, did := range history.Activity(history.Peak.Moment, nil, nil) {
			var stack []uint32
			for _, l := range did.Pictured(names) {
				stack = append(stack, p.Stacks.Location(l))
			}
			if len(devices) > 1 { // else graphs would add them up unseen
				stack = append(stack, p.Stacks.Location(mem.Location{Function: name, Native: true}))
			}
			p.Samples = append(p.Samples, mem.ProfileSample{Stack: p.Stacks.Add(stack), Values: did.Values(),
				Labels: map[string]string{"device": name}})
		}
	}
	return p
}

func spaceKinds() []mem.ProfileKind {
	return []mem.ProfileKind{{Name: "objects", Unit: mem.UnitCount}, {Name: "space", Unit: mem.UnitBytes}}
}

func deviceName(s *mem.AllocatorSnapshot, device int) string {
	if name, ok := s.DeviceNames[device]; ok {
		return name
	}
	return fmt.Sprintf("GPU %d", device)
}

// HeapAtPeak is a run's heap as a profile: what each process held when its heap was largest, by
// allocation site, as sampled.
func HeapAtPeak(run *mem.Run) *mem.Profile {
	p := &mem.Profile{Label: mem.Sampled, Default: 1, Kinds: spaceKinds(), Time: run.Info.StartWall}
	for _, process := range slices.Sorted(maps.Keys(run.Heap)) {
		name := "process"
		if of := run.Process(process); of != nil {
			name = fmt.Sprintf("process %d", of.PID)
		}
		h := usage.FromHeap(run, process)
		p.Label = h.Label
		for _, use := range h.AtPeak() {
			var stack []uint32
			for _, l := range run.Stacks.Frames(use.Stack) {
				stack = append(stack, p.Stacks.Location(l))
			}
			labels := map[string]string{"process": name}
			if use.Phase != "" {
				labels["phase"] = string(use.Phase)
			}
			p.Samples = append(p.Samples, mem.ProfileSample{Stack: p.Stacks.Add(stack), Labels: labels,
				Values: []int64{int64(use.Blocks), int64(use.Bytes)}})
		}
	}
	return p
}
