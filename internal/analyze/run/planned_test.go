package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestMovedAsPlanned: what a plan costs over PCIe is held against the run, as its peak is.
func TestMovedAsPlanned(t *testing.T) {
	for moved, want := range map[int64]string{
		3 << 20: "In the last step 3.00 MiB went to the host and back, as planned to the byte.",
		4 << 20: "4.00 MiB went to the host and back, 1.00 MiB (33.3 %) more than planned.",
		2 << 20: "2.00 MiB went to the host and back, 1.00 MiB (33.3 %) less than planned.",
		0:       "",
	} {
		p := &mem.Process{Facts: map[string]string{}, Numbers: map[string]int64{mem.NumberHosted: 1 << 20}}
		if p.Numbers[mem.NumberOffloaded] = moved - 1<<20; moved == 0 {
			p.Numbers = nil
		}
		e := &mem.Event{Kind: mem.EventPlan, Numbers: map[string]int64{"moved": 3 << 20}}
		if got := asMoved(e, p); !strings.HasSuffix(got, want) || want == "" && got != "" {
			t.Errorf("%d: %q, want %q", moved, got, want)
		}
		if got := asMoved(&mem.Event{Kind: mem.EventPlan}, p); got != "" {
			t.Errorf("a plan that moves nothing: %q", got)
		}
	}
}
