package engine

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"hightide/internal/allocator"
	"hightide/internal/analyze"
	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// ReplayOptions of Replay. The zero value replays device 0 under the default settings.
type ReplayOptions struct {
	Device    int    // -1: the one with the longest history
	AllocConf string // as PYTORCH_ALLOC_CONF
	Changed   bool   // AllocConf counts; else the settings of the file
	GPU       string // whose memory is the limit
	Catalogue []string
	Memory    string // that limit in bytes instead
	Torch     string // version that the allocator follows, "2.6"; "": what the file tells
	Policy    string // of allocator.Policies; "": native
	Compare   bool   // all of them beside each other
	AllGPUs   bool   // on every GPU of the catalogue
	Verify    bool   // hold every address against the record
	Search    bool   // try many settings
}

// ReplayResult is what `replay --json` prints; docs/formats/json.md documents it.
type ReplayResult struct {
	Version         int             `json:"version"`
	Label           mem.Label       `json:"label"`
	File            string          `json:"file"`
	Device          int             `json:"device"`
	Torch           string          `json:"torch"`
	Policy          string          `json:"policy"`
	Capacity        mem.Bytes       `json:"capacity_bytes,omitempty"`
	Verified        *ReplayVerified `json:"verified,omitempty"`
	*ReplayVerified                 // the same fields at the top
	Recorded        ReplayFigures   `json:"recorded"`
	ReplayFigures
	Spread   [2]mem.Bytes    `json:"peak_reserved_spread_bytes"` // over what addresses may turn out to be
	Search   []ReplayFigures `json:"search,omitempty"`           // best first
	Policies []ReplayFigures `json:"policies,omitempty"`
	GPUs     []ReplayGPU     `json:"gpus,omitempty"` // smallest first
	Notes    []string        `json:"notes"`

	curve, recordedCurve []allocator.Point
}

// ReplayGPU is one GPU of the catalogue.
type ReplayGPU struct {
	GPU      string    `json:"gpu"`
	Fits     bool      `json:"fits"`
	Capacity mem.Bytes `json:"capacity_bytes"`
	Price    float64   `json:"price_usd_per_hour,omitempty"`
	ReplayFigures
}

// ReplayVerified counts what landed where the record has it.
type ReplayVerified struct {
	Addresses      int `json:"addresses_total"`
	AddressesExact int `json:"addresses_exact"`
	Segments       int `json:"segments_total"`
	SegmentsExact  int `json:"segments_exact"`
	// Ambiguous placements chose between equal blocks of segments whose age the trace does not tell;
	// Realigned ones turned out otherwise than by address and count as exact.
	Ambiguous int    `json:"addresses_ambiguous"`
	Realigned int    `json:"addresses_realigned"`
	First     string `json:"first_mismatch,omitempty"`
}

// Exact says that nothing differs.
func (v *ReplayVerified) Exact() bool {
	return v.AddressesExact == v.Addresses && v.SegmentsExact == v.Segments
}

// ReplayFigures are the peaks under one setting.
type ReplayFigures struct {
	AllocConf    string    `json:"alloc_conf"`
	Policy       string    `json:"policy_name,omitempty"`
	Reserved     mem.Bytes `json:"peak_reserved_bytes"`
	Allocated    mem.Bytes `json:"peak_allocated_bytes"`
	SegmentCalls int64     `json:"segment_calls"`
	Retries      int64     `json:"alloc_retries"`
	OOM          *int      `json:"oom"` // the event that found no memory; null: none
	OOMBytes     mem.Bytes `json:"oom_bytes,omitempty"`
	Fragmented   bool      `json:"oom_fragmented,omitempty"` // in one piece, the memory would have been enough
}

func figures(conf string, o *allocator.Outcome) ReplayFigures {
	f := usageFigures(conf, &o.Usage)
	if o.OOM != nil {
		f.OOM, f.OOMBytes, f.Fragmented = &o.OOM.Event, o.OOM.Size, o.OOM.Fragmented
	}
	return f
}

