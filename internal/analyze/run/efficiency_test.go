package run

import (
	"testing"

	"hightide/internal/mem"
)

// TestEfficiency: the mean of the parts that are known, whatever is not known left out.
func TestEfficiency(t *testing.T) {
	const second = int64(1e9)
	host := func(values ...int64) *mem.Run {
		run := mem.NewRun()
		run.Add(mem.RunInfo{})
		run.Add(mem.Process{ID: 1, Role: "main"})
		run.Add(mem.SeriesDef{ID: 1, Name: mem.SeriesTreeRSS, Unit: mem.UnitBytes})
		s := mem.Samples{Series: 1}
		for i, v := range values {
			s.Times, s.Values = append(s.Times, int64(i)*second), append(s.Values, v<<20)
		}
		run.Add(s)
		return run
	}
	device := host(100, 100, 100, 100)
	for id, values := range map[uint32][]int64{2: {800, 1000, 1000, 1000}, 3: {800, 750, 750, 700}} {
		name := map[uint32]mem.Quantity{2: mem.SeriesReserved, 3: mem.SeriesAllocated}[id]
		device.Add(mem.SeriesDef{ID: id, Process: 1, Device: "cuda:0", Framework: "torch", Name: name, Unit: mem.UnitBytes})
		for i := range values {
			values[i] <<= 20
		}
		device.Add(mem.Samples{Series: id, Times: []int64{0, second, 2 * second, 3 * second}, Values: values})
	}
	faulting := host(100, 100, 100, 100, 100) // four seconds
	faulting.Add(mem.SeriesDef{ID: 9, Process: 1, Name: mem.SeriesMajorFaults, Unit: mem.UnitCount})
	faulting.Add(mem.Samples{Series: 9, Times: []int64{0, 4 * second}, Values: []int64{0, 20_000}}) // two seconds of them
	tests := []struct {
		name string
		run  *mem.Run
		want int64
	}{
		{"all the time", host(100, 100, 100, 100), 10_000},
		{"for a moment", host(100, 100, 400, 100), 2_500},
		{"a quarter idle on the device", device, (10_000 + 7_500) / 2},
		{"half of the time in faults", faulting, (10_000 + 5_000) / 2},
	}
	for _, test := range tests {
		r := Analyze(test.run, Options{})
		if got, ok := r.Headline.Efficiency.Get(); !ok || got != test.want {
			t.Errorf("%s: %d, want %d: %v", test.name, got, test.want, table(t, r, "efficiency").Rows)
		}
	}
	if r := Analyze(host(0, 0), Options{}); r.Headline.Efficiency.Known() {
		t.Error("a run without memory has a score")
	}
}
