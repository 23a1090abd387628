package report

import "hightide/internal/mem"

// Ranks sets the processes of a distributed program beside each other, in figures that can be drawn.
type Ranks struct {
	Ranks       []Rank    `json:"ranks"`                  // by number
	Suspects    []Suspect `json:"suspects"`               // who differs from the others, the likeliest first cause first
	NotCompared []string  `json:"not_compared,omitempty"` // what was not compared and why: sentences
}

// Rank is one of them; what was not observed is absent.
type Rank struct {
	Process      uint32       `json:"process"`
	Rank         int64        `json:"rank"`
	Steps        uint64       `json:"steps"`
	Step         mem.Optional `json:"step_time_ns,omitzero"`  // median
	Work         mem.Optional `json:"work_ns,omitzero"`       // of a step, median: data and forward, in which no other rank is waited for
	WorkError    mem.Optional `json:"work_error_ns,omitzero"` // half its 95 % interval
	Waiting      mem.Optional `json:"waiting_ns,omitzero"`    // of a step, estimated: the rest of it beyond that of the rank that spends least there
	RSS          mem.Optional `json:"peak_rss_bytes,omitzero"`
	Loading      mem.Optional `json:"loading_bytes,omitzero"` // highest RSS up to the end of the first step
	Allocated    mem.Optional `json:"peak_allocated_bytes,omitzero"`
	Reserved     mem.Optional `json:"peak_reserved_bytes,omitzero"`
	Device       mem.Optional `json:"peak_device_bytes,omitzero"`     // of the process, as the driver tells it
	Growth       mem.Optional `json:"growth_bytes_per_step,omitzero"` // of RSS; 0: looked for and not there
	GrowthError  mem.Optional `json:"growth_error_bytes,omitzero"`    // half its 95 % interval
	DeviceGrowth mem.Optional `json:"device_growth_bytes_per_step,omitzero"`
	DeviceError  mem.Optional `json:"device_growth_error_bytes,omitzero"`
	Failed       mem.Optional `json:"failed_ns,omitzero"` // since the run began
	DeviceLabel  mem.Label    `json:"device_label"`       // of what is told of the device: measured or imagined
}

// Aspects in which a rank differs, in the order in which one can be the cause of the next.
const (
	AspectFailed = "failed" // first of several
	AspectWork   = "work"   // longest: the others wait for it
	AspectDevice = "device" // most memory
	AspectHost   = "host"
)

// Suspect is a finding on one rank, in the same words.
type Suspect struct {
	Process uint32 `json:"process"`
	Rank    int64  `json:"rank"`
	Aspect  string `json:"aspect"`
	Title   string `json:"title"`
	Text    string `json:"text"`
}
