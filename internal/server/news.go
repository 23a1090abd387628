package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"hightide/internal/engine"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// news is what a stretch of a recording tells a viewer, in the forms of docs/formats/api.md.
type news struct {
	run     *mem.Run
	series  []uint32
	process []uint32
	samples []readings
	spans   []report.PhaseBar
	points  []report.StepPoint
	marks   []report.Mark
}

// readings are new points of a curve.
type readings struct {
	Series uint32  `json:"series"`
	X      []int64 `json:"x"`
	Y      []int64 `json:"y"`
}

// add takes in one frame, which the run has taken in already.
func (n *news) add(f mem.Frame) {
	switch f := f.(type) {
	case mem.SeriesDef:
		n.series = append(n.series, f.ID)
	case mem.Process:
		n.process = append(n.process, f.ID)
	case mem.Samples:
		n.addSamples(f)
	case mem.Spans:
		for i := range f {
			n.spans = append(n.spans, n.span(&f[i]))
		}
	case mem.Steps:
		for _, s := range f {
			n.points = append(n.points, report.StepPoint{Process: s.Process, Step: s.Number, Time: n.since(s.Time), RSS: s.RSS,
				Heap: s.Heap, Device: s.Device})
		}
	case mem.Event:
		n.marks = append(n.marks, n.mark(f))
	case mem.Snapshot:
		if f.Last {
			n.marks = append(n.marks, report.Mark{Time: n.since(f.Time), Kind: "snapshot", Text: f.Name, Process: f.Process})
		}
	}
}

func (n *news) span(s *mem.Span) report.PhaseBar {
	return report.PhaseBar{Process: s.Process, Phase: s.Phase, Name: s.Name, Step: s.Step, Start: n.since(s.Start),
		End: n.since(s.End), RSSPeak: s.RSSPeak}
}

func (n *news) mark(e mem.Event) report.Mark {
	return report.Mark{Time: n.since(e.Time), Kind: e.Kind, Text: report.FirstLine(e.Text, markWidth), Process: e.Process}
}

// markWidth is how many characters of what happened a mark shows.
const markWidth = 160

func (n *news) addSamples(f mem.Samples) {
	points := readings{Series: f.Series, X: make([]int64, len(f.Times)), Y: f.Values}
	for i, t := range f.Times {
		points.X[i] = n.since(t)
	}
	if len(points.X) > 0 {
		n.samples = append(n.samples, points)
	}
}

// damage says that a part of the recording cannot be read.
func (n *news) damage(d mem.Damage, at int64) {
	n.marks = append(n.marks, report.Mark{Time: at, Kind: "damage",
		Text: fmt.Sprintf("%d bytes of the recording cannot be read: %s", d.Bytes, d.Text)})
}

func (n *news) since(t int64) int64 { return max(t-n.run.Start(), 0) }

// events are the text that viewers are sent; the last event carries the place in the recording.
func (n *news) events(at int64) []byte {
	var all events
	if len(n.series) > 0 {
		all.add("series", engine.CurveHeads(n.run, n.series...))
	}
	if len(n.process) > 0 {
		all.add("processes", processesOf(n.run, n.process))
	}
	if len(n.samples) > 0 {
		all.add("samples", n.samples)
	}
	if len(n.spans) > 0 {
		all.add("spans", n.spans)
	}
	if len(n.points) > 0 {
		all.add("steps", n.points)
	}
	if len(n.marks) > 0 {
		all.add("marks", n.marks)
	}
	return all.text(at)
}

func processesOf(run *mem.Run, ids []uint32) []mem.Process {
	var chosen []mem.Process
	for _, id := range ids {
		if p := run.Process(id); p != nil {
			chosen = append(chosen, *p)
		}
	}
	return chosen
}

// orEmpty is a list that JSON writes as [] and not as null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// events are server-sent events in the making.
type events []struct{ name, data string }

func (e *events) add(name string, data any) {
	text, err := json.Marshal(data)
	if err == nil { // plain values cannot fail
		*e = append(*e, struct{ name, data string }{name, string(text)})
	}
}

// text of all; the last carries the place in the recording, if that is not below 0.
func (e events) text(place int64) []byte {
	var out bytes.Buffer
	for i, one := range e {
		out.WriteString("event: " + one.name + "\ndata: " + one.data)
		if place >= 0 && i == len(e)-1 {
			out.WriteString("\nid: " + strconv.FormatInt(place, 10))
		}
		out.WriteString("\n\n")
	}
	return out.Bytes()
}

// eventText is one event; a place below 0: it has no id.
func eventText(name string, data any, place int64) []byte {
	var one events
	one.add(name, data)
	return one.text(place)
}
