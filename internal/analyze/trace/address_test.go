package trace

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"hightide/internal/format/torch"
	"hightide/internal/mem"
)

// TestProfilerWithoutAddresses: old versions of the profiler tell neither addresses nor totals. The running sum of
// bytes is right all the same, and what is not known is said.
func TestProfilerWithoutAddresses(t *testing.T) {
	file, err := os.Open("../../format/testdata/profiler-cpu.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	old := regexp.MustCompile(`"(Addr|Total Allocated|Total Reserved)": ?\d+, ?`).ReplaceAll(whole, nil)
	if bytes.Contains(old, []byte(`"Addr"`)) || len(old) == len(whole) {
		t.Fatal("the trace still has addresses")
	}
	peak := func(text []byte) (mem.Bytes, *mem.AllocatorSnapshot) {
		s, err := torch.ReadTrace(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return explained(t, s, Options{}).Peak.Allocated, s
	}
	want, _ := peak(whole)
	got, s := peak(old)
	if got != want || s.Label != mem.Estimated {
		t.Errorf("peak %v %s, want %v", got, s.Label, want)
	}
	if notes := strings.Join(s.Notes, " "); !strings.Contains(notes, "no addresses") ||
		!strings.Contains(notes, "before the trace began is not known") {
		t.Error(notes)
	}
}
