package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/comments"
	"hightide/internal/fail"
	"hightide/internal/report"
	"hightide/internal/store"
)

// RunList is the runs that a filter lets through, newest first.
type RunList struct {
	Runs []store.Run `json:"runs" doc:"The runs, the newest first."`
	Next string      `json:"next,omitempty" doc:"There may be more: ask again with before=next."`

	NotSearched int `json:"not_searched,omitempty" doc:"Where finding or line is asked for: runs of which nothing is known that these could ask for, as they have no report yet or were recorded before findings were kept. At most 1,000 are counted."`
}

type runsInput struct {
	Search string   `query:"search" maxLength:"1000" doc:"Text in the id, the name or the command."`
	Tag    []string `query:"tag,explode" maxItems:"20" nullable:"false" doc:"KEY or KEY=VALUE; all of them." example:"[\"model=bert\"]"`
	State  string   `query:"state" enum:"running,finished,cut off" doc:"Only runs in this state."`
	Kind   string   `query:"finding" maxLength:"100" doc:"Only runs with a finding of this kind, as its report says." example:"leak"`
	Line   string   `query:"line" maxLength:"500" doc:"Only runs with a finding, or much memory, at this place: FILE, FILE:LINE or FILE:FUNCTION. A file may be named by the end of its path. With finding: such a finding at that place." example:"train.py:12"`
	Verb   string   `query:"verb" maxLength:"40" doc:"As run, imagine or attach."`
	Before string   `query:"before" maxLength:"64" doc:"The id of a run: only those after it in the list."`
	Limit  int      `query:"limit" default:"200" minimum:"1" maximum:"10000" doc:"The most that are listed."`
}

// RunInput names a run in a path.
type RunInput struct {
	ID string `path:"id" maxLength:"200" doc:"An id, a unique beginning of one, a name, or last." example:"last"`
}

// changeInput is what may be changed of a run.
type changeInput struct {
	RunInput
	Body struct {
		Name   *string           `json:"name,omitempty" maxLength:"200" doc:"A new name; empty: none."`
		Set    map[string]string `json:"set,omitempty" doc:"Tags to set."`
		Remove []string          `json:"remove,omitempty" doc:"Tags to remove." maxItems:"100"`
	}
}

type deleteInput struct {
	Body struct {
		IDs []string `json:"ids" minItems:"1" maxItems:"10000" doc:"Each as in the path of a run."`
	}
}

// Deleted are the runs that are gone.
type Deleted struct {
	IDs []string `json:"ids" doc:"The runs that were deleted."`
}

func (s *Server) runs(api huma.API) {
	get(api, "/runs", "The runs, newest first", s.listRuns)
	get(api, "/runs/{id}", "One run", func(ctx context.Context, in *RunInput) (*store.Run, error) {
		run, err := s.findRun(ctx, in.ID)
		return &run, err
	})
	change(api, http.MethodPatch, "/runs/{id}", "Rename or tag a run", s.tagRun)
	change(api, http.MethodDelete, "/runs/{id}", "Delete a run",
		func(ctx context.Context, in *RunInput) (*Deleted, error) {
			return s.remove(ctx, in.ID)
		})
	change(api, http.MethodPost, "/runs/delete", "Delete runs",
		func(ctx context.Context, in *deleteInput) (*Deleted, error) {
			return s.remove(ctx, in.Body.IDs...)
		})
	served(api, "/runs/{id}/report", "What is to be said of a run, as it stands", rawJSON[report.Report](api),
		func(ctx context.Context, in *RunInput) (serving, error) {
			_, text, err := s.report(ctx, in.ID)
			return func(_ context.Context, w http.ResponseWriter) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(text)
			}, err
		})
	savedPage(api, "/runs/{id}/report.html", "The same as a page that needs nothing else", "report.html",
		func(ctx context.Context, in *RunInput) (htmlWriter, error) {
			r, _, err := s.report(ctx, in.ID)
			if err != nil || s.outside {
				return r, err
			}
			return comments.With(ctx, s.engine, r, in.ID)
		})
	served(api, "/runs/{id}/report.txt", "The same as the terminal shows it",
		map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: "string"}}},
		func(ctx context.Context, in *RunInput) (serving, error) {
			r, _, err := s.report(ctx, in.ID)
			return func(_ context.Context, w http.ResponseWriter) {
				w.Header().Set("Content-Type", "text/plain; charset=utf-8")
				_, _ = io.WriteString(w, r.Text(report.TextOptions{}))
			}, err
		})
	get(api, "/runs/{id}/findings", "What was found in a run, worst first",
		func(ctx context.Context, in *RunInput) (*Findings, error) {
			r, _, err := s.report(ctx, in.ID)
			if err != nil {
				return nil, err
			}
			return &Findings{r.Findings}, nil
		})
}

