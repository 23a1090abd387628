package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"hightide/internal/fail"
)

// endpoint is the hub, where HF_ENDPOINT names no other.
const endpoint = "https://huggingface.co"

// maxListing is how many bytes a list of a repository's files may have.
const maxListing = 32 << 20

// remote is a repository of the hub at one revision, as a file system. Of its files only what is read is fetched.
type remote struct {
	ctx            context.Context
	client         *http.Client
	root           string // of the hub
	token          string
	repo, revision string
	names          []string
}

// openRemote asks the hub for the list of a repository's files.
func openRemote(ctx context.Context, repo, revision string) (*remote, error) {
	r := &remote{ctx: ctx, root: strings.TrimSuffix(os.Getenv("HF_ENDPOINT"), "/"), token: token(), repo: repo,
		revision: revision, client: &http.Client{Timeout: time.Minute}}
	if r.root == "" {
		r.root = endpoint
	}
	answer, err := r.get(r.root+"/api/models/"+repo+"/revision/"+url.PathEscape(revision), "")
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var listing struct {
		Commit string `json:"sha"`
		Files  []struct {
			Name string `json:"rfilename"`
		} `json:"siblings"`
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxListing)).Decode(&listing); err != nil {
		return nil, fail.Environment("is HF_ENDPOINT a hub?", "the hub's list of %s is no JSON: %w", repo, err)
	}
	if listing.Commit != "" {
		r.revision = listing.Commit // so that all files are of one
	}
	for _, f := range listing.Files {
		if fs.ValidPath(f.Name) {
			r.names = append(r.names, f.Name)
		}
	}
	return r, nil
}

// get asks for an address, or for a range of it, and turns what is no success into an error with what to do about it.
// The token goes to the hub alone: a redirect to another host loses it.
func (r *remote) get(address, span string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(r.ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fail.Environment("is HF_ENDPOINT an address?", "ask the hub: %w", err)
	}
	if r.token != "" {
		request.Header.Set("Authorization", "Bearer "+r.token)
	}
	if span != "" {
		request.Header.Set("Range", "bytes="+span)
		request.Header.Set("Accept-Encoding", "identity")
	}
	answer, err := r.client.Do(request)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err
		}
		return nil, fail.Environment("give the model's config.json, or the folder or GGUF that it was downloaded to",
			"the hub does not answer for %s: %w", r.repo, err)
	}
	if answer.StatusCode == http.StatusOK || answer.StatusCode == http.StatusPartialContent {
		return answer, nil
	}
	answer.Body.Close()
	return nil, r.refused(answer)
}

// refused is an answer that is no success.
func (r *remote) refused(answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fail.Input("accept its conditions on the hub, and set HF_TOKEN; or give its config.json",
			"the hub does not let %s be read: there is no such model, or it needs a permission", r.repo)
	case http.StatusNotFound:
		return fail.Input("is the name right, and the revision behind @?", "the hub has no %s at %s", r.repo, r.revision)
	case http.StatusTooManyRequests:
		return fail.Environment("wait a while, or set HF_TOKEN", "the hub takes no more requests for now")
	}
	return fail.Environment("give the model's config.json, or the folder or GGUF that it was downloaded to",
		"the hub answers %s", answer.Status)
}

// Open implements fs.FS.
func (r *remote) Open(name string) (fs.File, error) {
	if name == "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("a repository is listed, not opened")}
	}
	if !slices.Contains(r.names, name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	f := &file{of: r, name: name, size: -1}
	if err := f.fetch(0, firstFetch); err != nil {
		return nil, err
	}
	return f, nil
}

// Stat implements fs.StatFS: whether a file is in the list.
func (r *remote) Stat(name string) (fs.FileInfo, error) {
	if !slices.Contains(r.names, name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
	}
	return info{name: path.Base(name)}, nil
}

// ReadDir implements fs.ReadDirFS for the files of the repository's first level.
func (r *remote) ReadDir(string) (all []fs.DirEntry, err error) {
	for _, name := range r.names {
		if !strings.Contains(name, "/") {
			all = append(all, fs.FileInfoToDirEntry(info{name: name}))
		}
	}
	return all, nil
}

// How much of a file is fetched: at first as much as most headers have, then more with each request.
const (
	firstFetch = 256 << 10
	mostFetch  = 4 << 20
)

// file is one of the hub's, of which a stretch is here.
type file struct {
	of   *remote
	name string
	size int64 // -1: not known
	read int64 // by Read

	mutex sync.Mutex
	from  int64
	held  []byte
	next  int // bytes to fetch when more is needed
}

// fetch gets a stretch of the file.
func (f *file) fetch(from int64, n int) error {
	address := f.of.root + "/" + f.of.repo + "/resolve/" + url.PathEscape(f.of.revision) + "/" + (&url.URL{Path: f.name}).EscapedPath()
	answer, err := f.of.get(address, fmt.Sprintf("%d-%d", from, from+int64(n)-1))
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK { // the whole file, from its beginning
		if f.size = answer.ContentLength; from > 0 {
			return fail.Environment("download the model, and give its folder", "the hub sends only whole files, and %s is large",
				f.name)
		}
	} else if f.size, err = sizeOf(answer.Header.Get("Content-Range"), from); err != nil {
		return fail.Environment("download the model, and give its folder", "%s: %w", f.name, err)
	}
	held, err := io.ReadAll(io.LimitReader(answer.Body, int64(n)))
	if err != nil {
		return fail.Environment("try again", "the hub stopped while it sent %s: %w", f.name, err)
	}
	if answer.StatusCode == http.StatusOK && len(held) < n {
		f.size = int64(len(held))
	}
	f.from, f.held, f.next = from, held, min(4*n, mostFetch)
	return nil
}

// sizeOf reads "bytes 0-99/1234", which has to begin where it was asked to.
func sizeOf(span string, from int64) (int64, error) {
	begin, total, ok := strings.Cut(strings.TrimPrefix(span, "bytes "), "/")
	first, _, _ := strings.Cut(begin, "-")
	at, err1 := strconv.ParseInt(first, 10, 64)
	size, err2 := strconv.ParseInt(total, 10, 64)
	if !ok || err1 != nil || err2 != nil || at != from || size < 0 {
		return 0, fmt.Errorf("the hub answers the range %q", span)
	}
	return size, nil
}

// ReadAt implements io.ReaderAt.
func (f *file) ReadAt(p []byte, off int64) (n int, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for n < len(p) {
		at := off + int64(n)
		if f.size >= 0 && at >= f.size {
			return n, io.EOF
		}
		if at < f.from || at >= f.from+int64(len(f.held)) {
			if err := f.fetch(at, f.next); err != nil {
				return n, err
			}
			if len(f.held) == 0 {
				return n, io.ErrUnexpectedEOF
			}
		}
		n += copy(p[n:], f.held[at-f.from:])
	}
	return n, nil
}

// Read implements fs.File.
func (f *file) Read(p []byte) (int, error) {
	n, err := f.ReadAt(p, f.read)
	f.read += int64(n)
	if n > 0 && errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}

// Stat implements fs.File.
func (f *file) Stat() (fs.FileInfo, error) { return info{path.Base(f.name), f.size}, nil }

// Close implements fs.File.
func (f *file) Close() error { return nil }

// info is what is known of a file: its name, and when it was opened its size.
type info struct {
	name string
	size int64
}

func (i info) Name() string     { return i.name }
func (i info) Size() int64      { return i.size }
func (info) Mode() fs.FileMode  { return 0o444 }
func (info) ModTime() time.Time { return time.Time{} }
func (info) IsDir() bool        { return false }
func (info) Sys() any           { return nil }
