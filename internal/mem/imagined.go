package mem

import "reflect"

// The frames of a run on imaginary GPUs. The engine says which GPUs there were and how other trials of the program
// ended. The device library's state at the end says what each device and process took; the agent says the rest
// (docs/formats/imagined.md).

// ImaginedSetup is the GPUs that the program was given, and the settings that the answer rests on. A later one
// replaces it.
type ImaginedSetup struct {
	GPU        string `json:"gpu"` // slug of the catalogue
	Name       string `json:"gpu_name"`
	Compute    string `json:"compute_capability"`
	SMs        int    `json:"multiprocessors"`
	Count      int    `json:"gpu_count"`
	Total      Bytes  `json:"total_bytes"`
	TotalLabel Label  `json:"total_label,omitempty"` // how the total was come by
	Context    Bytes  `json:"context_overhead_bytes"`
	// what was seen of it; zero: nothing else is known, or it was given
	Contexts Range `json:"context_overhead_range_bytes,omitzero"`
	// what a driver is taken to keep for a node of a CUDA graph, and what was published of it; zero: nothing is counted
	GraphNode  Bytes   `json:"graph_node_bytes,omitempty"`
	GraphNodes Range   `json:"graph_node_range_bytes,omitzero"`
	Tight      Bytes   `json:"tight_below_bytes"`
	Price      float64 `json:"price_usd_per_hour,omitempty"`
	Steps      string  `json:"steps"`      // auto, or a number
	Sizes      string  `json:"data_sizes"` // upper, zero or a fraction
	AllocConf  string  `json:"alloc_conf"` // "default" where none is set
	ReadValue  string  `json:"read_value,omitempty"`
	Users      int     `json:"users,omitempty"`      // of an LLM server: sequences at once that are asked for; 0: none
	Tokens     int     `json:"tokens,omitempty"`     // of each; 0: the greatest length that the engine takes
	Load       string  `json:"load,omitempty"`       // requests that it is to answer, as 8x512+128
	World      int     `json:"world_size,omitempty"` // ranks of a larger cluster, of which some are played; 0: none
}

// Range is of bytes, from the lowest to the highest.
type Range struct {
	Low  Bytes `json:"low" doc:"The least, in bytes."`
	High Bytes `json:"high" doc:"The most, in bytes."`
}

// ImaginedDevice is one imaginary GPU at the end.
type ImaginedDevice struct {
	Rank    Optional `json:"rank,omitzero" doc:"The rank that it belonged to, where ranks are played alone."`
	Index   int      `json:"index" doc:"Its number on the machine."`
	GPU     string   `json:"gpu" doc:"The GPU's short name in the catalogue."`
	Total   Bytes    `json:"total_bytes" doc:"Its memory in bytes."`
	Used    Bytes    `json:"peak_used_bytes" doc:"The highest use of it, in bytes."`
	Context Bytes    `json:"context_overhead_bytes" doc:"What a process takes on it beside the framework's allocator, in bytes."`
	Failed  uint64   `json:"failed_requests" doc:"How many requests found no memory."`
}

// DeviceUse is what one process took of one imaginary GPU, at its peak there.
type DeviceUse struct {
	Process uint32 `json:"process"`
	Device  string `json:"device"` // as its series are called: "nvidia:0", of a played rank "rank 127 nvidia:7"
	Index   int    `json:"index"`
	Used    Bytes  `json:"peak_used_bytes"`
	// of Used: allocated, context, cublas, cudnn, nccl, pools, graphs, other
	Parts  map[string]Bytes `json:"parts_bytes,omitempty"`
	Played bool             `json:"played,omitempty"` // alone, without the other ranks
}

// LibraryCall counts calls of a library function that is not modelled.
type LibraryCall struct {
	Name    string `json:"name"`
	Count   uint64 `json:"count"`
	Refused bool   `json:"refused,omitempty"` // it returned an error
}

