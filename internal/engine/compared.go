package engine

import (
	"context"
	"errors"

	"hightide/internal/analyze"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// side is one of two peaks that are compared.
type side struct {
	snapshot *mem.AllocatorSnapshot
	device   int
	name     string // for people
}

// Difference says why the peaks of two differ. Each is a snapshot that is open or a run, by its id: never a file.
func (o *Opened) Difference(ctx context.Context, a, b, by string) (*report.Report, error) {
	before, err := o.side(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := o.side(ctx, b)
	if err != nil {
		return nil, err
	}
	d, err := analyze.Diff(before.snapshot, after.snapshot, before.device, after.device, by)
	if err != nil {
		return nil, fail.Input("hightide diff --help says what can be compared", "%w", err)
	}
	return d.Report(before.name, after.name), nil
}

// Pair is the reports of two beside each other: of runs, or of files with a snapshot. Of neither a difference on the device is needed.
func (e *Engine) Pair(ctx context.Context, a, b string) (*report.Pair, error) {
	before, err := e.reportOf(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := e.reportOf(ctx, b)
	return &report.Pair{Before: before, After: after}, err
}

// Differ says why the peaks of two differ: by their blocks, or, where a side has no snapshot and by is empty, by what both
// reports have.
func (e *Engine) Differ(ctx context.Context, a, b, by string) (*analyze.Difference, *report.Report, error) {
	d, err := e.Diff(ctx, a, b, by)
	if !errors.Is(err, ErrNoSnapshot) || by != "" {
		return d, nil, err
	}
	pair, other := e.Pair(ctx, a, b)
	if other != nil {
		return nil, nil, other // one of them is nothing that can be read
	}
	r := analyze.Compare(pair)
	if r == nil {
		return nil, nil, err
	}
	r.AddNote("Blocks of a device are not compared: " + err.Error() + ".")
	return nil, r, nil
}

func (e *Engine) reportOf(ctx context.Context, ref string) (*report.Report, error) {
	r, _, err := e.Report(ctx, ref)
	if err == nil {
		return r, nil
	}
	if r, other := e.Open([]string{ref}).Report(ctx, OpenedID(ref)); other == nil {
		return r, nil
	}
	return nil, err
}

// side finds the fullest device of a snapshot, or of those of a run.
func (o *Opened) side(ctx context.Context, id string) (side, error) {
	if o.known(id) == nil {
		if run, err := o.engine.Find(ctx, id); err == nil {
			snapshot, device, err := o.engine.fullest(ctx, run.ID)
			return side{snapshot, device, run.ID}, err
		}
	}
	one, err := o.read(ctx, id)
	if err != nil {
		return side{}, err
	}
	best := side{one.snapshot, -1, one.info.Name}
	most := mem.Bytes(-1)
	for _, d := range one.info.Devices {
		if d.Peak > most {
			best.device, most = d.Device, d.Peak
		}
	}
	if best.device < 0 {
		return side{}, fail.Input("was recording on? torch.cuda.memory._record_memory_history()", "%s tells of no device", one.info.Name)
	}
	return best, nil
}
