// Package replay runs recorded traces of allocations again in a model of PyTorch's caching allocator. It does so
// under other settings, on a smaller GPU, or only to see how exact the model is.
//
//	mem.AllocatorSnapshot ──▶ openTrace: verify, compile ──▶ allocator.Run, Variants, Search ──▶ Result
//	                                                    └──▶ Fit (does it fit in so much?), Advise (which setting helps?)
//
// Start reading at Run. Figures are replayed; where the model is not exact to the address, they are estimated.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"hightide/internal/allocator"
	"hightide/internal/fail"
	"hightide/internal/frameworks"
	"hightide/internal/gpus"
	"hightide/internal/mem"
)

// Options of Run. The zero value replays device 0 under the settings of the file.
type Options struct {
	Device    int    // -1: the one with the longest history; to Verify, all that have one
	AllocConf string // as PYTORCH_ALLOC_CONF
	Changed   bool   // AllocConf counts; else the settings of the file
	GPU       string // whose memory is the limit
	Catalogue []string
	Memory    string // that limit in bytes instead
	Fresh     bool   // begin with an empty cache, not with the state of the record
	Torch     string // version that the allocator follows, "2.6"; "": what the file tells
	Policy    string // of allocator.Policies; "": native
	Compare   bool   // all of them beside each other
	AllGPUs   bool   // on every GPU of the catalogue
	Verify    bool   // hold every address against the record
	Search    bool   // try many settings
	Out       string // file for the recording of the replay, folder for those of several
	Version   string // of hightide, for that recording
	Workers   int    // searches at once; 0: one
	chosen    bool   // the device was, by its history
}

// Source is a snapshot to replay.
type Source struct {
	Name     string // for people: its file, and of a run with several its own
	Snapshot *mem.AllocatorSnapshot
}

// Run replays recorded traces of allocations under other settings or on a smaller device. Of several
// sources, as of the ranks of one job, each is replayed for itself; the result sums them up.
func Run(ctx context.Context, sources []Source, o Options) (*Result, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	var all []*replaying
	for _, source := range sources {
		for _, device := range o.devices(source.Snapshot) {
			of := o
			of.Device, of.chosen = device, o.Device < 0 && !o.Verify
			r, err := openSource(source, of)
			if err != nil {
				return nil, err
			}
			all = append(all, r)
		}
	}
	for _, r := range all {
		if err := r.run(ctx); err != nil {
			return nil, err
		}
	}
	if o.Search {
		search(ctx, all, nil)
	}
	if o.Out != "" {
		if err := save(all, o.Out); err != nil {
			return nil, err
		}
	}
	return together(all), ctx.Err()
}

// check refuses what makes no sense together, and fills in the default.
// Check refuses options that make no sense, whatever the trace. Whether PyTorch knew an allocator's setting depends on
// the trace.
func (o *Options) Check() error {
	if _, _, err := o.capacity(); err != nil {
		return err
	}
	o.Policy = cmp.Or(o.Policy, "native")
	if _, ok := allocator.FindPolicy(o.Policy); !ok {
		return fail.Choice("--policy", o.Policy, []string{"native", "async", "bfc", "ideal"})
	}
	switch {
	case o.Out != "" && o.Policy != "native":
		return fail.Usage("leave --policy out",
			"--output needs the native allocator: the other models have no addresses to record")
	case o.Search && o.Policy != "native":
		return fail.Usage("leave --policy out", "--search tries settings of the native allocator, and of no other")
	case o.Verify && (o.Changed || o.Fresh || o.Policy != "native" || o.Search || o.Compare || o.AllGPUs || o.Out != ""):
		return errVerifyAlone
	}
	return nil
}

// DeviceUnknownText says what may be missing where a trace of expandable segments does not verify.
const DeviceUnknownText = "Expandable segments reserve address space by the device's memory, which no file holds: " +
	"--verify --gpu NAME, or --memory SIZE, says which device it was."

var errVerifyAlone = fail.Usage("leave out --verify, or the other options",
	"--verify compares with the recorded settings, so it takes no option that changes them; "+
		"of expandable segments --gpu or --memory may say on which device they were recorded")

// replaying is the replay of one trace.
type replaying struct {
	*recorded
	o      Options
	result *Result
	asked  allocator.Setup // what the trace is to be run under
	room   mem.Bytes       // that a search has on the device; 0: no end is known
	told   bool            // asked.Capacity is what the trace tells
}

// devices are those of a snapshot to replay. It is the one asked for. Else the record is held against all that have a
// history, and what would be otherwise is asked of the one with the longest.
func (o *Options) devices(s *mem.AllocatorSnapshot) []int {
	if o.Device >= 0 {
		return []int{o.Device}
	}
	if with := traced(s); o.Verify && len(with) > 0 {
		return with
	}
	return []int{longestTrace(s)}
}

