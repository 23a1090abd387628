package allocator_test

import (
	"os"
	"path/filepath"
	"testing"

	"hightide/internal/allocator"
	"hightide/internal/intake"
	"hightide/internal/mem"
)

func open(t testing.TB, name string) *mem.AllocatorSnapshot {
	t.Helper()
	in, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	s, err := intake.Torch(in)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestRealTraces: what ran on H100s must come out to the address.
func TestRealTraces(t *testing.T) {
	for _, test := range []struct {
		file                string
		addresses, segments int
	}{
		{"h100-lm-ctx128-train-step.pickle", 6770, 782 + 430},
		{"h100-lm-ctx256-forward-bf16.pickle", 2702, 598 + 459},
	} {
		s := open(t, filepath.Join("../../testdata/real", test.file))
		settings, err := allocator.SettingsOf(s)
		if err != nil {
			t.Fatal(err)
		}
		v, err := allocator.Verify(s, allocator.TraceOf(s, 0), settings)
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
	s := open(t, "../../testdata/real/mosaic-synthetic.pickle")
	settings, _ := allocator.SettingsOf(s)
	if v, err := allocator.Verify(s, allocator.TraceOf(s, 0), settings); err == nil {
		t.Errorf("verified: %+v", v)
	} else {
		t.Log(err)
	}
}
