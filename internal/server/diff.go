package server

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	analyze "hightide/internal/analyze/run"
	"hightide/internal/fail"
	"hightide/internal/report"
	"hightide/internal/store"
)

type diffInput struct {
	A  string `query:"a" required:"true" minLength:"1" maxLength:"200" doc:"A run, or a snapshot that is open."`
	B  string `query:"b" required:"true" minLength:"1" maxLength:"200" doc:"What is compared with it."`
	By string `query:"by" default:"site" enum:"site,module,category" doc:"What the parts of the difference are."`
}

func (s *Server) diff(api huma.API) {
	get(api, "/diff", "Why the peaks of two runs or snapshots differ, to the byte", s.difference)
	get(api, "/diff/figures",
		"What differs between two runs of what both recorded: their figures, what they held, lines", s.figures)
	huma.Register(api, huma.Operation{OperationID: "diff-page", Method: http.MethodGet, Path: "/api/v1/diff/page",
		Summary: "The same as one HTML file that needs nothing else",
		Responses: map[string]*huma.Response{"200": {Description: "OK",
			Content: map[string]*huma.MediaType{"text/html": {}}}}},
		func(ctx context.Context, in *diffInput) (*file, error) {
			pair, err := s.pair(ctx, in)
			if err != nil {
				return nil, problem(err)
			}
			var page bytes.Buffer
			if err := pair.HTML(&page); err != nil {
				return nil, problem(err)
			}
			return &file{"text/html; charset=utf-8", `attachment; filename="difference.html"`, page.Bytes()}, nil
		})
}

// file is an answer that a browser saves.
type file struct {
	Type        string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Body        []byte
}

func (s *Server) difference(ctx context.Context, in *diffInput) (*report.Report, error) {
	return s.opened.Difference(ctx, in.A, in.B, in.By)
}

type figuresInput struct {
	A string `query:"a" required:"true" minLength:"1" maxLength:"200" doc:"A run."`
	B string `query:"b" required:"true" minLength:"1" maxLength:"200" doc:"What is compared with it."`
}

func (s *Server) figures(ctx context.Context, in *figuresInput) (*report.Report, error) {
	pair, err := s.beside(ctx, in.A, in.B)
	if err == nil && pair.Told == nil {
		err = fail.Input("", "no figure is known of both")
	}
	if err != nil {
		return nil, err
	}
	return pair.Told, nil
}

// beside are the reports of two, and what differs of what both recorded.
func (s *Server) beside(ctx context.Context, a, b string) (*report.Pair, error) {
	pair, err := report.Beside(a, b, func(id string) (*report.Report, error) { return s.sideReport(ctx, id) })
	if err == nil {
		pair.Told = analyze.Compare(pair)
	}
	return pair, err
}

// pair is what the page of one file shows.
func (s *Server) pair(ctx context.Context, in *diffInput) (*report.Pair, error) {
	pair, err := s.beside(ctx, in.A, in.B)
	if err != nil {
		return nil, err
	}
	pair.By = in.By
	if pair.Device, err = s.difference(ctx, in); err != nil {
		pair.Device, pair.Why = nil, line(err)
	}
	return pair, ctx.Err()
}

// sideReport is the report of a run, or of a snapshot that is open.
func (s *Server) sideReport(ctx context.Context, id string) (*report.Report, error) {
	r, _, err := s.report(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		if r, other := s.opened.Report(ctx, id); other == nil {
			return r, nil
		}
	}
	return r, err
}