// traced are the devices with a history.
func traced(s *mem.AllocatorSnapshot) (devices []int) {
	for i := range s.Traces {
		if s.Traces[i].Len() > 0 {
			devices = append(devices, s.Traces[i].Device)
		}
	}
	return devices
}

func openSource(source Source, o Options) (*replaying, error) {
	memory, capacity, err := o.capacity()
	if err != nil {
		return nil, err
	}
	device := memory
	if !o.Verify { // the limit of a what-if says nothing of the device that was recorded
		device = 0
	}
	trace, err := openTrace(source.Snapshot, o.Device, o.Torch, device)
	if err == nil && device > 0 && !trace.settings.Expandable {
		return nil, errVerifyAlone
	}
	if err != nil {
		return nil, fail.Input(frameworks.RecordWithHistory, "%s cannot be replayed: %w",
			source.Name, err)
	}
	r := &replaying{recorded: trace, o: o, asked: trace.setup(),
		result: &Result{Version: 1, Label: mem.Replayed, File: source.Name, Device: o.Device, Torch: trace.torch,
			Policy: o.Policy, Notes: []string{}, recordedLabel: source.Snapshot.Label}}
	if others := len(traced(source.Snapshot)) - 1; others > 0 {
		r.result.several = true
		if o.chosen {
			r.result.Notes = append(r.result.Notes, fmt.Sprintf("%s: device %d is replayed, which has the longest history of "+
				"%d; --device chooses another.", r.result.Base(), o.Device, others+1))
		}
	}
	if !o.Verify {
		r.asked.Memory, r.asked.Capacity, r.result.Capacity = memory, capacity, capacity
		r.asked.Anew, r.result.Anew = o.Fresh, o.Fresh
		r.takeRoom()
	}
	if o.Changed {
		if r.asked.Settings, err = trace.rules.Parse(o.AllocConf); err != nil {
			return nil, fail.Usage("as in --alloc-conf expandable_segments:True,max_split_size_mb:128", "%w", err)
		}
	}
	if r.asked.Settings.Backend == "cudaMallocAsync" && o.Policy == "native" {
		r.result.Policy, r.o.Policy = "async", "async"
	}
	return r, nil
}

// takeRoom takes the device as the trace tells of it, where none was asked for. On one without an end requests that
// failed would be served, and no cache would be given back.
func (r *replaying) takeRoom() {
	if r.asked.Capacity == 0 {
		r.asked.Capacity = r.program.Room(r.trace)
		r.told = r.asked.Capacity > 0
	}
}

// noteRoom says on what device it was replayed, if nobody asked for one.
func (r *replaying) noteRoom() {
	if r.told && r.asked.Capacity > 0 {
		r.result.Notes = append(r.result.Notes, fmt.Sprintf("It is replayed with the %v that the allocator could have, as "+
			"the trace says; --memory names another limit.", r.asked.Capacity))
	}
}

func (r *replaying) run(ctx context.Context) error {
	r.tellVerified()
	r.whatIf()
	r.noteRoom()
	if r.o.Compare {
		r.compare()
	}
	if r.o.AllGPUs {
		return r.gpus(ctx)
	}
	return nil
}

// tellVerified says how far the model agrees with the record.
func (r *replaying) tellVerified() {
	v, out := r.verified, r.result
	out.Recorded = usageFigures(r.settings.String(), &v.Usage)
	out.Recorded.Refused = int64(len(r.refused()))
	out.Verified = &Agreement{v.AddressesTotal, v.AddressesExact, v.SegmentsTotal, v.SegmentsExact, v.Ambiguous,
		v.Realigned, v.First}
	out.Agreement = out.Verified
	switch {
	case !out.Verified.Exact() && !r.o.Verify:
		out.Notes = append(out.Notes,
			fmt.Sprintf("%d of %d addresses and %d of %d segments are as recorded, so what follows is an estimate. First: %s.",
				v.AddressesExact, v.AddressesTotal, v.SegmentsExact, v.SegmentsTotal, v.First))
		out.Label = mem.Estimated
	case v.Ambiguous > 0:
		out.Notes = append(out.Notes, fmt.Sprintf("%d placements chose between equal blocks whose age the trace does not "+
			"hold (from torch 2.12 on the oldest comes first); %d were re-aligned to the record.",
			v.Ambiguous, v.Realigned))
	}
	if !out.Verified.Exact() && r.ofDevice {
		out.DeviceUnknown, out.Notes = true, append(out.Notes, DeviceUnknownText)
	}
	if n := r.program.Guessed; n > 0 {
		out.Notes = append(out.Notes,
			fmt.Sprintf("Without stacks it is a guess whether the program or the allocator emptied the cache, %d times.", n))
	}
}

