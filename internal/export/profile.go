package export

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"hightide/internal/mem"
)

// AtPeak is a snapshot as a profile: the blocks in use when most bytes were, by stack, over all
// devices (each at its own peak). Sizes are as asked for, before rounding.
func AtPeak(s *mem.AllocatorSnapshot) *mem.Profile {
	p := &mem.Profile{Label: s.Label, Default: 1, Kinds: spaceKinds()}
	without := recorderless{from: &s.Stacks, to: &p.Stacks, known: map[uint32]uint32{}}
	type key struct {
		device int
		stack  uint32
	}
	sums := map[key]*mem.ProfileSample{}
	for _, device := range s.AllDevices() {
		peak := s.Peak(device)
		if peak.Time > 0 {
			p.Time = peak.Time
		}
		name := deviceName(s, device)
		p.Notes = append(p.Notes, fmt.Sprintf("%s: %d bytes in %d blocks at the peak", name, int64(peak.Bytes), len(peak.Blocks)))
		for _, b := range peak.Blocks {
			k := key{device, without.stack(b.Stack)}
			if sums[k] == nil {
				sums[k] = &mem.ProfileSample{Stack: k.stack, Values: make([]int64, 2), Labels: map[string]string{"device": name}}
			}
			sums[k].Values[0]++
			sums[k].Values[1] += int64(b.Size)
		}
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b key) int {
		if a.device != b.device {
			return a.device - b.device
		}
		return int(int64(a.stack) - int64(b.stack))
	})
	for _, k := range keys {
		p.Samples = append(p.Samples, *sums[k])
	}
	return p
}

// recorderless copies stacks without the innermost frames that belong to PyTorch's own recording of
// them: every stack has the same, and they would take all of the credit.
type recorderless struct {
	from, to *mem.StackTable
	known    map[uint32]uint32
}

func (r *recorderless) stack(old uint32) uint32 {
	if id, ok := r.known[old]; ok {
		return id
	}
	var kept []uint32
	for _, l := range r.from.Frames(old) {
		if len(kept) > 0 || !recorder(l.Function) {
			kept = append(kept, r.to.Location(l))
		}
	}
	id := r.to.Add(kept)
	r.known[old] = id
	return id
}

func recorder(function string) bool {
	for _, name := range []string{"unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp"} {
		if strings.Contains(function, name) {
			return true
		}
	}
	return false
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
		peak := run.Heap[process].Peak
		if peak == nil {
			continue
		}
		name := "process"
		if of := run.Process(process); of != nil {
			name = fmt.Sprintf("process %d", of.PID)
		}
		for _, site := range peak.Sites {
			var stack []uint32
			for _, l := range run.Stacks[site.Stack] {
				stack = append(stack, p.Stacks.Location(l))
			}
			labels := map[string]string{"process": name}
			if site.Phase != "" {
				labels["phase"] = string(site.Phase)
			}
			p.Samples = append(p.Samples, mem.ProfileSample{Stack: p.Stacks.Add(stack), Labels: labels,
				Values: []int64{int64(site.Count), int64(site.Live)}})
		}
	}
	return p
}

// frameName is one line for a location: function, file and line.
func frameName(l mem.Location) string {
	switch {
	case l.File == "" || l.File == "??":
		return or(l.Function, "(unknown)")
	case l.Line == 0:
		return or(l.Function, "(unknown)") + " (" + l.File + ")"
	}
	return fmt.Sprintf("%s (%s:%d)", or(l.Function, "(unknown)"), l.File, l.Line)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
