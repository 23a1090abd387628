package allocator

import (
	"errors"
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestParse: the forms that PyTorch 2.15 was seen to take.
func TestParse(t *testing.T) {
	all := func(n int) (d [16]int) { return sameDivisions(n) }
	for _, test := range []struct {
		line string
		want Settings
	}{
		{"", Settings{}},
		{"backend:native,", Settings{Backend: "native"}},
		{"backend:cudaMallocAsync", Settings{Backend: "cudaMallocAsync"}},
		{" expandable_segments : True , max_split_size_mb:\t128", Settings{Expandable: true, MaxSplit: 128 * mem.MiB}},
		{"expandable_segments:False", Settings{}},
		{"max_split_size_mb:-1", Settings{}},
		{"large_segment_size_mb:32,max_split_size_mb:32,max_non_split_rounding_mb:40",
			Settings{LargeSegment: 32 * mem.MiB, MaxSplit: 32 * mem.MiB, MaxNonSplitRound: 40 * mem.MiB}},
		{"garbage_collection_threshold:0.6,per_process_memory_fraction:0.5,throw_on_cudamalloc_oom:True",
			Settings{GCThreshold: 0.6, Fraction: 0.5, ThrowOnCudaMalloc: true}},
		{"expandable_segments_reserve:0.5", Settings{ReserveFraction: 0.5}},
		{"expandable_segments_reserve:40G,expandable_segments_reserve_by_class:[a:1]", Settings{ReserveBytes: 40 * mem.GiB}},
		{"pinned_num_register_threads:8,pinned_use_cuda_host_register:True", Settings{}},
		{"roundup_power2_divisions:4", Settings{Divisions: all(4)}},
		{"roundup_power2_divisions:[256:1,512:2,>:4]",
			Settings{Divisions: [16]int{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 4, 4, 4, 4, 4, 4}}},
		{"roundup_power2_divisions:[64:8,256:4,1024:4,>:1]",
			Settings{Divisions: [16]int{8, 8, 8, 8, 8, 8, 8, 0, 4, 0, 4, 1, 1, 1, 1, 1}}},
		{"roundup_power2_divisions:[>:8]", Settings{Divisions: [16]int{0, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8}}},
		{"roundup_power2_divisions:[65536:0]", Settings{}},
	} {
		got, err := Rules{}.Parse(test.line)
		if err != nil || got != test.want {
			t.Errorf("%q: %+v, %v; want %+v", test.line, got, err, test.want)
			continue
		}
		if again, err := (Rules{}).Parse(got.String()); err != nil || again.String() != got.String() || again.Divisions != got.Divisions {
			t.Errorf("%q: written as %q and read as %+v, %v", test.line, got.String(), again, err)
		}
	}
	older, err := RulesOf(minor(6)).Parse("roundup_power2_divisions:[64:8,256:4,>:2]")
	if err != nil || older.Divisions[8] != 2 || older.Divisions[6] != 8 {
		t.Errorf("older parsers begin the rest at the last size: %v, %v", older.Divisions, err)
	}
}

// TestParseRefuses: what is wrong is named.
func TestParseRefuses(t *testing.T) {
	for line, says := range map[string]string{
		"max_split_size_mb":                             "is not key:value",
		"max_split_size_mb=128":                         "write : instead of =",
		"max_split_size_mb:":                            "has no value",
		"max_split_mb:128":                              "did you mean max_split_size_mb",
		"nothing:1":                                     "is not an option that PyTorch knows",
		"backend:jemalloc":                              "neither native nor cudaMallocAsync",
		"expandable_segments:true":                      "neither True nor False",
		"max_split_size_mb:x":                           "not a whole number",
		"max_split_size_mb:19":                          "must be at least 20",
		"max_non_split_rounding_mb:5":                   "must be at least 20",
		"large_segment_size_mb:10":                      "less than 11",
		"garbage_collection_threshold:1":                "not between 0 and 1",
		"garbage_collection_threshold:0":                "not between 0 and 1",
		"garbage_collection_threshold:x":                "not between 0 and 1",
		"per_process_memory_fraction:-1":                "not between 0 and 1",
		"per_process_memory_fraction:x":                 "not between 0 and 1",
		"expandable_segments_reserve:0G":                "not a number of GiB",
		"expandable_segments_reserve:1e9G":              "not a number of GiB",
		"expandable_segments_reserve:x":                 "neither a part of the memory",
		"expandable_segments_reserve:100":               "neither a part of the memory",
		"expandable":                                    "is not key:value",
		"expandable:True":                               "did you mean expandable_segments",
		"expandable_segments_reserve_by_classes:1":      "did you mean expandable_segments_reserve_by_class",
		"per_process_memory_fraction:2":                 "not between 0 and 1",
		"expandable_segments_reserve:xG":                "not a number of GiB",
		"expandable_segments_reserve:-1":                "neither a part of the memory",
		"pinned_num_register_threads:x":                 "not a whole number",
		"roundup_power2_divisions:3":                    "not a power of two",
		"roundup_power2_divisions:[1:2":                 "no ] at its end",
		"roundup_power2_divisions:[1]":                  "not size:divisions",
		"roundup_power2_divisions:[1:3]":                "divisions",
		"roundup_power2_divisions:[3:2]":                "not a power of two",
		"release_lock_on_cudamalloc:1":                  "neither True nor False",
		"large_segment_size_mb:64,max_split_size_mb:32": "must be at least 64",
	} {
		_, err := Rules{}.Parse(line)
		var conf *ConfError
		if !errors.As(err, &conf) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", line, err, says)
		}
	}
}

