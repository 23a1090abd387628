package trace

import (
	"strings"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/testkit"
)

// TestDiffNamesDevices: where a side has several devices, the ones compared are named; where none has, nothing is
// said of it.
func TestDiffNamesDevices(t *testing.T) {
	one, two := testkit.Snapshot(t, "imagined/leak-a10.pickle"), testkit.Snapshot(t, "imagined/leak-a10.pickle")
	if d, err := Diff(one, two, 0, 0, ""); err != nil || strings.Contains(d.Table().Note, "Device") {
		t.Fatal(d, err)
	}
	two.Traces = append(two.Traces, mem.Trace{Device: 2})
	if d, err := Diff(one, two, 0, 0, ""); err != nil ||
		!strings.Contains(d.Table().Note, "Device 0 before is compared with device 0 after") {
		t.Fatal(d.Table().Note, err)
	}
}
