package mcp

import (
	"fmt"
	"strings"

	"hightide/internal/mem"
	"hightide/internal/report"
)

// What several answers have. They are short: an assistant pays for every word that it reads, and each has a command
// or a resource that says all.

// finding is one without its stack.
type finding struct {
	Kind     string       `json:"kind"`
	Severity string       `json:"severity" jsonschema:"critical, warning or info"`
	Title    string       `json:"title"`
	Text     string       `json:"text"`
	Advice   string       `json:"advice,omitempty"`
	File     string       `json:"file,omitempty" jsonschema:"where to look"`
	Line     int          `json:"line,omitempty"`
	Bytes    mem.Optional `json:"bytes,omitzero"`
	PerStep  mem.Optional `json:"bytes_per_step,omitzero"`
	Label    mem.Label    `json:"label"`
}

func findings(all []report.Finding) []finding {
	short := []finding{}
	for _, f := range all {
		short = append(short, finding{f.Kind, f.Severity, f.Title, f.Text, f.Advice, f.File, f.Line, f.Bytes,
			f.BytesPerStep, f.Label})
	}
	return short
}

// holder is a group of blocks.
type holder struct {
	Name     string    `json:"name"`
	Bytes    mem.Bytes `json:"bytes"`
	Blocks   int       `json:"blocks"`
	Category string    `json:"category"`
	Stack    []string  `json:"stack,omitempty" jsonschema:"file:line function, innermost first, of Python alone"`
}

// deepest is how many frames of a stack are told.
const deepest = 8

func holders(all []report.Blame) []holder {
	short := []holder{}
	for _, b := range all {
		short = append(short, holder{b.Name, b.Bytes, b.Blocks, b.Category, stack(b.Frames)})
	}
	return short
}

func stack(frames []mem.Location) (lines []string) {
	for _, f := range frames {
		if !f.Native && len(lines) < deepest {
			lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function)))
		}
	}
	return lines
}

// level is how much was in use at a moment of a trace.
type level struct {
	Event     int          `json:"event" jsonschema:"just after this event; -1: before the first"`
	Allocated mem.Bytes    `json:"allocated_bytes"`
	Reserved  mem.Optional `json:"reserved_bytes,omitzero"`
}

func levelOf(p report.TracePeak) level { return level{p.Event, p.Allocated, p.Reserved} }

// verdict is whether a program fits a GPU.
type verdict struct {
	GPU       string       `json:"gpu"`
	Verdict   mem.Verdict  `json:"verdict" jsonschema:"fits, tight, conditional, few, oom, failed, unused or none"`
	Total     mem.Bytes    `json:"total_bytes" jsonschema:"of the GPU"`
	Allocated mem.Optional `json:"peak_allocated_bytes,omitzero"`
	Used      mem.Optional `json:"peak_device_used_bytes,omitzero"`
	Headroom  mem.Optional `json:"headroom_bytes,omitzero" jsonschema:"total less used; negative: what is missing"`
	Price     float64      `json:"price_usd_per_hour,omitempty"`
	Label     mem.Label    `json:"label"`
}

func verdictOf(v mem.GPUVerdict) verdict {
	return verdict{v.GPU, v.Verdict, v.Total, v.Allocated, v.Used, v.Headroom, v.Price, v.Label}
}
