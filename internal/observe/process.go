package observe

import (
	"encoding/json"
	"maps"

	"hightide/internal/frameworks"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/processes"
	"hightide/internal/shm"
)

// procKey identifies a process for as long as the machine runs: pids are used again, with the
// start time they are not.
type procKey struct {
	pid   int
	start uint64 // clock ticks since boot
}

// process is one observed process and the state kept for it: what the sampler saw of it from
// outside and what its helpers say from inside come together here.
type process struct {
	mem.Process
	key   procKey
	dirty bool // the frame must be written again
	hello bool // an agent has spoken

	listened bool   // it was looked at for a Python that has not
	silent   string // why that may be
	bye      bool   // and has told the high-water mark when the interpreter began to end
	final    bool   // the heap library has told it at the very end

	compiling Compiling

	spans  *openSpans
	steps  stepSelection
	heap   *liveHeap // nil until a heap channel opens
	pages  pagemap
	looked []looked // found by the last look, to be counted at the next
	counts mallocCounts

	rss          mem.Optional // newest
	rssAt        int64        // when that was
	crash        *crash       // what its fault handler wrote; nil: nothing
	queued       int64        // ns that its first thread had waited for a processor
	queuedAt     int64        // when that was; 0: not known
	together     [2]int64     // RSS and PSS of the tree when it was last a part of it; 0: not known
	highest      int64        // of its RSS samples
	summed       int64        // the highest that what the tree had together knows of
	earlier      int64        // the kernel's mark of it when the recording began, of one that ran before; else 0
	part         int64        // its own RSS when it was last a part of the tree
	channels     []*channel
	series       map[agentSeries]*column
	facts        map[string]string
	numbers      map[string]int64
	dropped      map[string]mem.Drop // by place
	growth       growth
	overTime     growth            // where no steps are taken
	files        growth            // of its open descriptors
	garbage      garbage           // that was in reference cycles
	shortages    []shortage        // that the agent may still tell of
	shortAt      map[shortKey]bool // that were told
	lastUse      int64             // when HeapUse was last written
	atSpans      int               // how often that was for the edge of a span
	lastPeak     int64
	lastAges     int64
	unaged       bool // a picture of the peak was written, and no ages with it
	lastStep     uint64
	stepped      int64            // when that was
	deviceMemory map[string]int64 // bytes of each device, as its framework calls it
	watched      bool             // the sampler sees it, and will say when it is gone
	joined       bool             // the sampler was asked to look at it
	gone         bool             // its channels are drained once more and then given up
	saved        bool             // what the engine after us would need of it lies beside its channels
}

// agentSeries is the id that an agent's channel gave to a series.
type agentSeries struct {
	channel *channel
	id      uint32
}

// process returns the state of a process, made at first sight.
func (r *Recorder) process(key procKey) *process {
	if p := r.procs[key]; p != nil {
		return p
	}
	id := uint32(len(r.order) + 1)
	p := &process{
		Process: mem.Process{ID: id, PID: key.pid, StartTicks: key.start, Start: r.now()},
		key:     key, dirty: true, spans: newOpenSpans(id), steps: newStepSelection(id),
		overTime: growth{overTime: true}, files: growth{overTime: true, least: leastFiles},
		series: map[agentSeries]*column{}, facts: map[string]string{}, numbers: map[string]int64{},
		dropped: map[string]mem.Drop{},
	}
	if start := r.began(key.start); start > 0 && key.start > 0 {
		p.Start = max(start, r.info.StartMono)
	}
	r.procs[key] = p
	r.byPID[key.pid] = p
	r.order = append(r.order, p)
	return p
}

// waits tells the helpers inside what part of the last second the process waited for a processor: what they allow
// themselves is a share of the time that it has one.
func (p *process) waits(queued, at int64) {
	since, before := at-p.queuedAt, p.queuedAt
	if since <= 0 {
		return
	}
	waited := max(queued-p.queued, 0)
	p.queued, p.queuedAt = queued, at
	if before == 0 {
		return
	}
	for _, c := range p.channels {
		if c.mapping != nil {
			c.reader.Waiting(uint64(min(waited, since)) * shm.WholeTime / uint64(since))
		}
	}
}

// readCrash takes in what the fault handler of a process that has ended wrote.
func (p *process) readCrash() {
	for _, c := range p.channels {
		if c.role == shm.RoleAgent && p.crash == nil {
			p.crash = crashOf(c.path)
		}
	}
	if p.crash != nil && p.Role != "main" { // only its parent hears how a process ended
		p.Signal = mem.Some(int64(p.crash.signal))
	}
}

// fact notes something about a process; the last one said of a key stands.
func (p *process) fact(key, value string) {
	if old, ok := p.facts[key]; !ok || old != value {
		p.facts[key] = value
		p.dirty = true
	}
}

