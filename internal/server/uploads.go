package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"hightide/internal/engine"
	"hightide/internal/fail"
	"hightide/internal/store"
	"hightide/internal/system"
)

// POST /snapshots ──▶ uploads: a file of a name of our own ──▶ Options.Check: another process, with limits, reads it
// whole
//	                                                         └──▶ kept until the server ends

// Limits of uploads, where Options name none.
const (
	uploadBytes = 2 << 30 // of one file
	uploadsHeld = 4       // times as much as one may have, of all together
)

// uploads are the files that were sent to this server.
type uploads struct {
	root  func(name string) (string, error) // makes a folder beside the recordings
	limit int64                             // bytes of one file
	check func(ctx context.Context, path string) (*engine.FileFacts, error)

	mu   sync.Mutex
	dir  *os.File // of this server, locked; nil: nothing was uploaded yet
	held int64    // bytes in it, and of what is being received

	checking sync.Mutex // one at a time: each may take much memory
}

// Uploaded is a file that was taken in.
type Uploaded struct {
	ID   string `json:"id,omitempty" doc:"Of GET /snapshots/{id}; absent where the file is a recording."`
	Run  string `json:"run,omitempty" doc:"Of GET /runs/{id}: the file is a recording."`
	Name string `json:"name" doc:"The name of the file as it was given."`
	Size int64  `json:"size_bytes" doc:"Its size in bytes."`
	engine.FileFacts
}

// UploadInput is a file, as it is: the body is read while it comes.
type UploadInput struct {
	Name string `query:"name" maxLength:"200" doc:"What people call the file."`

	body io.Reader
	size int64 // as announced; -1: not
}

// Resolve implements huma.Resolver.
func (in *UploadInput) Resolve(c huma.Context) []error {
	r, _ := humago.Unwrap(c)
	in.body, in.size = r.Body, r.ContentLength
	return nil
}

func (s *Server) upload(api huma.API) {
	file := &huma.Schema{Type: "string", Format: "binary"}
	huma.Register(api, huma.Operation{
		OperationID: "upload-snapshot", Method: http.MethodPost, Path: "/api/v1/snapshots",
		Summary: "Look at a snapshot or a recording: send the file as it is", DefaultStatus: http.StatusCreated,
		RequestBody: &huma.RequestBody{Required: true,
			Content: map[string]*huma.MediaType{"application/octet-stream": {Schema: file}}},
	}, answering(func(ctx context.Context, in *UploadInput) (*Uploaded, error) {
		path, size, facts, err := s.uploads.keepFile(ctx, in.body, in.size)
		if err != nil {
			return nil, err
		}
		name := displayName(in.Name)
		gone := sync.OnceFunc(func() { s.uploads.drop(path, size) })
		if facts.Format != "recording" {
			return &Uploaded{ID: s.opened.Upload(path, name, gone).ID, Name: name, Size: size, FileFacts: *facts}, nil
		}
		run, err := s.engine.Visit(ctx, path, store.FromUpload, gone)
		if err != nil {
			gone()
			return nil, err
		}
		return &Uploaded{Run: run.ID, Name: name, Size: size, FileFacts: *facts}, nil
	}))
}

// displayName is what people called a file, without folders: it names nothing on this machine.
func displayName(given string) string {
	given = given[strings.LastIndexAny(given, `/\`)+1:]
	given = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, given)
	if given == "" {
		return "upload"
	}
	return given
}

// keepFile keeps a file that is an allocator snapshot or a recording, under a name that nobody chose. Of any other
// nothing is left.
func (u *uploads) keepFile(ctx context.Context, body io.Reader, announced int64) (path string, size int64,
	facts *engine.FileFacts, err error) {
	if u.check == nil {
		return "", 0, nil, fail.Usage("hightide ui FILE opens one", "this server takes no uploads")
	}
	if announced > u.limit {
		return "", 0, nil, u.tooLarge()
	}
	path, size, err = u.receive(body, announced)
	if err == nil {
		u.checking.Lock()
		facts, err = u.check(ctx, path)
		u.checking.Unlock()
		if fail.Code(err) == fail.ExitBadInput { // not 404: the server is there, the file is not right
			err = huma.Error422UnprocessableEntity(line(err))
		}
	}
	if err != nil {
		u.drop(path, size)
		return "", 0, nil, err
	}
	return path, size, facts, nil
}

func (u *uploads) tooLarge() error {
	return huma.NewError(http.StatusRequestEntityTooLarge,
		fmt.Sprintf("the file is larger than %d MiB (hightide ui FILE opens it where it is)", u.limit>>20))
}

// receive writes a file that comes. size is what it takes of the room, also beside an error.
func (u *uploads) receive(body io.Reader, announced int64) (path string, size int64, err error) {
	reserved := announced
	if announced < 0 {
		reserved = u.limit
	}
	dir, err := u.reserve(reserved)
	if err != nil {
		return "", 0, err
	}
	path = filepath.Join(dir, strings.ToLower(rand.Text()))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", reserved, fail.Environment("is the data directory full? see df", "keep the upload: %w", err)
	}
	size, err = io.Copy(file, io.LimitReader(body, u.limit+1))
	closing := file.Close()
	u.free(reserved - size)
	switch {
	case size > u.limit:
		return path, size, u.tooLarge()
	case err != nil && errors.Is(err, syscall.ENOSPC), closing != nil:
		return path, size, fail.Environment("is the data directory full? see df", "keep the upload: %w",
			errors.Join(err, closing))
	case err != nil:
		return path, size, fail.Usage("send it again", "the upload broke off after %d bytes", size)
	case size == 0:
		return path, size, fail.Usage("send the file as the body of the request", "the upload is empty")
	}
	return path, size, nil
}

// reserve makes room for so many bytes, and gives the folder.
func (u *uploads) reserve(bytes int64) (dir string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dir == nil {
		if err := u.makeFolder(); err != nil {
			return "", fail.Environment("is the data directory full? see df", "keep uploads: %w", err)
		}
	}
	if u.held+bytes > uploadsHeld*u.limit {
		return "", huma.NewError(http.StatusRequestEntityTooLarge,
			"there is no room for more uploads (start hightide ui again, which deletes them)")
	}
	u.held += bytes
	return u.dir.Name(), nil
}

func (u *uploads) free(bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.held -= bytes
}

func (u *uploads) drop(path string, size int64) {
	if path != "" {
		_ = os.Remove(path)
	}
	u.free(size)
}

// makeFolder makes the folder of this server, and removes those of servers that were killed: a server holds a lock on its
// own.
func (u *uploads) makeFolder() error {
	root, err := u.root("uploads")
	if err != nil {
		return err
	}
	others, _ := os.ReadDir(root)
	for _, other := range others {
		if dir, err := os.Open(filepath.Join(root, other.Name())); err == nil {
			if system.Lock(dir, false) == nil {
				_ = os.RemoveAll(dir.Name())
			}
			dir.Close()
		}
	}
	path, err := os.MkdirTemp(root, "ui-")
	if err != nil {
		return err
	}
	if u.dir, err = os.Open(path); err != nil {
		return err
	}
	return system.Lock(u.dir, false)
}

// close deletes what was uploaded.
func (u *uploads) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.dir != nil {
		_ = os.RemoveAll(u.dir.Name())
		u.dir.Close()
		u.dir = nil
	}
}
