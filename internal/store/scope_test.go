package store_test

import (
	"errors"
	"io"
	"io/fs"
	"testing"

	"hightide/internal/mem"
	"hightide/internal/store"
	"hightide/internal/testkit"
)

// TestScopeOfAll: who sees everything has a store as any other.
func TestScopeOfAll(t *testing.T) {
	keeps(t, func(t *testing.T) store.Store {
		return store.Scoped(store.OpenFiles(t.TempDir()), store.Scope{All: true})
	})
}

// TestScope: of every kind of store somebody sees the runs of some projects, changes those of fewer, and learns nothing
// of the others: not by an id, the beginning of one, a name, the order of the list, nor by what can be written.
func TestScope(t *testing.T) {
	server := testkit.StartPostgres(t)
	for kind, open := range map[string]func(t *testing.T) store.Store{
		"files":  func(t *testing.T) store.Store { return store.OpenFiles(t.TempDir()) },
		"memory": func(*testing.T) store.Store { return new(store.Memory) },
		"team":   func(t *testing.T) store.Store { return team(t, server.New(t), "file://"+t.TempDir()) },
	} {
		t.Run(kind, func(t *testing.T) {
			s := open(t)
			defer s.Close()
			ids := map[string]string{}
			for n, project := range []string{"own", "seen", "other", ""} {
				of := info(n, "of "+project)
				if of.Tags = map[string]string{"project": project}; project == "" {
					of.Tags = nil
				}
				ids[project] = record(t, s, of, false)
			}
			scope := store.Scoped(s, store.Scope{Roles: map[string]store.Role{"own": store.Admin, "worked on": store.Member,
				"seen": store.Viewer, "": store.Admin}})
			seesSome(t, scope, ids)
			for _, hidden := range []string{ids["other"], ids[""], "nothing"} {
				seesNothing(t, scope, hidden)
			}
			changesFewer(t, scope, ids)
			if left, err := s.List(store.Filter{}); err != nil || len(left) != 3 {
				t.Errorf("left %+v, %v", left, err)
			}
		})
	}
}

func seesSome(t *testing.T, s store.Store, ids map[string]string) {
	t.Helper()
	for _, filter := range []store.Filter{{}, {Limit: 2}, {Tags: map[string]string{"project": ""}}, {Text: "python"},
		{Projects: []string{"other"}}} {
		rows, err := s.List(filter)
		must(t, err)
		if len(rows) != 2 || rows[0].ID != ids["seen"] || rows[1].ID != ids["own"] {
			t.Errorf("%+v gives %+v", filter, rows)
		}
	}
	if rows, err := s.List(store.Filter{Before: ids["seen"]}); err != nil || len(rows) != 1 {
		t.Errorf("behind one that is seen: %+v, %v", rows, err)
	}
	if run, err := store.Find(s, "last"); err != nil || run.ID != ids["seen"] {
		t.Errorf("the last is %+v, %v", run, err)
	}
	if _, run, err := store.Load(s, ids["seen"]); err != nil || run.End == nil {
		t.Errorf("one that is seen: %v", err)
	}
}

func seesNothing(t *testing.T, s store.Store, id string) {
	t.Helper()
	_, open := s.Open(id, store.Recording)
	_, attached := s.Attached(id)
	_, attach := s.Attach(id, "x", func(io.Writer) error { return nil })
	_, reopen := s.Reopen(id)
	_, find := store.Find(s, id)
	_, begin := store.Find(s, id[:len(id)-1])
	for what, err := range map[string]error{"attached": attached, "attach": attach, "reopen": reopen, "find": find,
		"its beginning": begin, "remove": s.Remove(id), "tag": store.Tag(s, id, nil, nil, nil)} {
		if !errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrForbidden) {
			t.Errorf("%s of %s: %v", what, id, err)
		}
	}
	if !errors.Is(open, fs.ErrNotExist) {
		t.Errorf("open of %s: %v", id, open)
	}
	for _, err := range s.Follow(t.Context(), id, 0) {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("follow of %s: %v", id, err)
		}
	}
	if rows, err := s.List(store.Filter{Before: id}); err != nil || len(rows) != 0 {
		t.Errorf("behind %s: %+v, %v", id, rows, err)
	}
	if rows, err := s.List(store.Filter{Ref: "of other"}); err != nil || len(rows) != 0 {
		t.Errorf("by a name: %+v, %v", rows, err)
	}
}

func changesFewer(t *testing.T, s store.Store, ids map[string]string) {
	t.Helper()
	to := func(project string) map[string]string { return map[string]string{"project": project} }
	_, attach := s.Attach(ids["seen"], "x", func(io.Writer) error { return nil })
	_, elsewhere := s.Create(mem.RunInfo{StartMono: 1, Tags: to("seen")})
	_, nowhere := s.Create(mem.RunInfo{StartMono: 1})
	for what, err := range map[string]error{"remove": s.Remove(ids["seen"]), "attach": attach, "create": elsewhere,
		"create in none": nowhere, "tag": store.Tag(s, ids["seen"], to("own"), nil, nil),
		"give away":                        store.Tag(s, ids["own"], to("seen"), nil, nil),
		"hide":                             store.Tag(s, ids["own"], nil, []string{"project"}, nil),
		"give to one that is not seen":     store.Tag(s, ids["own"], to("other"), nil, nil),
		"give to one that is nowhere":      store.Tag(s, ids["own"], to("nowhere"), nil, nil),
		"make anew the rows of everything": s.Reindex(nil)} {
		if !errors.Is(err, store.ErrForbidden) {
			t.Errorf("%s: %v", what, err)
		}
	}
	must(t, store.Tag(s, ids["own"], map[string]string{"keep": "", "project": "worked on"}, nil, nil))
	if err := s.Remove(ids["own"]); !errors.Is(err, store.ErrForbidden) {
		t.Errorf("a member deletes a run: %v", err)
	}
	must(t, store.Tag(s, ids["own"], to("own"), nil, nil))
	if run, err := store.Find(s, ids["own"]); err != nil || len(run.Tags) != 2 {
		t.Errorf("tagged as %+v, %v", run, err)
	}
	must(t, s.Remove(ids["own"]))
}
