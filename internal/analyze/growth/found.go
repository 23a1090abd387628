package growth

import (
	"math"
	"time"

	"hightide/internal/analyze/facts"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
)

// growing is one cause of growth: lines whose memory is kept, and the container that keeps it.
type growing struct {
	process  uint32
	shares   []share // of the processes and devices that show the same at once, summed
	others   int     // processes that showed the same at other times
	holder   *mem.Holder
	beside   []keeper // other containers that keep a part of it
	graph    bool     // autograd graphs are what is kept
	cycles   bool     // it waits in reference cycles for Python's collector
	lines    []growingLine
	slope    float64 // bytes per step (or minute)
	half     float64
	points   int     // that tell so, see usage.Trend
	kept     float64 // by the end
	keptHalf float64 // half width of its 95 % interval
	seen     float64 // bytes per step (or minute) in the sampled heap, where the sizes of the items say more; 0: not so
	whole    float64 // of a cause whose lines are known: by how much its process grows as a whole, where that is much more
	holes    float64 // of kept, free inside malloc's arenas, where that is most of it; 0: it is not, or not known
	early    float64 // bytes per step of the first half of a process as a whole, where that was a warm-up; 0: it was none
	source   string  // "heap", "rss", "device"
	label    mem.Label
	minutes  bool
	cut      bool  // its process was killed so soon after it stopped that it may only have been late
	stopped  int64 // when it came to rest, mono ns; 0: it went on to the end
}

// keeper is a container that keeps a part of what the lines of a cause allocate, beside the holder of that cause.
type keeper struct {
	*mem.Holder
	part float64 // of the growth, by the sizes of the newest items
}

// share is what one process adds to a growth, of the host or of one device.
type share struct {
	process uint32
	device  string // as its allocator calls it: "cuda:1"; empty: of the host, or not known
	slope   float64
	copies  float64 // by which it rises besides, for a moment: as a block that grows is copied
	passing bool    // others of its role had the same at other times: it goes with the process
}

// The least growth worth a word.
const (
	leastLine = float64(1 * mem.MiB) // kept by a line, before lines are put together
	leastHeap = float64(4 * mem.MiB) // kept by a cause, seen in the sampled heap
	// of the peak of the RSS of a process whose sampled heap shows its lines: malloc and threads take some without a cause
	leastUnseen = 0.03

	leastEnds = 16 // steps, and readings at their ends, that a process or a device as a whole is told from

	LeastLifeHeap = 1 * time.Second // where there are no steps
	leastLifeRSS  = 2 * time.Minute
	doubtOverTime = 0.8 // how sure a growth is where there are no steps
)

// The part of a process's growth from which on its lines explain it, or are at least one cause with it: a sampler
// does not see all that a library allocates, and malloc keeps holes between blocks.
const (
	explainsAll  = 0.4
	explainsSome = 0.2
)

// Found is what grows in a run, or grew and came to rest, and what is said of it.
type Found struct {
	*facts.Facts
	Said report.Part // findings, the worst first, tables and notes

	Rate, LeastTold   mem.Optional // per step of the whole run, and where that is 0 from how much on it is told
	RateError         mem.Optional // half width of its interval; of 0, what is not told
	RateLabel         mem.Label
	Looked, NotLooked string // from how much on growth would have been told; what was not looked for, and why
	Larger            string // the line whose blocks are replaced by larger ones

	growing, stopped []growing           // the causes
	totals           []total             // processes whose memory grows as a whole, and
	tested           map[uint32][]string // of what of each process that could be told: "rss", "device"
	leastTold        map[string]float64  // of each of these, the least growth that is told
	rateOff          map[string]float64  // of each of these, how far what all processes keep with a step may be off
	larger           []growingLine       // lines that hold more and more and keep nothing
	unsure           []growingLine       // lines that may grow, too near the noise of their samples
	unevenly         *mem.Holder         // gained items to the end, without a rate; nil: none
	log              log                 // of whole devices
	largerStep       string              // of a process whose steps take ever more: what is not known; empty: none is
	unjudged         map[string][]uint32 // processes whose "rss" or "device" rose, of which it tells
	filesClause      string              // what RSS rose by that is no growth; empty: nothing
}

// bytesPer rounds a rate to whole bytes.
func bytesPer(rate float64) mem.Bytes { return mem.Rounded(rate) }

// growingLine is a line of a process whose heap grows steadily.
type growingLine struct {
	usage.Growing
	process uint32
	objects bool // Python asked for it, to lay small objects of any line in
}

// total is the growth of one process as a whole.
type total struct {
	usage.Trend
	process  uint32
	source   string // "rss", "device"
	device   string // "cuda:1"; empty: of the host, or not known
	minutes  bool
	kept     float64 // by the end
	keptHalf float64
}

// sum adds up the lines of a cause, at a moment.
func (g *growing) sum(c *facts.Clock, at int64) {
	var variance, keptVariance float64
	passed := c.At(at)
	g.slope, g.kept = 0, 0
	for _, l := range g.lines {
		g.slope += l.Slope
		since := 0.0
		if l.Read > 0 && !c.Minutes {
			since = max(passed-c.At(l.Read), 0)
		}
		kept := l.kept(passed-since) + l.Slope*since
		g.kept += kept
		g.points = max(g.points, l.Points)
		variance += l.Half * l.Half
		// as far off as its rate is: it may have begun late, and then grew for less than all that passed
		off := l.Half * min(kept/l.Slope, passed)
		if since == 0 && float64(l.Held) == kept { // what it held, as the table of lines has it
			off = float64(usage.Half95(l.Off, l.Held))
		}
		keptVariance += off * off
	}
	g.half, g.keptHalf = math.Sqrt(variance), math.Sqrt(keptVariance)
}

// kept is what a line's growth has come to in so many steps or minutes: it may hold something else besides.
func (l *growingLine) kept(passed float64) float64 {
	if held := float64(l.Held); held <= (l.Slope+2*l.Half)*passed {
		return held
	}
	return l.Slope * passed
}

// growth over the window that was looked at.
func (g *growing) growth() float64 {
	var sum float64
	for _, l := range g.lines {
		sum += l.Growth
	}
	return sum
}

// where is the line a person should look at: the holder's, else where the bytes come from.
func (g *growing) where() mem.Location {
	if g.holder != nil && g.holder.Where.File != "" && g.holder.Where.Line > 0 {
		return g.holder.Where
	}
	if g.objects() && g.holder == nil {
		return mem.Location{File: mem.PythonObjects, Native: true}
	}
	if g.objects() { // it was asked for at a line that need not be the container's
		return mem.Location{}
	}
	if len(g.lines) > 0 {
		return g.lines[0].Site.Location
	}
	return mem.Location{}
}

// objects says whether most of it is Python's small objects.
func (g *growing) objects() bool { return len(g.lines) > 0 && g.lines[0].objects }

// card is a device that a log tells of as a whole, whoever used it.
type card struct {
	device string
	trend  usage.Trend // per minute
	peak   int64
	last   int64
	all    mem.Optional // what the device has
}

// log is what logs of whole devices tell, as nvidia-smi writes them.
type log struct {
	cards         []card // that grow over time, the fastest first
	contradicting []string
}
