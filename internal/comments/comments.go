// Package comments keeps what people say of a run, of a moment of it or of something that was found in it: beside the
// recording, each in a file of its own.
package comments

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
	"hightide/internal/store"
)

// Comment is what somebody says of a run, of a moment of it, or of something that was found in it.
type Comment struct {
	ID      string       `json:"id" doc:"What requests call it."`
	By      string       `json:"by" doc:"The account that wrote it; of who had the database's password, USER on MACHINE."`
	Made    int64        `json:"made_wall_ns" doc:"When it was written, in ns since 1970."`
	At      mem.Optional `json:"at_ns,omitzero" doc:"The moment that it is about, in ns since the run began; absent: none."`
	Finding string       `json:"finding,omitempty" doc:"The finding that it is about, by its kind and its line, as leak train.py:12; absent: none."`
	Text    string       `json:"text" doc:"What is said, as plain text."`
}

// Bounds of comments.
const (
	Longest  = 4000 // letters
	mostKept = 1000 // of a run
)

// Runs are where runs are found, and what keeps them.
type Runs interface {
	Find(ctx context.Context, ref string) (store.Run, error)
	Report(ctx context.Context, ref string) (*report.Report, store.Run, error)
	InStore(ctx context.Context, work func(store.Store) error) error
}

func isComment(name string) bool {
	_, is := store.CommentOf(name)
	return is
}

// NameOf is what comments call a finding: its kind, and its line where it has one.
func NameOf(f *report.Finding) string {
	if f.File == "" {
		return f.Kind
	}
	return fmt.Sprintf("%s %s:%d", f.Kind, f.File, f.Line)
}

// Of a run there are these comments, the oldest first.
func Of(ctx context.Context, e Runs, ref string) (all []Comment, err error) {
	run, err := e.Find(ctx, ref)
	if err != nil {
		return nil, err
	}
	err = e.InStore(ctx, func(s store.Store) (err error) {
		all, err = of(s, run.ID)
		return err
	})
	return all, err
}

// With is a report of a run with its comments, for a page of its own. Of a recording that lies elsewhere there are none.
func With(ctx context.Context, e Runs, r *report.Report, id string) (report.Commented, error) {
	all, err := Of(ctx, e, id)
	if fail.Code(err) == fail.ExitBadInput {
		err = nil
	}
	if err != nil || len(all) == 0 {
		return report.Commented{Report: r}, err
	}
	return report.Commented{Report: r, Comments: all}, nil
}

func of(s store.Store, id string) ([]Comment, error) {
	attached, err := s.Attached(id)
	if err != nil {
		return nil, err
	}
	all := []Comment{}
	for _, a := range attached {
		if !isComment(a.Name) {
			continue
		}
		c, err := read(s, id, a.Name)
		if errors.Is(err, fs.ErrNotExist) { // deleted meanwhile
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Comment) int { return cmp.Or(cmp.Compare(a.Made, b.Made), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

func read(s store.Store, id, name string) (c Comment, err error) {
	file, err := s.Open(id, name)
	if err != nil {
		return c, err
	}
	defer file.Close()
	if err := json.NewDecoder(io.LimitReader(file, 1<<20)).Decode(&c); err != nil {
		return c, fmt.Errorf("comment %s of run %s cannot be read: %w", name, id, err)
	}
	c.ID, _ = store.CommentOf(name)
	return c, nil
}

// Add keeps a comment with a run. Its id and its time are made here; a finding may be named by its kind alone where
// there is one of that kind.
func Add(ctx context.Context, e Runs, ref string, c Comment) (Comment, error) {
	c.Text = strings.TrimSpace(c.Text)
	switch n := utf8.RuneCountInString(c.Text); {
	case n == 0:
		return c, fail.Usage("say something", "the comment is empty")
	case n > Longest || !utf8.ValidString(c.Text):
		return c, fail.Usage("write a shorter one", "the comment has %d letters, and at most %d are kept", n, Longest)
	}
	run, err := e.Find(ctx, ref)
	if err != nil {
		return c, err
	}
	if at, has := c.At.Get(); has && (at < 0 || run.State != store.Running && at > run.Duration) {
		return c, fail.Usage("name a moment of it", "the run lasted %s", time.Duration(run.Duration))
	}
	if c.Finding != "" {
		if c.Finding, err = findingOf(ctx, e, run.ID, c.Finding); err != nil {
			return c, err
		}
	}
	now := time.Now()
	c.ID, c.Made = store.NewID(now)+strings.ToLower(rand.Text()[:6]), now.UnixNano()
	return c, e.InStore(ctx, func(s store.Store) error {
		if all, err := of(s, run.ID); err != nil || len(all) >= mostKept {
			return cmp.Or(err, error(fail.Usage("delete some", "run %s has %d comments, and no more are kept", run.ID,
				mostKept)))
		}
		_, err := s.Attach(run.ID, store.CommentFile(c.ID), func(w io.Writer) error { return json.NewEncoder(w).Encode(c) })
		return err
	})
}

// findingOf is the finding of a run that somebody names.
func findingOf(ctx context.Context, e Runs, id, named string) (string, error) {
	r, _, err := e.Report(ctx, id)
	if err != nil {
		return "", err
	}
	var names, alike []string
	for i := range r.Findings {
		name := NameOf(&r.Findings[i])
		if name == named {
			return name, nil
		}
		names = append(names, name)
		if r.Findings[i].Kind == named {
			alike = append(alike, name)
		}
	}
	if len(alike) == 1 {
		return alike[0], nil
	}
	return "", fail.Usage("hightide show lists them", "run %s has no one finding %q; it has: %s", id, named,
		cmp.Or(strings.Join(names, ", "), "none"))
}

// Remove deletes a comment of a run, where may lets it.
func Remove(ctx context.Context, e Runs, ref, id string, may func(Comment) error) error {
	run, err := e.Find(ctx, ref)
	if err != nil {
		return err
	}
	return e.InStore(ctx, func(s store.Store) error {
		name := store.CommentFile(id)
		var c Comment
		err := fs.ErrNotExist
		if isComment(name) {
			c, err = read(s, run.ID, name)
		}
		if err == nil && may != nil {
			err = may(c)
		}
		if err == nil {
			err = s.Detach(run.ID, name)
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fail.Input("hightide comment RUN lists them", "run %s has no comment %s: %w", run.ID, id, fs.ErrNotExist)
		}
		return err
	})
}
