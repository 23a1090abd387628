package mem

import (
	"math"
)

// AllocatorSnapshot is what a framework's caching allocator said of itself: the state of its
// segments at one moment and, where recording was on, the events that led there.
//
// The events of a trace end at (or slightly before) the state, so that the state minus the events
// backwards is how it began.
type AllocatorSnapshot struct {
	Format      string // "torch-pickle"; format's formats.go lists them
	Label       Label
	Segments    []Segment // by device, then address
	Traces      []Trace   // one a device that has events
	Annotations []Annotation
	Settings    map[string]string // as the file has them
	Stacks      StackTable
	Unknown     []string // keys that were met and kept out of the way, such as "event.colour"

	Versions     Versions  // of the framework, as far as the file's fields tell
	HostSegments []Segment // pinned host memory; Device is -1
	HostTraces   []Trace   // likewise
	// of devices whose events leave out what was there before: what they count, as "what was allocated in the trace"
	CountsOnly   map[int]string
	DeviceNames  map[int]string    // only where a number is not a GPU: "cpu" in traces of the profiler
	Texts        []string          // what the columns Metadata, Context and Category of traces number; 0 is ""
	FX           map[uint32]FXNode // by number of a location: the graph node that generated it
	Owners       []BlockOwner      // as the program named them; none: nobody asked it
	Notes        []string          // what a reader should know of the file, a sentence each
	DeviceMemory map[int]Bytes     // what a device has in all, where the file says
	// of a trace that knows blocks alone, as a profiler's: sizes are theirs, and segments stand for what is not freed
	Bare       bool
	NoRequests bool   // sizes are those of blocks: what was asked for, before rounding, is not told
	Filter     string // of a file that holds only blocks whose stacks match this expression
}

// BlockOwner is a tensor's storage that lay at an address at the moments at which it was seen.
type BlockOwner struct {
	Device         int
	Address        uint64
	Category, Name string
	Seen           []int64 // ns of the wall clock
}

// FXNode is the node of a compiled graph that a generated line of Python stands for.
type FXNode struct {
	Op, Name, Target string
	Trace            string // where the program wrote it
}

// Text returns what a column of texts means by a number.
func (s *AllocatorSnapshot) Text(number uint32) string {
	if int(number) >= len(s.Texts) {
		return ""
	}
	return s.Texts[number]
}

// Segment is a stretch of device memory that the allocator holds.
type Segment struct {
	Device     int
	Address    uint64
	Size       Bytes
	Stream     uint64
	Large      bool
	Expandable bool
	Pool       PoolID
	Stack      uint32  // of the call that got it from the device; 0: not recorded
	Blocks     []Block // by address, no gaps
}

// PoolID is zero for the default pool, (n, 0) for a captured graph, (0, n) for a user's pool.
type PoolID [2]uint64

// BlockState says who may use a block.
type BlockState uint8

// Block states.
const (
	BlockInactive    BlockState = iota // cached
	BlockAllocated                     // in a tensor's hands
	BlockPendingFree                   // freed, another stream still uses it
)

// Block is a part of a segment. Requested is what was asked for before rounding; only for blocks
// that are not inactive.
type Block struct {
	Address   uint64
	Size      Bytes
	Requested Bytes
	State     BlockState
	Stack     uint32
	Forward   uint32 // stack of the forward call; 0: not recorded
}

// Action is what a trace's event did.
type Action uint8

// Actions, as PyTorch names them.
const (
	ActionUnknown Action = iota
	ActionAlloc
	ActionFreeRequested
	ActionFreeCompleted
	ActionSegmentAlloc
	ActionSegmentFree
	ActionSegmentMap
	ActionSegmentUnmap
	ActionOOM
	ActionSnapshot
	ActionAnnotate
)

// ActionNames are indexed by Action.
var ActionNames = [...]string{"unknown", "alloc", "free_requested", "free_completed", "segment_alloc",
	"segment_free", "segment_map", "segment_unmap", "oom", "snapshot", "annotate"}

