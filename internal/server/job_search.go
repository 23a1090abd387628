package server

import (
	"context"
	"encoding/json"
	"fmt"

	"hightide/internal/event"
	"hightide/internal/options"
	"hightide/internal/replay"
)

// searchJob is `hightide replay --search` on a snapshot that is open.
var searchJob = jobKind{"search", "try many allocator settings on a snapshot's trace", false,
	new(searchAsked).settings(), beginSearch}

type searchAsked struct {
	replay.Trial
	snapshot string
	device   int
}

func (a *searchAsked) settings() options.List {
	a.device = -1
	return options.List{
		{Name: "snapshot", Help: "id of the snapshot", To: &a.snapshot},
		{Name: "device", Help: "number of the device; -1: the one with the highest peak", To: &a.device},
		{Name: "gpu", Help: "name of another GPU, as hightide gpus lists them", To: &a.GPU},
		{Name: "memory", Help: "another size of its memory, as 24GiB", To: &a.Memory},
	}
}

func beginSearch(s *Server, text json.RawMessage) (work, error) {
	var asked searchAsked
	if err := asked.settings().Read(options.HTTP, text); err != nil {
		return work{}, err
	}
	snapshot, err := s.opened.Info(context.Background(), asked.snapshot)
	if err != nil {
		return work{}, err
	}
	title := "search settings for " + snapshot.Name
	if asked.device >= 0 {
		title += fmt.Sprintf(", device %d", asked.device)
	}
	return work{title, nil, func(ctx context.Context, j *job) (any, error) {
		w, err := s.whatIf(ctx, asked.snapshot, asked.device)
		if err != nil {
			return nil, err
		}
		found, err := w.Search(ctx, asked.Trial, s.engine.Runtime.Cores,
			func(done, all int) {
				j.takeEvent(event.Progress{Done: done, All: all, Text: "settings"})
			})
		if found == nil {
			return nil, err
		}
		return found, err
	}}, nil
}
