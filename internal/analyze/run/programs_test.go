package run

import (
	"strings"
	"testing"

	"hightide/internal/mem"
)

// TestPreallocated: the pool that JAX takes at its start is told from what it uses, and one that grew with its use is
// not.
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
		{"gpu:2", mem.SeriesReserved, []int64{60 << 30, 60 << 30}},
		{"gpu:2", mem.SeriesAllocated, []int64{1 << 20, 50 << 30}},
	} {
		id := uint32(i + 1)
		run.Add(mem.SeriesDef{ID: id, Process: 1, Device: s.device, Framework: "jax", Name: s.name, Unit: mem.UnitBytes,
			Label: mem.Measured})
		run.Add(mem.Samples{Series: id, Times: []int64{0, 100}, Values: s.values})
	}
	run.Add(mem.End{Time: 100})
	notes := strings.Join(Analyze(run, Options{}).Notes, "\n")
	if !strings.Contains(notes,
		"JAX had 60.0 GiB of gpu:0 from its first reading on, of which arrays and programs used at most 3.00 GiB") {
		t.Error(notes)
	}
	if strings.Contains(notes, "of gpu:1") || strings.Contains(notes, "of gpu:2") {
		t.Error(notes)
	}
}

// TestGapsOnROCm: the setting that is named is the one that PyTorch for that device reads.
func TestGapsOnROCm(t *testing.T) {
	for fact, want := range map[string]string{"torch.hip": "PYTORCH_HIP_ALLOC_CONF",
		"torch.accelerator": "Set PYTORCH_ALLOC_CONF", "torch.cuda": "PYTORCH_CUDA_ALLOC_CONF"} {
		run := mem.NewRun()
		run.Add(mem.RunInfo{StartMono: 0})
		run.Add(mem.Process{ID: 1, Role: "main", Facts: map[string]string{fact: "6.4"}})
		for i, s := range []struct {
			name  mem.Quantity
			value int64
		}{{mem.SeriesReserved, 40 << 30}, {mem.SeriesInactiveSplit, 20 << 30}} {
			id := uint32(i + 1)
			run.Add(mem.SeriesDef{ID: id, Process: 1, Device: "cuda:0", Framework: "torch", Name: s.name, Unit: mem.UnitBytes,
				Label: mem.Measured})
			run.Add(mem.Samples{Series: id, Times: []int64{0}, Values: []int64{s.value}})
		}
		run.Add(mem.End{Time: 100})
		found := Analyze(run, Options{}).Findings
		if len(found) != 1 || !strings.Contains(found[0].Advice, want) {
			t.Errorf("%s: %+v", fact, found)
		}
	}
}
