package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// ReplayResult is what `replay --json` prints; docs/formats/json.md documents it.
type ReplayResult struct {
	Version  int             `json:"version"`
	Label    mem.Label       `json:"label"`
	File     string          `json:"file"`
	Device   int             `json:"device"`
	Torch    string          `json:"torch"`
	Policy   string          `json:"policy"`
	Capacity mem.Bytes       `json:"capacity_bytes,omitempty"`
	Verified *ReplayVerified `json:"verified,omitempty"`

	DeviceUnknown   bool          `json:"-"` // see DeviceUnknownText
	*ReplayVerified               // the same fields at the top
	Recorded        ReplayFigures `json:"recorded"`
	ReplayFigures
	Spread   [2]mem.Bytes    `json:"peak_reserved_spread_bytes"` // over what addresses may turn out to be
	Search   []ReplayFigures `json:"search,omitempty"`           // best first
	Searched ReplaySearched  `json:"searched,omitzero"`
	Best     *ReplayBest     `json:"best,omitempty"`
	Policies []ReplayFigures `json:"policies,omitempty"`
	GPUs     []ReplayGPU     `json:"gpus,omitempty"`  // smallest first
	Files    []*ReplayResult `json:"files,omitempty"` // where there are several: each of them
	Notes    []string        `json:"notes"`

	curve, recordedCurve []allocator.Point
}

// ReplaySearched says how much was searched.
type ReplaySearched struct {
	Settings    int   `json:"settings"`
	Nanoseconds int64 `json:"duration_ns"`
}

// ReplayBest is the best settings of a search on one trace: what they gain and what they cost.
type ReplayBest struct {
	ReplayFigures
	Spread    [2]mem.Bytes `json:"peak_reserved_spread_bytes"`
	curve     []allocator.Point
	Gain      mem.Bytes `json:"gain_bytes"`         // of reserved memory, against the record
	MoreCalls int64     `json:"more_segment_calls"` // of the driver
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
	Refused      int64     `json:"refused,omitempty"` // requests that found no memory, as in the record
	OOM          *int      `json:"oom"`               // the event that found no memory; null: none
	OOMBytes     mem.Bytes `json:"oom_bytes,omitempty"`
	Fragmented   bool      `json:"oom_fragmented,omitempty"` // in one piece, the memory would have been enough
}

func figures(conf string, o *allocator.Outcome) ReplayFigures {
	f := usageFigures(conf, &o.Usage)
	if o.OOM != nil {
		f.OOM, f.OOMBytes, f.Fragmented = &o.OOM.Event, o.OOM.Size, o.OOM.Fragmented
		f.Refused-- // which ended it
	}
	return f
}

func usageFigures(conf string, u *allocator.Usage) ReplayFigures {
	return ReplayFigures{AllocConf: conf, Reserved: u.PeakReserved, Allocated: u.PeakAllocated, SegmentCalls: u.DeviceAllocs + u.DeviceFrees, Retries: u.Retries, Refused: u.OOMs}
}

// together sums up several replays: counts are added, peaks are the highest, and the first that ran out
// of memory speaks for all.
func together(all []*replaying) *ReplayResult {
	if len(all) == 1 {
		return all[0].result
	}
	first := all[0].result
	sum := &ReplayResult{Version: 1, Label: mem.Replayed, Torch: first.Torch, Policy: first.Policy, Capacity: first.Capacity, Notes: []string{},
		Verified: &ReplayVerified{}, ReplayFigures: ReplayFigures{AllocConf: first.AllocConf}}
	sum.ReplayVerified = sum.Verified
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
		sum.ReplayFigures.atMost(f.ReplayFigures)
		sum.Spread[0], sum.Spread[1] = max(sum.Spread[0], f.Spread[0]), max(sum.Spread[1], f.Spread[1])
		if f.Label == mem.Estimated {
			sum.Label = mem.Estimated
		}
	}
	return sum
}

// atMost raises figures to those of another trace.
func (f *ReplayFigures) atMost(o ReplayFigures) {
	f.Reserved, f.Allocated = max(f.Reserved, o.Reserved), max(f.Allocated, o.Allocated)
	f.SegmentCalls, f.Retries = max(f.SegmentCalls, o.SegmentCalls), max(f.Retries, o.Retries)
	if f.OOM == nil {
		f.OOM, f.OOMBytes, f.Fragmented = o.OOM, o.OOMBytes, o.Fragmented
	}
}