// Trace holds one device's events in columns, oldest first.
type Trace struct {
	Device  int
	Action  []Action
	Address []uint64 // of an oom: bytes the device said were free, or FreeUnknown
	Size    []Bytes  // as asked for; of an oom: rounded
	Stream  []uint64 // empty where all are 0, the default stream
	Time    []int64  // ns of the wall clock; empty where the file has no times
	Stack   []uint32
	Pool    []PoolID // empty where all are the default pool

	// Reserved is what the allocator held after each event, of a Bare snapshot where its file says so; else empty.
	Reserved []Bytes

	// Asked is what an allocation asked for where Size is what it was given, in a Bare snapshot; else empty.
	Asked []Bytes

	// Numbers of AllocatorSnapshot.Texts; each column is empty where no event of the trace has such.
	Metadata []uint32 // set by the program (user_metadata) or an annotation
	Context  []uint32 // of compilation: "Torch-Compiled Region: 0/0"
	Category []uint32 // of traces that the profiler made: "activation"
	Internal []uint32 // set by the allocator itself
	Forward  []uint32 // stacks of the forward call that a backward pass allocates for
}

// FreeUnknown is the address of an oom where the file does not say what the device had free.
const FreeUnknown = math.MaxUint64

// At is a value of a column, zero where the trace has no such column.
func At[T any](column []T, event int) (v T) {
	if event < len(column) {
		v = column[event]
	}
	return v
}

// Len is the number of events.
func (t *Trace) Len() int { return len(t.Action) }

// Annotation is a named stretch of the program's time.
type Annotation struct {
	Name   string
	Device int
	Time   int64 // ns of the wall clock
	End    bool
}

// AllocatorTotals sums a device's blocks and segments.
type AllocatorTotals struct {
	Allocated     Bytes // blocks in use
	Active        Bytes // in use or waiting for another stream
	Requested     Bytes // of active blocks, before rounding
	Reserved      Bytes // segments
	InactiveSplit Bytes // cached parts of segments that are in use elsewhere: fragmentation
	LargestFree   Bytes // largest cached block
	Segments      int
	Blocks        int // in use
}

// Totals sums the state of one device, or of all for -1.
func (s *AllocatorSnapshot) Totals(device int) AllocatorTotals {
	var t AllocatorTotals
	for _, segment := range s.Segments {
		if device >= 0 && segment.Device != device {
			continue
		}
		t.Segments++
		t.Reserved += segment.Size
		for _, b := range segment.Blocks {
			switch b.State {
			case BlockAllocated:
				t.Allocated += b.Size
				t.Blocks++
				fallthrough
			case BlockPendingFree:
				t.Active += b.Size
				t.Requested += b.Requested
			case BlockInactive:
				t.LargestFree = max(t.LargestFree, b.Size)
				if len(segment.Blocks) > 1 {
					t.InactiveSplit += b.Size
				}
			}
		}
	}
	return t
}

// Devices lists the devices that hold segments, ascending.
func (s *AllocatorSnapshot) Devices() []int {
	var devices []int
	for _, segment := range s.Segments { // sorted by device
		if n := len(devices); n == 0 || devices[n-1] != segment.Device {
			devices = append(devices, segment.Device)
		}
	}
	return devices
}

// AllDevices lists the devices that hold segments or have a trace, ascending.
func (s *AllocatorSnapshot) AllDevices() []int {
	devices := s.Devices()
	for _, t := range s.Traces {
		at := 0
		for at < len(devices) && devices[at] < t.Device {
			at++
		}
		if at == len(devices) || devices[at] != t.Device {
			devices = append(devices[:at], append([]int{t.Device}, devices[at:]...)...)
		}
	}
	return devices
}

// noRequests says whether every block's request is its size.
func noRequests(segments []Segment) bool {
	for i := range segments {
		for _, b := range segments[i].Blocks {
			if b.State != BlockInactive && b.Requested != b.Size {
				return false
			}
		}
	}
	return true
}

// HostDevice is the number of pinned host memory among the devices of a snapshot.
const HostDevice = -1

// Host is the part of a snapshot that tells of pinned host memory, as a snapshot of one device of its own,
// HostDevice. Nil: there is none, or it was not recorded.
func (s *AllocatorSnapshot) Host() *AllocatorSnapshot {
	events := 0
	for i := range s.HostTraces {
		events += s.HostTraces[i].Len()
	}
	if len(s.HostSegments) == 0 && events == 0 {
		return nil
	}
	host := *s
	host.Segments, host.Traces, host.HostSegments, host.HostTraces = s.HostSegments, s.HostTraces, nil, nil
	host.Annotations, host.Owners, host.Settings, host.DeviceMemory = nil, nil, nil, nil
	if host.Label == Imagined { // the host is as real as ever
		host.Label = Measured
	}
	host.DeviceNames = map[int]string{HostDevice: "pinned host memory"}
	host.NoRequests = noRequests(host.Segments) // PyTorch rounds up to a power of two first, and records that
	return &host
}
