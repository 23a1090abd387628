// Package web holds the built web pages and fills a report into the one that stands alone.
package web

import (
	"bytes"
	"compress/gzip"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
)

//go:embed all:dist
var dist embed.FS

// ErrNotBuilt says that this binary was made without its web pages.
var ErrNotBuilt = errors.New("the web pages are not built into this binary: run `make web`, then `make build`")

var slot = []byte(`id="hightide-report"></script>`)

// Report writes a report as one HTML file that needs nothing else. reportJSON is the JSON form of
// report.Report; the page holds it compressed (gzip, base64), so that an hour of training can be mailed.
func Report(w io.Writer, reportJSON []byte) error {
	page, err := dist.ReadFile("dist/report.html")
	if err != nil {
		return ErrNotBuilt
	}
	at := bytes.Index(page, slot)
	if at < 0 {
		return fmt.Errorf("the report page has no place for a report")
	}
	at += bytes.IndexByte(slot, '>') + 1
	var data bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &data)
	packed := gzip.NewWriter(text)
	_, err = packed.Write(reportJSON)
	if err = errors.Join(err, packed.Close(), text.Close()); err != nil {
		return fmt.Errorf("compress report: %w", err)
	}
	for _, part := range [][]byte{page[:at], data.Bytes(), page[at:]} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return nil
}
