package sampler

import "time"

// Budget keeps all sampling under a share of one core. Ticks are paid from at most 60 % of it, PSS from
// the rest. It costs far more (about 50 ms for each GiB of 4 KiB pages, a tenth of that with huge
// pages, and the process cannot map memory meanwhile), so its interval follows from its measured price: at
// 0.2 % a training of 1 GiB is read about every 25 s, one of 12 GiB every five minutes. Each process is
// read once soon after it appears where that is affordable. Pure: times are arguments, ns.
type Budget struct {
	share    float64
	interval float64

	perProcess float64 // smoothed cost of a tick divided by the processes it read
	reading    int     // processes that this tick reads
	tokens     float64 // ns of processor time that PSS may still take
	last       int64
}

const (
	minPSSEvery = int64(time.Second)
	// firstCost is the price of a reading before one has told it, in ns a byte: 50 ms a GiB. The reading of
	// a process that has just begun is mostly readingBase, and tells nothing.
	firstCost    = 50e6 / (1 << 30)
	tellingRSS   = 64 << 20
	readingBase  = 100e3 // ns: opening the file, walking the list of maps
	tickShare    = 0.6
	startTokens  = 20e6 // in advance, so that a short run has a reading too: ten seconds' worth
	tokensAtMost = 40e6
	smoothing    = 0.05
)

// NewBudget allows sampling every interval a share of one core.
func NewBudget(share float64, interval time.Duration) *Budget {
	return &Budget{share: share, interval: float64(interval), perProcess: 25e3, tokens: startTokens}
}

// Processes says how many of n processes to read in this tick: all, as a rule.
func (b *Budget) Processes(n int) int {
	b.reading = min(n, max(1, int(tickShare*b.share*b.interval/b.perProcess)))
	return b.reading
}

// Ticked counts the cost of a tick and what the time since the last one earned.
func (b *Budget) Ticked(now, cost int64) {
	b.perProcess += smoothing * (float64(cost)/float64(max(b.reading, 1)) - b.perProcess)
	if b.last > 0 && now > b.last {
		passed := float64(now - b.last)
		over := max(0, float64(cost)-tickShare*b.share*passed) // one that was dearer than its part
		b.tokens += max((1-tickShare)*b.share*passed-over, 0.1*b.share*passed)
	}
	b.last = now
}

// Next is the process whose PSS is to be read now: the one whose reading is oldest, once the budget
// can pay for it. nil: none.
func (b *Budget) Next(now int64, live []*Process) *Process {
	var oldest *Process
	dearest := float64(tokensAtMost)
	for _, p := range live {
		if p.pssDenied || p.Usage.RSS == 0 {
			continue
		}
		dearest = max(dearest, price(p))
		if p.pssLast > 0 && now-p.pssLast < minPSSEvery {
			continue
		}
		if oldest == nil || p.pssLast < oldest.pssLast {
			oldest = p
		}
	}
	b.tokens = min(b.tokens, dearest) // a long pause is no licence for a burst
	if oldest == nil || price(oldest) > b.tokens {
		return nil
	}
	return oldest
}

// price predicts what reading p costs, ns: no less than the last time.
func price(p *Process) float64 {
	slope := firstCost
	if p.pssRSS >= tellingRSS {
		slope = float64(p.pssCost) / float64(p.pssRSS)
	}
	return max(float64(p.pssCost), readingBase+slope*float64(p.Usage.RSS))
}

// Paid counts a reading of p.
func (b *Budget) Paid(p *Process, now, cost int64) {
	b.tokens -= float64(cost)
	if p.pssLast > 0 {
		p.pssEvery = now - p.pssLast
	}
	p.pssLast, p.pssCost, p.pssRSS = now, max(cost, 1), p.Usage.RSS
}
