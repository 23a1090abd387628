package report

import "hightide/internal/mem"

// Imagined is the verdict on a run on imaginary GPUs. Its JSON form is documented in
// docs/formats/json.md.
//
//	events of the agent and the books (imagineevents.go) ──▶ Imagined ──▶ verdict, tables (imaginetext.go)
type Imagined struct {
	GPUVerdict
	GPUs          int               `json:"gpu_count"`
	PeakPhase     mem.Phase         `json:"peak_phase,omitempty"`
	PeakStep      mem.Optional      `json:"peak_step,omitzero"` // completed before it
	Tight         mem.Bytes         `json:"tight_below_bytes"`
	FailedStep    mem.Optional      `json:"first_failed_step,omitzero"`
	Broken        string            `json:"problem,omitempty"`    // why there is no verdict, where that is not the program's own doing
	How           string            `json:"failure,omitempty"`    // verdicts failed and unused: how it ended
	Asked         mem.Optional      `json:"asked_bytes,omitzero"` // by the request that failed last
	StoppedFor    string            `json:"stopped,omitempty"`    // steady, steps, duration: ended before the program would
	Categories    []Category        `json:"categories,omitempty"`
	CategoryBasis string            `json:"categories_device,omitempty"`
	ByStack       mem.Bytes         `json:"categories_by_stack_bytes,omitempty"` // of Categories: told by no more than the stack
	Lines         []HeldLine        `json:"peak_lines,omitempty"`
	Devices       []ImaginedDevice  `json:"devices,omitempty"`
	Ranks         []RankUse         `json:"ranks,omitempty"`
	ReadBack      mem.Bytes         `json:"read_back_bytes_unmodelled"`
	ReadBacks     []ReadBack        `json:"read_backs,omitempty"`
	Calls         map[string]uint64 `json:"unmodelled_calls"`
	Refused       []string          `json:"refused_calls,omitempty"` // of those, the ones that failed by name
	Policies      []Policy          `json:"policies,omitempty"`
	NotReached    []Unreached       `json:"not_reached,omitempty"`
	FakeWeights   []FakeWeights     `json:"fake_weights,omitempty"`
	Redirected    []string          `json:"redirected_writes,omitempty"`
	Conditions    map[string]string `json:"conditions,omitempty"`
	Tries         []Try             `json:"tries,omitempty"`
	Variations    []Try             `json:"variations,omitempty"`
	All           []GPUVerdict      `json:"gpus,omitempty"`
}

// Verdicts.
const (
	VerdictFits   = "fits"
	VerdictTight  = "tight"  // fits, with less room than the figures are sure of
	VerdictOOM    = "oom"    // out of memory
	VerdictFailed = "failed" // the program failed for a reason of its own
	VerdictUnused = "unused" // it touched no GPU
	VerdictNone   = "none"   // what the program or its framework cannot use: a GPU, a kernel
)

// StoppedForDuration: --duration ended a program that came to no step at which it could be asked to end.
const StoppedForDuration = "duration"

// GPUVerdict is whether a program fits on one model of GPU.
type GPUVerdict struct {
	GPU       string       `json:"gpu"`
	GPUName   string       `json:"gpu_name"`
	Compute   string       `json:"compute_capability,omitempty"`
	SMs       int          `json:"multiprocessors,omitempty"`
	Verdict   string       `json:"verdict"`
	Total     mem.Bytes    `json:"total_bytes"`
	Context   mem.Bytes    `json:"context_overhead_bytes"`
	Allocated mem.Optional `json:"peak_allocated_bytes,omitzero"` // of the fullest device
	Reserved  mem.Optional `json:"peak_reserved_bytes,omitzero"`
	Used      mem.Optional `json:"peak_device_used_bytes,omitzero"`
	Headroom  mem.Optional `json:"headroom_bytes,omitzero"` // total less used; negative: what lacks, where it is known
	Price     float64      `json:"price_usd_per_hour,omitempty"`
	Label     mem.Label    `json:"label"`
	Note      string       `json:"note,omitempty"`
}

// Fits says whether the program ran.
func (v *GPUVerdict) Fits() bool { return v.Verdict == VerdictFits || v.Verdict == VerdictTight }

// Category is a part of the peak.
type Category struct {
	Name  string    `json:"name"`
	Bytes mem.Bytes `json:"bytes"`
}

// HeldLine is what a line of the program held at the peak.
type HeldLine struct {
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Function string    `json:"function,omitempty"`
	Bytes    mem.Bytes `json:"bytes"`
	Blocks   int64     `json:"blocks"`
}

// ImaginedDevice is one imaginary GPU at the end.
type ImaginedDevice struct {
	Book    string    `json:"book,omitempty"` // of played ranks: whose
	Index   int       `json:"index"`
	GPU     string    `json:"gpu"`
	Total   mem.Bytes `json:"total_bytes"`
	Used    mem.Bytes `json:"peak_used_bytes"`
	Context mem.Bytes `json:"context_overhead_bytes"`
	Failed  uint64    `json:"failed_requests"`
}

// RankUse is the memory of one process on its device.
type RankUse struct {
	Rank      mem.Optional     `json:"rank,omitzero"`
	World     mem.Optional     `json:"world_size,omitzero"`
	Process   uint32           `json:"process"`
	Device    string           `json:"device"`
	Allocated mem.Optional     `json:"peak_allocated_bytes,omitzero"`
	Reserved  mem.Optional     `json:"peak_reserved_bytes,omitzero"`
	Used      mem.Bytes        `json:"peak_used_bytes"` // of the process
	Parts     map[string]int64 `json:"parts_bytes,omitempty"`
	Played    bool             `json:"played,omitempty"` // alone, without the other ranks
}

// ReadBack counts reads by the host of what a kernel would have computed.
type ReadBack struct {
	File     string    `json:"file"`
	Line     int       `json:"line"`
	Function string    `json:"function,omitempty"`
	Count    int64     `json:"count"`
	Bytes    mem.Bytes `json:"bytes"`
}

// Policy is a size that depends on data, and how it was chosen.
type Policy struct {
	Op       string `json:"op"`
	Policy   string `json:"policy"`
	File     string `json:"file"`
	Line     int    `json:"line"`
	Count    int64  `json:"count"`
	Elements int64  `json:"elements,omitempty"`
}

// Unreached is what an early stop left out.
type Unreached struct {
	What string `json:"what"`
	Text string `json:"text,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
}

// FakeWeights are weights that were made up.
type FakeWeights struct {
	What  string    `json:"what"`
	Name  string    `json:"name"`
	Bytes mem.Bytes `json:"bytes,omitempty"`
}

// TryMemory is the kind of the try that has all the memory it wants: what the program needs.
const TryMemory = "memory"

// Try is another imagined run of the same program, with one thing changed.
type Try struct {
	Kind    string `json:"kind"` // allocator, gpu, batch, bf16, checkpointing, memory …
	What    string `json:"what"` // for people: "expandable segments"
	Command string `json:"command,omitempty"`
	GPUVerdict
}
