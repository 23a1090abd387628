package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"hightide/internal/allocator"
	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// WhatIf is one device's trace kept ready, so that many settings can be tried in quick succession. It may be asked from
// several goroutines at once.
type WhatIf struct {
	trace    *recorded
	room     mem.Bytes // what the allocator could have, as the trace says; 0: it does not tell
	lock     sync.Mutex
	recorded *Side           // the last one that was asked for
	event    int             // it was looked at after
	peak     atomic.Int64    // where the last run was highest: the next one mostly is there too
	fresh    func() *Figures // as recorded.fresh says
}

// Trial is what WhatIf is asked. The zero value is the record itself, at its peak.
type Trial struct {
	Settings  *string  // as PYTORCH_ALLOC_CONF; nil: as recorded
	GPU       string   // whose memory is the limit; without both, what the trace tells
	Memory    string   // that limit instead, as "24GiB"
	Catalogue []string // files with more GPUs
	Event     *int     // after which the memory is looked at; nil: at the peak, or where memory runs out
	Spread    bool     // also run every order of addresses: three times the work
}

// Side is a trace under one setting.
type Side struct {
	Figures
	Curve  TrialCurve `json:"curve" doc:"What it held over the trace."`
	Moment Moment     `json:"moment" doc:"What it held at the moment asked for."`
}

// TrialCurve is the course of a run in columns: the highest of each part.
type TrialCurve struct {
	Event    []int32     `json:"event" doc:"By part: the event of the record with which it begins."`
	Reserved []mem.Bytes `json:"reserved_bytes" doc:"By part: the highest of what was reserved, in bytes."`
	Active   []mem.Bytes `json:"active_bytes" doc:"By part: the highest of what was in use or waited for another stream, in bytes."`
}

// Moment is how memory lies after an event; −1: before the first.
type Moment struct {
	Event    int             `json:"event" doc:"The number of the event after which it is."`
	Reserved mem.Bytes       `json:"reserved_bytes" doc:"Bytes of all segments."`
	Active   mem.Bytes       `json:"active_bytes" doc:"Bytes of blocks that are in use or wait for another stream."`
	Segments []MomentSegment `json:"segments" doc:"The segments, by address."`
}

// MomentSegment is a segment at a moment.
type MomentSegment struct {
	Size       mem.Bytes `json:"size_bytes" doc:"Its size in bytes."`
	Large      bool      `json:"large,omitempty" doc:"Whether it serves large requests."`
	Expandable bool      `json:"expandable,omitempty" doc:"Whether it is an expandable segment."`
	Stream     uint64    `json:"stream,omitempty" doc:"The stream that it belongs to."`
	Private    bool      `json:"private,omitempty" doc:"Whether it is of a graph's or a user's pool."`

	// Blocks are by address, without gaps: size; 0 cached, 1 in use, 2 waiting for another stream. Then the event that
	// allocated it, -1: none of the trace, -2: it stands for several small neighbours; category, which who knows it
	// fills in.
	Blocks [][4]int64 `json:"blocks" doc:"By address, without gaps: size in bytes; 0 cached, 1 in use, 2 waiting for another stream; the event that allocated it, -1: none of the trace, -2: it stands for several small neighbours; the number of its category."`
}

// Tried is the answer to a Trial.
type Tried struct {
	Label    mem.Label     `json:"label" doc:"replayed; estimated where the model is not exact to the address."`
	Device   int           `json:"device" doc:"The number of the device in the file."`
	Torch    string        `json:"torch" doc:"The version of PyTorch whose rules apply."`
	Events   int           `json:"events" doc:"How many events were replayed."`
	Exact    bool          `json:"exact" doc:"Whether every address of the record comes out of the model."`
	Capacity mem.Bytes     `json:"capacity_bytes,omitempty" doc:"The most that the allocator could have, in bytes; absent: no limit."`
	Verdict  *Verdict      `json:"verdict,omitempty" doc:"Whether memory runs out; absent: it is not short, and no limit was asked for."`
	Recorded Side          `json:"recorded" doc:"What the settings of the record came to."`
	Replayed Side          `json:"replayed" doc:"What the settings asked for come to."`
	Spread   *[2]mem.Bytes `json:"peak_reserved_spread_bytes,omitempty" doc:"The lowest and the highest peak of what is reserved, over what addresses may turn out to be, in bytes."`
	Line     string        `json:"line" doc:"What to put before the program's command; empty where nothing is changed."`
	Sentence string        `json:"sentence" doc:"What is different, in words."`
	Note     string        `json:"note,omitempty" doc:"What the recorded settings come to from a fresh start, where that is another than the record."`
}

// trialPoints are the parts of a curve: one or two to a pixel of a page.
const trialPoints = 700

// NewWhatIf prepares a device's trace; −1 is the device with the longest one. An error says why the trace cannot be
// replayed.
func NewWhatIf(s *mem.AllocatorSnapshot, device int) (*WhatIf, error) {
	if device < 0 {
		device = longestTrace(s)
	}
	trace, err := openTrace(s, device, "", 0)
	if err != nil {
		return nil, fail.Input(frameworks.RecordWithHistory, "it cannot be replayed: %w", err)
	}
	w := &WhatIf{trace: trace, room: trace.program.Room(trace.trace)}
	w.fresh = sync.OnceValue(func() *Figures { return trace.fresh(w.room) })
	return w, nil
}

