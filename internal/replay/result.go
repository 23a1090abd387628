package replay

import (
	"cmp"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

// Result is what `replay --json` prints.
type Result struct {
	Version  int        `json:"version" doc:"The version of this form."`
	Label    mem.Label  `json:"label" doc:"replayed; estimated where the trace does not verify, and of policies other than native."`
	File     string     `json:"file" doc:"The file."`
	Device   int        `json:"device" doc:"The number of the device in the file."`
	Torch    string     `json:"torch" doc:"The version of PyTorch whose rules apply."`
	Policy   string     `json:"policy" doc:"The model of the allocator."`
	Capacity mem.Bytes  `json:"capacity_bytes,omitempty" doc:"What the allocator can have, in bytes; absent: no limit is known."`
	Anew     bool       `json:"fresh_start,omitempty" doc:"Whether it began with an empty cache, as --fresh asks."`
	Verified *Agreement `json:"verified,omitempty" doc:"What verifying gave; the same fields stand at the top."`

	several       bool      // devices with a history in the file
	recordedLabel mem.Label // of the snapshot: its own figures may be an imaginary GPU's
	DeviceUnknown bool      `json:"-"` // see DeviceUnknownText
	*Agreement              // the same fields at the top
	Verdict       *Verdict  `json:"verdict,omitempty" doc:"Whether memory runs out; absent: it is not short, and no limit was asked for."`
	Recorded      Figures   `json:"recorded" doc:"The figures of the record."`
	Figures
	Spread      [2]mem.Bytes `json:"peak_reserved_spread_bytes" doc:"The lowest and highest peak, in bytes, with ascending and descending addresses and ties by age."`
	Search      []Figures    `json:"search,omitempty" doc:"Settings that were tried, best first; those that lead to the same stand once."`
	Searched    Searched     `json:"searched,omitzero" doc:"How much was searched."`
	Fresh       *Figures     `json:"fresh,omitempty" doc:"Of a search: the default settings from a fresh start."`
	FreshSpread [2]mem.Bytes `json:"fresh_spread_bytes,omitzero" doc:"The least and the most that those reserve, in bytes, as addresses turn out."`
	Best        *Best        `json:"best,omitempty" doc:"The best settings; absent: none is at least as good as the record."`
	Policies    []Figures    `json:"policies,omitempty" doc:"Of --compare: each model of an allocator."`
	GPUs        []GPU        `json:"gpus,omitempty" doc:"Of --gpu all: GPUs, smallest first."`
	Files       []*Result    `json:"files,omitempty" doc:"Of several files: each of them. At the top counts of addresses and segments are sums, other figures the highest."`
	Notes       []string     `json:"notes" doc:"What else is to be known, for people."`

	Curve, RecordedCurve []allocator.Point `json:"-"`
}

// Searched says how much was searched.
type Searched struct {
	Settings    int       `json:"settings" doc:"How many settings were tried."`
	Nanoseconds int64     `json:"duration_ns" doc:"How long that took, in ns."`
	Capacity    mem.Bytes `json:"capacity_bytes,omitempty" doc:"What the allocator can have, in bytes, as asked for or as the trace says; absent: neither does."`
}

// Best is the best settings of a search on one trace: what they gain and what they cost.
type Best struct {
	Figures
	Verdict   *Verdict          `json:"verdict,omitempty" doc:"Whether memory runs out with them."`
	Spread    [2]mem.Bytes      `json:"peak_reserved_spread_bytes" doc:"The lowest and highest peak, in bytes, as addresses turn out."`
	Curve     []allocator.Point `json:"-"`
	Gain      mem.Bytes         `json:"gain_bytes" doc:"How much less is reserved than in the record, in bytes."`
	GainFresh mem.Bytes         `json:"gain_fresh_bytes" doc:"How much less than by the default settings from a fresh start, in bytes."`
	MoreCalls int64             `json:"more_segment_calls" doc:"How many more calls of the driver that takes."`
}

// GPU is one GPU of the catalogue.
type GPU struct {
	GPU      string    `json:"gpu" doc:"The short name in the catalogue."`
	Fits     bool      `json:"fits" doc:"Whether the requests fit."`
	Capacity mem.Bytes `json:"capacity_bytes" doc:"What the allocator can have there, in bytes."`
	Price    float64   `json:"price_usd_per_hour,omitempty" doc:"A price in USD an hour; absent: none is known."`
	Figures
}

// Agreement counts what landed where the record has it.
type Agreement struct {
	Addresses      int    `json:"addresses_total" doc:"How many allocations there are."`
	AddressesExact int    `json:"addresses_exact" doc:"How many lie where the record has them."`
	Segments       int    `json:"segments_total" doc:"How many calls for segments there are."`
	SegmentsExact  int    `json:"segments_exact" doc:"How many are as recorded."`
	Ambiguous      int    `json:"addresses_ambiguous" doc:"Choices between equal blocks whose segments are of an age that the trace does not hold."`
	Realigned      int    `json:"addresses_realigned" doc:"Of these, those that were not as assumed; they count as exact."`
	First          string `json:"first_mismatch,omitempty" doc:"The first difference, for people."`
}

// Exact says that nothing differs.
func (v *Agreement) Exact() bool {
	return v.AddressesExact == v.Addresses && v.SegmentsExact == v.Segments
}

// Figures are the peaks under one setting.
type Figures struct {
	AllocConf    string    `json:"alloc_conf" doc:"The allocator's settings, as PYTORCH_ALLOC_CONF has them."`
	Policy       string    `json:"policy_name,omitempty" doc:"The model of the allocator, where it is not PyTorch's native one."`
	Reserved     mem.Bytes `json:"peak_reserved_bytes" doc:"The highest of what the allocator took from the device, in bytes."`
	Allocated    mem.Bytes `json:"peak_allocated_bytes" doc:"The highest of what it gave, in bytes."`
	SegmentCalls int64     `json:"segment_calls" doc:"How often it asked the device for memory or gave some back."`
	Retries      int64     `json:"alloc_retries" doc:"How often it emptied its cache because the device had no more."`
	Refused      int64     `json:"refused,omitempty" doc:"How many requests found no memory, as in the record."`
	OOM          *int      `json:"oom" doc:"The number of the event that found no memory; null: none."`
	OOMBytes     mem.Bytes `json:"oom_bytes,omitempty" doc:"What that asked for, in bytes."`
	Fragmented   bool      `json:"oom_fragmented,omitempty" doc:"Whether the memory would have been enough in one piece."`
}

func figures(conf string, o *allocator.Outcome) Figures {
	f := usageFigures(conf, &o.Usage)
	if o.OOM != nil {
		f.OOM, f.OOMBytes, f.Fragmented = &o.OOM.Event, o.OOM.Size, o.OOM.Fragmented
		f.Refused-- // which ended it
	}
	return f
}

func usageFigures(conf string, u *allocator.Usage) Figures {
	return Figures{AllocConf: conf, Reserved: u.PeakReserved, Allocated: u.PeakAllocated, SegmentCalls: u.DeviceAllocs +
		u.DeviceFrees, Retries: u.Retries, Refused: u.OOMs}
}

// together sums up several replays: counts are added, peaks are the highest, and the first that ran out
// of memory speaks for all.
func together(all []*replaying) *Result {
	if len(all) == 1 {
		return all[0].result
	}
	first := all[0].result
	sum := &Result{Version: 1, Label: mem.Replayed, Torch: first.Torch, Policy: first.Policy, Capacity: first.Capacity,
		Notes:    []string{},
		Verified: &Agreement{}, Figures: Figures{AllocConf: first.AllocConf}}
	sum.Agreement = sum.Verified
	for _, r := range all {
		f, v := r.result, r.result.Verified
		sum.Files = append(sum.Files, f)
		sum.Verified.Addresses += v.Addresses
		sum.Verified.AddressesExact += v.AddressesExact
		sum.Verified.Segments += v.Segments
		sum.Verified.SegmentsExact += v.SegmentsExact
		sum.Verified.Ambiguous += v.Ambiguous
		sum.Verified.Realigned += v.Realigned
		sum.Verified.First = cmp.Or(sum.Verified.First, v.First)
		sum.Recorded.atMost(f.Recorded)
		sum.Figures.atMost(f.Figures)
		sum.Spread[0], sum.Spread[1] = max(sum.Spread[0], f.Spread[0]), max(sum.Spread[1], f.Spread[1])
		if f.Label == mem.Estimated {
			sum.Label = mem.Estimated
		}
	}
	sum.Verdict = worst(sum.Files)
	return sum
}

// atMost raises figures to those of another trace.
func (f *Figures) atMost(o Figures) {
	f.Reserved, f.Allocated = max(f.Reserved, o.Reserved), max(f.Allocated, o.Allocated)
	f.SegmentCalls, f.Retries = max(f.SegmentCalls, o.SegmentCalls), max(f.Retries, o.Retries)
	if f.OOM == nil {
		f.OOM, f.OOMBytes, f.Fragmented = o.OOM, o.OOMBytes, o.Fragmented
	}
}

// Smallest is the first GPU that the trace fits; nil: none, or they were not asked for.
func (r *Result) Smallest() *GPU {
	for i := range r.GPUs {
		if r.GPUs[i].Fits {
			return &r.GPUs[i]
		}
	}
	return nil
}