// ReadBack counts reads by the host of what a kernel would have computed, at one line.
type ReadBack struct {
	Process uint32 `json:"process"`
	Agent   bool   `json:"agent,omitempty"` // told by the agent, not by the device
	Location
	Count int64 `json:"count"`
	Bytes Bytes `json:"bytes"`

	// Of one that the agent tells: where the number goes, and what the program was given in its place.
	// branch, loop, size, range, slice, passed on, kept, caught, check; nothing
	Use      string   `json:"use,omitempty"`
	UseLine  int      `json:"use_line,omitempty"` // in the file of the function that has it
	Number   string   `json:"number,omitempty"`   // bool, int, float
	Value    string   `json:"value,omitempty"`    // as JSON
	Upper    Optional `json:"upper,omitzero"`     // the largest that it can be, where that is known; the smallest is 0
	Other    string   `json:"other,omitempty"`    // what a second run takes, as JSON, where it is not the other end
	Unsure   bool     `json:"unsure,omitempty"`   // a second run does not show what the number can do
	Answered bool     `json:"answered,omitempty"` // Value was asked for (--read-value)
}

// Decides says whether a number that nobody computed decides something that was not asked for.
func (r *ReadBack) Decides() bool {
	return r.Use != "" && r.Use != "nothing" && r.Use != UseCheck && !r.Answered
}

// UseCheck is a check that only raises, and of which it is not known with which number it passes. It is left to pass
// or to fail.
const UseCheck = "check"

// DevicePeak is the exact high-water marks of a process's allocator on a device.
type DevicePeak struct {
	Process   uint32   `json:"process"`
	Time      int64    `json:"time_ns"`
	Device    string   `json:"device"` // cuda:0
	Allocated Optional `json:"allocated_bytes,omitzero"`
	Reserved  Optional `json:"reserved_bytes,omitzero"`
	Limit     Optional `json:"limit_bytes,omitzero"` // what the allocator may take at most, where the framework sets that
	Framework string   `json:"framework,omitempty"`  // whose allocator it is, where a process may have several
	Phase     Phase    `json:"phase,omitempty"`
	Step      Optional `json:"step,omitzero"` // completed before
}

// PeakParts is what the allocated bytes at a DevicePeak were for; a part that was not told apart is absent.
type PeakParts struct {
	Process     uint32   `json:"process"`
	Device      string   `json:"device"`
	Parameters  Optional `json:"parameters,omitzero"`
	Gradients   Optional `json:"gradients,omitzero"`
	Optimizer   Optional `json:"optimizer,omitzero"`
	Buffers     Optional `json:"buffers,omitzero"`
	Inputs      Optional `json:"inputs,omitzero"`
	Activations Optional `json:"activations,omitzero"`
	KVCache     Optional `json:"kv_cache,omitzero"` // keys and values that attention keeps between calls
	Temporaries Optional `json:"temporaries,omitzero"`
	Workspaces  Optional `json:"workspaces,omitzero"`
	Graphs      Optional `json:"graphs,omitzero"`            // blocks that live in the private pools of CUDA graphs
	GraphPools  Optional `json:"graph_pools_bytes,omitzero"` // no part: what these had reserved when it was told
	State       Optional `json:"state,omitzero"`             // what a step hands to the next, not told apart
	Results     Optional `json:"results,omitzero"`           // of the function that ran, beside what they replace
	Other       Optional `json:"other,omitzero"`
	Unasked     Optional `json:"unasked_bytes,omitzero"`   // no part: what the allocator gave beyond what was asked for
	ByStack     Bytes    `json:"by_stack_bytes,omitempty"` // how many of these bytes only the stacks told apart
	Short       bool     `json:"short,omitempty"`          // what was needed when memory ran out, in place of what was allocated
}

// DataSize is a size that depends on data that was never computed, and how it was chosen.
type DataSize struct {
	Process uint32 `json:"process"`
	Op      string `json:"op"`
	Policy  string `json:"policy"` // upper, zero, or the fraction taken
	Location
	Count    int64 `json:"count"`
	Elements int64 `json:"elements,omitempty"` // the largest size given
}

