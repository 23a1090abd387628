package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"hightide/internal/engine"
	"hightide/internal/event"
	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/report"
)

type curvesInput struct {
	Run     string   `json:"run,omitempty" jsonschema:"id, unique beginning of an id, name, path of a recording, or last; default last"`
	Names   []string `json:"names,omitempty" jsonschema:"quantities, as tree.pss or allocator.reserved; main: the one that the report leads with (default); all: every one"`
	Process int64    `json:"process,omitempty" jsonschema:"only of this process, by its id in the run"`
	Device  string   `json:"device,omitempty" jsonschema:"only of this device, as cuda:0"`
	From    int64    `json:"from_ns,omitempty" jsonschema:"only from then on, in ns since the run began"`
	To      int64    `json:"to_ns,omitempty" jsonschema:"only up to then; default its end"`
	Points  int      `json:"points,omitempty" jsonschema:"at most so many of each, lows and highs kept; default 40"`
}

type curvesAnswer struct {
	Run    string   `json:"run"`
	Curves []curve  `json:"curves"`
	Others []string `json:"others" jsonschema:"quantities that the run has besides"`
}

// curve is a series of readings.
type curve struct {
	Name    mem.Quantity `json:"name"`
	Of      string       `json:"of,omitempty" jsonschema:"whose; absent: of the whole run"`
	Process uint32       `json:"process,omitempty"`
	Unit    mem.Unit     `json:"unit" jsonschema:"of y"`
	Label   mem.Label    `json:"label"`
	Error   int64        `json:"error,omitempty" jsonschema:"how far y may be off to either side"`
	X       []int64      `json:"x" jsonschema:"ns since the run began, rising"`
	Y       []int64      `json:"y" jsonschema:"one for each x"`
}

// usualPoints of a curve are what an assistant can look through; morePoints is as many as it may ask for.
const (
	usualPoints = 40
	morePoints  = 1000
)

var showCurves = tool[curvesInput, curvesAnswer]{
	name: "curves", title: "Curves of a run over time",
	about: "Readings over time of a recorded run, thinned with lows and highs kept: memory of the host, of processes, " +
		"of devices and of allocators.",
	answer: func(ctx context.Context, d *door, in curvesInput, _ event.Sink) (out curvesAnswer, text string, err error) {
		ref := cmp.Or(in.Run, "last")
		if err := d.readable(ref); err != nil {
			return out, "", err
		}
		points, err := atMost("points", in.Points, usualPoints)
		if err != nil {
			return out, "", err
		}
		row, run, err := d.engine.Load(ctx, ref)
		if err != nil {
			return out, "", err
		}
		out = curvesAnswer{Run: cmp.Or(row.ID, run.Info.ID), Curves: []curve{}, Others: []string{}}
		for _, c := range engine.Curves(run, in.options(min(points, morePoints))) {
			out.Curves = append(out.Curves, curve{c.Name, c.Of, c.Process, c.Unit, c.Label, c.Error, c.X, c.Y})
		}
		for _, s := range run.Series {
			given := slices.ContainsFunc(out.Curves, func(c curve) bool { return c.Name == s.Name })
			if !given && !slices.Contains(out.Others, string(s.Name)) {
				out.Others = append(out.Others, string(s.Name))
			}
		}
		slices.Sort(out.Others)
		if unknown := in.unknown(run); unknown != "" {
			return out, "", fail.Choice("names", unknown, append(out.Others, "main", "all"))
		}
		return out, curvesText(&out), nil
	},
}

func (in *curvesInput) options(points int) engine.CurveOptions {
	o := engine.CurveOptions{Names: in.Names, Device: in.Device, Points: points}
	switch {
	case len(in.Names) == 0:
		o.Names = []string{engine.MainCurve}
	case slices.Contains(in.Names, "all"):
		o.Names = nil
	}
	for _, given := range []struct {
		to    *mem.Optional
		value int64
	}{{&o.Process, in.Process}, {&o.From, in.From}, {&o.To, in.To}} {
		if given.value > 0 {
			*given.to = mem.Some(given.value)
		}
	}
	return o
}

// unknown is the first quantity that is asked for and not in the run; "" where all are.
func (in *curvesInput) unknown(run *mem.Run) string {
	for _, name := range in.Names {
		has := slices.ContainsFunc(run.Series, func(s *mem.Series) bool { return string(s.Name) == name })
		if !has && name != engine.MainCurve && name != "all" {
			return name
		}
	}
	return ""
}

// curvesText says of each curve where it begins, is lowest and highest, and ends.
func curvesText(out *curvesAnswer) string {
	lines := []string{}
	for _, c := range out.Curves {
		line := string(c.Name)
		if c.Of != "" {
			line += " of " + c.Of
		}
		if len(c.Y) == 0 {
			lines = append(lines, line+": no readings")
			continue
		}
		cell := func(v int64) string { return report.FormatCell(v, c.Unit) }
		high := slices.Index(c.Y, slices.Max(c.Y))
		at := func(i int) string { return cell(c.Y[i]) + " at " + report.Duration(c.X[i]) }
		lines = append(lines, fmt.Sprintf("%s (%s): %s, highest %s, lowest %s, %s", line, c.Label, at(0), at(high),
			cell(slices.Min(c.Y)), at(len(c.Y)-1)))
	}
	if len(lines) == 0 {
		lines = append(lines, "The run has no such curve.")
	}
	return strings.Join(lines, "\n")
}
