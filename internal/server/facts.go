package server

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	analyze "hightide/internal/analyze/run"
	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/report"
	"hightide/internal/store"
)

type factsInput struct {
	RunInput
	From  int64 `query:"from_ns" default:"-1" minimum:"-1" doc:"Only what touches the time from then on, in ns since the run began; -1: from its begin."`
	To    int64 `query:"to_ns" default:"-1" minimum:"-1" doc:"Only up to then; -1: to its end."`
	Limit int   `query:"limit" default:"10000" minimum:"1" maximum:"1000000" doc:"The most that are given."`
}

// Spans are stays in phases.
type Spans struct {
	Spans []report.PhaseBar `json:"spans" doc:"The stays in phases and modules."`
	More  bool              `json:"more,omitempty" doc:"There are others in this stretch of time."`
}

// Events are what happened once.
type Events struct {
	Events []report.Mark `json:"events" doc:"The events, oldest first."`
	More   bool          `json:"more,omitempty" doc:"Whether there are more than are given."`
}

type heapInput struct {
	RunInput
	Process int64 `query:"process" required:"true" minimum:"1" maximum:"4294967295" doc:"Its id in the run."`
	At      int64 `query:"at_ns" required:"true" minimum:"0" doc:"A time since the run began: what was read last before it is given."`
	From    int64 `query:"from_ns" default:"-1" minimum:"-1" doc:"Only what was allocated after that and still held then; -1: all that was held."`
}

// Artifacts are files that are kept with a run.
type Artifacts struct {
	Artifacts []store.Attachment `json:"artifacts" doc:"Files that were kept with the run."`
}

type artifactInput struct {
	RunInput
	Name string `path:"name" maxLength:"200" doc:"As the list of artifacts has it."`
}

func (s *Server) facts(api huma.API) {
	get(api, "/runs/{id}/spans", "Stays in phases, modules and spans of the program's own",
		func(ctx context.Context, in *factsInput) (*Spans, error) {
			found := within[report.PhaseBar]{factsInput: in}
			err := s.factsOf(ctx, in.ID, func(fresh *news) {
				for span := range fresh.run.Spans.All() {
					if !found.add(fresh.span(span), fresh.since(span.Start), fresh.since(span.End)) {
						return
					}
				}
			})
			return &Spans{orEmpty(found.all), found.more}, err
		})
	get(api, "/runs/{id}/events", "What happened once", func(ctx context.Context, in *factsInput) (*Events, error) {
		found := within[report.Mark]{factsInput: in}
		err := s.factsOf(ctx, in.ID, func(fresh *news) {
			for _, e := range fresh.run.Events {
				if !found.add(fresh.mark(e), fresh.since(e.Time), fresh.since(e.Time)) {
					return
				}
			}
		})
		return &Events{orEmpty(found.all), found.more}, err
	})
	get(api, "/runs/{id}/heap", "Call stacks of what the sampled heap of a process held at a time",
		func(ctx context.Context, in *heapInput) (set *report.StackSet, err error) {
			err = s.factsOf(ctx, in.ID, func(fresh *news) {
				set = analyze.HeapAt(fresh.run, uint32(in.Process), in.At,
					known(in.From))
			})
			if err == nil && set == nil {
				err = fail.Input("a report has the processes whose heap was sampled", "the heap of process %d was not sampled",
					in.Process)
			}
			return set, err
		})
	get(api, "/runs/{id}/artifacts", "Files that are kept with a run",
		func(ctx context.Context, in *RunInput) (*Artifacts, error) {
			row, err := s.findRun(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			attached, err := s.engine.Attached(ctx, row.ID)
			return &Artifacts{attached}, err
		})
	served(api, "/runs/{id}/artifacts/{name}", "One of them; run.hightide is the recording as it stands",
		map[string]*huma.MediaType{"application/octet-stream": {}}, s.artifact)
}

// factsOf reads a run for what a viewer of it would have been told.
func (s *Server) factsOf(ctx context.Context, ref string, read func(*news)) error {
	h, release, err := s.openRun(ctx, ref)
	if err != nil {
		return err
	}
	defer release()
	read(&news{run: h.view()})
	return nil
}

// within are those that touch the stretch of time that is asked for, as many as are wanted, and whether there are more.
type within[T any] struct {
	*factsInput
	all  []T
	more bool
}

// add takes in one, and says whether others are wanted.
func (w *within[T]) add(one T, begin, end int64) bool {
	from, to := known(w.From), known(w.To)
	if end < from.Or(end) || begin > to.Or(begin) {
		return true
	}
	if w.more = len(w.all) == w.Limit; !w.more {
		w.all = append(w.all, one)
	}
	return !w.more
}

// artifact gives a file to be saved: shown as a page of this server, one of a stranger's could ask in its name.
func (s *Server) artifact(ctx context.Context, in *artifactInput) (serving, error) {
	row, err := s.findRun(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return s.engine.OpenAttached(ctx, row.ID, in.Name) }
	if in.Name == engine.OutputFile {
		open = func() (io.ReadCloser, error) { return s.engine.Output(ctx, row.ID) } // also while the program writes it
	}
	file, err := open()
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, w http.ResponseWriter) {
		defer file.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", "attachment")
		_, _ = io.Copy(w, file)
	}, nil
}
