package server

import (
	"context"
	"encoding/json"
	"fmt"

	"hightide/internal/event"
	"hightide/internal/replay"
)

// searchJob is `hightide replay --search` on a snapshot that is open.
var searchJob = jobKind{"search", "try many allocator settings on a snapshot's trace", false, beginSearch}

type searchAsked struct {
	Snapshot string `json:"snapshot"`
	Device   *int   `json:"device"`
	GPU      string `json:"gpu"`
	Memory   string `json:"memory"`
}

func beginSearch(s *Server, text json.RawMessage) (work, error) {
	asked, err := options[searchAsked](text)
	if err != nil {
		return work{}, err
	}
	snapshot, err := s.opened.Info(context.Background(), asked.Snapshot)
	if err != nil {
		return work{}, err
	}
	title := "search settings for " + snapshot.Name
	if device := orMain(asked.Device); device >= 0 {
		title += fmt.Sprintf(", device %d", device)
	}
	return work{title, nil, func(ctx context.Context, j *job) (any, error) {
		w, err := s.whatIf(ctx, asked.Snapshot, asked.Device)
		if err != nil {
			return nil, err
		}
		found, err := w.Search(ctx, replay.Trial{GPU: asked.GPU, Memory: asked.Memory}, s.engine.Runtime.Cores,
			func(done, all int) {
				j.tell(event.Progress{Done: done, All: all, Text: "settings"})
			})
		if found == nil {
			return nil, err
		}
		return found, err
	}}, nil
}
