package analyze

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestPreallocated: the pool that JAX takes at its start is told from what it uses, and one that grew with its use is not.
func TestPreallocated(t *testing.T) {
	run := mem.NewRun()
	run.Add(mem.RunInfo{StartMono: 0})
	run.Add(mem.Process{ID: 1, Role: "main"})
	for i, s := range []struct {
		device string
		name   mem.Quantity
		values []int64
	}{
		{"gpu:0", mem.SeriesReserved, []int64{60 << 30, 60 << 30}}, {"gpu:0", mem.SeriesAllocated, []int64{1 << 20, 3 << 30}},
		{"gpu:1", mem.SeriesReserved, []int64{2 << 20, 60 << 30}}, {"gpu:1", mem.SeriesAllocated, []int64{1 << 20, 3 << 30}},
		{"gpu:2", mem.SeriesReserved, []int64{60 << 30, 60 << 30}}, {"gpu:2", mem.SeriesAllocated, []int64{1 << 20, 50 << 30}},
	} {
		id := uint32(i + 1)
		run.Add(mem.SeriesDef{ID: id, Process: 1, Device: s.device, Framework: "jax", Name: s.name, Unit: mem.UnitBytes, Label: mem.Measured})
		run.Add(mem.Samples{Series: id, Times: []int64{0, 100}, Values: s.values})
	}
	run.Add(mem.End{Time: 100})
	notes := strings.Join(Analyze(run, Options{}).Notes, "\n")
	if !strings.Contains(notes, "JAX had 60.0 GiB of gpu:0 from its first reading on, of which arrays and programs used at most 3.00 GiB") {
		t.Error(notes)
	}
	if strings.Contains(notes, "of gpu:1") || strings.Contains(notes, "of gpu:2") {
		t.Error(notes)
	}
}
