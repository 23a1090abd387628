// Package observe watches a command that it has started, or a process that ran already, from outside and from inside,
// and turns what it sees into frames of a recording.
//
//	launch: the command, its environment ──▶ process tree
//	                                             │      │
//	           sampler (procfs, devices) ◀───────┘      ▼
//	               │                       shared-memory channels (agent, heap)
//	               ▼                                    │
//	  Recorder: one goroutine, state per process  ◀─────┘
//	  (liveheap.go, spans.go, steps.go, messages.go) ──▶ mem.Frame ──▶ Sink
//
// The state is plain values that a test feeds by hand; the loop around them (run.go) is the only
// part that knows the clock. The observed processes never wait for us: they write into rings that
// we visit. Start reading at Run in run.go.
package observe

import (
	"cmp"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"hightide/internal/event"
	"hightide/internal/frameworks"
	"hightide/internal/launch"
	"hightide/internal/mem"
	"hightide/internal/processes"
	"hightide/internal/sampler"
	"hightide/internal/system"
)

// Sink takes the frames of one recording. Flush makes what was written so far survive our death. One that
// somebody reads while it is written has a method Followed() bool and says so: then frames are made, and
// flushed, more often.
type Sink interface {
	Write(mem.Frame) error
	Flush() error
}

// Followed asks a sink for that.
func Followed(s Sink) bool {
	f, ok := s.(interface{ Followed() bool })
	return ok && f.Followed()
}

// Options of one run. ID, Command (or Target) and Channels are needed.
type Options struct {
	ID      string
	Name    string
	Tags    map[string]string
	Version string
	Verb    string // "run"
	Label   mem.Label

	Command []string
	Target  *launch.Target // a process that runs already, in place of a command; it is closed at the end
	Shown   []string       // what the recording calls the command; nil: as it is
	Env     []string       // of the command, before the helpers are put in front
	Helpers []launch.Helper
	Runtime launch.Runtime // what the command gets of this process

	// Table is where processes are looked up instead of /proc; nil: the system's, where it has no /proc.
	Table processes.Table

	// Devices are asked instead of the machine's own; nil: the machine's. They are closed at the end.
	Devices []sampler.Vendor

	Channels string // folder for channels, as SharedPath names it; made by Run, removed at the end
	OutDir   string // folder for large files of the helpers while the run lasts

	Interval time.Duration // of sampling; 0: 100 ms
	Steps    uint64        // stop after that many optimizer steps; 0: never
	Duration time.Duration // stop after that time; 0: never
	// between asking the training to stop and SIGTERM; 0: 10 s, three steps, or 2 min once it ends
	Grace      time.Duration
	Patience   time.Duration // between SIGTERM and SIGKILL; 0: 30 s
	SnapshotOn string
	// KeepSnapshots leaves allocator snapshots in OutDir as well, for other tools.
	KeepSnapshots bool
	NoStacks      bool
	Tracemalloc   bool // have the agent start Python's tracemalloc; the heap sampler then stays off
	Alerts        []Alert
	Memory        mem.Bytes         // of the host, that the command may have; 0: any
	Settings      map[string]string // written into RunInfo.Options

	// Begun is called once a Target is recorded, which waits for it. Where it Brings the agent into the process, its error
	// says why not.
	Begun  func(Recording) error
	Brings bool

	Events event.Sink // Status several times a second, Alert, Paused; from the recording goroutine
}

func (o *Options) interval() time.Duration {
	if o.Interval <= 0 {
		return 100 * time.Millisecond
	}
	return o.Interval
}