// number notes something about a process that is an integer, likewise.
func (p *process) number(key string, n int64) {
	if old, ok := p.numbers[key]; !ok || old != n {
		p.numbers[key] = n
		p.dirty = true
	}
}

// frame is the process as it is now. Its maps are copies.
func (p *process) frame() mem.Process {
	f := p.Process
	if len(p.facts) > 0 {
		f.Facts = maps.Clone(p.facts)
	}
	if len(p.numbers) > 0 {
		f.Numbers = maps.Clone(p.numbers)
	}
	f.Frameworks = maps.Clone(p.Frameworks)
	return f
}

// takeRecord hands one record of a channel to that state.
func (r *Recorder) takeRecord(p *process, c *channel, record shm.Record) {
	if r.recovering {
		r.lastKnown = max(r.lastKnown, record.When())
	}
	switch record := record.(type) {
	case *shm.Edge:
		p.spans.edge(record)
		if record.Phase == mem.PhaseUser {
			r.heapAtSpan(p, record.When())
		}
	case *shm.Step:
		r.step(p, record)
	case *shm.Counters:
		r.counters(p, c, record)
	case *shm.JSON:
		r.message(p, c, record)
	case *shm.Code:
		c.stacks.learn(record)
	case *shm.Alloc:
		if record.Failed {
			p.ranShort(record, c.stacks.id(record.Frames))
		} else {
			if p.heap.numbered == 0 { // from here on what it holds is known
				r.emit(p.heap.total(record.When()-1, p.lastStep))
			}
			p.heap.alloc(record, p.stackOf(c, record))
		}
	case *shm.Free:
		r.heapInSpan(p, record.When())
		p.heap.free(record)
	case *shm.Malloc:
		r.mallocCounted(p, record)
	}
}

// stackOf is the number of an allocation's stack. What TensorFlow's arena grows by, a power of two of whole mebibytes
// that is aligned, is told apart from what lines hold. So is what Python lays small objects in: private mappings of one
// size.
func (p *process) stackOf(c *channel, a *shm.Alloc) uint32 {
	const leastRegion = 1 << 20
	if a.Origin == shm.OriginMmap && len(a.Frames) > 0 && !a.Frames[0].Native &&
		a.Size == c.stacks.objectsIn(a.Frames[0]) {
		return c.stacks.ofObjects(a.Frames)
	}
	if a.Size >= leastRegion && a.Size&(a.Size-1) == 0 && a.Origin == shm.OriginAligned &&
		p.facts[frameworks.FactArena] != "" {
		return c.stacks.ofArena(a.Frames)
	}
	return c.stacks.id(a.Frames)
}

func (r *Recorder) step(p *process, s *shm.Step) {
	step := mem.Step{
		Process: p.ID, Number: s.Step, Time: s.When(), Duration: s.Duration, RSS: s.RSS,
		Device: s.DeviceAllocated, Micro: s.MicroSteps, Skipped: s.Skipped,
	}
	if p.heap != nil && !p.heap.traced {
		step.Heap = mem.Some(int64(p.heap.live))
	}
	p.steps.add(step)
	p.lastStep, p.stepped = s.Step, s.When()
	p.growth.add(step)
	r.alertStep(p, step)
	r.useHeap(p, s.When(), false)
}

// growsOverTime says whether the agent should look for growing containers in a process that takes no steps, or none
// any more.
func (p *process) growsOverTime(now int64) bool {
	const stepping = int64(5e9)
	return (p.stepped == 0 || now-p.stepped > stepping) && p.overTime.worthScanning(now)
}

func (r *Recorder) counters(p *process, c *channel, record *shm.Counters) {
	for _, counter := range record.Counters {
		if col := p.series[agentSeries{c, counter.Series}]; col != nil {
			col.add(record.When(), counter.Value)
			r.latest[col.key()] = counter.Value
			r.observe(col.key(), record.When(), counter.Value)
		}
	}
}

// useHeap writes the heap of a process if that is due. Its pace slackens with the length of the
// run, so that an hour of it stays small and a minute is fine enough to see steps. It is every 50 ms at
// first, every 6 s after an hour.
func (r *Recorder) useHeap(p *process, now int64, last bool) {
	if p.heap == nil {
		return
	}
	if p.heap.traced { // a look writes it
		if peak, ok := p.heap.peakUse(0); ok && last {
			r.emit(peak)
		}
		return
	}
	pace := max(int64(50e6), (now-r.info.StartMono)/600)
	if last || now-p.lastUse >= pace {
		p.lastUse = now
		r.emit(p.heap.use(now, p.lastStep, last))
	}
	share := 0.02
	if last {
		share = 0
	}
	if last || now-p.lastPeak >= 5*pace {
		if peak, ok := p.heap.peakUse(share); ok {
			p.lastPeak = now
			r.emit(peak)
			p.unaged = true
		}
	}
	switch {
	case last:
		r.peakAges(p)
	case now-p.lastAges >= max(agesEvery, (now-p.Start)/agesShare):
		r.useAges(p, now)
		r.peakAges(p)
	}
}

