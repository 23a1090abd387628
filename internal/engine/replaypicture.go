package engine

import (
	"fmt"
	"strings"

	"hightide/internal/allocator"
	"hightide/internal/mem"
)

const (
	pictureHeight = 6
	pictureMargin = 11 // for the scale
)

// Picture draws memory in use and reserved over the events, as recorded and replayed, to one scale. ""
// for several files.
func (r *ReplayResult) Picture(width int) string {
	if len(r.recordedCurve) == 0 {
		return ""
	}
	name, curve, failed := r.name(), r.curve, r.OOM != nil
	if r.asRecorded() && r.Best != nil {
		name, curve, failed = settingsName(r.Best.AllocConf), r.Best.curve, r.Best.OOM != nil
	}
	top := highest(r.recordedCurve).Reserved
	top = max(top, highest(curve).Reserved, 1)
	var out strings.Builder
	parts := len(r.recordedCurve)
	columns := min(max(width-pictureMargin-3, 20), parts)
	panel(&out, "as recorded", r.recordedCurve, parts, top, columns, false)
	if !r.asRecorded() || r.Best != nil {
		panel(&out, name, curve, parts, top, columns, failed)
	}
	fmt.Fprintf(&out, "%*s   █ in use  ░ reserved beside it", pictureMargin-3, "")
	if failed {
		out.WriteString("  ✗ out of memory")
	}
	out.WriteString("\n")
	return out.String()
}

// panel draws one curve. A curve that ended early leaves the rest of its columns empty.
func panel(out *strings.Builder, title string, curve []allocator.Point, parts int, top mem.Bytes, columns int, failed bool) {
	fmt.Fprintf(out, "%*s   %s\n", pictureMargin-3, "", title)
	for row := pictureHeight - 1; row >= 0; row-- {
		scale := ""
		switch row {
		case pictureHeight - 1:
			scale = top.String()
		case 0:
			scale = "0"
		}
		fmt.Fprintf(out, "%*s │", pictureMargin-2, scale)
		line := make([]rune, columns)
		ended := false
		for i := range line {
			from, to := i*parts/columns, (i+1)*parts/columns
			switch {
			case from < len(curve):
				line[i] = ink(highest(curve[from:min(to, len(curve))]), row, top)
			case failed && !ended && row == 0:
				line[i] = '✗'
			default:
				line[i] = ' '
			}
			ended = ended || from >= len(curve)
		}
		if failed && !ended && row == 0 {
			line[columns-1] = '✗'
		}
		out.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
}

func highest(points []allocator.Point) (p allocator.Point) {
	for _, q := range points {
		p.Active, p.Reserved = max(p.Active, q.Active), max(p.Reserved, q.Reserved)
	}
	return p
}

// ink fills a cell where the middle of its row lies below a level.
func ink(p allocator.Point, row int, top mem.Bytes) rune {
	middle := top * mem.Bytes(2*row+1) / (2 * pictureHeight)
	switch {
	case p.Active > middle:
		return '█'
	case p.Reserved > middle:
		return '░'
	}
	return ' '
}