// Recorder holds the state of one run. It is for one goroutine.
type Recorder struct {
	opts *Options
	sink Sink
	fail error // the first failure of the sink; after it nothing more is written
	pid  int

	info      mem.RunInfo
	procs     map[procKey]*process
	byPID     map[int]*process // the newest of each pid
	order     []*process       // by id
	columns   *columns
	stacks    *stackTable
	files     map[string]bool // names of channels that were looked at
	scanned   int64           // when their folder last changed, by its own clock
	snapshots snapshots
	latest    map[seriesKey]int64
	peaks     peaks
	alerts    []*alertState

	nextLook   int64 // at the arenas of malloc
	recovering bool  // the processes and the engine before us are dead

	saved    savedFile
	busy     bool     // a channel was found filling up
	crowded  bool     // channels hold much that waits for the recording to be flushed
	finished []string // channels to delete once it is

	left      map[string]*savedChannel // by the engine before us, by name of the channel's file
	leftCodes map[string][]savedCode
	lastKnown int64 // when the recording of that engine ends

	stopAt   uint64
	stopping bool // it was asked to

	silent    map[string]bool // why processes said nothing, as far as it was told
	endsAfter uint64          // step with which a training said that it ends; 0: none did
	nextPages int64           // before it no blocks are looked at, see resident.go
	killed    int64           // cgroup.oom_kill when last seen, -1: never
	kills     int64           // how far it has risen in the run
	confined  *confined       // nil: the command may have any memory
}

// now is the clock of the recording. It is the kernel's and no one's to choose: what is observed stamps what it
// tells by the same one.
func (r *Recorder) now() int64 { return system.Monotonic() }

func newRecorder(opts *Options, sink Sink) *Recorder {
	r := &Recorder{
		opts: opts, sink: sink, pid: os.Getpid(), procs: map[procKey]*process{}, byPID: map[int]*process{},
		files: map[string]bool{}, latest: map[seriesKey]int64{}, killed: -1,
	}
	r.columns = newColumns(r.emit)
	r.stacks = newStackTable(func(s mem.StackDef) { r.emit(s) })
	for _, a := range opts.Alerts {
		r.alerts = append(r.alerts, newAlertState(a))
	}
	return r
}

// emit writes a frame. The first failure (a full disk) ends the writing, never the watching.
func (r *Recorder) emit(f mem.Frame) {
	if r.fail == nil {
		r.fail = r.sink.Write(f)
	}
}

// flush writes what has gathered since the last one.
func (r *Recorder) flush(last bool) {
	for _, p := range r.order {
		if len(p.channels) > 0 {
			r.useHeap(p, r.now(), false)
		}
		r.tellShortages(p, r.now(), last || p.gone)
		r.tellGarbage(p, r.now(), last || p.gone)
		spans, stats := p.spans.takeChanges()
		if len(spans) > 0 {
			r.emit(spans)
		}
		for _, s := range stats {
			r.emit(s)
		}
		if changed := p.steps.changed; changed {
			total := p.steps.total
			if steps := p.steps.takeKept(); len(steps) > 0 {
				r.emit(steps)
			}
			r.emit(total)
		}
		if p.dirty {
			p.dirty = false
			r.emit(p.frame())
		}
	}
	r.columns.flush()
	r.snapshots.copy(r, last)
	if r.fail == nil {
		r.fail = r.sink.Flush()
	}
	r.letGo()
}

// letGo gives up in shared memory what the recording has now; until then it would survive us there.
func (r *Recorder) letGo() {
	r.crowded = false
	if r.recovering && r.fail != nil {
		return // the next recovery finds it there
	}
	if r.saves() && r.fail == nil {
		r.save(r.now())
	}
	for _, p := range r.order {
		for _, c := range p.channels {
			c.peek(false) // so that `taken` is up to date
			c.reader.Release(c.taken)
		}
	}
	for _, path := range r.finished {
		_ = os.Remove(path)
	}
	r.finished = r.finished[:0]
}

// watcher is the Recorder as the sampler sees it.
type watcher struct{ *Recorder }