// Settings are those that the trace was recorded under, as PYTORCH_ALLOC_CONF; "" for the defaults.
func (w *WhatIf) Settings() string { return w.trace.settings.String() }

// Try runs the trace under other settings. It ends early with the context's error.
func (w *WhatIf) Try(ctx context.Context, t Trial) (*Tried, error) {
	setup, err := w.setup(&t)
	if err != nil {
		return nil, err
	}
	event := -1
	if t.Event != nil {
		event = max(*t.Event, 0)
	}
	before, err := w.record(ctx, event)
	if err != nil {
		return nil, err
	}
	after, outcome, err := w.side(ctx, setup, event)
	if err == nil && after.OOM != nil && setup.Memory == 0 && !slices.Contains(w.trace.trace.Action, mem.ActionOOM) {
		setup.Capacity = 0 // no request failed, so that it gave back its cache told the least that there was
		after, outcome, err = w.side(ctx, setup, event)
	}
	if err != nil {
		return nil, err
	}
	out := &Tried{Label: mem.Replayed, Device: w.trace.trace.Device, Torch: w.trace.torch, Events: w.trace.trace.Len(),
		Exact:    w.trace.exact(),
		Capacity: setup.Capacity, Recorded: *before, Replayed: *after}
	if !out.Exact {
		out.Label = mem.Estimated
	}
	all := []*allocator.Outcome{outcome}
	if t.Spread || w.mayDepend(&setup, outcome) {
		variants, spread := allocator.Variants(w.trace.program, setup)
		if all = variants; t.Spread {
			out.Spread = &[2]mem.Bytes{spread.Low, spread.High}
		}
	}
	out.Verdict = w.trace.judge(&setup, all, setup == w.recordedSetup())
	if t.Settings != nil && setup.Settings != w.trace.settings {
		out.Line = allocator.Variable + "=" + setup.Settings.String()
		if fresh := w.fresh(); fresh.differs(&out.Recorded.Figures) {
			out.Note = fresh.sentence()
		}
	}
	out.Sentence = out.difference()
	return out, ctx.Err()
}

// Search tries a grid of settings as `replay --search` does, on the device of the trial. Its own settings and moment
// are not looked at. tell is called as settings are run, one call at a time.
func (w *WhatIf) Search(ctx context.Context, t Trial, workers int, tell func(done, all int)) (*Result, error) {
	t.Settings = nil
	setup, err := w.setup(&t)
	if err != nil {
		return nil, err
	}
	r := &replaying{recorded: w.trace, o: Options{Workers: workers, Policy: "native"}, asked: setup,
		told: setup.Memory == 0 && setup.Capacity > 0,
		result: &Result{Version: 1, Label: mem.Replayed, Device: w.trace.trace.Device, Torch: w.trace.torch,
			Policy: "native", Notes: []string{}}}
	if !r.told {
		r.result.Capacity = setup.Capacity
	}
	r.tellVerified()
	r.whatIf()
	search(ctx, []*replaying{r}, tell)
	return r.result, ctx.Err()
}

func (r *recorded) exact() bool {
	v := r.verified
	return v.AddressesExact == v.AddressesTotal && v.SegmentsExact == v.SegmentsTotal
}

// fresh is the record under its own settings if what was cached at the trace's beginning is left out, as other
// settings leave it out; nil: memory runs out then.
func (r *recorded) fresh(room mem.Bytes) *Figures {
	setup := r.setup()
	setup.Capacity, setup.Anew = room, true
	out := allocator.Run(r.program, setup)
	if out.OOM != nil {
		return nil
	}
	f := figures(setup.Settings.String(), out)
	return &f
}

// differs says that a fresh start is another than the recorded one.
func (f *Figures) differs(recorded *Figures) bool {
	return f != nil && (f.Reserved != recorded.Reserved || f.SegmentCalls != recorded.SegmentCalls)
}

// sentence says what to compare other settings with.
func (f *Figures) sentence() string {
	return fmt.Sprintf("Other settings begin without what was cached before the trace; so begun, the recorded ones "+
		"reserve %v, with %s of the driver.",
		f.Reserved, report.Counted(f.SegmentCalls, "call"))
}

// setup is what a trial runs under.
func (w *WhatIf) setup(t *Trial) (allocator.Setup, error) {
	o := Options{GPU: t.GPU, Memory: t.Memory, Catalogue: t.Catalogue}
	setup := w.trace.setup()
	var err error
	if setup.Memory, setup.Capacity, err = o.capacity(); err != nil {
		return setup, err
	}
	setup.Capacity = cmp.Or(setup.Capacity, w.room)
	if t.Settings != nil {
		if setup.Settings, err = w.trace.rules.Parse(*t.Settings); err != nil {
			return setup, fail.Usage("as in expandable_segments:True,max_split_size_mb:128", "%w", err)
		}
	}
	if setup.Settings.Backend == "cudaMallocAsync" {
		return setup, fail.Usage("hightide replay --policy async estimates it",
			"the driver's own pool has no segments to show")
	}
	return setup, nil
}

