package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/engine"
	"hightide/internal/store"
)

// SparkList is small curves of runs.
type SparkList struct {
	Sparks []engine.Spark `json:"sparks" doc:"Those that are read; ask again for others."`
}

type sparksInput struct {
	Runs []string `query:"run,explode" required:"true" minItems:"1" maxItems:"200" nullable:"false" doc:"Ids of runs."`
}

func (s *Server) sparklines(api huma.API) {
	get(api, "/sparks", "The main curve of many runs, in few points",
		func(ctx context.Context, in *sparksInput) (*SparkList, error) {
			rows, err := s.engine.Runs(ctx, store.Filter{IDs: in.Runs})
			if err != nil {
				return nil, err
			}
			sparks, err := s.sparks.Of(ctx, s.engine, rows)
			return &SparkList{sparks}, err
		})
}
