package report

import (
	"encoding/json"
	"fmt"
	"io"

	"hightide/web"
)

// page writes a value into the page of reports.
func page(w io.Writer, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	return web.Report(w, text)
}
