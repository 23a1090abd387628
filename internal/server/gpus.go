package server

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/gpus"
)

// GPUList is the catalogue.
type GPUList struct {
	GPUs []gpus.GPU `json:"gpus" doc:"The GPUs of the catalogue, but those whose memory is a formula."`
}

func (s *Server) gpus(api huma.API) {
	get(api, "/gpus", "The catalogue of GPUs: memory, price, and where each figure is from",
		func(context.Context, *struct{}) (*GPUList, error) {
			known, err := gpus.Load()
			if err != nil {
				return nil, err
			}
			return &GPUList{known.Real()}, nil
		})
}
