package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"
)

// CommitStatus says how a check of a commit ended, as hosts of repositories say it.
type CommitStatus struct {
	Context     string    `json:"context" doc:"What was checked, as hightide."`
	State       string    `json:"state" enum:"success,failure,error,pending" doc:"How it ended."`
	Description string    `json:"description" doc:"Why, in one line; empty: not said."`
	URL         string    `json:"target_url,omitempty" doc:"Where more is told; absent: nowhere."`
	Project     string    `json:"project" doc:"The project of it."`
	Updated     time.Time `json:"updated_at" doc:"When it was said last."`
}

// States of a check of a commit.
const (
	StatusSuccess = "success"
	StatusFailure = "failure"
	StatusError   = "error"
	StatusPending = "pending"
)

// mostStatuses is how many checks a commit of a project may have.
const mostStatuses = 100

// SetStatus keeps the last word on a check of a commit of a project.
func (t *Team) SetStatus(ctx context.Context, commit string, c CommitStatus) (CommitStatus, error) {
	err := t.db.change(ctx, func(s *session) error {
		var there int
		if err := s.row("SELECT count(*) FROM statuses WHERE project = ? AND commit = ? AND context <> ?", c.Project, commit,
			c.Context).Scan(&there); err != nil {
			return err
		}
		if there >= mostStatuses {
			return &Error{Kind: ErrForbidden, Text: fmt.Sprintf("a commit has at most %d checks", mostStatuses),
				Hint: "say the same context again"}
		}
		return s.row("INSERT INTO statuses (project, commit, context, state, description, target_url) "+
			"VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (project, commit, context) DO UPDATE SET state = excluded.state, description = excluded.description, "+
			"target_url = excluded.target_url, updated = now() RETURNING updated", c.Project, commit, c.Context, c.State,
			c.Description, c.URL).Scan(&c.Updated)
	})
	return c, err
}

// Statuses are the checks of commits that a scope sees, by commit; those of one project, or of all where that is "". No
// commits: of all.
func (t *Team) Statuses(ctx context.Context, scope Scope, project string, commits ...string) (map[string][]CommitStatus,
	error) {
	where, args := "TRUE", []any{}
	if project != "" {
		where, args = where+" AND project = ?", append(args, project)
	}
	if len(commits) > 0 { // not by their number: a trend has thousands
		where, args = where+" AND commit = ANY(string_to_array(?, ','))", append(args, strings.Join(commits, ","))
	}
	found := map[string][]CommitStatus{}
	err := t.db.look(ctx, func(s *session) error {
		clear(found)
		return s.query("SELECT project, commit, context, state, description, target_url, updated FROM statuses WHERE "+where+
			" ORDER BY commit, project, context", args, func(rows *sql.Rows) error {
			var c CommitStatus
			var commit string
			err := rows.Scan(&c.Project, &commit, &c.Context, &c.State, &c.Description, &c.URL, &c.Updated)
			if scope.Has(Viewer, c.Project) {
				found[commit] = append(found[commit], c)
			}
			return err
		})
	})
	return found, err
}

// Combined is the state of all checks of a commit: failure where one failed or broke, else pending where one is or none
// there is.
func Combined(all []CommitStatus) string {
	state := StatusSuccess
	if len(all) == 0 {
		state = StatusPending
	}
	for _, c := range all {
		switch {
		case c.State == StatusFailure || c.State == StatusError:
			return StatusFailure
		case c.State == StatusPending:
			state = StatusPending
		}
	}
	return state
}
