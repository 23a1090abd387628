package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/report"
	"hightide/internal/store"
)

// RunList is the runs that a filter lets through, newest first.
type RunList struct {
	Runs []store.Run `json:"runs"`
}

type runsInput struct {
	Search string `query:"search" doc:"Text in the id, the name or the command."`
	Limit  int    `query:"limit" default:"200" minimum:"1" maximum:"10000"`
}

type runInput struct {
	ID string `path:"id" maxLength:"200" doc:"An id, a unique beginning of one, a name, or last."`
}

func (s *Server) runs(api huma.API) {
	get(api, "/runs", "The runs, newest first", func(ctx context.Context, in *runsInput) (*RunList, error) {
		runs, err := s.engine.Runs(ctx, store.Filter{Text: in.Search, Limit: in.Limit})
		return &RunList{runs}, err
	})
	get(api, "/runs/{id}", "One run", func(ctx context.Context, in *runInput) (*store.Run, error) {
		run, err := s.engine.Resolve(ctx, in.ID)
		return &run, err
	})
	get(api, "/runs/{id}/report", "What is to be said of a run", func(ctx context.Context, in *runInput) (*report.Report, error) {
		r, _, err := s.engine.Report(ctx, in.ID)
		return r, err
	})
}
