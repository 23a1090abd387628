package engine

import (
	"cmp"
	"math"
	"slices"

	"hightide/internal/analyze"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// CurveOptions say which curves of a recording are wanted, and how finely. The zero value: all, whole, with 1,000 points each.
type CurveOptions struct {
	Names    []string     // of quantities, as host.rss; MainCurve is the one that a report leads with
	Process  mem.Optional // by its id in the run; 0: those of the whole run
	Device   string
	From, To mem.Optional // ns since the run began
	Points   int          // each curve keeps the lowest and the highest of so many halves
}

// Curve is a series of a recording, with its id there.
type Curve struct {
	ID uint32 `json:"series" doc:"Its number in the recording."`
	report.Series
	Last mem.Optional `json:"last,omitzero" doc:"The newest reading."`
}

// MainCurve stands for the curve that a report of the run leads with.
const MainCurve = "main"

// defaultPoints is as many as a wide screen has columns, about.
const defaultPoints = 1000

// Curves are those of a recording that are wanted, in its own order.
func Curves(run *mem.Run, o CurveOptions) []Curve {
	points := cmp.Or(o.Points, defaultPoints)
	from, to := o.From.Or(math.MinInt64), o.To.Or(math.MaxInt64)
	curves := []Curve{}
	var main *mem.Series
	if slices.Contains(o.Names, MainCurve) {
		main = analyze.MainCurve(run)
	}
	for _, s := range run.Series {
		if s == main || o.wants(s) {
			curves = append(curves, Curve{s.ID, analyze.Between(run, s, from, to, points), newest(s)})
		}
	}
	return curves
}

// CurveHeads are curves of a recording without their points: those with the ids, or without any id all.
func CurveHeads(run *mem.Run, ids ...uint32) []Curve {
	curves := []Curve{}
	for _, s := range run.Series {
		if len(ids) == 0 || slices.Contains(ids, s.ID) {
			head := analyze.Curve(run, s)
			head.X, head.Y = []int64{}, []int64{}
			curves = append(curves, Curve{s.ID, head, newest(s)})
		}
	}
	return curves
}

func (o *CurveOptions) wants(s *mem.Series) bool {
	process, one := o.Process.Get()
	return (len(o.Names) == 0 || slices.Contains(o.Names, string(s.Name))) && (!one || int64(s.Process) == process) &&
		(o.Device == "" || o.Device == s.Device)
}

func newest(s *mem.Series) mem.Optional {
	if len(s.Values) == 0 {
		return mem.Optional{}
	}
	return mem.Some(s.Values[len(s.Values)-1])
}
