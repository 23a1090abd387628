package server

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/explore"
	"hightide/internal/mem"
	"hightide/internal/replay"
)

type whatIfInput struct {
	ID   string `path:"id" maxLength:"200" doc:"As the list of snapshots has it."`
	Body struct {
		Device   *int    `json:"device,omitempty" minimum:"-1" doc:"Device of the snapshot; absent or -1: the one with the highest peak."`
		Settings *string `json:"settings,omitempty" maxLength:"2000" doc:"Allocator settings as PYTORCH_ALLOC_CONF has them; absent: as recorded."`
		GPU      string  `json:"gpu,omitempty" maxLength:"100" doc:"GPU of the catalogue whose memory, less a process's context, is the limit. Without it and memory, what the allocator could have, as the trace says."`
		Memory   string  `json:"memory,omitempty" maxLength:"40" doc:"That limit in place of a GPU's, as 24GiB."`
		Event    *int    `json:"event,omitempty" doc:"After which event the segments are shown; absent: at the peak, or where memory runs out."`
		Known    bool    `json:"known,omitempty" doc:"The client has the recorded side of this event: its curve and segments are left out."`
		Spread   bool    `json:"spread,omitempty" doc:"Also run every order of addresses; three times the work."`
		Search   string  `json:"q,omitempty" maxLength:"1000" doc:"A regular expression as for blocks: others are marked."`
		Line     string  `json:"line,omitempty" maxLength:"1000" doc:"Blocks of other sites are marked."`
		Module   string  `json:"module,omitempty" maxLength:"1000" doc:"Blocks of other modules are marked."`
	}
}

func (s *Server) whatif(api huma.API) {
	huma.Post(api, "/api/v1/snapshots/{id}/whatif", answering(func(ctx context.Context, in *whatIfInput) (*WhatIf, error) {
		filter, err := (&FilterInput{Search: in.Body.Search, SelectedInput: SelectedInput{Line: in.Body.Line,
			Module: in.Body.Module}}).filter()
		if err != nil {
			return nil, err
		}
		w, err := s.whatIf(ctx, in.ID, orMain(in.Body.Device))
		if err != nil {
			return nil, err
		}
		out, err := w.Try(ctx, replay.Trial{Settings: in.Body.Settings, GPU: in.Body.GPU, Memory: in.Body.Memory,
			Event: in.Body.Event, Spread: in.Body.Spread})
		if out != nil && in.Body.Known {
			out.Recorded.Curve, out.Recorded.Moment.Segments = replay.TrialCurve{}, nil
		}
		if err != nil {
			return nil, err
		}
		return s.numbered(ctx, in.ID, out, filter)
	}), func(o *huma.Operation) {
		o.Summary = "What other settings or another GPU would have made of a snapshot's trace"
	})
}

// WhatIf is what was tried, with the names of the categories that its blocks have by number.
type WhatIf struct {
	replay.Tried
	Categories []string `json:"categories" doc:"What the numbers of blocks' categories stand for."`
}

// numbered has the blocks of an answer say their numbers, as all that is asked of a snapshot does, in place of the
// events that allocated them, and what they are for, or explore.LeftOut where a filter has others. What a replay
// remembers stays as it is.
func (s *Server) numbered(ctx context.Context, id string, out *replay.Tried, filter explore.Filter) (*WhatIf, error) {
	x, err := s.opened.Explorer(ctx, id, out.Device)
	if err != nil {
		return nil, err
	}
	wants, err := x.Wants(filter)
	if err != nil {
		return nil, err
	}
	for _, side := range []*replay.Side{&out.Recorded, &out.Replayed} {
		segments := slices.Clone(side.Moment.Segments)
		for i := range segments {
			segments[i].Blocks = slices.Clone(segments[i].Blocks)
			for k := range segments[i].Blocks {
				b := &segments[i].Blocks[k]
				if b[2] >= 0 {
					b[2] = int64(x.MadeBy(int(b[2])))
				}
				if b[1] != 0 && b[2] > -2 {
					b[3] = int64(x.CategoryOf(int(b[2])))
					if wants != nil && (b[2] < 0 || !wants(int(b[2]))) { // of what was there before the trace no line is known
						b[3] = explore.LeftOut
					}
				}
			}
		}
		side.Moment.Segments = segments
	}
	return &WhatIf{*out, x.Categories()}, nil
}

// whatIfs are traces that are ready to be tried, the last used first.
type whatIfs struct {
	lock sync.Mutex
	kept []keptTrace
}

type keptTrace struct {
	of     *mem.AllocatorSnapshot
	device int
	ready  func() (*replay.WhatIf, error) // prepares it once
}

// tracesKept is how many stay ready: a page asks for one over and over, a few pages may be open.
const tracesKept = 4

// whatIf gives the trace of a snapshot's device, made ready once; without a device, of the one that the other pages
// show.
func (s *Server) whatIf(ctx context.Context, id string, device int) (*replay.WhatIf, error) {
	x, err := s.opened.Explorer(ctx, id, device)
	if err != nil {
		return nil, err
	}
	parsed, err := s.parsed(ctx, id)
	if err != nil {
		return nil, err
	}
	w, err := s.tried.get(parsed, x.Number)()
	if err != nil {
		return nil, fmt.Errorf("device %d: %w", x.Number, err)
	}
	return w, nil
}

// orMain is a device that may be left out.
func orMain(device *int) int {
	if device == nil {
		return -1
	}
	return *device
}

func (k *whatIfs) get(of *mem.AllocatorSnapshot, device int) func() (*replay.WhatIf, error) {
	k.lock.Lock()
	defer k.lock.Unlock()
	for i, one := range k.kept {
		if one.of == of && one.device == device {
			copy(k.kept[1:i+1], k.kept[:i])
			k.kept[0] = one
			return one.ready
		}
	}
	one := keptTrace{of, device, sync.OnceValues(func() (*replay.WhatIf, error) { return replay.NewWhatIf(of, device) })}
	k.kept = append([]keptTrace{one}, k.kept[:min(len(k.kept), tracesKept-1)]...)
	return one.ready
}

// dropUnheld drops the traces of snapshots that are no longer held.
func (k *whatIfs) dropUnheld(held func(*mem.AllocatorSnapshot) bool) {
	k.lock.Lock()
	defer k.lock.Unlock()
	k.kept = slices.DeleteFunc(k.kept, func(one keptTrace) bool { return !held(one.of) })
}
