package engine

import (
	"context"

	"hightide/internal/analyze"
	"hightide/internal/mem"
	"hightide/internal/usage"
)

// Diff compares the peaks of two files or runs on the device that holds most in each. Of a run with
// several snapshots it takes the one that holds most.
func (e *Engine) Diff(ctx context.Context, a, b, by string) (*analyze.Difference, error) {
	if a == "-" && b == "-" {
		return nil, UsageError("name one of them", "stdin cannot be both sides")
	}
	before, deviceA, err := e.fullest(ctx, a)
	if err != nil {
		return nil, err
	}
	after, deviceB, err := e.fullest(ctx, b)
	if err != nil {
		return nil, err
	}
	d, err := analyze.Diff(before, after, deviceA, deviceB, by)
	if err != nil {
		return nil, InputError("hightide diff --help says what can be compared", "%w", err)
	}
	return d, nil
}

func (e *Engine) fullest(ctx context.Context, ref string) (*mem.AllocatorSnapshot, int, error) {
	all, _, err := e.snapshotsOf(ctx, ref)
	if err != nil {
		return nil, 0, err
	}
	best, device := fullestOf(all)
	if best == nil {
		return nil, 0, InputError("name a snapshot, or a run that recorded one", "%s holds no allocator snapshot", ref)
	}
	return best, device, nil
}

// fullestOf is the snapshot and the device of it with the highest peak; nil: there is none.
func fullestOf(all []namedSnapshot) (best *mem.AllocatorSnapshot, device int) {
	most := mem.Bytes(-1)
	for _, s := range all {
		for _, d := range s.snapshot.AllDevices() {
			if len(all) == 1 && len(s.snapshot.AllDevices()) == 1 {
				return s.snapshot, d // nothing to choose from: not worth playing its trace
			}
			if peak := usage.FromTrace(s.snapshot, d, usage.Whole).Peak.Bytes; peak > most {
				best, device, most = s.snapshot, d, peak
			}
		}
	}
	return best, device
}
