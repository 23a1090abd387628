package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"hightide/internal/fail"
	"hightide/internal/redact"
	"hightide/internal/store"
)

// Pushes takes runs that people send into a project, part by part.
type Pushes interface {
	Begin(ctx context.Context, p store.Pushing, name string, size int64) (parts []store.Part, there bool, err error)
	Take(ctx context.Context, p store.Pushing, name string, at int64, hash string, data []byte) error
	Stream(ctx context.Context, p store.Pushing, stream string, at int64, data []byte, limit int64) (store.Streamed, error)
	Finish(ctx context.Context, p store.Pushing, names []string, check func(path string) error) (store.Run, error)
}

// projectsPath is what all of them begin with.
const projectsPath = "/api/v1/projects/"

// ProjectInput names a project in a path.
type ProjectInput struct {
	Project string `path:"project" maxLength:"100" doc:"The name of a project."`
}

// ProjectInfo is a project as who is in it sees it.
type ProjectInfo struct {
	Name   string       `json:"name" doc:"Its name."`
	Role   string       `json:"role" enum:"viewer,member,admin" doc:"What who asks may do in it."`
	Redact redact.Rules `json:"redact" doc:"What is taken out of a run before it is sent into it."`
}

// ProjectList is the projects that who asks is in.
type ProjectList struct {
	Projects []ProjectInfo `json:"projects" doc:"By name. Who administers the server is in all."`
}

type PushInput struct {
	ProjectInput
	ID string `path:"id" maxLength:"56" doc:"What the run is called on the machine that sends it."`
}

type PushFileInput struct {
	PushInput
	Name string `path:"name" maxLength:"200" doc:"The name of the file; run.hightide is the recording."`
}

type beginInput struct {
	PushFileInput
	Body struct {
		Size int64 `json:"size_bytes" minimum:"1" doc:"Its size in bytes."`
	}
}

// Begun says what of a file is still to be sent.
type Begun struct {
	There bool         `json:"there_already,omitempty" doc:"The project has the run already: nothing need be sent."`
	Run   string       `json:"run" doc:"What the server calls the run."`
	Part  int64        `json:"part_bytes" doc:"The size of a part; the last one has the rest."`
	Parts []store.Part `json:"parts" doc:"Those that were sent. One whose hash is another is sent again."`
}

// PartInput is a part, as it is.
type PartInput struct {
	PushFileInput
	At   int64  `path:"at" minimum:"0" doc:"Where in the file it begins, in bytes: a multiple of part_bytes."`
	Hash string `query:"sha256" required:"true" minLength:"64" maxLength:"64" doc:"Its SHA-256, in hexadecimal."`

	body io.Reader
}

// Resolve implements huma.Resolver.
func (in *PartInput) Resolve(c huma.Context) []error {
	r, _ := humago.Unwrap(c)
	in.body = r.Body
	return nil
}

// Taken is a part that is kept.
type Taken struct {
	Size int64 `json:"size_bytes" doc:"Its size in bytes."`
}

// StreamInput is the next piece of a recording that is being made, as it is.
type StreamInput struct {
	PushInput
	At     int64  `path:"at" minimum:"0" doc:"Where in the recording it begins, in bytes."`
	Stream string `query:"stream" required:"true" minLength:"16" maxLength:"64" pattern:"^[A-Za-z0-9]+$" doc:"What the sender calls this stream: at random, and the same for all of its pieces."`

	body io.Reader
}

// Resolve implements huma.Resolver.
func (in *StreamInput) Resolve(c huma.Context) []error {
	r, _ := humago.Unwrap(c)
	in.body = r.Body
	return nil
}

// Streamed says where a stream stands.
type Streamed struct {
	Run     string `json:"run" doc:"What the server calls the run."`
	At      int64  `json:"at_bytes" doc:"So many bytes of the stream are there: the next piece begins here."`
	There   bool   `json:"there_already,omitempty" doc:"The project has the whole run: nothing need be sent."`
	Watched bool   `json:"watched" doc:"Somebody looks at the run now: send as soon as there is something, else every two seconds."`
}

type finishInput struct {
	PushInput
	Body struct {
		Files []string `json:"files" minItems:"1" maxItems:"1000" doc:"The names of all files that were sent."`
	}
}

func (s *Server) pushes(api huma.API) {
	const of = "/projects/{project}/pushes/{id}"
	get(api, "/projects", "The projects that who asks is in", s.listProjects)
	change(api, http.MethodPut, of+"/files/{name}", "Begin to send a file of a run, or go on with it", s.beginPush)
	putBytes(api, "put-part", of+"/files/{name}/parts/{at}", "Send a part of a file", s.takePart)
	putBytes(api, "put-live", of+"/live/{at}", "Send the next piece of a recording while it is made", s.takeStream)
	change(api, http.MethodPost, of, "Show a run, now that its files were sent", s.finishPush)
}

