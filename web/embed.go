// Package web holds the built web pages and fills a report into the one that stands alone.
package web

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

//go:embed all:dist
var dist embed.FS

// ErrNotBuilt says that this binary was made without its web pages.
var ErrNotBuilt = errors.New("the web pages are not built into this binary: run `make web`, then `make build`")

var slot = []byte(`id="hightide-report">null</script>`)

// Report writes a report as one HTML file that needs nothing else. reportJSON is the JSON form of
// analyze.Report; nothing in it can end the script element that it is put into.
func Report(w io.Writer, reportJSON []byte) error {
	page, err := dist.ReadFile("dist/report.html")
	if err != nil {
		return ErrNotBuilt
	}
	at := bytes.Index(page, slot)
	if at < 0 {
		return fmt.Errorf("the report page has no place for a report")
	}
	var safe bytes.Buffer
	json.HTMLEscape(&safe, reportJSON) // <, >, & and U+2028, U+2029 become escapes
	at += len(`id="hightide-report">`)
	for _, part := range [][]byte{page[:at], safe.Bytes(), page[at+len("null"):]} {
		if _, err := w.Write(part); err != nil {
			return fmt.Errorf("write report: %w", err)
		}
	}
	return nil
}
