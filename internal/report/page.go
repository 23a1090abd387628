package report

import (
	"io"

	"hightide/internal/mem"
)

// pageBlocks is how many blocks the maps of a page draw; smaller ones are drawn as one with their neighbours.
const pageBlocks = 6000

// ForPage is the report without what the page does not draw. Maps join blocks that no one could tell
// apart; the JSON has all of them.
func (r *Report) ForPage() *Report {
	if len(r.Allocators) == 0 {
		return r
	}
	page, devices := *r, len(r.Allocators)
	page.Allocators = nil
	for _, a := range r.Allocators {
		slim := *a
		slim.Curve, slim.Blame, slim.Turnover, slim.Longest, slim.Growth, slim.Pins, slim.OOM = nil, nil, nil, nil, nil,
			nil, nil
		slim.Map = JoinedMap(a.Map, pageBlocks/devices)
		page.Allocators = append(page.Allocators, &slim)
	}
	return &page
}

// joinedMap joins neighbours of a segment that are smaller than what the blocks may be on average, and keeps
// of each row the category and stack of its largest block.
func JoinedMap(segments []SegmentMap, most int) []SegmentMap {
	var whole mem.Bytes
	blocks := 0
	for i := range segments {
		whole += segments[i].Size
		blocks += len(segments[i].Blocks)
	}
	if blocks <= most {
		return segments
	}
	least := int64(whole) / int64(max(most, 1))
	joined := make([]SegmentMap, len(segments))
	for i, s := range segments {
		joined[i] = s
		joined[i].Blocks = nil
		var largest int64
		for _, b := range s.Blocks {
			last := len(joined[i].Blocks) - 1
			if last < 0 || b[0] >= least || joined[i].Blocks[last][0] >= least {
				joined[i].Blocks, largest = append(joined[i].Blocks, b), b[0]
				continue
			}
			of := &joined[i].Blocks[last]
			size := of[0] + b[0]
			if b[0] > largest {
				*of, largest = b, b[0]
			}
			of[0] = size
		}
	}
	return joined
}

// Measure is one of Flames or HeapFlames, by its name.
func (u *StackUse) Measure(name string) int64 {
	switch name {
	case "bytes-time":
		return int64(u.Average)
	case "count":
		return int64(u.Allocations)
	case "churn":
		return int64(u.Churn)
	case "end":
		return int64(u.End)
	}
	return int64(u.Bytes)
}

// Pair is two reports beside each other, for a page of one file that is made as the live comparison is.
type Pair struct {
	Before *Report `json:"before"`
	After  *Report `json:"after"`
	Told   *Report `json:"told,omitempty"`    // what differs of what both recorded; nil: nothing can be compared
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
	both := *p
	both.Before, both.After = p.Before.ForPage(), p.After.ForPage()
	return page(w, struct {
		Compared *Pair `json:"compared"`
	}{&both})
}
