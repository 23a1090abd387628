package allocator

import (
	"hightide/internal/mem"
)

// Setup is under what a Program is run.
type Setup struct {
	Settings Settings
	Rules    Rules
	// Memory is the device's, as the framework sees it; Capacity what of it this allocator can have.
	// 0: no end.
	Memory, Capacity mem.Bytes
	// Down makes new segments lie below earlier ones. Real addresses cannot be known; where ties go by
	// address, both directions show what depends on it.
	Down bool
	// Anew asks for what was held before the trace as other settings would: without what was cached beside it. Else
	// settings that are the record's own begin as the record did.
	Anew bool
}

// Outcome is what became of a Program.
type Outcome struct {
	Usage Usage
	OOM   *OOM // nil: it ran to its end
	// Saved counts allocations that failed in the record and could be served here; Again is the first that failed here,
	// too.
	Saved int
	Again *OOM
	// Curve is the course of the run, in equal parts of its events.
	Curve []Point
}

// OOM is the moment memory ran out.
type OOM struct {
	Event    int       `json:"event"`
	Size     mem.Bytes `json:"requested_bytes"`
	Reserved mem.Bytes `json:"reserved_bytes"` // then
	Active   mem.Bytes `json:"active_bytes"`
	// Fragmented says that what was cached or free on the device would have been enough in one piece.
	Fragmented bool `json:"fragmented"`
}

// Point is the highest use within a part of a run.
type Point struct{ Reserved, Active mem.Bytes }

// CurvePoints is how many parts a Curve has, at most.
const CurvePoints = 120

// Run runs a Program under the native allocator until it ends or memory runs out.
func Run(p *Program, setup Setup) *Outcome {
	return RunOn(p, "native", setup)
}

// RunOn runs a Program under one of Policies.
func RunOn(p *Program, policy string, setup Setup) *Outcome {
	r := newRunner(p, newPolicy(policy, setup), setup)
	if r.takeOverBeginning() {
		r.loop()
	}
	return r.finish()
}

type runner struct {
	p       *Program
	policy  Policy
	setup   Setup
	handles []Handle // by ID; 0: not live
	out     Outcome
	native  *Native   // where it is one: its figures without a call
	each    func(*Op) // told what is to be done; nil: nobody listens
	points  int       // of the Curve, at most
}

func newRunner(p *Program, policy Policy, setup Setup) *runner {
	r := &runner{p: p, policy: policy, handles: make([]Handle, p.Blocks), setup: setup, points: CurvePoints}
	r.native, _ = policy.(*Native)
	return r
}

// loop runs the Program until it ends or memory runs out.
func (r *runner) loop() {
	step := r.step()
	for i := range r.p.Ops {
		op := &r.p.Ops[i]
		if i%step == 0 {
			r.part()
		}
		if r.each != nil {
			r.each(op)
		}
		done := r.do(op)
		r.note()
		if !done {
			return
		}
	}
}

// part begins a part of the Curve with what is held then: at the beginning that may be a cache which the first event
// gives back.
func (r *runner) part() {
	r.out.Curve = append(r.out.Curve, Point{})
	r.note()
}

// step is how many operations one part of the Curve stands for.
func (r *runner) step() int { return max(1, (len(r.p.Ops)+r.points-1)/r.points) }

func (r *runner) finish() *Outcome {
	r.out.Usage = r.policy.Usage()
	return &r.out
}

// takeOverBeginning takes over what was held before the trace, as it was. Other settings, another allocator or too
// small a device would have laid it out otherwise: there the live blocks are asked for anew, by address.
func (r *runner) takeOverBeginning() bool {
	if r.native != nil && !r.setup.Anew && r.setup.Settings == r.p.Settings && r.takeOver() {
		return true
	}
	id := 0
	for _, g := range r.p.Beginning.Segments {
		for _, b := range g.Blocks {
			if b.State == mem.BlockInactive {
				continue
			}
			op := Op{Kind: OpAlloc, ID: int32(id), Request: Request{Size: max(b.Requested, 1), Stream: g.Stream, Pool: g.Pool}}
			if !r.do(&op) {
				return false
			}
			if b.State == mem.BlockPendingFree {
				r.policy.FreeRequested(r.handles[id])
			}
			id++
		}
	}
	return true
}