// Unreached is what an early stop left out.
type Unreached struct {
	Process uint32 `json:"process"`
	What    string `json:"what"`
	Text    string `json:"text,omitempty"`
	Perhaps bool   `json:"perhaps,omitempty"` // whether it was reached is not known
	// Of a peak that is not steady: by how much it rises with each step, on which device, and where it is what is held
	// between steps that rises, how far below the peak that was.
	PerStep Optional `json:"per_step_bytes,omitzero"`
	Device  string   `json:"device,omitempty"`
	Below   Optional `json:"below_peak_bytes,omitzero"`
	Location
}

// FakeWeights are weights that were made up.
type FakeWeights struct {
	Process uint32 `json:"process" doc:"The process, by its id in the run."`
	What    string `json:"what" doc:"What would have read them: from_pretrained, torch.load or safetensors."`
	Name    string `json:"name" doc:"The model or file."`
	Bytes   Bytes  `json:"bytes,omitempty" doc:"How large they are, in bytes."`
}

// Redirected counts writes to a path that went to the sandbox.
type Redirected struct {
	Process uint32 `json:"process"`
	Path    string `json:"path"`
	Count   int64  `json:"count"`
}

// Switch answers what the engine asked the agent to switch on in the training.
type Switch struct {
	Process uint32 `json:"process"`
	Name    string `json:"name"`
	Applied bool   `json:"applied"`
	Text    string `json:"text,omitempty"` // why not, or how
}

// Condition is something that changes the answer: the kernel of attention, the compiler's cache.
type Condition struct {
	Process uint32 `json:"process"`
	Name    string `json:"name"`
	Value   string `json:"value"`

	Kernels []string `json:"kernels,omitempty"` // of attention: those that were called, as math and flash
}

// EventDeviceUnread is the kind of the event that says why the imaginary GPUs' state cannot be read.
const EventDeviceUnread = "device-unread"

// StopCancelled is the text of a "stop" event: who asked for the run took that back. Agents write other reasons.
const StopCancelled = "cancelled"

// StopDuration is the text of a "stop" event at which --duration was over: the program was told to end.
const StopDuration = "duration"

// Verdict says whether a program fits.
type Verdict string

const (
	VerdictFits        Verdict = "fits"
	VerdictTight       Verdict = "tight"       // fits, with less room than the figures are sure of
	VerdictConditional Verdict = "conditional" // it ran, and fits if numbers are as taken, or for so many steps
	VerdictFew         Verdict = "few"         // an LLM server that starts, for fewer users than were asked for
	VerdictOOM         Verdict = "oom"         // out of memory
	VerdictFailed      Verdict = "failed"      // the program failed for a reason of its own
	VerdictUnused      Verdict = "unused"      // it touched no GPU
	VerdictNone        Verdict = "none"        // what the program or its framework cannot use: a GPU, a kernel
)

