package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/store"
	"hightide/internal/trend"
)

type trendInput struct {
	Search string   `query:"search" maxLength:"1000" doc:"Only runs with this text in the id, the name or the command."`
	Name   string   `query:"name" maxLength:"200" doc:"Only runs of this name."`
	Tag    []string `query:"tag,explode" maxItems:"20" nullable:"false" doc:"KEY or KEY=VALUE; all of them." example:"[\"project=ranker\"]"`
}

func (s *Server) trend(api huma.API) {
	get(api, "/trend", "How the peak of runs changed from commit to commit, and where by more than its noise",
		func(ctx context.Context, in *trendInput) (*trend.Trend, error) {
			filter := store.Filter{Text: in.Search, Name: in.Name, Tags: tagsOf(in.Tag), Brief: true}
			runs, err := s.engine.Runs(ctx, filter)
			if err != nil {
				return nil, err
			}
			t := trend.Of(runs)
			return &t, nil
		})
}
