package sampler

import (
	"testing"
	"time"
)

// play runs an hour of ticks against processes whose PSS costs a given time. It returns the share of
// a core that was spent and how often all were read. That is whenever the budget has enough for it, or for twice that.
func play(tickCost int64, prices []int64, rss []int64, times float64) (share float64, reads int, longest int64) {
	b := NewBudget(0.005, 100*time.Millisecond)
	var live []*Process
	for _, r := range rss {
		live = append(live, &Process{Usage: Usage{RSS: r}})
	}
	spent, last := int64(0), int64(0)
	const hour = 3600e9
	for now := int64(1); now < hour; now += 100e6 {
		cost := tickCost * int64(b.Processes(len(live), false))
		b.Ticked(now, cost, cost)
		spent += cost
		if !b.Affords(live, times) || reads > 0 && now-last < minPSSEvery {
			continue
		}
		for i, p := range live {
			b.Paid(p, now, prices[i])
			spent += prices[i]
		}
		reads++
		longest = max(longest, now-last)
		last = now
	}
	return float64(spent) / hour, reads, longest
}

// TestBudget: whatever there is to read, half a percent of a core is not passed, and every process
// is read again and again.
func TestBudget(t *testing.T) {
	const gib = 1 << 30
	price := func(rss int64) int64 { return rss / gib * 50e6 }
	for _, test := range []struct {
		name     string
		tick     int64
		prices   []int64
		rss      []int64
		every    time.Duration // at most
		cheapest bool          // it is read once a second, as often as makes sense
	}{
		{"small", 15e3, []int64{1e6}, []int64{50 << 20}, time.Second, true},
		{"1 GiB", 15e3, []int64{price(gib)}, []int64{gib}, 26 * time.Second, false},
		{"4 GiB", 15e3, []int64{price(4 * gib)}, []int64{4 * gib}, 105 * time.Second, false},
		{"12 GiB", 15e3, []int64{price(12 * gib)}, []int64{12 * gib}, 310 * time.Second, false},
		{"1 GiB of huge pages", 15e3, []int64{1e6}, []int64{gib}, 20 * time.Second, false},
		{"eight workers", 15e3, []int64{price(2 * gib), 10e6, 10e6, 10e6, 10e6, 10e6, 10e6, 10e6},
			[]int64{2 * gib, gib / 4, gib / 4, gib / 4, gib / 4, gib / 4, gib / 4, gib / 4}, 100 * time.Second, false},
		{"two hundred", 15e3, many(200, 2e6), many(200, 30<<20), 12 * time.Minute, false},
	} {
		share, reads, longest := play(test.tick, test.prices, test.rss, 1)
		t.Logf("%s: %.3f %% of a core, read %d times, at most %v apart", test.name, share*100, reads, time.Duration(longest))
		if share > 0.00505 {
			t.Errorf("%s: %.3f %% of a core", test.name, share*100)
		}
		if reads < 2 || longest > int64(test.every)+200e6 || test.cheapest && reads < 3500 {
			t.Errorf("%s: read %d times, at most %v apart", test.name, reads, time.Duration(longest))
		}
	}
}

func many(n int, value int64) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = value
	}
	return all
}

// TestBudgetAfterStart: the reading of a process that has just begun, dear for its size, does not put off
// the next one beyond what the size it reaches costs.
func TestBudgetAfterStart(t *testing.T) {
	const gib, at = 1 << 30, int64(100e6)
	b := NewBudget(0.005, 100*time.Millisecond)
	p := &Process{Usage: Usage{RSS: 3 << 20}}
	b.Ticked(at, 15e3, 15e3)
	if !b.Affords([]*Process{p}, 1) {
		t.Fatal("a process that has just begun is not read")
	}
	b.Paid(p, at, 1e6)
	p.Usage.RSS = gib
	for now := 2 * at; ; now += at {
		b.Ticked(now, 15e3, 15e3)
		if b.Affords([]*Process{p}, 1) {
			t.Logf("read again after %v", time.Duration(now-at))
			return
		}
		if now > 30e9 {
			t.Fatal("not read again within half a minute")
		}
	}
}
