package allocator_test

import (
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// TestRealTraces: what ran on H100s must come out to the address.
func TestRealTraces(t *testing.T) {
	for _, test := range []struct {
		file                string
		addresses, segments int
	}{
		{"h100-lm-ctx128-train-step.pickle", 6770, 782 + 430},
		{"h100-lm-ctx256-forward-bf16.pickle", 2702, 598 + 459},
	} {
		s := testkit.Snapshot(t, "real/"+test.file)
		settings, err := allocator.SettingsOf(s)
		if err != nil {
			t.Fatal(err)
		}
		v, err := allocator.Verify(s, allocator.TraceOf(s, 0), settings, 0)
		if err != nil {
			t.Fatal(err)
		}
		if v.First != "" || v.AddressesExact != test.addresses || v.AddressesTotal != test.addresses ||
			v.SegmentsExact != test.segments || v.SegmentsTotal != test.segments {
			t.Errorf("%s: %+v", test.file, v)
		}
	}
}

// TestSynthetic: a made-up file is refused, and says where it contradicts itself.
func TestSynthetic(t *testing.T) {
	s := testkit.Snapshot(t, "real/mosaic-synthetic.pickle")
	settings, _ := allocator.SettingsOf(s)
	if v, err := allocator.Verify(s, allocator.TraceOf(s, 0), settings, 0); err == nil {
		t.Errorf("verified: %+v", v)
	} else {
		t.Log(err)
	}
}

// TestRecord: what a replay records is a history like a real one. The model agrees with it to the
// address, and under the settings of the record its peaks are the record's.
func TestRecord(t *testing.T) {
	for _, file := range []string{"real/h100-lm-ctx128-train-step.pickle", "real/h100-lm-ctx256-forward-bf16.pickle",
		"imagined/oom-a10-pieces.pickle"} {
		s := testkit.Snapshot(t, file)
		trace := allocator.TraceOf(s, 0)
		recorded, err := allocator.SettingsOf(s)
		if err != nil {
			t.Fatal(err)
		}
		p, err := allocator.Compile(s, trace, recorded)
		if err != nil {
			t.Fatal(err)
		}
		for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:64,roundup_power2_divisions:4"} {
			settings, err := allocator.Rules{}.Parse(conf)
			if err != nil {
				t.Fatal(err)
			}
			for _, capacity := range []mem.Bytes{0, 30 * mem.GiB} {
				setup := allocator.Setup{Settings: settings, Rules: allocator.RulesFor(s)[0], Capacity: capacity}
				out, snapshot := allocator.Record(p, setup, s, trace)
				if plain := allocator.Run(p, setup); plain.Usage != out.Usage {
					t.Errorf("%s %q: recorded %+v, otherwise %+v", file, conf, out.Usage, plain.Usage)
				}
				if snapshot.Label != mem.Replayed || snapshot.Totals(0).Reserved != out.Usage.Reserved {
					t.Errorf("%s %q: %v, %+v", file, conf, snapshot.Label, snapshot.Totals(0))
				}
				again, err := allocator.SettingsOf(snapshot)
				if err != nil || again != settings {
					t.Errorf("%s %q: settings %+v, %v", file, conf, again, err)
				}
				v, err := allocator.Verify(snapshot, allocator.TraceOf(snapshot, 0), settings, 0)
				if err != nil || !v.Exact() || v.AddressesTotal == 0 {
					t.Errorf("%s %q in %v: %+v, %v", file, conf, capacity, v, err)
				}
			}
		}
	}
}
