package replay

import (
	"cmp"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

// Result is what `replay --json` prints; docs/formats/json.md documents it.
type Result struct {
	Version  int        `json:"version"`
	Label    mem.Label  `json:"label"`
	File     string     `json:"file"`
	Device   int        `json:"device"`
	Torch    string     `json:"torch"`
	Policy   string     `json:"policy"`
	Capacity mem.Bytes  `json:"capacity_bytes,omitempty"`
	Anew     bool       `json:"fresh_start,omitempty"` // it begins with an empty cache, as was asked for
	Verified *Agreement `json:"verified,omitempty"`

	several       bool      // devices with a history in the file
	recordedLabel mem.Label // of the snapshot: its own figures may be an imaginary GPU's
	DeviceUnknown bool      `json:"-"` // see DeviceUnknownText
	*Agreement              // the same fields at the top
	Verdict       *Verdict  `json:"verdict,omitempty"` // nil: memory is not short, and no limit was asked for
	Recorded      Figures   `json:"recorded"`
	Figures
	Spread   [2]mem.Bytes `json:"peak_reserved_spread_bytes"` // over what addresses may turn out to be
	Search   []Figures    `json:"search,omitempty"`           // best first
	Searched Searched     `json:"searched,omitzero"`
	Fresh    *Figures     `json:"fresh,omitempty"` // of a search: the default settings from a fresh start
	// FreshSpread is the least and the most that these reserve, as addresses turn out.
	FreshSpread [2]mem.Bytes `json:"fresh_spread_bytes,omitzero"`
	Best        *Best        `json:"best,omitempty"` // nil: none holds that is no worse than the record
	Policies    []Figures    `json:"policies,omitempty"`
	GPUs        []GPU        `json:"gpus,omitempty"`  // smallest first
	Files       []*Result    `json:"files,omitempty"` // where there are several: each of them
	Notes       []string     `json:"notes"`

	Curve, RecordedCurve []allocator.Point `json:"-"`
}

// Searched says how much was searched.
type Searched struct {
	Settings    int   `json:"settings"`
	Nanoseconds int64 `json:"duration_ns"`
	// what the allocator can have, as asked for or as the trace tells
	Capacity mem.Bytes `json:"capacity_bytes,omitempty"`
}

// Best is the best settings of a search on one trace: what they gain and what they cost.
type Best struct {
	Figures
	Verdict   *Verdict          `json:"verdict,omitempty"` // as of Result
	Spread    [2]mem.Bytes      `json:"peak_reserved_spread_bytes"`
	Curve     []allocator.Point `json:"-"`
	Gain      mem.Bytes         `json:"gain_bytes"`         // of reserved memory, against the record
	GainFresh mem.Bytes         `json:"gain_fresh_bytes"`   // and against the default settings from a fresh start
	MoreCalls int64             `json:"more_segment_calls"` // of the driver
}

// GPU is one GPU of the catalogue.
type GPU struct {
	GPU      string    `json:"gpu"`
	Fits     bool      `json:"fits"`
	Capacity mem.Bytes `json:"capacity_bytes"`
	Price    float64   `json:"price_usd_per_hour,omitempty"`
	Figures
}

// Agreement counts what landed where the record has it.
type Agreement struct {
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