// putBytes adds a resource that takes bytes as they are.
func putBytes[In, Out any](api huma.API, id, path, summary string, handle func(context.Context, *In) (*Out, error)) {
	part := &huma.Schema{Type: "string", Format: "binary"}
	huma.Register(api, huma.Operation{OperationID: id, Method: http.MethodPut, Path: "/api/v1" + path, Summary: summary,
		DefaultStatus: http.StatusOK, RequestBody: &huma.RequestBody{Required: true,
			Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: part}}}}, answering(handle))
}

// isPart says whether a request sends a part, or a piece of a stream.
func isPart(r *http.Request) bool {
	return r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, projectsPath) &&
		(strings.Contains(r.URL.Path, "/parts/") || strings.Contains(r.URL.Path, "/live/"))
}

// pushing is what somebody sends, where that one may. A project that is not seen is none.
func (s *Server) pushing(ctx context.Context, in PushInput) (store.Pushing, error) {
	by, _ := ctx.Value(askingKey{}).(asking)
	switch {
	case !by.scope.Has(store.Viewer, in.Project):
		return store.Pushing{}, fail.Input("hightide push --project NAME names one that you are in", "there is no project %q",
			in.Project)
	case !by.scope.Has(store.Member, in.Project):
		return store.Pushing{}, huma.Error403Forbidden(fmt.Sprintf("you see the project %q, and send nothing into it: its "+
			"members do", in.Project))
	case s.options.Pushes == nil:
		return store.Pushing{}, fail.Usage("hightide serve does", "this server takes no runs")
	}
	return store.Pushing{Project: in.Project, ID: in.ID, Writer: store.SentBy(by.account)}, nil
}

func (s *Server) listProjects(ctx context.Context, _ *struct{}) (*ProjectList, error) {
	by, _ := ctx.Value(askingKey{}).(asking)
	list := &ProjectList{Projects: []ProjectInfo{}}
	if s.options.Projects == nil {
		return list, nil
	}
	for _, p := range s.options.Projects() {
		for _, role := range []store.Role{store.Viewer, store.Member, store.Admin} {
			if by.scope.Has(role, p.Name) {
				p.Role = role.String()
			}
		}
		if p.Role != "" {
			list.Projects = append(list.Projects, p)
		}
	}
	return list, nil
}

func (s *Server) beginPush(ctx context.Context, in *beginInput) (*Begun, error) {
	p, err := s.pushing(ctx, in.PushInput)
	if err != nil {
		return nil, err
	}
	if _, is := store.CommentOf(in.Name); is {
		return nil, fail.Usage("send them as comments", "a comment is not sent as a file: its author would be what the file says")
	}
	if in.Body.Size > s.uploads.limit {
		return nil, s.uploads.tooLarge()
	}
	parts, there, err := s.options.Pushes.Begin(ctx, p, in.Name, in.Body.Size)
	return &Begun{There: there, Run: p.Run(), Part: store.PartBytes, Parts: orEmpty(parts)}, wrongPart(err)
}

func (s *Server) takePart(ctx context.Context, in *PartInput) (*Taken, error) {
	p, err := s.pushing(ctx, in.PushInput)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(in.body, store.PartBytes+1))
	if err != nil {
		return nil, fail.Usage("send it again", "the part broke off after %d bytes", len(data))
	}
	return &Taken{int64(len(data))}, wrongPart(s.options.Pushes.Take(ctx, p, in.Name, in.At, in.Hash, data))
}

func (s *Server) takeStream(ctx context.Context, in *StreamInput) (*Streamed, error) {
	p, err := s.pushing(ctx, in.PushInput)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(in.body, store.PartBytes+1))
	if err != nil {
		return nil, fail.Usage("send it again", "the piece broke off after %d bytes", len(data))
	}
	now, err := s.options.Pushes.Stream(ctx, p, in.Stream, in.At, data, s.uploads.limit)
	return &Streamed{now.Run, now.At, now.There, now.Watched}, wrongPart(err)
}

func (s *Server) finishPush(ctx context.Context, in *finishInput) (*store.Run, error) {
	p, err := s.pushing(ctx, in.PushInput)
	if err != nil {
		return nil, err
	}
	run, err := s.options.Pushes.Finish(ctx, p, in.Body.Files, func(path string) error {
		if s.uploads.check == nil {
			return nil
		}
		s.uploads.checking.Lock()
		defer s.uploads.checking.Unlock()
		facts, err := s.uploads.check(ctx, path)
		if err == nil && facts.Format != "recording" {
			err = fail.Usage("send "+store.Recording, "what was sent is no recording but %s", facts.Format)
		}
		if fail.Code(err) == fail.ExitBadInput { // not 404: the server is there, the file is not right
			err = huma.Error422UnprocessableEntity(line(err))
		}
		return err
	})
	return &run, wrongPart(err)
}

// wrongPart gives what a client sent wrongly its status.
func wrongPart(err error) error {
	if errors.Is(err, store.ErrPart) {
		return huma.Error422UnprocessableEntity(line(err))
	}
	return err
}
