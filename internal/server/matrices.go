package server

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/bench"
)

// MatrixList is the matrices that were begun here, the one that changed last first.
type MatrixList struct {
	Matrices []bench.MatrixRow `json:"matrices" doc:"The matrices, the last changed first."`
}

type matrixInput struct {
	Name string `path:"name" maxLength:"200" doc:"As the list of matrices has it."`
}

func (s *Server) matrices(api huma.API) {
	get(api, "/matrices", "Matrices that were begun, the last changed first",
		func(ctx context.Context, _ *struct{}) (*MatrixList, error) {
			rows, err := bench.Matrices(ctx, s.engine)
			return &MatrixList{rows}, err
		})
	get(api, "/matrices/{name}", "A matrix as far as it was measured, as its page reads it",
		func(ctx context.Context, in *matrixInput) (*bench.MatrixPage, error) {
			return bench.Matrix(ctx, s.engine, in.Name, func(run string) string { return "/runs/" + url.PathEscape(run) })
		})
	savedPage(api, "/matrices/{name}/report.html", "The same as a page that needs nothing else", "matrix.html",
		func(ctx context.Context, in *matrixInput) (htmlWriter, error) {
			var page htmlText
			err := bench.MatrixHTML(ctx, s.engine, in.Name, &page.Buffer)
			return &page, err
		})
	stream(api, "/matrices/{name}/live", "A matrix while it is measured, as server-sent events",
		func(_ context.Context, in *matrixInput) (serving, error) {
			if _, _, err := bench.MatrixState(s.engine, in.Name); err != nil {
				return nil, err
			}
			return func(ctx context.Context, w http.ResponseWriter) { s.watchMatrix(ctx, answerEvents(w), in.Name) }, nil
		})
}

// htmlText is a page that was written.
type htmlText struct{ bytes.Buffer }

// HTML writes it.
func (t *htmlText) HTML(w io.Writer) error {
	_, err := t.WriteTo(w)
	return err
}

// matrixNews says that a matrix has more to show than it had, or is measured no more.
type matrixNews struct {
	Changed int64 `json:"changed_ns"`
	Running bool  `json:"running"`
}

// matrixEvery is how often a matrix is looked at while somebody watches it: what changed and whose lock it has.
const matrixEvery = 250 * time.Millisecond

// watchMatrix tells a viewer when a trial was kept, until nobody measures the matrix or looks at it any more.
func (s *Server) watchMatrix(ctx context.Context, v *viewer, name string) {
	last, sent := matrixNews{Running: true}, time.Now()
	look := time.NewTicker(matrixEvery)
	defer look.Stop()
	for {
		changed, running, err := bench.MatrixState(s.engine, name)
		now := matrixNews{changed, running && err == nil}
		var text []byte
		switch {
		case !now.Running:
			v.send(eventText("end", now, -1))
			return
		case now != last:
			text = eventText("changed", now, -1)
		case time.Since(sent) >= heartbeat:
			text = []byte(":\n\n")
		}
		if text != nil {
			if last, sent = now, time.Now(); !v.send(text) {
				return
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.hubs.ctx.Done():
			return
		case <-look.C:
		}
	}
}
