package server

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/fail"
	"hightide/internal/report"
	"hightide/internal/store"
	"hightide/internal/trend"
)

// The last word on each check of a commit, in the form that hosts of repositories have. Whoever has a key for a project
// says it, such as hightide check --server in a job of CI; the trend shows it on its points.

// Statuses keeps them.
type Statuses interface {
	SetStatus(ctx context.Context, commit string, c store.CommitStatus) (store.CommitStatus, error)
	Statuses(ctx context.Context, scope store.Scope, project string, commits ...string) (map[string][]store.CommitStatus,
		error)
}

// CommitInput names a commit of a project in a path.
type CommitInput struct {
	ProjectInput
	Commit string `path:"commit" minLength:"40" maxLength:"64" pattern:"^([0-9a-fA-F]{40}|[0-9a-fA-F]{64})$" doc:"The whole hash of the commit."`
}

type statusInput struct {
	CommitInput
	Body struct {
		State       string `json:"state" enum:"success,failure,error,pending" doc:"How it ended."`
		Context     string `json:"context,omitempty" maxLength:"100" doc:"What was checked; absent: hightide."`
		Description string `json:"description,omitempty" maxLength:"140" doc:"Why, in one line; absent: not said."`
		URL         string `json:"target_url,omitempty" maxLength:"1000" pattern:"^(https?://[^\\x00-\\x20\\x22\\x3c\\x3e\\x7f]*)?$" doc:"Where more is told, as https://…; absent: nowhere."`
	}
}

// CombinedStatus is what was checked of a commit.
type CombinedStatus struct {
	State    string               `json:"state" enum:"success,failure,pending" doc:"Failure where one failed or broke, else pending where one is or there is none."`
	Commit   string               `json:"sha" doc:"The hash of the commit."`
	Total    int                  `json:"total_count" doc:"How many checks there are."`
	Statuses []store.CommitStatus `json:"statuses" doc:"By context."`
}

func (s *Server) statuses(api huma.API) {
	const of = "/projects/{project}/commits/{commit}"
	get(api, of+"/status", "How the checks of a commit ended", s.showStatus)
	change(api, http.MethodPost, of+"/statuses", "Say how a check of a commit ended", s.setStatus)
}

// project is one that who asks sees; an error that tells nothing of another.
func (s *Server) project(ctx context.Context, name string) (by asking, err error) {
	by, _ = ctx.Value(askingKey{}).(asking)
	if !by.scope.Has(store.Viewer, name) {
		return by, fail.Input("GET /api/v1/projects lists those that you are in", "there is no project %q", name)
	}
	if s.options.Statuses == nil {
		return by, fail.Input("hightide serve does", "this server keeps no checks of commits")
	}
	return by, nil
}

func (s *Server) showStatus(ctx context.Context, in *CommitInput) (*CombinedStatus, error) {
	by, err := s.project(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	commit := strings.ToLower(in.Commit)
	found, err := s.options.Statuses.Statuses(ctx, by.scope, in.Project, commit)
	all := orEmpty(found[commit])
	return &CombinedStatus{store.Combined(all), commit, len(all), all}, err
}

func (s *Server) setStatus(ctx context.Context, in *statusInput) (*store.CommitStatus, error) {
	by, err := s.project(ctx, in.Project)
	if err != nil {
		return nil, err
	}
	if !by.scope.Has(store.Member, in.Project) {
		return nil, huma.Error403Forbidden(fmt.Sprintf("you see the project %q, and its members say how checks ended",
			in.Project))
	}
	c := store.CommitStatus{Project: in.Project, Context: report.Clean(in.Body.Context), State: in.Body.State,
		Description: report.Clean(in.Body.Description), URL: in.Body.URL} // as one line, on terminals too
	if c.Context == "" {
		c.Context = trend.StatusContext
	}
	c, err = s.options.Statuses.SetStatus(ctx, strings.ToLower(in.Commit), c)
	return &c, err
}
