package allocator

import "hightide/internal/mem"

// PolicyInfo is a model that Programs can be run under.
type PolicyInfo struct {
	Name  string
	Short string
	// Exact models come out to the address; the others are estimates after published descriptions.
	Exact bool
	make  func(Setup) Policy
}

// Policies lists the models. Add yours here.
var Policies = []PolicyInfo{
	{"native", "PyTorch's CUDA caching allocator", true, newNativePolicy},
	{"async", "the driver's pool (backend:cudaMallocAsync), which PyTorch can use instead", false, newAsync},
	{"bfc", "best fit with coalescing, as TensorFlow and XLA have it, growing on demand", false, newBFC},
	{"ideal", "no fragmentation at all: a lower bound", false, newIdeal},
}

// FindPolicy finds a model by its name.
func FindPolicy(name string) (PolicyInfo, bool) {
	for _, p := range Policies {
		if p.Name == name {
			return p, true
		}
	}
	return PolicyInfo{}, false
}

// newPolicy makes a model with nothing held; the name must be one of Policies.
func newPolicy(name string, setup Setup) Policy {
	p, _ := FindPolicy(name)
	return p.make(setup)
}

func newNativePolicy(s Setup) Policy {
	return NewNative(s.Settings, s.Rules, s.Memory, &Device{Capacity: s.Capacity, Down: s.Down})
}

// ideal holds exactly what is in use, rounded as little as addresses must be aligned.
type ideal struct {
	limit mem.Bytes
	sizes []idealBlock
	spare []Handle
	tally
}

type idealBlock struct{ requested, size mem.Bytes }

func newIdeal(s Setup) Policy { return &ideal{limit: s.Limit(), sizes: make([]idealBlock, 1)} }

// Malloc serves whatever the memory has room for.
func (i *ideal) Malloc(r Request) Handle {
	size := roundUp(r.Size, minBlock)
	if r.Size <= 0 || i.limit > 0 && i.u.Reserved+size > i.limit {
		i.u.OOMs++
		return 0
	}
	h := Handle(len(i.sizes))
	if n := len(i.spare) - 1; n >= 0 {
		h, i.spare = i.spare[n], i.spare[:n]
		i.sizes[h] = idealBlock{r.Size, size}
	} else {
		i.sizes = append(i.sizes, idealBlock{r.Size, size})
	}
	i.reserve(size)
	i.handedOut(r.Size, size)
	return h
}

// FreeRequested counts the free.
func (i *ideal) FreeRequested(h Handle) { i.letGo(i.sizes[h].size) }

// FreeCompleted gives the memory back.
func (i *ideal) FreeCompleted(h Handle) {
	i.reusable(i.sizes[h].requested, i.sizes[h].size)
	i.unreserve(i.sizes[h].size)
	i.spare = append(i.spare, h)
}

// EmptyCache has nothing to do.
func (i *ideal) EmptyCache() {}

// Usage is what is held.
func (i *ideal) Usage() Usage { return i.u }

// tally keeps a Usage.
type tally struct{ u Usage }

func (t *tally) handedOut(requested, size mem.Bytes) {
	u := &t.u
	u.Requested += requested
	u.Allocated += size
	u.Active += size
	u.PeakRequested = max(u.PeakRequested, u.Requested)
	u.PeakAllocated = max(u.PeakAllocated, u.Allocated)
	u.PeakActive = max(u.PeakActive, u.Active)
}

func (t *tally) letGo(size mem.Bytes) { t.u.Allocated -= size }

func (t *tally) reusable(requested, size mem.Bytes) {
	t.u.Requested -= requested
	t.u.Active -= size
}

func (t *tally) reserve(size mem.Bytes) {
	t.u.Reserved += size
	t.u.PeakReserved = max(t.u.PeakReserved, t.u.Reserved)
	t.u.DeviceAllocs++
}

func (t *tally) unreserve(size mem.Bytes) {
	t.u.Reserved -= size
	t.u.DeviceFrees++
}