// tracedHeap takes in a look. Where the heap sampler is loaded, too, its figures stand.
func (r *Recorder) tracedHeap(p *process, data []byte, at int64) {
	var look pythonHeap
	if json.Unmarshal(data, &look) != nil || !look.sound() {
		r.drop(p, "message", 1)
		return
	}
	if p.heap != nil && !p.heap.traced {
		return
	}
	if p.heap == nil {
		p.heap = newLiveHeap(p.ID)
		p.heap.traced = true
		p.fact(mem.FactHeap, mem.HeapTraced)
		r.emit(p.heap.total(at-1, p.lastStep)) // what was there before is not seen
	}
	rest := r.stacks.id([]mem.Location{{File: mem.PythonRest, Native: true}})
	uses := map[uint32]mem.SiteUse{rest: {Live: mem.Bytes(look.Rest[0]), Count: uint64(look.Rest[1])}}
	for _, row := range look.Sites {
		id := r.stacks.id(look.places(row))
		use := uses[id]
		use.Live, use.Count = use.Live+mem.Bytes(row[0]), use.Count+uint64(row[1])
		uses[id] = use
	}
	p.heap.looked(uses, at, p.lastStep)
	for key, value := range map[string]mem.Optional{mem.NumberTracedPeak: look.Peak, mem.NumberTracedOwn: look.Own,
		mem.NumberTracedLooks: look.Looks, mem.NumberTracedLongest: look.Longest} {
		if v, ok := value.Get(); ok && v > p.numbers[key] {
			p.number(key, v)
		}
	}
	r.columns.putSample(seriesKey{process: p.ID, name: mem.SeriesHeapLive}, mem.UnitBytes, mem.Measured, at,
		int64(p.heap.live))
	p.overTime.addOver(at, int64(p.heap.live))
	r.emit(p.heap.use(at, p.lastStep, true))
	if peak, ok := p.heap.peakUse(0.02); ok {
		r.emit(peak)
	}
}

// peakAges writes the ages at the peak, once for all pictures of peaks since the last time: each takes the place of
// the one before.
func (r *Recorder) peakAges(p *process) {
	if !p.unaged {
		return
	}
	p.unaged = false
	if ages, ok := p.heap.ageUse(p.heap.peakTime, true); ok {
		r.emit(ages)
	}
}

// heapAtSpan writes the heap at an edge of a span that the program named, so that it can be told which lines its
// memory is of. It does so at the first edges always, then at the pace of useHeap.
func (r *Recorder) heapAtSpan(p *process, at int64) {
	const most = 1000
	if p.heap == nil || p.heap.traced || at <= p.lastUse {
		return
	}
	if p.atSpans++; p.atSpans > most {
		r.useHeap(p, at, false)
		return
	}
	p.lastUse = at
	r.emit(p.heap.use(at, p.lastStep, false))
}

// heapInSpan writes the heap before it falls, while a span is open that the program named. What rises and falls
// within one, and between two visits, is seen by its lines.
func (r *Recorder) heapInSpan(p *process, at int64) {
	if len(p.spans.user.open) > 0 && p.heap.live > p.heap.written+max(mem.MiB, p.heap.written/50) {
		r.heapAtSpan(p, at)
	}
}

// Ages of what is held are written this often, and no more often than this part of the process's life.
const (
	agesEvery = int64(5e8)
	agesShare = 24
)

func (r *Recorder) useAges(p *process, now int64) {
	if p.heap == nil || p.heap.traced {
		return
	}
	p.lastAges = now
	if ages, ok := p.heap.ageUse(now, false); ok {
		r.emit(ages)
	}
}

// began is the recording's clock when a process of some identity did.
func (r *Recorder) began(start uint64) int64 {
	if r.opts.Table != nil { // its identities are ms since 1970
		return since1970(start)
	}
	return launch.Began(start)
}

// keyOf is the process that writes a channel. On macOS and Windows it does not know when it began: it is the newest of
// its number then.
func (r *Recorder) keyOf(c *channel) procKey {
	if c.key.start != 0 {
		return c.key
	}
	if p := r.byPID[c.key.pid]; p != nil {
		return p.key
	}
	if r.opts.Table != nil {
		if p, ok := processes.Find(r.opts.Table, c.key.pid); ok {
			return procKey{p.PID, p.Start}
		}
	} else if start, _, ok := launch.Identity(c.key.pid); ok {
		return procKey{c.key.pid, start}
	}
	return c.key
}
