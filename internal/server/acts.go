package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/fail"
	"hightide/internal/store"
)

// actsPath is what only who administers the server reads.
const actsPath = "/api/v1/audit"

// Acts reads what was kept of who did what, the newest first: before a number, 0 for all, and so many at most.
type Acts func(ctx context.Context, before int64, limit int) ([]store.Act, error)

// ActList is who did what.
type ActList struct {
	Acts []store.Act `json:"acts" doc:"What was done or refused, the newest first."`
	Next int64       `json:"next,omitempty" doc:"There may be more: ask again with before=next."`
}

type actsInput struct {
	Before int64 `query:"before" minimum:"0" doc:"The number of an act: only older ones; 0: all."`
	Limit  int   `query:"limit" default:"200" minimum:"1" maximum:"10000" doc:"The most that are listed."`
}

func (s *Server) acts(api huma.API) {
	get(api, "/audit", "Who changed what, or was refused to", s.listActs)
}

func (s *Server) listActs(ctx context.Context, in *actsInput) (*ActList, error) {
	if s.options.Acts == nil {
		return nil, fail.Input("hightide serve keeps one", "this server keeps no log of who did what")
	}
	acts, err := s.options.Acts(ctx, in.Before, in.Limit)
	if err != nil {
		return nil, err
	}
	list := &ActList{Acts: orEmpty(acts)}
	if len(acts) == in.Limit {
		list.Next = acts[len(acts)-1].ID
	}
	return list, nil
}
