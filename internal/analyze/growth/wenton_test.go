package growth

import (
	"testing"
	"time"

	"hightide/internal/mem"
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
