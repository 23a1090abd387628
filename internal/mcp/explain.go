package mcp

import (
	"context"
	"errors"
	"regexp"

	"hightide/internal/analyze/trace"
	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
)

type explainInput struct {
	Files  []string `json:"files" jsonschema:"paths of snapshots (torch.cuda.memory._dump_snapshot), recordings, memory profiles or a pasted out-of-memory message; or runs"`
	By     string   `json:"by,omitempty" jsonschema:"what to group blocks by: site (default), category, module and others"`
	At     string   `json:"at,omitempty" jsonschema:"the moment: peak (default), end, or event N"`
	Top    int      `json:"top,omitempty" jsonschema:"how many groups to list; default 10"`
	Batch  int64    `json:"batch,omitempty" jsonschema:"the batch of a program that XLA dumped, for what half of it would need; default: guessed"`
	Filter string   `json:"filter,omitempty" jsonschema:"only blocks with a frame file:function that matches this regular expression"`
}

// explainAnswer is what a snapshot tells of its devices.
type explainAnswer struct {
	Verdict  string       `json:"verdict"`
	Devices  []heldDevice `json:"devices"`
	Findings []finding    `json:"findings"`
	Notes    []string     `json:"notes"`
}

// heldDevice is who holds a device's memory.
type heldDevice struct {
	Device        int          `json:"device"`
	File          string       `json:"file"`
	Events        int          `json:"events" jsonschema:"of the allocator's history"`
	Peak          level        `json:"peak" jsonschema:"the highest allocated"`
	At            level        `json:"at" jsonschema:"the moment explained"`
	By            string       `json:"by"`
	Blame         []holder     `json:"blame" jsonschema:"who holds it then, largest first"`
	InactiveSplit mem.Optional `json:"inactive_split_bytes,omitzero" jsonschema:"cached beside blocks in use: fragmentation"`
	OOM           *shortage    `json:"oom,omitempty" jsonschema:"the request that failed"`
	Label         mem.Label    `json:"label"`
}

// shortage is a request that found no memory.
type shortage struct {
	Event       int          `json:"event"`
	Asked       mem.Bytes    `json:"asked_bytes"`
	Allocated   mem.Bytes    `json:"allocated_bytes"`
	Reserved    mem.Optional `json:"reserved_bytes,omitzero"`
	DeviceFree  mem.Optional `json:"device_free_bytes,omitzero"`
	Cached      mem.Optional `json:"cached_bytes,omitzero"`
	LargestFree mem.Optional `json:"largest_cached_bytes,omitzero"`
	WouldFit    *bool        `json:"fits_without_fragmentation,omitempty"`
	Stack       []string     `json:"stack,omitempty"`
	Advice      string       `json:"advice,omitempty" jsonschema:"settings that avoid it, verified by replay"`
}

const defaultTop = 10

var explain = tool[explainInput, explainAnswer]{
	name: "explain", title: "Explain a memory snapshot",
	about: "Who holds the GPU's memory in an allocator snapshot or another memory profile: the peak to the byte, by " +
		"line, module or category; fragmentation; why memory ran out and which settings avoid it.",
	answer: func(ctx context.Context, d *door, in explainInput, _ event.Sink) (out explainAnswer, text string, err error) {
		o, err := in.options(d)
		if err != nil {
			return out, "", err
		}
		r, err := d.engine.Explain(ctx, in.Files, o)
		var said engine.Message
		if errors.As(err, &said) && len(in.Files) == 1 {
			return explainAnswer{Verdict: said.Error(), Devices: []heldDevice{}, Findings: []finding{},
				Notes: []string{}}, said.Text(plain), nil
		}
		if err != nil {
			return out, "", err
		}
		out = explainAnswer{Verdict: r.Headline.Verdict, Devices: []heldDevice{}, Findings: findings(r.Findings),
			Notes: r.Notes}
		for _, a := range r.Allocators {
			out.Devices = append(out.Devices, held(a))
		}
		return out, r.Markdown(), nil
	},
}

func (in *explainInput) options(d *door) (o trace.Options, err error) {
	o = trace.Options{By: in.By, At: in.At, Batch: in.Batch}
	if o.Top, err = atMost("top", in.Top, defaultTop); err != nil {
		return o, err
	}
	if len(in.Files) == 0 {
		return o, fail.Usage("name a snapshot or a run", "there is nothing to explain")
	}
	if err := oneOf("by", in.By, trace.Groupings); err != nil {
		return o, err
	}
	if in.At != "" {
		if err := trace.CheckMoment(in.At); err != nil {
			return o, fail.Usage("as in event 500", "at: %w", err)
		}
	}
	if in.Filter != "" {
		if o.Filter, err = regexp.Compile(in.Filter); err != nil {
			return o, fail.Usage("write a regular expression in the syntax of RE2", "filter: %w", err)
		}
	}
	for name, asked := range map[string]bool{"by": in.By != "", "at": in.At != "", "filter": in.Filter != ""} {
		if asked {
			o.Asked = append(o.Asked, name)
		}
	}
	return o, d.readable(in.Files...)
}

func held(a *report.Allocator) heldDevice {
	d := heldDevice{Device: a.Device, File: a.File, Events: a.Events, Peak: levelOf(a.Peak), At: levelOf(a.At), By: a.By,
		Blame:         holders(a.Blame),
		InactiveSplit: a.InactiveSplit, Label: a.Label}
	if o := a.OOM; o != nil {
		d.OOM = &shortage{o.Event, o.Asked, o.Allocated, o.Reserved, o.DeviceFree, o.Cached, o.LargestFree, o.WouldFit,
			stack(o.Frames), o.Advice}
	}
	return d
}
