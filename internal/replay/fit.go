package replay

import (
	"slices"

	"hightide/internal/allocator"
	"hightide/internal/fail"
	"hightide/internal/mem"
)

// Fit answers from one recorded or imagined trace whether the same requests fit into any amount of
// memory. It may be asked from several goroutines at once.
type Fit struct {
	trace *recorded
}

// Answer is what became of a trace's requests in so much memory. Figures are replayed.
type Answer struct {
	Fits    bool // in every order in which addresses may turn out
	Depends bool // it fits in some of those orders only
	// Allocated and Reserved are peaks, of a run that did not fit up to its end.
	Allocated, Reserved mem.Bytes
	Retries             int64          // times the allocator emptied its cache because the device had no more
	OOM                 *allocator.OOM // nil: it ran to its end
}

// NewFit prepares a device's trace; -1 is the device with the longest one. Exact says that the
// model places every block of the trace where the record has it, so that what follows is not an estimate.
// An error says why the trace cannot be replayed.
func NewFit(s *mem.AllocatorSnapshot, device int) (fit *Fit, exact bool, err error) {
	if device < 0 {
		device = longestTrace(s)
	}
	t, err := openTrace(s, device, "", 0)
	if err != nil {
		return nil, false, err
	}
	return &Fit{t}, t.verified.Exact(), nil
}

// Verdict runs the trace on a device of so much memory, of which the allocator can take capacity: what is
// left after the context and what others hold. AllocConf are other settings than those of the record,
// as PYTORCH_ALLOC_CONF has them; "" keeps them. The error is one of those settings.
func (f *Fit) Verdict(memory, capacity mem.Bytes, allocConf string) (Answer, error) {
	setup := f.trace.setup()
	setup.Memory, setup.Capacity = memory, capacity
	if allocConf != "" {
		settings, err := f.trace.rules.Parse(allocConf)
		if err != nil {
			return Answer{}, fail.Usage("as in expandable_segments:True,max_split_size_mb:128", "%w", err)
		}
		setup.Settings = settings
	}
	return f.verdict(setup), nil
}

func (f *Fit) verdict(setup allocator.Setup) Answer {
	all, _ := allocator.Variants(f.trace.program, setup)
	v := Answer{Allocated: all[0].Usage.PeakAllocated, Reserved: all[0].Usage.PeakReserved,
		Retries: all[0].Usage.Retries}
	v.Fits, v.Depends = served(all)
	if i := slices.IndexFunc(all, func(o *allocator.Outcome) bool { return o.OOM != nil }); i >= 0 {
		v.OOM = all[i].OOM
	}
	return v
}

// served says whether a request was served in every order of addresses, and whether only in some.
func served(all []*allocator.Outcome) (every, some bool) {
	failed := 0
	for _, o := range all {
		if o.OOM != nil {
			failed++
		}
	}
	return failed == 0, failed > 0 && failed < len(all)
}

// Least is the least capacity that the trace's requests fit into under the recorded settings, to the
// 2 MiB in which devices give memory, by bisection. More than that may in rare cases not do, as less
// cached memory at a retry can lead to a better layout.
func (f *Fit) Least() mem.Bytes { return leastCapacity(f.trace.program, f.trace.setup(), 0) }

// leastCapacity bisects between what is known to be too little and what is taken without an end.
func leastCapacity(p *allocator.Program, setup allocator.Setup, tooLittle mem.Bytes) mem.Bytes {
	const step = 2 * mem.MiB
	setup.Capacity = 0
	roomy := allocator.Run(p, setup).Usage
	low, high := max(tooLittle, roomy.PeakRequested)/step, (roomy.PeakReserved+step-1)/step
	for low+1 < high {
		setup.Capacity = (low + high) / 2 * step
		if allocator.Run(p, setup).OOM == nil {
			high = setup.Capacity / step
		} else {
			low = setup.Capacity / step
		}
	}
	return high * step
}
