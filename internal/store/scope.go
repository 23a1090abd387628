package store

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"

	"hightide/internal/mem"
)

// Role is what somebody may do with the runs of a project; each contains those before it.
type Role int

// Roles.
const (
	Viewer Role = iota + 1 // sees them
	Member                 // makes, names and tags them
	Admin                  // deletes them
)

// Scope is the projects of which somebody sees the runs. A run outside it is one that is not there. The zero value sees
// nothing.
type Scope struct {
	All   bool            // every run, also those of no project
	Roles map[string]Role // in the projects that are seen
	Run   string          // by its id, this run alone and nobody may change it, whatever the rest says; "": by the rest
}

// Has says whether somebody has a role in a project, or one that contains it.
func (s Scope) Has(role Role, project string) bool {
	if s.Run != "" {
		return false
	}
	return s.All || project != "" && s.Roles[project] >= role
}

// projects are what a filter asks for; nil: all.
func (s Scope) projects() []string {
	if s.All || s.Run != "" {
		return nil
	}
	names := []string{}
	for name := range s.Roles {
		if s.Has(Viewer, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Scoped is a store as somebody sees it. Closing it leaves the store open.
func Scoped(s Store, scope Scope) Store { return scoped{s, scope} }

type scoped struct {
	Store
	scope Scope
}

// Close implements Store.
func (s scoped) Close() error { return nil }

// List implements Store. A run that is not seen is no place in the list either.
func (s scoped) List(filter Filter) ([]Run, error) {
	if only := s.scope.Run; only != "" {
		if filter.Before != "" || filter.IDs != nil && !slices.Contains(filter.IDs, only) {
			return nil, nil
		}
		filter.IDs = []string{only}
		return s.Store.List(filter)
	}
	filter.Projects = s.scope.projects()
	if filter.Before != "" && !s.scope.All {
		before := Filter{IDs: []string{filter.Before}, Projects: filter.Projects}
		if runs, err := s.Store.List(before); err != nil || len(runs) == 0 {
			return nil, err
		}
	}
	return s.Store.List(filter)
}

// find is a run that is seen.
func (s scoped) find(id string) (Run, error) {
	runs, err := s.List(Filter{IDs: []string{id}})
	if err != nil || len(runs) == 0 {
		return Run{}, cmp.Or(err, error(notFound(id)))
	}
	return runs[0], nil
}

// asks finds a run with which a role may do something.
func (s scoped) asks(role Role, id string) error {
	run, err := s.find(id)
	if err != nil {
		return err
	}
	return s.needs(role, run.Tags[ProjectTag])
}

// needs refuses who has not a role in a project. Of one that is not seen it says no more than of one that is not there.
func (s scoped) needs(role Role, project string) error {
	if s.scope.Has(role, project) {
		return nil
	}
	text := "a run belongs to a project: tag project=NAME"
	if project != "" {
		text = fmt.Sprintf("you are no %s of a project %q", role, project)
	}
	return &Error{Kind: ErrForbidden, Text: text, Hint: "members make, name and tag a project's runs, admins delete them"}
}

// Create implements Store.
func (s scoped) Create(info mem.RunInfo) (Writer, error) {
	if err := s.needs(Member, info.Tags[ProjectTag]); err != nil {
		return nil, err
	}
	return s.written(s.Store.Create(info))
}

// Reopen implements Store.
func (s scoped) Reopen(id string) (Writer, error) {
	if err := s.asks(Member, id); err != nil {
		return nil, err
	}
	return s.written(s.Store.Reopen(id))
}

func (s scoped) written(w Writer, err error) (Writer, error) {
	if err != nil {
		return nil, err
	}
	return &scopedWriter{Writer: w, of: s}, nil
}

// scopedWriter keeps a run within the projects that its writer may change.
type scopedWriter struct {
	Writer
	of scoped
}

// Write implements Writer.
func (w *scopedWriter) Write(f mem.Frame) error {
	if info, is := f.(mem.RunInfo); is {
		if err := w.of.needs(Member, info.Tags[ProjectTag]); err != nil {
			return err
		}
	}
	return w.Writer.Write(f)
}

// Remove implements Store.
func (s scoped) Remove(id string) error {
	if err := s.asks(Admin, id); err != nil {
		return err
	}
	return s.Store.Remove(id)
}

// Attach implements Store.
func (s scoped) Attach(id, name string, write func(io.Writer) error) (string, error) {
	if err := s.asks(Member, id); err != nil {
		return "", err
	}
	return s.Store.Attach(id, name, write)
}

// Detach implements Store.
func (s scoped) Detach(id, name string) error {
	if err := s.asks(Member, id); err != nil {
		return err
	}
	return s.Store.Detach(id, name)
}

// Open implements Store.
func (s scoped) Open(id, name string) (io.ReadCloser, error) {
	if _, err := s.find(id); err != nil {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return s.Store.Open(id, name)
}

// Attached implements Store.
func (s scoped) Attached(id string) ([]Attachment, error) {
	if _, err := s.find(id); err != nil {
		return nil, err
	}
	return s.Store.Attached(id)
}

// Follow implements Store.
func (s scoped) Follow(ctx context.Context, id string, from int64) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		if _, err := s.find(id); err != nil {
			yield(Batch{}, err)
			return
		}
		s.Store.Follow(ctx, id, from)(yield)
	}
}

// Reindex implements Store.
func (s scoped) Reindex(progress func(done, total int)) error {
	if err := s.needs(Admin, ""); err != nil {
		return err
	}
	return s.Store.Reindex(progress)
}

// With is what who has both may do.
func (s Scope) With(other Scope) Scope {
	both := Scope{All: s.All || other.All, Roles: map[string]Role{}}
	for _, of := range []Scope{s, other} {
		for project, role := range of.Roles {
			both.Roles[project] = max(both.Roles[project], role)
		}
	}
	return both
}

// ReadOnly is the scope of who sees the same and changes nothing of a project.
func (s Scope) ReadOnly() Scope {
	seen := map[string]Role{}
	for project, role := range s.Roles {
		seen[project] = min(role, Viewer)
	}
	return Scope{All: s.All, Roles: seen, Run: s.Run}
}

// Changes says whether somebody may change the runs of any project.
func (s Scope) Changes() bool {
	for project := range s.Roles {
		if s.Has(Member, project) {
			return true
		}
	}
	return s.All && s.Run == ""
}

func (r Role) String() string { return [...]string{"", "viewer", "member", "admin"}[r] }
