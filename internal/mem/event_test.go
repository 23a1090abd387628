package mem

import (
	"maps"
	"testing"
)

// TestNumbersOfOldRecordings: integers that an event had in words are integers once it is read, and what is none is not.
func TestNumbersOfOldRecordings(t *testing.T) {
	for kind, test := range map[string]struct {
		facts, left map[string]string
		numbers     map[string]int64
	}{
		EventGarbage: {map[string]string{"often": "4", "device_bytes": "1048576"}, map[string]string{},
			map[string]int64{"often": 4, "device_bytes": 1 << 20}},
		EventDescriptors: {map[string]string{"1": "560 /data/*.txt", "2": "3 socket"},
			map[string]string{"1": "/data/*.txt", "2": "socket"}, map[string]int64{"1": 560, "2": 3}},
		"oom": {map[string]string{"source": "python", "limit": "4294967296", "mapped": "a lot"},
			map[string]string{"source": "python"}, map[string]int64{"limit": 4 << 30}},
		"exception": {map[string]string{"class": "ValueError", "count": "3"},
			map[string]string{"class": "ValueError", "count": "3"}, nil},
	} {
		run := NewRun()
		if err := run.Add(Event{Kind: kind, Facts: maps.Clone(test.facts)}); err != nil {
			t.Fatal(err)
		}
		if err := run.Add(Process{ID: 1, Facts: map[string]string{"heap": "sampled", "heap_mean_bytes": "524288",
			"peak_before_bytes": "much"}}); err != nil {
			t.Fatal(err)
		}
		if p := run.Processes[0]; p.HeapMean != Some(512*int64(KiB)) || p.PeakBefore.Known() || len(p.Facts) != 1 {
			t.Errorf("%+v", p)
		}
		if e := run.Events[0]; !maps.Equal(e.Facts, test.left) || !maps.Equal(e.Numbers, test.numbers) {
			t.Errorf("%s: %v, %v", kind, e.Facts, e.Numbers)
		}
	}
}