// TestRound: rounding as PyTorch does it, by division.
func TestRound(t *testing.T) {
	for _, test := range []struct {
		divisions int
		n, want   mem.Bytes
	}{
		{0, 1, 512}, {0, 513, 1024}, {4, 1200, 1536}, {4, 2049, 2560}, {4, 1200 << 10, 1310720}, {4, 5 << 20, 5 << 20},
		{4, 5<<20 + 1, 6 << 20}, {4, 4 << 20, 4 << 20},
		{2, 2<<20 + 1, 3 << 20}, {2, 3<<20 + 1, 4 << 20}, {2, 1025, 1536}, {8, 100<<20 + 1, 104 << 20}, {8, 4097, 4608},
		{1, 3<<20 + 1, 3<<20 + 512},
	} {
		s := Settings{Divisions: sameDivisions(test.divisions)}
		if got := s.Round(test.n); got != test.want {
			t.Errorf("%d divisions: %d becomes %d, want %d", test.divisions, test.n, got, test.want)
		}
	}
}

// TestFractionOfOne: up to 2.9 a fraction of 1 is a limit, and garbage is collected below it; from 2.15 on it is none.
// PyTorch 2.6 and 2.15 did so on an A10.
func TestFractionOfOne(t *testing.T) {
	for _, test := range []struct {
		version mem.Version
		frees   int64
	}{{minor(6), 2}, {minor(9), 2}, {minor(15), 0}} {
		const memory = 22 * mem.GiB
		n := NewNative(Settings{GCThreshold: 0.1}, RulesOf(test.version), memory, &Device{Capacity: memory})
		n.LimitFraction(1)
		ask := func(size mem.Bytes) Handle { return n.Malloc(Request{Size: size}) }
		for _, h := range []Handle{ask(mem.GiB), ask(mem.GiB), ask(mem.GiB)} {
			n.Free(h)
		}
		last := ask(200 * mem.MiB)
		for range 3 {
			next := ask(200 * mem.MiB)
			n.Free(last)
			last = next
		}
		ask(1500 * mem.MiB)
		if got := n.Usage().DeviceFrees; int64(got) != test.frees {
			t.Errorf("2.%d gives %d segments back, want %d", test.version, got, test.frees)
		}
	}
}