// whatIf runs the program under the settings asked for.
func (r *replaying) whatIf() {
	conf, out := r.asked.Settings.String(), r.result
	if r.o.Policy != "native" {
		o := allocator.RunOn(r.program, r.o.Policy, r.asked)
		out.Figures, out.Curve = figures(conf, o), o.Curve
		out.Verdict = r.judge(&r.asked, []*allocator.Outcome{o}, false)
		if out.Verdict != nil {
			out.Verdict.Text += fmt.Sprintf(" That is of the model %s, not of PyTorch's native allocator.", r.o.Policy)
		}
		out.Spread = [2]mem.Bytes{o.Usage.PeakReserved, o.Usage.PeakReserved}
		out.Figures.Policy = r.o.Policy
		if p, _ := allocator.FindPolicy(r.o.Policy); !p.Exact {
			out.Label = mem.Estimated
		}
	} else {
		all, spread := allocator.Variants(r.program, r.asked)
		if r.told && !slices.Contains(r.trace.Action, mem.ActionOOM) &&
			slices.ContainsFunc(all, func(o *allocator.Outcome) bool { return o.OOM != nil }) {
			r.asked.Capacity = 0 // no request failed, so that it gave back its cache told the least that there was
			all, spread = allocator.Variants(r.program, r.asked)
		}
		out.Figures, out.Curve = figures(conf, all[0]), all[0].Curve
		out.Spread = [2]mem.Bytes{spread.Low, spread.High}
		out.Verdict = r.judge(&r.asked, all, r.result.asRecorded())
	}
	recorded := r.setup()
	recorded.Capacity = r.program.Room(r.trace) // else requests that failed would be served
	if r.asked.Settings != r.settings && !r.o.Search {
		if fresh := r.fresh(recorded.Capacity); fresh.differs(&out.Recorded) {
			out.Notes = append(out.Notes, fresh.sentence())
		}
	}
	out.RecordedCurve = allocator.Run(r.program, recorded).Curve
}

// compare runs every model.
func (r *replaying) compare() {
	for _, p := range allocator.Policies {
		f := figures(r.asked.Settings.String(), allocator.RunOn(r.program, p.Name, r.asked))
		f.Policy = p.Name
		r.result.Policies = append(r.result.Policies, f)
	}
}

// gpus runs the program on every GPU of the catalogue, smallest first.
func (r *replaying) gpus(ctx context.Context) error {
	c, err := gpus.Load(r.o.Catalogue...)
	if err != nil {
		return err
	}
	all := c.Common()
	slices.SortStableFunc(all, func(a, b gpus.GPU) int { return cmp.Compare(a.Total-a.Overhead, b.Total-b.Overhead) })
	for _, g := range all {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !g.CUDA() {
			continue
		}
		setup := r.asked
		setup.Memory, setup.Capacity = g.Total, g.Total-g.Overhead
		o := allocator.Run(r.program, setup)
		if o.OOM == nil && o.Usage.PeakReserved > setup.Capacity/10*9 { // where it is tight, it may depend on addresses
			all, _ := allocator.Variants(r.program, setup)
			if i := slices.IndexFunc(all, func(o *allocator.Outcome) bool { return o.OOM != nil }); i >= 0 {
				o = all[i]
			}
		}
		r.result.GPUs = append(r.result.GPUs, GPU{g.Slug, o.OOM == nil, setup.Capacity, g.Price,
			figures(setup.Settings.String(), o)})
	}
	return nil
}

// capacity is what the device has and what of it the allocator may take: less a process's context. 0:
// no end.
func (o *Options) capacity() (memory, capacity mem.Bytes, err error) {
	switch {
	case o.GPU != "" && o.Memory != "":
		return 0, 0, fail.Usage("one of them", "both --gpu and --memory")
	case o.Memory != "":
		bytes, err := mem.ParseBytes(o.Memory)
		if err != nil || bytes <= 0 {
			return 0, 0, fail.Usage("as in --memory 24GiB", "--memory %s is not a size", o.Memory)
		}
		return bytes, bytes, nil
	case o.GPU == "" && len(o.Catalogue) > 0 && !o.AllGPUs:
		return 0, 0, fail.Usage("as in --gpu NAME, or --gpu all", "--catalogue without a GPU to look for in it")
	case o.GPU == "":
		return 0, 0, nil
	}
	c, err := gpus.Load(o.Catalogue...)
	if err != nil {
		return 0, 0, err
	}
	g, err := c.Named(o.GPU)
	if err != nil {
		return 0, 0, err
	}
	return g.Total, g.Total - g.Overhead, nil
}

// Base is a short name for a trace's file.
func (r *Result) Base() string { return filepath.Base(r.File) }

// Trace names a trace: its file, and its device where the file has several.
func (r *Result) Trace() string {
	if r.several {
		return fmt.Sprintf("%s, device %d", r.Base(), r.Device)
	}
	return r.Base()
}
