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
	page, err := unpacked(name)
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

// unpacked is a page as it was built: the binary holds those that are files of their own compressed.
func unpacked(name string) ([]byte, error) {
	file, err := dist.Open("dist/" + name + ".html.gz")
	if err != nil {
		return nil, ErrNotBuilt
	}
	defer file.Close()
	reader, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("unpack the %s page: %w", name, err)
	}
	return io.ReadAll(reader)
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
	return files, nil
}