func usageFigures(conf string, u *allocator.Usage) ReplayFigures {
	return ReplayFigures{AllocConf: conf, Reserved: u.PeakReserved, Allocated: u.PeakAllocated, SegmentCalls: u.DeviceAllocs + u.DeviceFrees, Retries: u.Retries}
}

// Replay runs a recorded trace of allocations again under other settings or on a smaller device.
func (e *Engine) Replay(ref string, o ReplayOptions, stdin io.Reader) (*ReplayResult, error) {
	s, trace, err := e.traceOf(ref, &o, stdin)
	if err != nil {
		return nil, err
	}
	r := &replaying{o: &o, result: &ReplayResult{Version: 1, Label: mem.Replayed, File: ref, Device: trace.Device, Policy: o.Policy, Notes: []string{}}}
	if err := r.setUp(s); err != nil {
		return nil, err
	}
	if err := r.verify(s, trace); err != nil {
		return nil, InputError("record it with torch.cuda.memory._record_memory_history", "%s cannot be replayed: %w", ref, err)
	}
	r.whatIf()
	if o.Search {
		r.search()
	}
	if o.Compare {
		r.compare()
	}
	if o.AllGPUs {
		err = r.gpus()
	}
	return r.result, err
}

// traceOf opens a file or run, and picks the device.
func (e *Engine) traceOf(ref string, o *ReplayOptions, stdin io.Reader) (*mem.AllocatorSnapshot, *mem.Trace, error) {
	if o.Policy == "" {
		o.Policy = "native"
	}
	if _, ok := allocator.FindPolicy(o.Policy); !ok {
		return nil, nil, UsageError("native, async, bfc or ideal", "--policy %s is not known", o.Policy)
	}
	named, _, err := e.snapshotsOf(ref, stdin)
	if err != nil {
		return nil, nil, err
	}
	if len(named) == 0 {
		return nil, nil, InputError("hightide run --snapshot-on exit records one", "%s holds no allocator snapshot", ref)
	}
	s := named[len(named)-1].snapshot
	if o.Device < 0 {
		o.Device = longestTrace(s)
	}
	trace := allocator.TraceOf(s, o.Device)
	if trace == nil {
		return nil, nil, InputError("record it with torch.cuda.memory._record_memory_history", "%s cannot be replayed: device %d has no history of allocations", ref, o.Device)
	}
	return s, trace, nil
}

// replaying is a Replay under way.
type replaying struct {
	o        *ReplayOptions
	result   *ReplayResult
	recorded allocator.Settings
	setup    allocator.Setup
	program  *allocator.Program
}

// setUp works out settings, rules and memory.
func (r *replaying) setUp(s *mem.AllocatorSnapshot) (err error) {
	if r.result.Capacity, err = r.o.capacity(); err != nil {
		return err
	}
	major, minor := torchVersion(r.o.Torch, s.Versions)
	r.result.Torch = fmt.Sprintf("%d.%d", major, minor)
	r.setup.Rules, r.setup.Capacity, r.setup.Memory = allocator.RulesOf(major, minor), r.result.Capacity, r.result.Capacity
	if r.recorded, err = allocator.SettingsOf(s); err != nil {
		return InputError("give --alloc-conf", "the file's settings: %w", err)
	}
	r.setup.Settings = r.recorded
	if r.o.Changed {
		if r.setup.Settings, err = r.setup.Rules.Parse(r.o.AllocConf); err != nil {
			return UsageError("as in --alloc-conf expandable_segments:True,max_split_size_mb:128", "%w", err)
		}
	}
	if r.setup.Settings.Backend == "cudaMallocAsync" && r.o.Policy == "native" {
		r.result.Policy, r.o.Policy = "async", "async"
	}
	return nil
}

