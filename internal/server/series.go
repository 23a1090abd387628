package server

import (
	"context"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/engine"
	"hightide/internal/format"
	"hightide/internal/mem"
)

// CurveList is curves of a run, and up to where the recording was read.
type CurveList struct {
	At     int64          `json:"at_ns" doc:"Up to where the recording was read, since the run began."`
	Series []engine.Curve `json:"series" doc:"The curves."`
}

type seriesInput struct {
	RunInput
	Name    []string `query:"name,explode" maxItems:"100" nullable:"false" doc:"A quantity, as host.rss; main: the curve that a report leads with; none: all."`
	Process int64    `query:"process" default:"-1" minimum:"-1" doc:"Its id in the run; 0: those of the whole run; -1: all."`
	Device  string   `query:"device" maxLength:"100" doc:"Only curves of this device, as cuda:0."`
	From    int64    `query:"from_ns" default:"-1" minimum:"-1" doc:"Only from then on, in ns since the run began; -1: from its begin."`
	To      int64    `query:"to_ns" default:"-1" minimum:"-1" doc:"Only up to then; -1: to its end."`
	Points  int      `query:"points" default:"1000" minimum:"4" maximum:"1000000" doc:"The most a curve keeps: the lowest and the highest of each part."`
	Accept  string   `header:"Accept" hidden:"true"`
}

// options of the curves that are wanted.
func (in *seriesInput) options() engine.CurveOptions {
	return engine.CurveOptions{Names: in.Name, Process: known(in.Process), Device: in.Device, From: known(in.From),
		To: known(in.To), Points: in.Points}
}

// known is a number that may be left out.
func known(n int64) mem.Optional {
	if n < 0 {
		return mem.Optional{}
	}
	return mem.Some(n)
}

// forms of the curves beside JSON, by what a client accepts.
var forms = []struct {
	kind  string
	write func(c *CurveList, w io.Writer) error
}{
	{"text/csv", func(c *CurveList, w io.Writer) error { return format.WriteCSVRows(w, curveColumns, c.rows) }},
	{"application/vnd.apache.parquet", func(c *CurveList, w io.Writer) error {
		return format.WriteRows(w, "series", curveColumns, "hightide.series", struct{}{}, c.rows)
	}},
	{format.ArrowKind, func(c *CurveList, w io.Writer) error {
		return format.WriteArrowRows(w, curveColumns, "hightide.series", struct{}{}, c.rows)
	}},
}

func formKinds() (kinds []string) {
	for _, t := range forms {
		kinds = append(kinds, t.kind)
	}
	return kinds
}

func (s *Server) series(api huma.API) {
	kinds := rawJSON[CurveList](api)
	for _, kind := range formKinds() {
		kinds[kind] = &huma.MediaType{Schema: &huma.Schema{Type: "string"}}
	}
	served(api, "/runs/{id}/series", "Curves of a run, thinned to what a screen shows", kinds,
		func(ctx context.Context, in *seriesInput) (serving, error) {
			h, release, err := s.openRun(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			defer release()
			kind := accepted(in.Accept, append([]string{jsonKind}, formKinds()...)...)
			if kind == "" {
				return nil, notAcceptable(formKinds()...)
			}
			curves := h.curves(in.options())
			return func(_ context.Context, w http.ResponseWriter) { curves.write(w, kind) }, nil
		})
}

// curves of the run as it stands. The points are copies.
func (h *hub) curves(o engine.CurveOptions) *CurveList {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return &CurveList{h.newest, engine.Curves(h.run, o)}
}

// write answers in one form.
func (c *CurveList) write(w http.ResponseWriter, kind string) {
	for _, t := range forms {
		if kind == t.kind {
			w.Header().Set("Content-Type", t.kind)
			_ = t.write(c, w)
			return
		}
	}
	writeJSON(w, c)
}

var curveColumns = []format.Column{
	{Name: "series", Kind: format.Integer}, {Name: "name", Kind: format.Text}, {Name: "process", Kind: format.Integer},
	{Name: "device", Kind: format.Text},
	{Name: "framework", Kind: format.Text}, {Name: "unit", Kind: format.Text}, {Name: "label", Kind: format.Text},
	{Name: "time_ns", Kind: format.Integer}, {Name: "value", Kind: format.Integer},
}

// rows are all points, one a row.
func (c *CurveList) rows(add func(cells []any) error) error {
	for i := range c.Series {
		s := &c.Series[i]
		for k, x := range s.X {
			if err := add([]any{int64(s.ID), string(s.Name), int64(s.Process), s.Device, s.Framework, string(s.Unit),
				string(s.Label), x, s.Y[k]}); err != nil {
				return err
			}
		}
	}
	return nil
}
