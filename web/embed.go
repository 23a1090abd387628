// Package web holds the built web pages and fills data into them: each page is one file that stands alone.
package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
)

//go:embed all:dist
var dist embed.FS

// ErrNotBuilt says that this binary was made without its web pages.
var ErrNotBuilt = errors.New("the web pages are not built into this binary: run `make web`, then `make build`")

// Report writes a report as one HTML file that needs nothing else. The text reportJSON is the JSON form of
// report.Report; the page holds it compressed (gzip, base64), so that an hour of training can be mailed.
func Report(w io.Writer, reportJSON []byte) error { return fill(w, "report", reportJSON) }

// Matrix writes a measured matrix as one HTML file that needs nothing else. matrixJSON is what internal/matrix packs
// for its page.
func Matrix(w io.Writer, matrixJSON []byte) error { return fill(w, "matrix", matrixJSON) }

// fill writes a page with its data in it, into the element of the page's name.
func fill(w io.Writer, name string, json []byte) error {
	page, err := fs.ReadFile(unpacking{dist}, "dist/"+name+".html")
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNotBuilt
	}
	if err != nil {
		return err
	}
	slot := []byte(`id="hightide-` + name + `"></script>`)
	at := bytes.Index(page, slot)
	if at < 0 {
		return fmt.Errorf("the %s page has no place for data", name)
	}
	at += bytes.IndexByte(slot, '>') + 1
	var data bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &data)
	packed := gzip.NewWriter(text)
	_, err = packed.Write(json)
	if err = errors.Join(err, packed.Close(), text.Close()); err != nil {
		return fmt.Errorf("compress the %s page: %w", name, err)
	}
	for _, part := range [][]byte{page[:at], data.Bytes(), page[at:]} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("write the %s page: %w", name, err)
		}
	}
	return nil
}

// App is the live web UI: app.html and the files that it loads.
func App() (fs.FS, error) {
	files, err := fs.Sub(dist, "dist/app")
	if err != nil {
		return nil, err
	}
	if _, err := fs.Stat(files, "app.html"); err != nil {
		return nil, ErrNotBuilt
	}
	return unpacking{files}, nil
}

// unpacking has files as they were built. The binary holds large ones compressed by gzip.
type unpacking struct{ packed fs.FS }

// Open implements fs.FS.
func (u unpacking) Open(name string) (fs.File, error) {
	file, err := u.packed.Open(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return file, err
	}
	packed, err := u.packed.Open(name + ".gz")
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	defer packed.Close()
	info, err := packed.Stat()
	if err != nil {
		return nil, err
	}
	reader, err := gzip.NewReader(packed)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", name, err)
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		return nil, fmt.Errorf("unpack %s: %w", name, err)
	}
	return &unpacked{bytes.NewReader(data), info, path.Base(name)}, nil
}

// unpacked is a file of unpacking in memory, and what is said of it: that of the packed one, but name and size.
type unpacked struct {
	*bytes.Reader
	fs.FileInfo
	name string
}

func (u *unpacked) Stat() (fs.FileInfo, error) { return u, nil }
func (u *unpacked) Close() error               { return nil }
func (u *unpacked) Name() string               { return u.name }
func (u *unpacked) Size() int64                { return u.Reader.Size() }
