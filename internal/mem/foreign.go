package mem

import "strings"

// Profile is memory by call stack at one moment, as other tools sum it up: no addresses, no events.
// JAX's device memory profiles and memray's captures become this.
type Profile struct {
	Label   Label
	Time    int64 // ns of the wall clock; 0: the file does not say
	Kinds   []ProfileKind
	Default int // the kind to show first: bytes held
	Samples []ProfileSample
	Stacks  StackTable
	Notes   []string // what the file says of itself
	Halves  []Halved // of a program of XLA, the likeliest batch first
}

// Halved is what a program would need with half of its batch: at least, if all that could not be followed is halved too,
// and at most, if nothing of it is.
type Halved struct {
	Batch     int64    // the length of the dimension that was taken as the batch
	Arguments []string // whose dimension it is
	Low, High Bytes
}

// Formats of files in a recording that are profiles: memory by line, as JAX writes it where PyTorch writes a snapshot,
// and a program of XLA. HistoryFormat is that of a history that TensorFlow's profiler wrote, in place of a snapshot.
const (
	ProfileFormat = "pprof"
	ProgramFormat = "hlo"
	HistoryFormat = "xspace"
)

// IsProfile says whether a file of a recording is a profile, not a snapshot of an allocator.
func (s *SnapshotFile) IsProfile() bool {
	return s.Format == ProfileFormat || s.Format == ProgramFormat
}

// AtPeak says whether the agent wrote it of what was alive at the peak of an imagined device.
func (s *SnapshotFile) AtPeak() bool { return strings.HasPrefix(s.Name, "peak-") }

// NodeProfile is what the profiler of a runtime says of the nodes of a model that ran.
type NodeProfile struct {
	Nodes  []NodeRuns // in the order in which they first ended
	Arenas []Arena    // one a provider; none: the profile does not say what they hold
}

// NodeRuns are the runs of one node. What the profile does not say is absent.
type NodeRuns struct {
	Name, Operator, Provider string

	Runs, Time int64    // ns, of all runs
	Output     Optional // bytes of the largest that a run made
	Added      Optional // bytes that the arena had more in use after a run than before it, at most
	Raised     Optional // bytes by which runs raised the arena's peak
}

// Arena is the memory of a provider of a runtime, after each run of one of its nodes.
type Arena struct {
	Provider   string
	Peak, Held Bytes   // the most in use, and the most that it held
	X, Y       []int64 // ns since the profile began; bytes in use
}

// ProfileKind names one of the values of every sample.
type ProfileKind struct {
	Name string
	Unit Unit
}

// ProfileSample is what one stack holds, by kind.
type ProfileSample struct {
	Stack  uint32
	Values []int64
	Labels map[string]string // such as device and kind of buffer; nil where there are none
}

// Counts is the kind that counts what the bytes of the default one are in, and stands beside them where there are
// several; -1: there is none.
func (p *Profile) Counts() int {
	counts := -1
	for i, k := range p.Kinds {
		if k.Unit == UnitCount && i != p.Default && (counts < 0 || i < p.Default) {
			counts = i
		}
	}
	return counts
}

// Mappings is the address space of one process, as Linux tells it in smaps.
type Mappings struct {
	Rollup bool // only the sums of smaps_rollup, as one mapping
	List   []*Mapping
}

// Mapping is what the mappings of one file hold together. Sizes that the kernel stated for none of them are absent.
type Mapping struct {
	Name         string // of the file without its folder, "[heap]", "[stack]", or empty: anonymous
	Count        int64
	RSS          Optional
	PSS          Optional
	PrivateDirty Optional
	Swap         Optional
}

// OOMMessage is what a framework said when it ran out of memory, in figures. A figure that the
// message does not state is absent.
type OOMMessage struct {
	Framework string       `json:"framework"`          // who says so: "pytorch", "jax", "tensorflow", "kernel", "slurm"; "" is nobody in particular
	Backend   string       `json:"backend"`            // whose memory: "cuda", "hip", "xpu", "mps", "cpu", "xla", "tpu"; "host", "cgroup", "shm" and so on
	Wording   string       `json:"wording"`            // "torch2-sentence" and so on: one of the wordings that package format knows
	Versions  string       `json:"versions,omitempty"` // of the framework, as far as the wording tells; may be empty
	Device    Optional     `json:"device,omitzero"`
	Requested Optional     `json:"requested_bytes,omitzero"`
	Total     Optional     `json:"total_bytes,omitzero"`         // capacity of the device
	Free      Optional     `json:"free_bytes,omitzero"`          // of the device
	Allowed   Optional     `json:"allowed_bytes,omitzero"`       // where a limit below the capacity is set
	InUse     Optional     `json:"process_bytes,omitzero"`       // by this process, what is not PyTorch's included
	Allocated Optional     `json:"allocated_bytes,omitzero"`     // by the framework's tensors
	Reserved  Optional     `json:"reserved_bytes,omitzero"`      // by the framework's allocator, allocated included
	Unused    Optional     `json:"unused_bytes,omitzero"`        // reserved but unallocated
	Private   Optional     `json:"private_pools_bytes,omitzero"` // allocated in private pools (CUDA graphs)
	Other     Optional     `json:"other_bytes,omitzero"`         // MPS: allocations that are not PyTorch's
	Processes []OOMProcess `json:"processes,omitempty"`
	PID       Optional     `json:"pid,omitzero"`        // the process that was killed
	Tokens    Optional     `json:"tokens,omitzero"`     // the longest sequence that the message says would fit
	Name      string       `json:"name,omitempty"`      // of what was killed, or of the memory that ran out
	Shape     []int64      `json:"shape,omitempty"`     // TensorFlow: of the tensor
	Type      string       `json:"type,omitempty"`      // TensorFlow: its type
	Allocator string       `json:"allocator,omitempty"` // TensorFlow: such as "GPU_0_bfc"
	Parts     []OOMPart    `json:"parts,omitempty"`
	Largest   []OOMBuffer  `json:"largest,omitempty"`        // XLA: what it lists as the largest, in its order
	Rounding  Bytes        `json:"rounding_bytes,omitempty"` // largest error of a figure that was printed with two decimals
	Advice    []string     `json:"advice,omitempty"`         // settings that the message itself names
	Cut       bool         `json:"cut,omitempty"`            // the message ends early
	// the beginning of another message in the text, on host memory where this is on a device's, and the other way round
	Elsewhere string `json:"elsewhere,omitempty"`
	Text      string `json:"-"`
}

// OOMProcess is a process that the message says holds memory of the device.
type OOMProcess struct {
	PID  int64  `json:"pid"`
	Used Bytes  `json:"used_bytes"`
	Name string `json:"name,omitempty"` // its command, where the message says
}

// OOMBuffer is one of the largest buffers of a program, as XLA lists them.
type OOMBuffer struct {
	Size     Bytes  `json:"size_bytes"`
	File     string `json:"file,omitempty"` // of the program's source; "": not told
	Line     int    `json:"line,omitempty"`
	Operator string `json:"operator,omitempty"`
	Shape    string `json:"shape,omitempty"`
	Kind     string `json:"kind,omitempty"` // such as "HLO temp"
}

// OOMPart is one line of XLA's table of what the program needs.
type OOMPart struct {
	Name string `json:"name"`
	Size Bytes  `json:"size_bytes"`
}
