package engine

import (
	"context"
	"errors"

	"hightide/internal/analyze"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/usage"
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
	d, err := before.diff(after, by)
	if err != nil {
		return nil, err
	}
	return d.Report(before.name, after.name), nil
}

// Diff compares the peaks of two files or runs on the device that holds most in each. Of a run with
// several snapshots it takes the one that holds most.
func (e *Engine) Diff(ctx context.Context, a, b, by string) (*analyze.Difference, error) {
	if a == "-" && b == "-" {
		return nil, fail.Usage("name one of them", "stdin cannot be both sides")
	}
	before, err := e.fullest(ctx, a)
	if err != nil {
		return nil, err
	}
	after, err := e.fullest(ctx, b)
	if err != nil {
		return nil, err
	}
	return before.diff(after, by)
}

func (s side) diff(after side, by string) (*analyze.Difference, error) {
	d, err := analyze.Diff(s.snapshot, after.snapshot, s.device, after.device, by)
	if err != nil {
		return nil, fail.Input("hightide diff --help says what can be compared", "%w", err)
	}
	return d, nil
}

// ErrNoSnapshot: a run or file has nothing of an allocator's blocks.
var ErrNoSnapshot = errors.New("holds no allocator snapshot")

// Compared is why the peaks of two differ: by their blocks, or, where a side has no snapshot, by what both reports have.
type Compared struct {
	Blocks *analyze.Difference
	Report *report.Report // where there is no Blocks
	Pair   *report.Pair   // that Report was made of
}

// Differ says why the peaks of two differ. Only where by is empty it does with less than the blocks of both.
func (e *Engine) Differ(ctx context.Context, a, b, by string) (c Compared, err error) {
	c.Blocks, err = e.Diff(ctx, a, b, by)
	if !errors.Is(err, ErrNoSnapshot) || by != "" {
		return c, err
	}
	var unread error
	if c.Pair, unread = e.Pair(ctx, a, b); unread != nil {
		return c, unread
	}
	if c.Report = analyze.Compare(c.Pair); c.Report == nil {
		return c, err
	}
	c.Report.AddNote("Blocks of a device are not compared: " + err.Error() + ".")
	return c, nil
}

// Pair is the reports of two beside each other: of runs, or of files with a snapshot. Of neither a difference on the device is needed.
func (e *Engine) Pair(ctx context.Context, a, b string) (*report.Pair, error) {
	return report.Beside(a, b, func(ref string) (*report.Report, error) { return e.reportOf(ctx, ref) })
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
			return o.engine.fullest(ctx, run.ID)
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
		return side{}, fail.Input("was recording on? torch.cuda.memory._record_memory_history()", "%s holds nothing about a device", one.info.Name)
	}
	return best, nil
}

func (e *Engine) fullest(ctx context.Context, ref string) (side, error) {
	from, err := e.source(ctx, ref)
	if err != nil {
		return side{}, err
	}
	all, err := from.snapshots()
	if err != nil {
		return side{}, err
	}
	best, device := fullestOf(all)
	if best == nil {
		return side{}, fail.Input("name a snapshot, or a run that recorded one", "%s %w", ref, ErrNoSnapshot)
	}
	return side{best, device, ref}, nil
}

// fullestOf is the snapshot and the device of it with the highest peak; nil: there is none.
func fullestOf(all []snapshot) (best *mem.AllocatorSnapshot, device int) {
	most := mem.Bytes(-1)
	for _, s := range all {
		for _, d := range s.AllDevices() {
			if len(all) == 1 && len(s.AllDevices()) == 1 {
				return s.AllocatorSnapshot, d // nothing to choose from: not worth playing its trace
			}
			if peak := usage.FromTrace(s.AllocatorSnapshot, d, usage.Whole).Peak.Bytes; peak > most {
				best, device, most = s.AllocatorSnapshot, d, peak
			}
		}
	}
	return best, device
}
