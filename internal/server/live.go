package server

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"hightide/internal/engine"
	"hightide/internal/store"
)

// docs/formats/api.md has the events and what they hold.

// liveState is where a run stands when a viewer begins.
type liveState struct {
	store.Run
	At     int64 `json:"at_ns"`  // up to where the recording was read, since the run began
	Resync bool  `json:"resync"` // something was missed: fetch the curves again
}

type liveInput struct {
	RunInput
	Last string `header:"Last-Event-ID" maxLength:"30" doc:"The id of the last event that was seen: a position in the recording."`
	From string `query:"from" maxLength:"30" doc:"The same, for clients that cannot set a header."`
}

func (s *Server) live(api huma.API) {
	stream(api, "/runs/{id}/live", "A run while it is recorded, as server-sent events",
		func(ctx context.Context, in *liveInput) (serving, error) {
			h, release, err := s.openRun(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			return func(ctx context.Context, w http.ResponseWriter) {
				defer release()
				s.watchRun(ctx, w, h, cmp.Or(in.Last, in.From))
			}, nil
		})
	stream(api, "/live", "The list of runs as it changes, as server-sent events",
		func(context.Context, *struct{}) (serving, error) {
			return s.watchRuns, nil
		})
}

// watchRun sends a viewer what happens in a run.
func (s *Server) watchRun(ctx context.Context, w http.ResponseWriter, h *hub, last string) {
	place, err := strconv.ParseInt(last, 10, 64)
	resumes := err == nil && place >= 0
	if resumes && h.over(place) {
		w.WriteHeader(http.StatusNoContent) // the client need not come back
		return
	}
	v := answerEvents(w)
	begin := func(resync bool) ([]byte, int64) { return h.firstMessage(h.current(ctx, s.engine), resync) }
	number, there := h.feed.behind(place)
	if !resumes || !there {
		var text []byte
		if text, number = begin(resumes); !v.send(text) {
			return
		}
	} else if !v.send([]byte(":\n\n")) { // the header, so that the viewer knows that it is back
		return
	}
	v.watch(ctx, h.feed, number, func() ([]byte, int64) { return begin(true) })
}

// over says whether nothing comes behind a place of the recording.
func (h *hub) over(place int64) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.ended != nil && place >= h.at
}

// firstMessage is what a viewer is sent first, and the number of the message to go on with.
func (h *hub) firstMessage(row store.Run, resync bool) ([]byte, int64) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	number := h.feed.end()
	if h.ended != nil {
		number-- // the end itself
		if h.ended.err != nil && h.at == 0 {
			return nil, number
		}
	}
	var first events
	first.add("state", liveState{row, h.newest, resync})
	first.add("series", engine.CurveHeads(h.run))
	processes := news{run: h.run}
	for _, p := range h.run.Processes {
		processes.process = append(processes.process, p.ID)
	}
	first.add("processes", orEmpty(processesOf(h.run, processes.process)))
	return first.text(h.at), number
}

// listEvery is how often the list of runs is looked at while somebody watches it.
const listEvery = time.Second

// rowsNews are rows of the list that have changed, and ids of those that are gone.
type rowsNews struct {
	Changed []store.Run `json:"runs"`
	Removed []string    `json:"removed"`
}

// watchRuns sends a viewer the rows that change.
func (s *Server) watchRuns(ctx context.Context, w http.ResponseWriter) {
	begin := func() ([]byte, int64) { return eventText("open", struct{}{}, -1), s.list.feed.end() }
	s.list.startLooking(s)
	defer s.list.leave()
	v := answerEvents(w)
	text, number := begin()
	if v.send(text) {
		v.watch(ctx, s.list.feed, number, begin)
	}
}

// since says what has changed in the list, and remembers it.
func (n *rowsNews) since(known map[string]store.Run, runs []store.Run) {
	here := map[string]bool{}
	n.Changed, n.Removed = []store.Run{}, []string{}
	for _, row := range runs {
		here[row.ID] = true
		if old, ok := known[row.ID]; !ok || !reflect.DeepEqual(old, row) {
			n.Changed = append(n.Changed, row)
			known[row.ID] = row
		}
	}
	for id := range known {
		if !here[id] {
			n.Removed = append(n.Removed, id)
			delete(known, id)
		}
	}
}

// serving writes an answer of its own making.
type serving func(ctx context.Context, w http.ResponseWriter)

// stream adds a resource that answers with server-sent events.
func stream[In any](api huma.API, path, summary string, handle func(context.Context, *In) (serving, error)) {
	served(api, path, summary, map[string]*huma.MediaType{"text/event-stream": {Schema: &huma.Schema{Type: "string"}}},
		handle)
}

// served adds a resource that writes its own answer, of these kinds.
func served[In any](api huma.API, path, summary string, kinds map[string]*huma.MediaType,
	handle func(context.Context, *In) (serving, error)) {
	huma.Get(api, "/api/v1"+path, func(ctx context.Context, in *In) (*huma.StreamResponse, error) {
		serve, err := handle(ctx, in)
		if err != nil {
			return nil, problem(err)
		}
		return &huma.StreamResponse{Body: func(c huma.Context) {
			_, w := humago.Unwrap(c)
			serve(c.Context(), w)
		}}, nil
	}, func(o *huma.Operation) {
		o.Summary = summary
		o.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: kinds}}
	})
}

// rawJSON is a kind of answer that is written as it is, of the form of a type.
func rawJSON[T any](api huma.API) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[T](), true, "")}}
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text)
}
