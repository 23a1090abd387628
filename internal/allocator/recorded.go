package allocator

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/pytorch"
)

// What a snapshot says of the allocator that made it, and what it leaves to be worked out.

// SettingsOf reads the settings that a snapshot states. What is set by a function (memory fraction) is
// in no file.
func SettingsOf(s *mem.AllocatorSnapshot) (Settings, error) {
	settings, err := RulesFor(s)[0].Parse(s.Settings["PYTORCH_CUDA_ALLOC_CONF"])
	if err != nil {
		return Settings{}, err
	}
	if v, ok := s.Settings["max_split_size"]; ok {
		n, _ := strconv.ParseInt(v, 10, 64)
		settings.MaxSplit = max(mem.Bytes(n), 0)
	}
	if v, ok := s.Settings["garbage_collection_threshold"]; ok {
		settings.GCThreshold, _ = strconv.ParseFloat(v, 64)
	}
	if v, ok := s.Settings["expandable_segments"]; ok {
		settings.Expandable = strings.EqualFold(v, "true")
	}
	if v, ok := s.Settings["roundup_power2_divisions"]; ok {
		settings.Divisions = [16]int{}
		for i, pair := range strings.Split(v, ",") {
			_, divisions, _ := strings.Cut(pair, ":")
			n, err := strconv.Atoi(divisions)
			if i < len(settings.Divisions) && err == nil {
				settings.Divisions[i] = n
			}
		}
	}
	return settings, nil
}

// RulesFor lists the rules that may have made a snapshot, the likelier first: no file says which
// version of PyTorch wrote it.
func RulesFor(s *mem.AllocatorSnapshot) []Rules {
	v := s.Versions
	if !v.Known() {
		return []Rules{RulesOf(pytorch.Newest), RulesOf(pytorch.WithContext.Last)}
	}
	if v.First == (mem.Version{}) || v.Last == (mem.Version{}) {
		return []Rules{RulesOf(v.Bound())}
	}
	var rules []Rules
	for at := v.Last; !at.Before(v.First); at.Minor-- {
		if r := RulesOf(at); !slices.Contains(rules, r) {
			rules = append(rules, r)
		}
	}
	return rules
}

// poolsOf says which pool an event belongs to: as the trace has it, or of the final segment there, from when on what
// lay there before was freed.
func poolsOf(s *mem.AllocatorSnapshot, t *mem.Trace) func(event int) mem.PoolID {
	if len(t.Pool) > 0 {
		return func(i int) mem.PoolID { return t.Pool[i] }
	}
	private := privateRanges(s, t.Device)
	if len(private) == 0 {
		return func(int) mem.PoolID { return mem.PoolID{} }
	}
	for i, action := range t.Action {
		if action != mem.ActionSegmentFree {
			continue
		}
		for n := rangeAfter(private, t.Address[i]); n < len(private) && private[n].from < t.Address[i]+uint64(t.Size[i]); n++ {
			private[n].since = i + 1
		}
	}
	return func(i int) mem.PoolID {
		n := rangeAfter(private, t.Address[i])
		if n < len(private) && private[n].from <= t.Address[i] && private[n].since <= i {
			return private[n].pool
		}
		return mem.PoolID{}
	}
}

// poolRange is memory of a private pool, from when on it lies there.
type poolRange struct {
	from, to uint64
	since    int
	pool     mem.PoolID
}

// privateRanges are those of the final segments, by address.
func privateRanges(s *mem.AllocatorSnapshot, device int) []poolRange {
	var private []poolRange
	for _, g := range s.Segments {
		if g.Device == device && g.Pool != (mem.PoolID{}) {
			private = append(private, poolRange{g.Address, g.Address + uint64(g.Size), 0, g.Pool})
		}
	}
	slices.SortStableFunc(private, func(a, b poolRange) int { return cmp.Compare(a.from, b.from) })
	return private
}

// rangeAfter is the first range that ends behind an address.
func rangeAfter(private []poolRange, address uint64) int {
	n, _ := slices.BinarySearchFunc(private, address, func(p poolRange, address uint64) int {
		if p.to <= address {
			return -1
		}
		return 1
	})
	return n
}

// stacksOfFrees says whether frees have stacks of their own, of who freed, and not those of who allocated. Where no
// block of the trace tells, as it only frees, they are taken for their own: who freed is not called who allocated.
func stacksOfFrees(t *mem.Trace) bool {
	allocated, seen := map[uint64]uint32{}, 0
	for i := 0; i < t.Len() && seen < 200; i++ {
		switch t.Action[i] {
		case mem.ActionAlloc:
			allocated[t.Address[i]] = t.Stack[i]
		case mem.ActionFreeRequested, mem.ActionFreeCompleted:
			if stack, ok := allocated[t.Address[i]]; ok {
				if stack != t.Stack[i] {
					return true
				}
				seen++
				delete(allocated, t.Address[i])
			}
		}
	}
	return seen == 0
}