// GPUVerdict is whether a program fits on one model of GPU.
type GPUVerdict struct {
	GPU       string   `json:"gpu" doc:"The GPU's short name in the catalogue."`
	GPUName   string   `json:"gpu_name" doc:"Its full name."`
	Compute   string   `json:"compute_capability,omitempty" doc:"The compute capability, as 8.6."`
	SMs       int      `json:"multiprocessors,omitempty" doc:"How many multiprocessors it has."`
	Verdict   Verdict  `json:"verdict" doc:"fits, tight, conditional, few, oom, failed, unused, or none: no verdict."`
	Total     Bytes    `json:"total_bytes" doc:"The GPU's memory as a framework sees it, in bytes."`
	Context   Bytes    `json:"context_overhead_bytes" doc:"What a process takes beside the framework's allocator, in bytes."`
	Allocated Optional `json:"peak_allocated_bytes,omitzero" doc:"The highest of what the allocator gave, of the fullest process, in bytes."`
	Reserved  Optional `json:"peak_reserved_bytes,omitzero" doc:"The highest of what the allocator took from the device, of the fullest process, in bytes."`
	Used      Optional `json:"peak_device_used_bytes,omitzero" doc:"The highest use of the fullest GPU, everything in it, in bytes."`
	Needed    Optional `json:"peak_needed_bytes,omitzero" doc:"What the program needs of the fullest GPU, in bytes, where its framework takes memory ahead of need."`
	Headroom  Optional `json:"headroom_bytes,omitzero" doc:"The memory less its highest use, in bytes; negative: what is missing, where that is known."`
	KVTokens  Optional `json:"kv_tokens,omitzero" doc:"Of an LLM server that is ready: how many tokens its KV cache holds."`
	Users     Optional `json:"users,omitzero" doc:"Of an LLM server, where a number of users was asked for: how many sequences of the length asked it runs at once."`
	Price     float64  `json:"price_usd_per_hour,omitempty" doc:"A price in USD an hour; absent: none is known."`
	Label     Label    `json:"label" doc:"Where the figures come from: imagined or estimated."`
	Note      string   `json:"note,omitempty" doc:"What limits the verdict."`
}

// Fits says whether the program ran with what it was given: under a conditional verdict that is not certain.
func (v *GPUVerdict) Fits() bool {
	return v.Verdict == VerdictFits || v.Verdict == VerdictTight || v.Verdict == VerdictConditional
}

// Taken is what the program needs where its framework takes memory ahead of need, else what is in use at the peak.
func (v *GPUVerdict) Taken() Bytes { return Bytes(v.Needed.Or(v.Used.Or(0))) }

// Try is another imagined run of the same program, with one thing changed.
type Try struct {
	Kind    string `json:"kind" doc:"What was changed: allocator, gpu, batch, bf16, checkpointing, memory and others."`
	What    string `json:"what" doc:"The same in words."`
	Command string `json:"command,omitempty" doc:"The command that runs it so."`
	GPUVerdict
}

// TryMemory is the kind of the try that has all the memory it wants: what the program needs.
const TryMemory = "memory"

// TryPromise begins the kind of the try with the KV cache that the engine's own log suggests.
const TryPromise = "engine:kv_cache_memory_bytes"

// TryTwo begins the kind of the try on two GPUs that share each layer of a server's model.
const TryTwo = "engine:tensor_parallel_size"

// TryGPU is the kind of the try on another GPU.
const TryGPU = "gpu"

// TryOnes is the kind of the try that reads ones where no kernel computed a number and the program failed over zeros.
const TryOnes = "ones"

// TrialSet is why the engine ran a program again.
type TrialSet string

const (
	TrialCatalogue TrialSet = "catalogue" // on each GPU of the catalogue
	TrialTry       TrialSet = "try"       // with what could make it fit
	TrialVariation TrialSet = "variation" // with one condition changed
	TrialValues    TrialSet = "values"    // with other numbers where nobody computed them
)

// Trial is how another run of the same program ended. Of one GPU of the catalogue the later one stands.
type Trial struct {
	Set TrialSet `json:"set"`
	Try
}

func (ImaginedSetup) frame()  {}
func (ImaginedDevice) frame() {}
func (DeviceUse) frame()      {}
func (LibraryCall) frame()    {}
func (ReadBack) frame()       {}
func (DevicePeak) frame()     {}
func (PeakParts) frame()      {}
func (DataSize) frame()       {}
func (Unreached) frame()      {}
func (FakeWeights) frame()    {}
func (Redirected) frame()     {}
func (Switch) frame()         {}
func (Condition) frame()      {}
func (Trial) frame()          {}

// ProcessOf is the process that a frame of an imagined run tells of; 0: of all.
func ProcessOf(f Frame) uint32 {
	if process := reflect.ValueOf(f).FieldByName("Process"); process.IsValid() {
		return uint32(process.Uint())
	}
	return 0
}