// Process implements sampler.Sink.
func (w watcher) Process(s *sampler.Process) {
	p := w.process(procKey{s.PID, s.StartTicks})
	p.watched, p.listened = true, false
	if len(s.Command) > 0 {
		p.Command = mem.MaskArgs(s.Command)
	}
	if parent := w.byPID[s.Parent]; parent != nil && parent != p {
		p.Parent = parent.ID
	}
	if p.Role == "" {
		p.Role = "child"
		if p.Parent == 0 {
			p.Role = "main"
		}
	}
	w.blind(p, s.Command)
	p.dirty = true
}

// Left implements sampler.Sink.
func (w watcher) Left(s *sampler.Process) {
	p := w.process(procKey{s.PID, s.StartTicks})
	p.Role, p.dirty = mem.RoleAside, true
}

// Gone implements sampler.Sink.
func (w watcher) Gone(s *sampler.Process, now int64) {
	p := w.process(procKey{s.PID, s.StartTicks})
	if !p.End.Known() {
		p.End = mem.Some(now)
	}
	if mark, ok := s.Usage.MaxRSS.Get(); ok && p.rss.Known() { // else a child that was about to become another program
		w.reached(p, mark)
	}
	w.ended(p, now)
}

// ended notes the end of a process; its channels are drained at the next visit.
func (r *Recorder) ended(p *process, now int64) {
	if !p.gone {
		if !p.hello { // it may have spoken since the channels were last looked at
			r.scan()
			r.drain(p, true)
		}
		r.tellSilent(p)
		r.alertMarks(p, now)
		p.readCrash()
		if p.Role != "main" { // how that one ended is told by the system: see mainEnded
			r.crashed(p, now)
		}
	}
	p.gone, p.dirty = true, true
	if !p.End.Known() {
		p.End = mem.Some(now)
	}
}

// Sample implements sampler.Sink.
func (w watcher) Sample(s *sampler.Process, device string, name mem.Quantity, time, value int64) {
	label := mem.Measured
	switch name {
	case mem.SeriesTreePSS, mem.SeriesTreePSSError, mem.SeriesTreeShared, mem.SeriesTreeSegments:
		label = mem.Estimated
	}
	if w.opts.Label == mem.Imagined {
		if name == mem.SeriesVMS {
			return // the device's memory is reserved in it, and none of that is the program's
		}
		if name.OfDevice() {
			label = mem.Imagined
		}
	}
	key := seriesKey{device: device, name: name}
	if s != nil {
		p := w.process(procKey{s.PID, s.StartTicks})
		key.process = p.ID
		if name == mem.SeriesRSS {
			p.rss, p.rssAt, p.highest = mem.Some(value), time, max(p.highest, value)
			p.spans.sample(time, value)
			p.pages.readResident(value, time)
			p.waits(s.Usage.Queued, s.Usage.QueuedAt)
			p.MaxRSS.Raise(mem.Some(value)) // the kernel's mark, read once a second, is no less
			p.MaxRSS.Raise(s.Usage.MaxRSS)
			w.ranBefore(p, s.Usage.Earlier)
		}
	}
	switch name {
	case mem.SeriesFiles:
		w.process(procKey{s.PID, s.StartTicks}).files.addOver(time, value)
	case mem.SeriesTreeRSS:
		w.partOf(0, time, value)
	case mem.SeriesTreePSS:
		w.partOf(1, time, value)
	}
	w.columns.putSample(key, unitOf(name), label, time, value)
	w.latest[key] = value
	w.observe(key, time, value)
}

// Descriptors implements sampler.Sink.
func (w watcher) Descriptors(s *sampler.Process, now int64, kinds map[string]int64) {
	e := mem.Event{Time: now, Process: w.process(procKey{s.PID, s.StartTicks}).ID, Kind: mem.EventDescriptors,
		Facts: map[string]string{}, Numbers: map[string]int64{}}
	most := slices.SortedFunc(maps.Keys(kinds), func(a,
		b string) int {
		return cmp.Or(cmp.Compare(kinds[b], kinds[a]), cmp.Compare(a, b))
	})
	for i, kind := range most {
		e.Facts[strconv.Itoa(i+1)], e.Numbers[strconv.Itoa(i+1)] = kind, kinds[kind]
	}
	w.emit(e)
}

