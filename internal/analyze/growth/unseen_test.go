package growth

import (
	"testing"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
)

// TestGoesOnUnseen: lines that rest while their container gains items rest by chance of the sample, unless far more would
// have been sampled since.
func TestGoesOnUnseen(t *testing.T) {
	for _, c := range []struct {
		name  string
		last  int64   // items at the end; 30 at the last look before
		slope float64 // bytes a minute
		cut   bool
		want  bool
	}{
		{"gains on", 40, 1 << 20, false, true},
		{"gains nothing more", 30, 1 << 20, false, false},
		{"far more would have been sampled", 40, 512 << 20, false, false},
		{"killed", 40, 1 << 20, true, false},
	} {
		run := mem.NewRun()
		run.Processes = []*mem.Process{{ID: 1}}
		for i, items := range []int64{10, 20, 30, c.last} {
			run.Holders = append(run.Holders, mem.Holder{Process: 1, Kind: "list", Name: "kept",
				Time: int64(i+1) * 10e9, Items: items, PerMin: 60})
		}
		run.End = &mem.End{Time: 41e9}
		in := &Found{Facts: facts.Of(run, nil)}
		g := growing{process: 1, slope: c.slope, stopped: 35e9, cut: c.cut, holder: &run.Holders[3],
			shares: []share{{process: 1}}}
		if got := in.goesOnUnseen(g); got != c.want || len(in.growing) != map[bool]int{true: 1}[got] {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