// ImaginedFacts is what a recording holds of imaginary GPUs beside what every recording has.
type ImaginedFacts struct {
	Setup      ImaginedSetup    `json:"setup"`
	Devices    []ImaginedDevice `json:"devices,omitempty"`
	Uses       []DeviceUse      `json:"uses,omitempty"`
	Calls      []LibraryCall    `json:"calls,omitempty"`
	Reads      []ReadBack       `json:"read_backs,omitempty"`
	Peaks      []DevicePeak     `json:"peaks,omitempty"`
	Parts      []PeakParts      `json:"parts,omitempty"`
	Sizes      []DataSize       `json:"data_sizes,omitempty"`
	Unreached  []Unreached      `json:"not_reached,omitempty"`
	Weights    []FakeWeights    `json:"fake_weights,omitempty"`
	Redirected []Redirected     `json:"redirected,omitempty"`
	Switches   []Switch         `json:"switches,omitempty"`
	Conditions []Condition      `json:"conditions,omitempty"`
	Serving    []Serving        `json:"serving,omitempty"`
	Trials     []Trial          `json:"trials,omitempty"`
}

// addImagined takes in a frame of a run on imaginary GPUs; false: it is none.
func (r *Run) addImagined(f Frame) bool {
	all := &r.Imagined
	switch f := f.(type) {
	case ImaginedSetup:
		all.Setup = f
	case ImaginedDevice:
		all.Devices = append(all.Devices, f)
	case DeviceUse:
		keep(r, &all.Uses, f, frameKey{kind: "use", process: f.Process, name: f.Device})
	case LibraryCall:
		keep(r, &all.Calls, f, frameKey{kind: "call", name: f.Name})
	case ReadBack:
		by := "device"
		if f.Agent {
			by = "agent"
		}
		keep(r, &all.Reads, f, frameKey{"read", f.Process, by, f.File, f.Line})
	case DevicePeak:
		keep(r, &all.Peaks, f, frameKey{kind: "peak", process: f.Process, name: f.Device})
	case PeakParts:
		keep(r, &all.Parts, f, frameKey{kind: "parts", process: f.Process, name: f.Device})
	case DataSize:
		keep(r, &all.Sizes, f, frameKey{"size", f.Process, f.Op, f.File, f.Line})
	case Unreached:
		keep(r, &all.Unreached, f, frameKey{kind: "unreached", name: f.What})
	case FakeWeights:
		keep(r, &all.Weights, f, frameKey{kind: "weights", name: f.Name, file: f.What})
	case Redirected:
		keep(r, &all.Redirected, f, frameKey{kind: "redirected", name: f.Path})
	case Switch:
		keep(r, &all.Switches, f, frameKey{kind: "switch", process: f.Process, name: f.Name})
	case Condition:
		keep(r, &all.Conditions, f, frameKey{kind: "condition", process: f.Process, name: f.Name})
	case Serving:
		keep(r, &all.Serving, f, frameKey{kind: "serving", process: f.Process})
	case Trial:
		if f.Set != TrialCatalogue {
			all.Trials = append(all.Trials, f)
			break
		}
		keep(r, &all.Trials, f, frameKey{kind: "trial", name: f.GPU})
	default:
		return false
	}
	return true
}

// Frames takes the facts apart again.
func (all *ImaginedFacts) Frames(yield func(Frame) bool) {
	if all.Setup.GPU != "" && !yield(all.Setup) {
		return
	}
	_ = each(all.Devices, yield) && each(all.Uses, yield) && each(all.Calls, yield) && each(all.Reads, yield) &&
		each(all.Peaks, yield) &&
		each(all.Parts, yield) && each(all.Sizes, yield) && each(all.Unreached, yield) && each(all.Weights, yield) &&
		each(all.Redirected, yield) && each(all.Switches, yield) && each(all.Conditions, yield) &&
		each(all.Serving, yield) && each(all.Trials, yield)
}

func each[F Frame](frames []F, yield func(Frame) bool) bool {
	for _, f := range frames {
		if !yield(f) {
			return false
		}
	}
	return true
}
