package server

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/trend"
)

// TrendInput chooses the runs of a trend.
type TrendInput struct {
	Search string   `query:"search" maxLength:"1000" doc:"Only runs with this text in the id, the name or the command."`
	Name   string   `query:"name" maxLength:"200" doc:"Only runs of this name."`
	Of     string   `query:"of" maxLength:"500" doc:"The figure: peak, allocated, reserved, growth, fragmentation, or what lines at FILE:LINE or FILE:FUNCTION held at the peak; absent: peak." example:"growth"`
	Tag    []string `query:"tag,explode" maxItems:"20" nullable:"false" doc:"KEY or KEY=VALUE; all of them." example:"[\"project=ranker\"]"`
}

func (s *Server) trend(api huma.API) {
	get(api, "/trend", "How a figure of runs changed from commit to commit, and where by more than its noise", s.showTrend)
	get(api, "/trend/comment", "What a pull request is told of a commit or a run, held against another", s.showComment)
	savedPage(api, "/trend/page", "The same as one HTML file that needs nothing else", "trend.html",
		func(ctx context.Context, in *TrendInput) (htmlWriter, error) {
			t, err := s.showTrend(ctx, in)
			return &report.Saved{Trend: t, Of: in.filter().String(), Made: time.Now()}, err
		})
}

type trendCommentInput struct {
	TrendInput
	Commit string `query:"commit" maxLength:"200" doc:"What it is about: the hash of a commit, its beginning of 4 digits or more, or what a run is called; absent: the last commit of the trend."`
	Base   string `query:"base" maxLength:"200" doc:"What that is held against, in the same way; absent: the commit before."`

	server string
}

// Resolve finds by which address the server was called.
func (in *trendCommentInput) Resolve(c huma.Context) []error {
	request, _ := humago.Unwrap(c)
	in.server = "http://" + request.Host
	if request.TLS != nil {
		in.server = "https://" + request.Host
	}
	return nil
}

// showComment is what a pull request is told.
func (s *Server) showComment(ctx context.Context, in *trendCommentInput) (*trend.PullComment, error) {
	t, err := s.showTrend(ctx, &in.TrendInput)
	if err != nil {
		return nil, err
	}
	return t.Comment(in.Commit, in.Base, trend.Sources{Of: in.filter(), Server: in.server,
		Run:  func(ref string) (store.Run, error) { return s.findRun(ctx, ref) },
		Runs: func(f store.Filter) ([]store.Run, error) { return s.engine.Runs(ctx, f) },
		Report: func(run string) (*report.Report, error) {
			r, _, err := s.report(ctx, run)
			return r, err
		}})
}

func (in *TrendInput) filter() store.Filter {
	return store.Filter{Text: in.Search, Name: in.Name, Tags: tagsOf(in.Tag)}
}

func (s *Server) showTrend(ctx context.Context, in *TrendInput) (*trend.Trend, error) {
	of, err := trend.ParseMeasure(in.Of)
	if err != nil {
		return nil, err
	}
	runs, err := s.engine.Runs(ctx, of.Filter(in.filter()))
	if err != nil {
		return nil, err
	}
	t := trend.Of(runs, of)
	if by, _ := ctx.Value(askingKey{}).(asking); s.options.Statuses != nil && !s.outside && len(t.Commits) > 0 {
		found, err := s.options.Statuses.Statuses(ctx, by.scope, in.filter().Tags[store.ProjectTag], t.Hashes()...)
		if err != nil {
			return nil, err
		}
		t.Tell(found)
	}
	return &t, nil
}
