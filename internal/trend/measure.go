package trend

import (
	"slices"
	"strings"

	"hightide/internal/fail"
	"hightide/internal/mem"
	"hightide/internal/store"
)

// Measure is which figure of runs a trend is of: one of Measures, else FILE:LINE or FILE:FUNCTION. "": the peak.
type Measure string

// Measures that every run may have.
const (
	Peak          Measure = "peak"
	Allocated     Measure = "allocated"
	Reserved      Measure = "reserved"
	Growth        Measure = mem.FigureGrowth
	Fragmentation Measure = mem.FigureFragmentation
)

// Measures are all of them.
var Measures = []Measure{Peak, Allocated, Reserved, Growth, Fragmentation}

// ParseMeasure reads one.
func ParseMeasure(text string) (Measure, error) {
	m := Measure(text)
	if m == "" {
		return Peak, nil
	}
	if slices.Contains(Measures, m) {
		return m, nil
	}
	at, ok := store.ParseSpot(text)
	if !ok || at.Line == 0 && at.Function == "" {
		known := strings.Join(names(), ", ")
		return "", fail.Usage("one of "+known+", or FILE:LINE or FILE:FUNCTION, as train.py:12", "%q is no figure of runs", text)
	}
	return Measure(at.String()), nil
}

func names() (all []string) {
	for _, m := range Measures {
		all = append(all, string(m))
	}
	return all
}

// Filter has a store fill in what is asked of runs.
func (m Measure) Filter(f store.Filter) store.Filter {
	f.Brief = true
	if m.ofLines() {
		f.Held, _ = store.ParseSpot(string(m))
	}
	return f
}

func (m Measure) ofLines() bool { return m != "" && !slices.Contains(Measures, m) }

// kept says whether an older hightide kept none of it.
func (m Measure) kept() bool { return m == Growth || m == Fragmentation || m.ofLines() }

// figure is that of a run; zero: it is not known.
func (m Measure) figure(r *store.Run) mem.Figure {
	peak := func(of mem.Optional, source mem.Quantity, what string) (f mem.Figure) {
		if bytes, ok := of.Get(); ok {
			f = mem.Figure{Bytes: bytes, What: what, Source: source, Label: r.Label}
		}
		return f
	}
	switch {
	case m == Allocated:
		return peak(r.Allocated, mem.SeriesAllocated, "peak allocated")
	case m == Reserved:
		return peak(r.Reserved, mem.SeriesReserved, "peak reserved")
	case m.ofLines():
		return r.Held
	case m.kept():
		return r.Figures[string(m)]
	}
	return r.Figure
}

// lacking is what a run without it is without.
func (m Measure) lacking() string {
	switch {
	case m == Allocated || m == Reserved:
		return "an allocator of a device"
	case m == Growth:
		return "a known growth, as of too few steps"
	case m == Fragmentation:
		return "a known fragmentation"
	case m.ofLines():
		return "lines that held memory"
	}
	return "a peak"
}

// Of is what it is called in a sentence, of the figure what: "peak PSS".
func (m Measure) Of(what string) string {
	if m == "" || m == Peak {
		return "peak " + what
	}
	return what
}
