package analyze

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// TestPinnedRounding: PyTorch records pinned memory after it rounded it up, so nothing "lost to rounding" is
// measured; 2.2 GiB took 4 here.
func TestPinnedRounding(t *testing.T) {
	for _, test := range []struct {
		size mem.Bytes
		says string
	}{
		{4 * mem.GiB, "4.00 GiB may be for little more than 2.00 GiB"},
		{2362232012, ""}, // with pinned_max_round_threshold_mb
		{64 * mem.MiB, ""},
	} {
		s := &mem.AllocatorSnapshot{Label: mem.Measured,
			HostSegments: []mem.Segment{{Device: mem.HostDevice, Address: 1 << 40, Size: test.size,
				Blocks: []mem.Block{{Address: 1 << 40, Size: test.size, Requested: test.size, State: mem.BlockAllocated}}}}}
		x := Explaining{Report: report.New(), Options: ExplainOptions{}}
		if err := x.Add(s, "x", nil); err != nil {
			t.Fatal(err)
		}
		if err := x.Finish(); err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, f := range x.Report.Findings {
			said += f.Title
		}
		if !strings.Contains(said, test.says) || test.says == "" && said != "" {
			t.Errorf("%v: %q, want %q", test.size, said, test.says)
		}
		if text := x.Report.Text(report.TextOptions{Width: 100}); strings.Contains(text, "lost to rounding") || !strings.Contains(text, "blocks in use, with what rounding added") {
			t.Errorf("%v:\n%s", test.size, text)
		}
	}
}
