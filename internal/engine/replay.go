package engine

import (
	"context"
	"maps"
	"regexp"
	"slices"

	"hightide/internal/replay"
)

// Replay runs recorded traces of allocations again under other settings or on a smaller device.
func (e *Engine) Replay(ctx context.Context, refs []string, o replay.Options) (*replay.Result, error) {
	o.Version = Version
	var sources []replay.Source
	for _, ref := range refs {
		found, err := e.histories(ctx, ref)
		if err != nil {
			return nil, err
		}
		sources = append(sources, found...)
	}
	return replay.Run(ctx, sources, o)
}

// rankOf finds the rank in the name of a run's snapshot; a later one of a rank replaces the earlier.
var rankOf = regexp.MustCompile(`rank\d+`)

// histories are the snapshots of a file, or the last of each rank of a run, that hold an allocator's history.
func (e *Engine) histories(ctx context.Context, ref string) ([]replay.Source, error) {
	named, _, err := e.snapshotsOf(ctx, ref)
	if err != nil {
		return nil, err
	}
	last := map[string]namedSnapshot{}
	for _, n := range named {
		if len(n.snapshot.Traces) > 0 {
			last[rankOf.FindString(n.name)] = n
		}
	}
	if len(last) == 0 {
		return nil, InputError("hightide run --snapshot-on exit records one; torch.cuda.memory._record_memory_history must be on",
			"%s cannot be replayed: it holds no history of an allocator", ref)
	}
	var sources []replay.Source
	for _, rank := range slices.Sorted(maps.Keys(last)) {
		name := ref
		if len(last) > 1 {
			name = ref + " " + last[rank].name
		}
		sources = append(sources, replay.Source{Name: name, Snapshot: last[rank].snapshot})
	}
	return sources, nil
}