// verify compares the model with the record, and makes the program.
func (r *replaying) verify(s *mem.AllocatorSnapshot, trace *mem.Trace) error {
	v, err := allocator.Verify(s, trace, r.recorded)
	if err != nil {
		return err
	}
	if r.program, err = allocator.Compile(s, trace, r.recorded); err != nil {
		return err
	}
	out := r.result
	out.Recorded = usageFigures(r.recorded.String(), &v.Usage)
	out.Verified = &ReplayVerified{v.AddressesTotal, v.AddressesExact, v.SegmentsTotal, v.SegmentsExact, v.Ambiguous, v.Realigned, v.First}
	out.ReplayVerified = out.Verified
	switch {
	case !out.Verified.Exact() && !r.o.Verify:
		out.Notes = append(out.Notes, fmt.Sprintf("%d of %d addresses and %d of %d segments are as recorded, so what follows is an estimate. First: %s.",
			v.AddressesExact, v.AddressesTotal, v.SegmentsExact, v.SegmentsTotal, v.First))
		out.Label = mem.Estimated
	case v.Ambiguous > 0:
		out.Notes = append(out.Notes, fmt.Sprintf("%d placements chose between equal blocks of segments whose age the trace does not hold (from torch 2.11 on the oldest comes first); %d were re-aligned to the record.",
			v.Ambiguous, v.Realigned))
	}
	if n := r.program.Guessed; n > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("Without stacks it is a guess whether the program or the allocator emptied the cache, %d times.", n))
	}
	return nil
}

// whatIf runs the program under the settings asked for.
func (r *replaying) whatIf() {
	conf := r.setup.Settings.String()
	if r.o.Policy != "native" {
		o := allocator.RunOn(r.program, allocator.NewPolicy(r.o.Policy, r.setup), r.setup)
		r.result.ReplayFigures, r.result.curve = figures(conf, o), o.Curve
		r.result.Spread = [2]mem.Bytes{o.Usage.PeakReserved, o.Usage.PeakReserved}
		r.result.ReplayFigures.Policy = r.o.Policy
		if p, _ := allocator.FindPolicy(r.o.Policy); !p.Exact {
			r.result.Label = mem.Estimated
		}
	} else {
		all, spread := allocator.Variants(r.program, r.setup)
		r.result.ReplayFigures, r.result.curve = figures(conf, all[0]), all[0].Curve
		r.result.Spread = [2]mem.Bytes{spread.Low, spread.High}
	}
	free := r.setup
	free.Settings, free.Capacity = r.recorded, 0
	r.result.recordedCurve = allocator.Run(r.program, free).Curve
}

// search tries settings on all cores, best first.
func (r *replaying) search() {
	start := time.Now()
	found := allocator.Search(r.program, r.setup, runtime.GOMAXPROCS(0), func() bool { return time.Since(start) > time.Minute })
	for _, c := range found {
		r.result.Search = append(r.result.Search, figures(c.Settings.String(), c.Outcome))
	}
}

// compare runs every model.
func (r *replaying) compare() {
	for _, p := range allocator.Policies {
		f := figures(r.setup.Settings.String(), allocator.RunOn(r.program, allocator.NewPolicy(p.Name, r.setup), r.setup))
		f.Policy = p.Name
		r.result.Policies = append(r.result.Policies, f)
	}
}

// gpus runs the program on every GPU of the catalogue, smallest first.
func (r *replaying) gpus() error {
	c, err := Catalogue(r.o.Catalogue...)
	if err != nil {
		return err
	}
	slices.SortStableFunc(c.GPUs, func(a, b gpus.GPU) int { return cmp.Compare(a.Total-a.Overhead, b.Total-b.Overhead) })
	for _, g := range c.GPUs {
		if !g.CUDA() {
			continue
		}
		setup := r.setup
		setup.Memory = g.Total
		fits, o := allocator.Fits(r.program, setup, g.Total-g.Overhead)
		r.result.GPUs = append(r.result.GPUs, ReplayGPU{g.Slug, fits, g.Total - g.Overhead, g.Price, figures(setup.Settings.String(), o)})
	}
	return nil
}

