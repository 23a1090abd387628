package report

import (
	"io"
	"time"
)

// Saved is a page that is not of a run, as one file.
type Saved struct {
	Trend any    // what the page of trends shows; nil: the page is another one
	Fleet any    // what the page of machines shows
	Of    string // of which runs, for people; "": of all
	Made  time.Time
}

// HTML writes it as one file that needs nothing else.
func (p *Saved) HTML(w io.Writer) error {
	return page(w, struct {
		Trend any    `json:"trend,omitempty"`
		Fleet any    `json:"fleet,omitempty"`
		Of    string `json:"of,omitempty"`
		Made  int64  `json:"made_wall_ns"`
	}{p.Trend, p.Fleet, p.Of, p.Made.UnixNano()})
}

// Commented is a report with what people say of the run.
type Commented struct {
	*Report
	Comments any // a list; nil: nobody says anything
}

// HTML writes the report as one file that needs nothing else.
func (c Commented) HTML(w io.Writer) error {
	return page(w, struct {
		*Report
		Comments any `json:"comments,omitempty"`
	}{c.ForPage(), c.Comments})
}
