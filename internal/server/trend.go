package server

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/trend"
)

type trendInput struct {
	Search string   `query:"search" maxLength:"1000" doc:"Only runs with this text in the id, the name or the command."`
	Name   string   `query:"name" maxLength:"200" doc:"Only runs of this name."`
	Tag    []string `query:"tag,explode" maxItems:"20" nullable:"false" doc:"KEY or KEY=VALUE; all of them." example:"[\"project=ranker\"]"`
}

func (s *Server) trend(api huma.API) {
	get(api, "/trend", "How the peak of runs changed from commit to commit, and where by more than its noise", s.showTrend)
	savedPage(api, "/trend/page", "The same as one HTML file that needs nothing else", "trend.html",
		func(ctx context.Context, in *trendInput) (htmlWriter, error) {
			t, err := s.showTrend(ctx, in)
			return &report.Saved{Trend: t, Of: in.filter().String(), Made: time.Now()}, err
		})
}

func (in *trendInput) filter() store.Filter {
	return store.Filter{Text: in.Search, Name: in.Name, Tags: tagsOf(in.Tag), Brief: true}
}

func (s *Server) showTrend(ctx context.Context, in *trendInput) (*trend.Trend, error) {
	runs, err := s.engine.Runs(ctx, in.filter())
	if err != nil {
		return nil, err
	}
	t := trend.Of(runs)
	if by, _ := ctx.Value(askingKey{}).(asking); s.options.Statuses != nil && !s.outside {
		found, err := s.options.Statuses.Statuses(ctx, by.scope, in.filter().Tags[store.ProjectTag])
		if err != nil {
			return nil, err
		}
		t.Tell(found)
	}
	return &t, nil
}