// htmlWriter is what can be written as a page that needs nothing else.
type htmlWriter interface{ HTML(w io.Writer) error }

// savedPage adds a resource that a browser saves as an HTML file: its script stands in the page, which the policy
// forbids.
func savedPage[In any](api huma.API, path, summary, name string, of func(context.Context, *In) (htmlWriter, error)) {
	served(api, path, summary, map[string]*huma.MediaType{"text/html": {}},
		func(ctx context.Context, in *In) (serving, error) {
			page, err := of(ctx, in)
			return func(_ context.Context, w http.ResponseWriter) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
				_ = page.HTML(w)
			}, err
		})
}

// Findings of a run.
type Findings struct {
	Findings []report.Finding `json:"findings" doc:"What was found, worst first."`
}

// tagsOf are tags that a request asks for, as KEY or KEY=VALUE.
func tagsOf(asked []string) map[string]string {
	tags := map[string]string{}
	for _, tag := range asked {
		key, value, _ := strings.Cut(tag, "=")
		tags[key] = value
	}
	return tags
}

func (s *Server) listRuns(ctx context.Context, in *runsInput) (*RunList, error) {
	filter := store.Filter{Text: in.Search, State: store.State(in.State), Verb: in.Verb, Before: in.Before,
		Limit: in.Limit, Tags: tagsOf(in.Tag), Finding: in.Kind}
	if in.Line != "" {
		at, ok := store.ParseSpot(in.Line)
		if !ok {
			return nil, fail.Usage("write line=train.py or line=train.py:12", "line %q is no file or line", in.Line)
		}
		filter.Line = at
	}
	runs, err := s.engine.Runs(ctx, filter)
	if err != nil {
		return nil, err
	}
	list := &RunList{Runs: orEmpty(runs)}
	if list.NotSearched, err = s.engine.Unsearched(ctx, filter); err != nil {
		return nil, err
	}
	if len(runs) == in.Limit {
		list.Next = runs[len(runs)-1].ID
	}
	return list, nil
}

func (s *Server) tagRun(ctx context.Context, in *changeInput) (*store.Run, error) {
	run, err := s.findRun(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	run, err = s.engine.Tag(ctx, run.ID, in.Body.Set, in.Body.Remove, in.Body.Name)
	return &run, err
}

// remove deletes runs, all of which must be there.
func (s *Server) remove(ctx context.Context, refs ...string) (*Deleted, error) {
	var ids []string
	for _, ref := range refs {
		run, err := s.findRun(ctx, ref)
		if err != nil {
			return nil, err
		}
		ids = append(ids, run.ID)
	}
	runs, err := s.engine.Remove(ctx, ids...)
	gone := &Deleted{[]string{}}
	for _, run := range runs {
		gone.IDs = append(gone.IDs, run.ID)
		s.hubs.forget(run.ID)
	}
	return gone, err
}

// findRun finds a run by what a request calls it, in the store alone: a request never names a file.
func (s *Server) findRun(ctx context.Context, ref string) (store.Run, error) {
	return s.engine.Find(ctx, ref)
}

// openRun gives a run in memory, as it stands; release it after use.
func (s *Server) openRun(ctx context.Context, ref string) (h *hub, release func(), err error) {
	row, err := s.findRun(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	return s.hubs.openHub(ctx, row)
}

// report of a run as it stands, and the same as JSON.
func (s *Server) report(ctx context.Context, ref string) (*report.Report, []byte, error) {
	h, release, err := s.openRun(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	defer release()
	return h.report(ctx, s.engine)
}
