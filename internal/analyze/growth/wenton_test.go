package growth

import (
	"testing"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// TestWentOn: what has filled between two looks is larger at the second one, and does not grow any more.
func TestWentOn(t *testing.T) {
	at := func(minutes float64, items int64) mem.Holder {
		return mem.Holder{Time: int64(minutes * float64(time.Minute)), Items: items, PerMin: 1000}
	}
	step := func(step uint64, items int64) mem.Holder { return mem.Holder{Step: step, Items: items, PerStep: 2} }
	for _, c := range []struct {
		name         string
		before, last mem.Holder
		want         bool
	}{
		{"grows on", at(1, 1000), at(2, 2000), true},
		{"grows on, unevenly", at(1, 1000), at(2, 1600), true},
		{"was full soon after the look", at(1, 1000), at(2, 1200), false},
		{"by steps", step(100, 200), step(200, 400), true},
		{"by steps, full", step(100, 200), step(200, 220), false},
		{"never seen before", mem.Holder{}, at(2, 2000), true},
	} {
		if got := wentOn(c.before, c.last); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestFilledIsNotJoined: an array that is replaced by one no larger any more is not what makes a line grow.
func TestFilledIsNotJoined(t *testing.T) {
	for _, c := range []struct {
		name string
		last int64
		want int
	}{{"grows on", 8 << 20, 1}, {"has filled", 6<<20 + 1000, 0}} {
		run := mem.NewRun()
		run.Processes = []*mem.Process{{ID: 1}}
		where := mem.Location{File: "train.py", Line: 3}
		for i, items := range []int64{2 << 20, 4 << 20, 6 << 20, c.last} {
			run.Holders = append(run.Holders, mem.Holder{Process: 1, Kind: "array", Name: "frame", Where: where,
				Time: int64(i+1) * 10e9, Items: items, PerMin: 12 << 20, Tensors: mem.Some(items)})
		}
		run.End = &mem.End{Time: 41e9}
		line := growingLine{}
		line.Site, line.Larger = &usage.Site{Location: where}, true
		if got := Find(facts.Of(run, nil)).joinLines(1, []growingLine{line}); len(got) != c.want {
			t.Errorf("%s: %d causes, want %d", c.name, len(got), c.want)
		}
	}
}