// takeOver loads the beginning if the device has room for it. New segments then lie beyond it.
func (r *runner) takeOver() bool {
	device := r.native.driver.(*Device) // as newPolicy makes it
	var held mem.Bytes
	for _, g := range r.p.Beginning.Segments {
		held += roundUp(g.Size, driverPage)
		if end := g.Address + uint64(roundUp(g.Size, driverPage)); !device.Down && end > device.Base {
			device.Base = end
		} else if device.Down && (device.Base == 0 || g.Address < device.Base) {
			device.Base = g.Address
		}
	}
	for _, v := range r.p.Beginning.Reservations {
		size := max(v.Size, r.setup.Settings.reservation(r.setup.Memory, v.Page))
		if end := v.Address + uint64(size); !device.Down && end > device.Base {
			device.Base = end
		}
	}
	if limit := r.setup.Limit(); limit > 0 && held > limit {
		device.Base = 0
		return false
	}
	device.Base = device.Base / uint64(driverPage) * uint64(driverPage)
	if !device.Down && device.Base > 0 {
		device.Base += uint64(driverPage)
	}
	device.Held = held
	copy(r.handles, r.native.Load(r.p.Beginning))
	return true
}

// do does one thing; false: memory ran out.
func (r *runner) do(op *Op) bool {
	switch op.Kind {
	case OpAlloc:
		if r.native != nil && op.Pool != (mem.PoolID{}) {
			r.native.UsePool(op.Pool)
		}
		h := r.policy.Malloc(op.Request)
		if h == 0 && op.Size > 0 {
			r.out.OOM = r.failed(op)
			return false
		}
		r.handles[op.ID] = h
	case OpFailed:
		if h := r.policy.Malloc(op.Request); h != 0 {
			r.out.Saved++
			giveBack(r.policy, h)
		} else if r.out.Again == nil {
			r.out.Again = r.failed(op)
		}
	case OpFree:
		if h := r.handles[op.ID]; h != 0 {
			giveBack(r.policy, h)
		}
	case OpFreeRequested:
		if h := r.handles[op.ID]; h != 0 {
			r.policy.FreeRequested(h)
		}
	case OpFreeCompleted:
		if h := r.handles[op.ID]; h != 0 {
			r.policy.FreeCompleted(h)
		}
	case OpEmptyCache:
		r.policy.EmptyCache()
	case OpReleasePool:
		if r.native != nil {
			r.native.ReleasePool(op.Pool)
		}
	case OpEmptyPool:
		if r.native != nil {
			r.native.EmptyPool(op.Pool)
		}
	}
	return true
}

// giveBack frees a block that no other stream uses.
func giveBack(p Policy, h Handle) {
	if n, ok := p.(*Native); ok {
		n.Free(h)
		return
	}
	p.FreeRequested(h)
	p.FreeCompleted(h)
}

// note keeps the highest use of the part of the run that is going on.
func (r *runner) note() {
	var reserved, active mem.Bytes
	if r.native != nil {
		f := &r.native.Stats.By[AllPools]
		reserved, active = mem.Bytes(f.ReservedBytes.Current), mem.Bytes(f.ActiveBytes.Current)
	} else {
		u := r.policy.Usage()
		reserved, active = u.Reserved, u.Active
	}
	point := &r.out.Curve[len(r.out.Curve)-1]
	point.Reserved, point.Active = max(point.Reserved, reserved), max(point.Active, active)
}

func (r *runner) failed(op *Op) *OOM {
	u := r.policy.Usage()
	oom := &OOM{Event: int(op.Event), Size: op.Size, Reserved: u.Reserved, Active: u.Active}
	if c := r.setup.Limit(); c > 0 {
		oom.Fragmented = u.Active+r.setup.Settings.Round(op.Size) <= c
	}
	return oom
}

// Limit is what the allocator can have at most; 0: no end.
func (s *Setup) Limit() mem.Bytes {
	limit := s.Capacity
	if f := s.Settings.Fraction; f > 0 && f < 1 && s.Memory > 0 {
		part := mem.Bytes(f * float64(s.Memory))
		if limit == 0 || part < limit {
			limit = part
		}
	}
	return limit
}

// Spread is a figure under every way addresses may turn out.
type Spread struct{ Low, High mem.Bytes }

// Variants runs a Program with new segments above the old ones, below them, and with ties decided by
// age. The first Outcome is that of the setup itself.
func Variants(p *Program, setup Setup) ([]*Outcome, Spread) {
	up, down, age := setup, setup, setup
	up.Rules.Ties, up.Down = ByAddress, false
	down.Rules.Ties, down.Down = ByAddress, true
	order := []Setup{age, up, down}
	if setup.Rules.Ties == ByAddress {
		age.Rules.Ties = BySegment
		order = []Setup{up, down, age}
	}
	var all []*Outcome
	spread := Spread{Low: -1}
	for _, s := range order {
		o := Run(p, s)
		all = append(all, o)
		if spread.Low < 0 || o.Usage.PeakReserved < spread.Low {
			spread.Low = o.Usage.PeakReserved
		}
		spread.High = max(spread.High, o.Usage.PeakReserved)
	}
	return all, spread
}
