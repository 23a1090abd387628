package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"hightide/internal/mem"
)

// Line is a value as every --json prints it: one line of JSON.
func Line(value any) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("write as JSON: %w", err)
	}
	return append(text, '\n'), nil
}

// JSON is the report for programs (docs/formats/json.md), on one line.
func (r *Report) JSON() ([]byte, error) { return Line(r) }

// HTML writes the report as one file that needs nothing else.
func (r *Report) HTML(w io.Writer) error {
	return page(w, r.ForPage())
}

// leads says whether a report is headed by a device rather than by another: pinned host memory only where there is no
// other.
func (a *Allocator) leads(other *Allocator) bool {
	if host := other.Device == mem.HostDevice; host != (a.Device == mem.HostDevice) {
		return host
	}
	return a.Peak.Allocated > other.Peak.Allocated
}

// ExplainJSON is what explain --json prints (docs/formats/json.md), on one line: the fields of the device that
// holds most, then everything. A report without devices, as of a profile of the heap, has its tables instead.
func (r *Report) ExplainJSON() ([]byte, error) {
	out := struct {
		Version int `json:"version"`
		*Allocator
		Devices  []*Allocator `json:"devices"`
		Flames   []StackSet   `json:"flames"` // of each device
		Tables   []Table      `json:"tables,omitempty"`
		Verdict  string       `json:"verdict"`
		Findings []Finding    `json:"findings"`

		NotLooked string   `json:"not_looked_for,omitempty"`
		Looked    string   `json:"looked_for,omitempty"`
		Notes     []string `json:"notes"`
	}{Version, nil, r.Allocators, nil, nil, r.Headline.Verdict, r.Findings, r.Headline.NotLooked, r.Headline.Looked,
		r.Notes}
	out.Flames = slices.DeleteFunc(slices.Clone(r.Stacks), func(s StackSet) bool { return s.Name != "device" })
	for _, a := range r.Allocators {
		if out.Allocator == nil || a.leads(out.Allocator) {
			out.Allocator = a
		}
	}
	if out.Allocator == nil {
		out.Devices, out.Flames, out.Tables = []*Allocator{}, r.Stacks, r.Tables
	}
	return Line(out)
}
