package server

import (
	"context"
	"io"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

type factsInput struct {
	RunInput
	From  int64 `query:"from_ns" default:"-1" minimum:"-1" doc:"Since the run began."`
	To    int64 `query:"to_ns" default:"-1" minimum:"-1"`
	Limit int   `query:"limit" default:"10000" minimum:"1" maximum:"1000000"`
}

// Spans are stays in phases.
type Spans struct {
	Spans []report.PhaseBar `json:"spans"`
	More  bool              `json:"more,omitempty" doc:"There are others in this stretch of time."`
}

// Events are what happened once.
type Events struct {
	Events []report.Mark `json:"events"`
	More   bool          `json:"more,omitempty"`
}

// Artifacts are files that are kept with a run.
type Artifacts struct {
	Artifacts []store.Attachment `json:"artifacts"`
}

type artifactInput struct {
	RunInput
	Name string `path:"name" maxLength:"200"`
}

func (s *Server) facts(api huma.API) {
	get(api, "/runs/{id}/spans", "Stays in phases, modules and spans of the program's own", func(ctx context.Context, in *factsInput) (*Spans, error) {
		fresh, err := s.factsOf(ctx, in.ID, func(run *mem.Run, fresh *news) { fresh.add(mem.Spans(run.Spans)) })
		if err != nil {
			return nil, err
		}
		spans, more := within(in, fresh.spans, func(s report.PhaseBar) (int64, int64) { return s.Start, s.End })
		return &Spans{spans, more}, nil
	})
	get(api, "/runs/{id}/events", "What happened once", func(ctx context.Context, in *factsInput) (*Events, error) {
		fresh, err := s.factsOf(ctx, in.ID, func(run *mem.Run, fresh *news) {
			for _, e := range run.Events {
				fresh.add(e)
			}
		})
		if err != nil {
			return nil, err
		}
		events, more := within(in, fresh.marks, func(m report.Mark) (int64, int64) { return m.Time, m.Time })
		return &Events{events, more}, nil
	})
	get(api, "/runs/{id}/artifacts", "Files that are kept with a run", func(ctx context.Context, in *RunInput) (*Artifacts, error) {
		row, err := s.find(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		attached, err := s.engine.Attached(ctx, row.ID)
		return &Artifacts{attached}, err
	})
	served(api, "/runs/{id}/artifacts/{name}", "One of them; run.hightide is the recording as it stands", map[string]*huma.MediaType{"application/octet-stream": {}}, s.artifact)
}

// factsOf reads a run for what a viewer of it would have been told.
func (s *Server) factsOf(ctx context.Context, ref string, read func(*mem.Run, *news)) (*news, error) {
	h, release, err := s.open(ctx, ref)
	if err != nil {
		return nil, err
	}
	defer release()
	run := h.view()
	fresh := &news{run: run}
	read(run, fresh)
	return fresh, nil
}

// within are those that touch the stretch of time that is asked for, as many as are wanted, and whether there are more.
func within[T any](in *factsInput, all []T, times func(T) (from, to int64)) ([]T, bool) {
	from, to := known(in.From), known(in.To)
	all = slices.DeleteFunc(all, func(one T) bool {
		begin, end := times(one)
		return end < from.Or(end) || begin > to.Or(begin)
	})
	more := len(all) > in.Limit
	return orEmpty(all[:min(len(all), in.Limit)]), more
}

// artifact gives a file to be saved: shown as a page of this server, one of a stranger's could ask in its name.
func (s *Server) artifact(ctx context.Context, in *artifactInput) (serving, error) {
	row, err := s.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	file, err := s.engine.OpenAttached(ctx, row.ID, in.Name)
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