// Table compares the record with the replay, and lists what else was tried.
func (r *ReplayResult) Table() *report.Table {
	bytes := func(name, title string) report.Column {
		return report.Column{Name: name, Title: title, Unit: mem.UnitBytes, Label: r.Label}
	}
	t := &report.Table{Name: "replay", Title: "The same requests under other settings",
		Columns: []report.Column{{Name: "settings", Title: "Settings"}, bytes("reserved", "Peak reserved"), bytes("allocated", "Peak allocated"),
			bytes("waste", "Beside it"), {Name: "calls", Title: "Segment calls", Unit: mem.UnitCount, Label: r.Label}, {Name: "end", Title: "End"}}}
	if len(r.Files) == 0 {
		r.rows(func(cells ...report.Cell) { t.Rows = append(t.Rows, cells) })
		return t
	}
	names := shortNames(r.Files)
	for i, f := range r.Files {
		f.Search = nil // of the one that was searched; the best is shown for all
		f.rows(func(cells ...report.Cell) {
			cells[0] = fmt.Sprintf("%s: %s", names[i], cells[0])
			t.Rows = append(t.Rows, cells)
		})
	}
	return t
}

// aroundSmallest are the GPUs of interest: the last that are too small and the first that the trace fits.
func (r *ReplayResult) aroundSmallest() []ReplayGPU {
	first := slices.IndexFunc(r.GPUs, func(g ReplayGPU) bool { return g.Fits })
	if first < 0 {
		first = len(r.GPUs)
	}
	return r.GPUs[max(first-3, 0):min(first+5, len(r.GPUs))]
}

// shortNames are the files' names without what all of them begin with.
func shortNames(files []*ReplayResult) []string {
	var names []string
	for _, f := range files {
		name, _, _ := strings.Cut(f.base(), ".")
		names = append(names, name)
	}
	shared := names[0]
	for _, name := range names {
		for !strings.HasPrefix(name, shared) {
			shared = shared[:len(shared)-1]
		}
	}
	shared = shared[:strings.LastIndexAny(shared, "-_.")+1]
	for i := range names {
		names[i] = strings.TrimPrefix(names[i], shared)
	}
	return names
}

// searchShown is how many settings of a search the table has.
const searchShown = 8

func (r *ReplayResult) rows(add func(cells ...report.Cell)) {
	row := func(name string, f ReplayFigures) {
		add(name, int64(f.Reserved), int64(f.Allocated), int64(f.Reserved-f.Allocated), f.SegmentCalls, f.end())
	}
	row("as recorded", r.Recorded)
	if !r.asRecorded() {
		row(r.name(), r.ReplayFigures)
	}
	for _, f := range r.Search[:min(len(r.Search), searchShown)] {
		row(settingsName(f.AllocConf), f)
	}
	if r.Best != nil && len(r.Search) == 0 {
		row(settingsName(r.Best.AllocConf), r.Best.ReplayFigures)
	}
	for _, f := range r.Policies {
		row("allocator: "+f.Policy, f)
	}
	for _, g := range r.aroundSmallest() {
		row(fmt.Sprintf("%s, %v", g.GPU, g.Capacity), g.ReplayFigures)
	}
}

// asRecorded says that nothing else was asked for than what the record has.
func (r *ReplayResult) asRecorded() bool {
	return r.AllocConf == r.Recorded.AllocConf && r.Capacity == 0 && r.Policy == "native"
}

// name is what was asked for.
func (r *ReplayResult) name() string {
	name := settingsName(r.AllocConf)
	if r.Policy != "native" {
		name = r.Policy
	}
	if r.Capacity > 0 {
		name += fmt.Sprintf(" on %v", r.Capacity)
	}
	return name
}

// settingsName is a line of settings as a table has room for it.
func settingsName(conf string) string {
	switch {
	case conf == "":
		return "default"
	case len(conf) > 34:
		return shortSettings.Replace(conf)
	}
	return conf
}

var shortSettings = strings.NewReplacer("expandable_segments:True", "expandable", "roundup_power2_divisions:", "roundup ", "max_split_size_mb:", "max_split ",
	"max_non_split_rounding_mb:", "non_split ", "large_segment_size_mb:", "large ", "garbage_collection_threshold:", "gc ",
	"per_process_memory_fraction:", "fraction ", ",", ", ")

// end says how a run ended.
func (f *ReplayFigures) end() string {
	text := "to the end"
	switch {
	case f.OOM != nil:
		return "OOM at event " + report.Count(int64(*f.OOM))
	case f.Retries == 1:
		text = "to the end, 1 retry"
	case f.Retries > 1:
		text = fmt.Sprintf("to the end, %d retries", f.Retries)
	}
	if f.Refused > 0 {
		text += fmt.Sprintf(", %d refused", f.Refused)
	}
	return text
}

// Failure says in words how it ran out of memory; "" where it did not.
func (r *ReplayResult) Failure() string {
	if r.OOM == nil {
		return ""
	}
	text := fmt.Sprintf("Event %d asks for %v, which %v do not hold", *r.OOM, r.OOMBytes, r.Capacity)
	if r.Fragmented {
		text += ", though in one piece what is free would be enough: fragmentation"
	}
	return text + "."
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