// recordedSetup is what the trace was recorded under, on its device.
func (w *WhatIf) recordedSetup() allocator.Setup {
	setup := w.trace.setup()
	setup.Capacity = w.room
	return setup
}

// mayDepend says that a run's verdict is not known before every order of addresses was run: it serves what was
// refused, or is near the limit.
func (w *WhatIf) mayDepend(setup *allocator.Setup, o *allocator.Outcome) bool {
	limit := setup.Limit()
	return firstLack(o) == nil && limit > 0 && (len(w.trace.refused()) > 0 || o.Usage.PeakReserved > limit/10*9)
}

// record is the trace as it was recorded, looked at after an event. The last one is kept.
func (w *WhatIf) record(ctx context.Context, event int) (*Side, error) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if w.recorded != nil && w.event == event {
		return w.recorded, nil
	}
	side, _, err := w.side(ctx, w.recordedSetup(), event)
	if err != nil {
		return nil, err
	}
	w.recorded, w.event = side, event
	return side, nil
}

// side runs the trace once, or twice where the moment of the peak is to be found first.
func (w *WhatIf) side(ctx context.Context, setup allocator.Setup, event int) (*Side, *allocator.Outcome, error) {
	out, seen, stopped := allocator.RunAndLook(w.trace.program, setup,
		allocator.Look{Points: trialPoints, Event: event, Guess: int(w.peak.Load()),
			Stop: func() bool { return ctx.Err() != nil }})
	if stopped {
		return nil, nil, ctx.Err()
	}
	side := &Side{Figures: figures(setup.Settings.String(), out), Curve: curveOf(w.trace.program, out)}
	if seen != nil {
		side.Moment = momentOf(seen)
		if event < 0 && out.OOM == nil {
			w.peak.Store(int64(seen.Ops))
		}
	}
	return side, out, nil
}

func curveOf(p *allocator.Program, out *allocator.Outcome) TrialCurve {
	step := max(1, (len(p.Ops)+trialPoints-1)/trialPoints)
	c := TrialCurve{Event: []int32{}, Reserved: []mem.Bytes{}, Active: []mem.Bytes{}}
	for i, point := range out.Curve {
		c.Event = append(c.Event, p.Ops[i*step].Event)
		c.Reserved, c.Active = append(c.Reserved, point.Reserved), append(c.Active, point.Active)
	}
	return c
}

// mostMapped is how many blocks an answer has at most: of segments with more, small neighbours of one state are one.
const mostMapped = 4000

const severalBlocks = -2

func momentOf(s *allocator.Seen) Moment {
	m := Moment{Event: s.Event, Reserved: s.Usage.Reserved, Active: s.Usage.Active, Segments: []MomentSegment{}}
	fine := mem.Bytes(0) // neighbours below this size are drawn as one
	if len(s.Made) > mostMapped {
		fine = s.Usage.Reserved / mostMapped
	}
	at := 0
	for i := range s.Segments {
		g := &s.Segments[i]
		out := MomentSegment{Size: g.Size, Large: g.Large, Expandable: g.Expandable, Stream: g.Stream,
			Private: g.Pool != mem.PoolID{}}
		for _, b := range g.Blocks {
			made := int64(s.Made[at])
			at++
			state := int64(0)
			switch b.State {
			case mem.BlockAllocated:
				state = 1
			case mem.BlockPendingFree:
				state = 2
			}
			if n := len(out.Blocks); n > 0 && b.Size < fine && out.Blocks[n-1][1] == state &&
				mem.Bytes(out.Blocks[n-1][0]) < fine {
				out.Blocks[n-1][0] += int64(b.Size)
				out.Blocks[n-1][2] = severalBlocks
				continue
			}
			out.Blocks = append(out.Blocks, [4]int64{int64(b.Size), state, made, -1})
		}
		m.Segments = append(m.Segments, out)
	}
	return m
}

// difference says in words what a trial changes.
func (t *Tried) difference() string {
	before, after := &t.Recorded.Figures, &t.Replayed.Figures
	if after.OOM != nil {
		return fmt.Sprintf("Up to there at most %v is reserved, and %v in use.", after.Reserved, after.Allocated)
	}
	change := after.Reserved - before.Reserved
	calls := after.SegmentCalls - before.SegmentCalls
	text := fmt.Sprintf("The same peak of reserved memory: %v.", after.Reserved)
	if change != 0 {
		direction := map[bool]string{true: "less", false: "more"}[change < 0]
		text = fmt.Sprintf("Reserved memory peaks at %v instead of %v: %v %s.", after.Reserved, before.Reserved,
			max(change, -change), direction)
	}
	if calls != 0 {
		text += fmt.Sprintf(" %s of the driver.", report.Counted(max(calls, -calls),
			map[bool]string{true: "fewer call", false: "more call"}[calls < 0]))
	}
	if after.Retries > 0 {
		text += fmt.Sprintf(" The cache is emptied for lack of memory, times: %s.", report.Count(after.Retries))
	}
	return text
}
