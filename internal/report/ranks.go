package report

import "hightide/internal/mem"

// Ranks sets the processes of a distributed program beside each other, in figures that can be drawn.
type Ranks struct {
	Ranks       []Rank    `json:"ranks" doc:"The ranks by number."`
	Suspects    []Suspect `json:"suspects" doc:"Who differs from the others, the likeliest first cause first."`
	NotCompared []string  `json:"not_compared,omitempty" doc:"What was not compared, and why."`
}

// Rank is one of them; what was not observed is absent.
type Rank struct {
	Process      uint32       `json:"process" doc:"The process, by its id in the run."`
	Rank         int64        `json:"rank" doc:"Its rank."`
	Steps        uint64       `json:"steps" doc:"How many optimizer steps it completed."`
	Step         mem.Optional `json:"step_time_ns,omitzero" doc:"The median of a step's time in ns."`
	Work         mem.Optional `json:"work_ns,omitzero" doc:"The median of what it spends in data and forward of a step, in ns, where no other rank is waited for."`
	WorkError    mem.Optional `json:"work_error_ns,omitzero" doc:"Half the 95 % interval of that, in ns."`
	Behind       mem.Optional `json:"behind_ns,omitzero" doc:"How long after the first rank it comes to where ranks wait for each other, in a step: the median, in ns."`
	Waiting      mem.Optional `json:"waiting_ns,omitzero" doc:"How long it waits there for the last rank: the median, in ns."`
	RSS          mem.Optional `json:"peak_rss_bytes,omitzero" doc:"Its highest resident memory in bytes."`
	Loading      mem.Optional `json:"loading_bytes,omitzero" doc:"Its highest resident memory up to the end of the first step, in bytes."`
	Allocated    mem.Optional `json:"peak_allocated_bytes,omitzero" doc:"The highest of what its allocator gave, in bytes."`
	Reserved     mem.Optional `json:"peak_reserved_bytes,omitzero" doc:"The highest of what its allocator took from the device, in bytes."`
	Device       mem.Optional `json:"peak_device_bytes,omitzero" doc:"Its highest use of the device, as the driver tells it, in bytes."`
	Growth       mem.Optional `json:"growth_bytes_per_step,omitzero" doc:"Growth of its resident memory in bytes a step; 0: looked for and not there."`
	GrowthError  mem.Optional `json:"growth_error_bytes,omitzero" doc:"Half the 95 % interval of that, in bytes."`
	DeviceGrowth mem.Optional `json:"device_growth_bytes_per_step,omitzero" doc:"Growth of its use of the device in bytes a step; 0: looked for and not there."`
	DeviceError  mem.Optional `json:"device_growth_error_bytes,omitzero" doc:"Half the 95 % interval of that, in bytes."`
	Failed       mem.Optional `json:"failed_ns,omitzero" doc:"When it failed, in ns since the run began."`
	DeviceLabel  mem.Label    `json:"device_label" doc:"Where the figures of the device come from: measured or imagined."`
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
	Process uint32 `json:"process" doc:"The process, by its id in the run."`
	Rank    int64  `json:"rank" doc:"Its rank."`
	Aspect  string `json:"aspect" enum:"failed,work,device,host" doc:"In what it differs, for programs."`
	Title   string `json:"title" doc:"In what it differs, for people."`
	Text    string `json:"text" doc:"How, with its figures."`
}
