package report

import (
	"encoding/json"
	"fmt"
	"io"

	"hightide/web"
)

// Pair is two reports beside each other, for a page of one file that is made as the live comparison is.
type Pair struct {
	Before *Report `json:"before"`
	After  *Report `json:"after"`
	Device *Report `json:"device"`            // the difference of their peaks on the device; nil: see Why
	By     string  `json:"by,omitempty"`      // what its rows are by: site, module or category
	Why    string  `json:"why_not,omitempty"` // there is none
}

// Beside makes the reports of two by their names.
func Beside(a, b string, of func(string) (*Report, error)) (*Pair, error) {
	before, err := of(a)
	if err != nil {
		return nil, err
	}
	after, err := of(b)
	if err != nil {
		return nil, err
	}
	return &Pair{Before: before, After: after}, nil
}

// HTML writes it as one file that needs nothing else.
func (p *Pair) HTML(w io.Writer) error {
	page := *p
	page.Before, page.After = p.Before.ForPage(), p.After.ForPage()
	text, err := json.Marshal(struct {
		Compared *Pair `json:"compared"`
	}{&page})
	if err != nil {
		return fmt.Errorf("write HTML report: %w", err)
	}
	return web.Report(w, text)
}
