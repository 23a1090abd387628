package server

import (
	"context"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/engine"
)

// MatrixList is the matrices that were begun here, the one that changed last first.
type MatrixList struct {
	Matrices []engine.MatrixRow `json:"matrices"`
}

type matrixInput struct {
	Name string `path:"name" maxLength:"200"`
}

func (s *Server) matrices(api huma.API) {
	get(api, "/matrices", "Matrices that were begun, the last changed first", func(ctx context.Context, _ *struct{}) (*MatrixList, error) {
		rows, err := s.engine.Matrices(ctx)
		return &MatrixList{rows}, err
	})
	get(api, "/matrices/{name}", "A matrix as far as it was measured, as its page reads it", func(ctx context.Context, in *matrixInput) (*engine.MatrixPage, error) {
		return s.engine.Matrix(ctx, in.Name, func(run string) string { return "/runs/" + url.PathEscape(run) })
	})
}
