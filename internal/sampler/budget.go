package sampler

import "time"

// Budget keeps all sampling under a share of one core, of several processes severalShare more. Ticks are paid from at
// most 60 % of it, PSS from the rest. It costs far more (about 50 ms for each GiB of 4 KiB pages, a tenth of that
// with huge pages, and the process cannot map memory meanwhile). So all are read together where footprint.go wants it
// and there is enough for it, else once there is enough for two. Pure: times are arguments, ns.
type Budget struct {
	share    float64
	interval float64

	perProcess float64 // smoothed cost of a tick divided by the processes it read
	reading    int     // processes that this tick reads
	tokens     float64 // ns of processor time that PSS may still take
	bought     bool    // and it reads more than its part of the share pays for
	last       int64
	several    bool // processes that may share memory are watched
	granted    bool // for those, at the beginning
}

const (
	minPSSEvery = int64(time.Second)
	// firstCost is the price of a reading before one has told it, in ns a byte: 50 ms a GiB. The reading of
	// a process that has just begun is mostly readingBase, and tells nothing.
	firstCost    = 50e6 / (1 << 30)
	tellingRSS   = 64 << 20
	readingBase  = 100e3 // ns: opening the file, walking the list of maps
	tickShare    = 0.6
	startTokens  = 100e6 // in advance, so that a short run has readings too: fifty seconds' worth
	tokensAtMost = 250e6
	severalShare = 0.005 // of a core more, while there are several processes
	severalGrant = 150e6
	smoothing    = 0.05
)

// NewBudget allows sampling every interval a share of one core.
func NewBudget(share float64, interval time.Duration) *Budget {
	return &Budget{share: share, interval: float64(interval), perProcess: 25e3, tokens: startTokens}
}

// Processes says how many of n processes to read in this tick: all, as a rule. In a tree that changes all is worth
// tokens: sums of what was read at different moments are then of no moment.
func (b *Budget) Processes(n int, changing bool) int {
	b.reading = min(n, max(1, int(tickShare*b.share*b.interval/b.perProcess)))
	b.bought = changing && n > b.reading && 2*float64(n-b.reading)*b.perProcess < b.tokens
	if b.bought {
		b.reading = n
	}
	return b.reading
}

// Full says that there is about as much as is kept for what may come, so that a reading nobody waits for is free.
func (b *Budget) Full() bool { return b.tokens > 0.8*startTokens }

// Rich says that there is enough for ticks that nobody waits for.
func (b *Budget) Rich() bool { return b.tokens > startTokens/4 }

// Several says whether several processes are watched: what they share has to be read, and is paid for besides.
func (b *Budget) Several(several bool) {
	b.several = several
	if several && !b.granted {
		b.granted = true
		b.tokens += severalGrant
	}
}

// Ticked counts the cost of a tick, that of its readings of processes within it, and what the time since the last one
// earned.
func (b *Budget) Ticked(now, cost, readings int64) {
	b.perProcess += smoothing * (float64(readings)/float64(max(b.reading, 1)) - b.perProcess)
	if b.last > 0 && now > b.last {
		passed := float64(now - b.last)
		over := max(0, float64(cost)-tickShare*b.share*passed) // one that was dearer than its part
		earned := (1-tickShare)*b.share*passed - over
		if !b.bought {
			earned = max(earned, 0.1*b.share*passed)
		}
		if b.several {
			earned += severalShare * passed
		}
		b.tokens = max(b.tokens+earned, 0)
	}
	b.last = now
}

// Affords says whether the budget can pay for that many readings of all processes.
func (b *Budget) Affords(live []*Process, times float64) bool {
	all := 0.0
	for _, p := range live {
		if !p.pssDenied && p.Usage.RSS > 0 {
			all += price(p)
		}
	}
	b.tokens = min(b.tokens, max(tokensAtMost, 2*all)) // a long pause is not a licence for a burst
	return all > 0 && times*all <= b.tokens
}

// Has says whether there are so many ns of processor time.
func (b *Budget) Has(cost float64) bool { return cost <= b.tokens }

// Spend takes off what something cost, ns.
func (b *Budget) Spend(cost int64) { b.tokens = max(b.tokens-float64(cost), 0) }

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