// capacity is what the allocator may take: the GPU's memory less a process's context.
func (o *ReplayOptions) capacity() (mem.Bytes, error) {
	switch {
	case o.GPU != "" && o.Memory != "":
		return 0, UsageError("one of them", "both --gpu and --memory")
	case o.Memory != "":
		bytes, err := gpus.ParseSize(o.Memory)
		if err != nil || bytes <= 0 {
			return 0, UsageError("as in --memory 24GiB", "--memory %s is no size", o.Memory)
		}
		return bytes, nil
	case o.GPU == "":
		return 0, nil
	}
	c, err := Catalogue(o.Catalogue...)
	if err != nil {
		return 0, err
	}
	g, err := FindGPU(c, o.GPU)
	if err != nil {
		return 0, err
	}
	return g.Total - g.Overhead, nil
}

// Table compares the record with the replay, or lists the best of a search.
func (r *ReplayResult) Table() *analyze.Table {
	bytes := func(name, title string) analyze.Column {
		return analyze.Column{Name: name, Title: title, Unit: mem.UnitBytes, Label: r.Label}
	}
	t := &analyze.Table{Name: "replay", Title: "The same requests under other settings",
		Columns: []analyze.Column{{Name: "settings", Title: "Settings"}, bytes("reserved", "Peak reserved"), bytes("allocated", "Peak allocated"),
			bytes("waste", "Beside it"), {Name: "calls", Title: "Segment calls", Unit: mem.UnitCount, Label: r.Label}, {Name: "end", Title: "End"}}}
	row := func(name string, f ReplayFigures) {
		t.Rows = append(t.Rows, []analyze.Cell{name, int64(f.Reserved), int64(f.Allocated), int64(f.Reserved - f.Allocated), f.SegmentCalls, f.end()})
	}
	row("as recorded", r.Recorded)
	name := settingsName(r.AllocConf)
	if r.Policy != "native" {
		name = r.Policy
	}
	if r.Capacity > 0 {
		name += fmt.Sprintf(" on %v", r.Capacity)
	}
	row(name, r.ReplayFigures)
	for _, f := range r.Search[:min(len(r.Search), 8)] {
		row(settingsName(f.AllocConf), f)
	}
	for _, f := range r.Policies {
		row("allocator: "+f.Policy, f)
	}
	for _, g := range r.GPUs {
		row(fmt.Sprintf("%s, %v", g.GPU, g.Capacity), g.ReplayFigures)
	}
	return t
}

func settingsName(conf string) string {
	if conf == "" {
		return "default"
	}
	return conf
}

// end says how a run ended.
func (f *ReplayFigures) end() string {
	switch {
	case f.OOM != nil && f.Fragmented:
		return fmt.Sprintf("out of memory at event %d, %v asked for: fragmentation", *f.OOM, f.OOMBytes)
	case f.OOM != nil:
		return fmt.Sprintf("out of memory at event %d, %v asked for", *f.OOM, f.OOMBytes)
	case f.Retries > 0:
		return fmt.Sprintf("runs to the end, emptying its cache %d times", f.Retries)
	}
	return "runs to the end"
}

// Smallest is the first GPU that the trace fits; nil: none, or they were not asked for.
func (r *ReplayResult) Smallest() *ReplayGPU {
	for i := range r.GPUs {
		if r.GPUs[i].Fits {
			return &r.GPUs[i]
		}
	}
	return nil
}

// Pictures are reserved memory before and after in one line each, as high as the higher of them.
func (r *ReplayResult) Pictures(width int) (before, after string) {
	top := mem.Bytes(1)
	for _, c := range [][]allocator.Point{r.recordedCurve, r.curve} {
		for _, p := range c {
			top = max(top, p.Reserved)
		}
	}
	return bars(r.recordedCurve, top, width), bars(r.curve, top, width)
}

// bars draws a curve with block elements, the highest of each part.
func bars(curve []allocator.Point, top mem.Bytes, width int) string {
	levels := []rune(" ▁▂▃▄▅▆▇█")
	width = min(width, len(curve))
	out := make([]rune, width)
	for i := range out {
		high := mem.Bytes(0)
		for _, p := range curve[i*len(curve)/width : (i+1)*len(curve)/width] {
			high = max(high, p.Reserved)
		}
		out[i] = levels[int(high*mem.Bytes(len(levels)-1)/top)]
	}
	return string(out)
}