// SharedLeft implements sampler.Sink.
func (w watcher) SharedLeft(now int64, left []sampler.Left) {
	e := mem.Event{Time: now, Kind: mem.EventSharedLeft}
	var fresh, old []sampler.Left
	for _, block := range left {
		if block.New {
			fresh = append(fresh, block)
		} else {
			old = append(old, block)
		}
	}
	count := func(blocks []sampler.Left) (bytes, n int64, name string) {
		most := int64(-1)
		for _, block := range blocks {
			bytes += block.Bytes
			if block.Bytes > most {
				most, name = block.Bytes, block.Name
			}
		}
		return bytes, int64(len(blocks)), name
	}
	bytes, blocks, name := count(fresh)
	before, blocksBefore, nameBefore := count(old)
	e.Bytes = mem.Some(bytes)
	e.Facts = facts("largest", name, "before_largest", nameBefore)
	e.Numbers = map[string]int64{"blocks": blocks, "before_bytes": before, "before_blocks": blocksBefore}
	w.emit(e)
}

// Unobserved implements sampler.Sink.
func (w watcher) Unobserved(what, why string) {
	w.emit(mem.Event{Time: w.now(), Kind: "unobserved", Text: what + ": " + why})
}

// alive says whether a process still runs: the sampler tells of those it watches, of the others
// (gone before it looked) the kernel is asked.
func (p *process) alive() bool {
	return p.watched || launch.Alive(p.key.pid, p.key.start)
}

// sampleHeap adds the live heap to the picture.
func (r *Recorder) sampleHeap(now int64) {
	for _, p := range r.order {
		if p.heap == nil || p.heap.traced || len(p.channels) == 0 {
			continue
		}
		r.columns.putSample(seriesKey{process: p.ID, name: mem.SeriesHeapLive}, mem.UnitBytes, mem.Sampled, now, int64(p.heap.live))
		held := int64(p.heap.live)
		if p.facts[frameworks.FactArena] != "" {
			held = p.rss.Or(held)
		}
		p.overTime.addOver(now, held)
		p.askForCount(now)
		r.useHeap(p, now, false) // a DataLoader worker takes no steps that would ask for it
	}
	r.alertHeap(now)
}

// labelOf says how a series was come by: on an imaginary GPU, what concerns the device is imagined and
// the host's memory is as real as ever.
func (o *Options) labelOf(name mem.Quantity) mem.Label {
	if o.Label == mem.Imagined && name.OfDevice() {
		return mem.Imagined
	}
	return mem.Measured
}

// unitOf is the unit of a series of mem/series.go.
func unitOf(name mem.Quantity) mem.Unit {
	switch name {
	case mem.SeriesMinorFaults, mem.SeriesMajorFaults, mem.SeriesThreads, mem.SeriesFiles, mem.SeriesCgroupOOM,
		mem.SeriesCgroupOOMKill, mem.SeriesRetries, mem.SeriesOOMs, mem.SeriesThreadsLimit, mem.SeriesFilesLimit,
		mem.SeriesTreeThreads,
		mem.SeriesCgroupThreads, mem.SeriesCgroupThreadsLimit, mem.SeriesSystemThreads, mem.SeriesSystemThreadsLimit:
		return mem.UnitCount
	case mem.SeriesCPU, mem.SeriesOwnCPU, mem.SeriesSampleInterval:
		return mem.UnitNanoseconds
	case mem.SeriesDeviceUtilisation:
		return mem.UnitMilli
	case mem.SeriesDeviceTemperature:
		return mem.UnitCelsius
	case mem.SeriesDevicePower:
		return mem.UnitMilliwatts
	}
	return mem.UnitBytes
}
