package modelfile

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"slices"
	"time"
)

// Heads are files of one folder of which only the beginnings are here, as somebody sends them: the header has all that
// is read. By their names.
type Heads map[string]Head

// Head is the beginning of a file.
type Head struct {
	Size  int64 // of the whole file
	Begin []byte
}

// errHead is that of what lies behind the beginning.
var errHead = errors.New("the header goes on behind what was sent of the file")

// Open implements fs.FS.
func (h Heads) Open(name string) (fs.File, error) {
	if name == "." {
		return &headFolder{headInfo{name: ".", mode: fs.ModeDir}, h}, nil
	}
	head, ok := h[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return &headFile{*bytes.NewReader(head.Begin), head, name}, nil
}

// ReadDir implements fs.ReadDirFS.
func (h Heads) ReadDir(name string) (all []fs.DirEntry, err error) {
	if name != "." {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		all = append(all, fs.FileInfoToDirEntry(headInfo{name: name, size: h[name].Size}))
	}
	return all, nil
}

type headFolder struct {
	headInfo
	all Heads
}

func (f *headFolder) Stat() (fs.FileInfo, error) { return f.headInfo, nil }
func (f *headFolder) Read([]byte) (int, error)   { return 0, errHead }
func (f *headFolder) Close() error               { return nil }

type headFile struct {
	bytes.Reader
	head Head
	name string
}

func (f *headFile) Stat() (fs.FileInfo, error) { return headInfo{name: f.name, size: f.head.Size}, nil }
func (f *headFile) Close() error               { return nil }

func (f *headFile) Read(into []byte) (int, error) {
	n, err := f.Reader.Read(into)
	return n, f.ended(err)
}

func (f *headFile) ReadAt(into []byte, at int64) (int, error) {
	n, err := f.Reader.ReadAt(into, at)
	return n, f.ended(err)
}

// ended tells the end of what was sent from that of the file.
func (f *headFile) ended(err error) error {
	if err == io.EOF && int64(len(f.head.Begin)) < f.head.Size {
		return errHead
	}
	return err
}

type headInfo struct {
	name string
	size int64
	mode fs.FileMode
}

func (i headInfo) Name() string       { return i.name }
func (i headInfo) Size() int64        { return i.size }
func (i headInfo) Mode() fs.FileMode  { return i.mode }
func (i headInfo) ModTime() time.Time { return time.Time{} }
func (i headInfo) IsDir() bool        { return i.mode.IsDir() }
func (i headInfo) Sys() any           { return nil }
