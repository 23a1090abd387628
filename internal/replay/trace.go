package replay

import (
	"fmt"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/pytorch"
)

// recorded is the history of one device, made ready to run again.
type recorded struct {
	snapshot *mem.AllocatorSnapshot
	trace    *mem.Trace
	settings allocator.Settings // it was recorded under
	torch    string             // the version whose rules it follows
	rules    allocator.Rules
	verified *allocator.Verification
	program  *allocator.Program

	ofDevice bool // how much address space its segments reserve goes by the device's memory, and that is not known
}

// openTrace reads a device's history and holds the model against it. Torch is the version of PyTorch
// it came from, "2.6"; "": what the file tells. Memory is the device's, by which expandable segments reserve address
// space; 0: not known.
func openTrace(s *mem.AllocatorSnapshot, device int, torch string, memory mem.Bytes) (*recorded, error) {
	r := &recorded{snapshot: s, trace: allocator.TraceOf(s, device)}
	if r.trace == nil {
		return nil, fmt.Errorf("device %d has no history of allocations", device)
	}
	switch {
	case s.Filter != "":
		return nil, fmt.Errorf("it holds only blocks that match %q, which no allocator placed so: replay the file that it "+
			"was filtered from", s.Filter)
	case s.Bare:
		return nil, fmt.Errorf("a profiler's trace knows nothing of the allocator's segments")
	}
	var err error
	if r.settings, err = allocator.SettingsOf(s); err != nil {
		return nil, err
	}
	r.ofDevice = r.settings.Expandable && memory == 0
	if r.verified, err = allocator.Verify(s, r.trace, r.settings, memory); err != nil {
		return nil, err
	}
	if r.program, err = allocator.Compile(s, r.trace, r.settings); err != nil {
		return nil, err
	}
	version, said := mem.ParseVersion(torch)
	if !said {
		version = tracedBy(s.Versions, r.verified.Ties)
	}
	r.torch, r.rules = version.String(), allocator.RulesOf(version)
	return r, nil
}

// tracedBy is the oldest release that may have written the trace. Some that differ in the order of ties write the same
// fields: the order in the trace tells.
func tracedBy(file mem.Versions, ties allocator.Ties) mem.Version {
	version := pytorch.WithMetadata.First
	if file.Known() {
		version = file.Bound()
	}
	since := mem.Version{}
	switch ties {
	case allocator.ByBlock:
		since = pytorch.TiesByBlock
	case allocator.BySegment:
		since = pytorch.TiesBySegment
	}
	if version.Before(since) {
		return since
	}
	return version
}

// setup is what the trace was recorded under, on a device without an end.
func (r *recorded) setup() allocator.Setup {
	return allocator.Setup{Settings: r.settings, Rules: r.rules}
}

// longestTrace is the device with the most events.
func longestTrace(s *mem.AllocatorSnapshot) int {
	device, most := 0, -1
	for i := range s.Traces {
		if n := s.Traces[i].Len(); n > most {
			device, most = s.Traces[i].Device, n
		}
	}
	return device
}
