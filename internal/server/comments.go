package server

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"hightide/internal/comments"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// CommentList is what people say of a run.
type CommentList struct {
	Comments []comments.Comment `json:"comments" doc:"The oldest first."`
}

type commentInput struct {
	RunInput
	Body struct {
		Text    string `json:"text" minLength:"1" maxLength:"4000" doc:"What is said, as plain text."`
		At      *int64 `json:"at_ns,omitempty" minimum:"0" doc:"The moment that it is about, in ns since the run began; absent: none."`
		Finding string `json:"finding,omitempty" maxLength:"1000" doc:"The finding that it is about: its kind, and its line where it has one, as leak train.py:12; absent: none."`
	}
}

type uncommentInput struct {
	RunInput
	Comment string `path:"comment" maxLength:"64" doc:"The id of the comment."`
}

func (s *Server) comments(api huma.API) {
	const of = "/runs/{id}/comments"
	get(api, of, "What people say of a run", s.listComments)
	change(api, http.MethodPost, of, "Say something of a run, of a moment of it or of a finding", s.addComment)
	change(api, http.MethodDelete, of+"/{comment}", "Delete a comment: one's own, or any as an admin of the project",
		s.removeComment)
}

// errOutside: comments are for those whom they are written for.
var errOutside = fail.Input("ask who sent the link", "comments are seen by the team alone")

func (s *Server) listComments(ctx context.Context, in *RunInput) (*CommentList, error) {
	if _, err := s.findRun(ctx, in.ID); err != nil || s.outside {
		if err == nil {
			err = errOutside
		}
		return nil, err
	}
	all, err := comments.Of(ctx, s.engine, in.ID)
	return &CommentList{orEmpty(all)}, err
}

func (s *Server) addComment(ctx context.Context, in *commentInput) (*comments.Comment, error) {
	by, _ := ctx.Value(askingKey{}).(asking)
	c := comments.Comment{By: by.person(), Finding: in.Body.Finding, Text: in.Body.Text}
	if in.Body.At != nil {
		c.At = mem.Some(*in.Body.At)
	}
	c, err := comments.Add(ctx, s.engine, in.ID, c)
	return &c, err
}

// person is the account of who asks, or what that one is called.
func (a asking) person() string {
	if a.account != "" {
		return a.account
	}
	return a.who
}

func (s *Server) removeComment(ctx context.Context, in *uncommentInput) (*CommentList, error) {
	by, _ := ctx.Value(askingKey{}).(asking)
	run, err := s.findRun(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	err = comments.Remove(ctx, s.engine, run.ID, in.Comment, func(c comments.Comment) error {
		if c.By == by.person() || by.scope.Has(store.Admin, run.Tags[store.ProjectTag]) {
			return nil
		}
		return huma.Error403Forbidden("a comment is deleted by who wrote it, or by an admin of the project")
	})
	if err != nil {
		return nil, err
	}
	return s.listComments(ctx, &in.RunInput)
}
