package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/report"
)

type diffInput struct {
	A  string `query:"a" required:"true" minLength:"1" maxLength:"200" doc:"A run."`
	B  string `query:"b" required:"true" minLength:"1" maxLength:"200" doc:"The run that is compared with it."`
	By string `query:"by" default:"site" enum:"site,module,category"`
}

func (s *Server) diff(api huma.API) {
	get(api, "/diff", "Why the peaks of two runs differ, to the byte", func(ctx context.Context, in *diffInput) (*report.Report, error) {
		a, err := s.find(ctx, in.A)
		if err != nil {
			return nil, err
		}
		b, err := s.find(ctx, in.B)
		if err != nil {
			return nil, err
		}
		return s.engine.DiffReport(ctx, a.ID, b.ID, in.By)
	})
}
