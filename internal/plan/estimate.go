package plan

import "hightide/internal/mem"

// The labels of figures, besides those of package mem.
const (
	Exact    mem.Label = "exact"    // sizes that stand in the files
	Computed mem.Label = "computed" // from fields of the configuration, by arithmetic that leaves nothing open
)

// Estimate is a figure with the interval that it is expected in; the three are equal where nothing is open.
type Estimate struct {
	Low   mem.Bytes `json:"low_bytes" doc:"The least, in bytes."`
	Bytes mem.Bytes `json:"bytes" doc:"The figure, in bytes."`
	High  mem.Bytes `json:"high_bytes" doc:"The most, in bytes."`
}

func exactly(b mem.Bytes) Estimate { return Estimate{b, b, b} }

// label says how a figure is known that follows from a configuration: where it is an interval, something is open.
func (e Estimate) label() mem.Label {
	if e.Low != e.High {
		return mem.Estimated
	}
	return Computed
}

func (e Estimate) plus(o Estimate) Estimate {
	return Estimate{e.Low + o.Low, e.Bytes + o.Bytes, e.High + o.High}
}

// minus is what is left: least where most is taken of least.
func (e Estimate) minus(o Estimate) Estimate {
	return Estimate{e.Low - o.High, e.Bytes - o.Bytes, e.High - o.Low}
}

func (e Estimate) times(low, mid, high float64) Estimate {
	return Estimate{mem.Rounded(float64(e.Low) * low), mem.Rounded(float64(e.Bytes) * mid),
		mem.Rounded(float64(e.High) * high)}
}

// Portion is what takes memory on one GPU.
type Portion struct {
	Name  string    `json:"name" doc:"What it is."`
	Label mem.Label `json:"label" doc:"exact, computed or estimated."`
	Estimate
	Basis string `json:"basis" doc:"Where the figure comes from, and what is assumed."`
}

// Range is a number with the interval that it is expected in; the three are equal where nothing is open.
type Range struct {
	Low    int64 `json:"low" doc:"The least."`
	Figure int64 `json:"figure" doc:"The figure."`
	High   int64 `json:"high" doc:"The most."`
}

// Verdict says whether a use fits.
type Verdict string

// The verdicts.
const (
	Fits     Verdict = "fits"     // at the upper end of every estimate
	Likely   Verdict = "likely"   // at the estimates themselves, not at their upper ends
	Unlikely Verdict = "unlikely" // only below the estimates
	No       Verdict = "no"       // not even at the lower end
)

// rank orders verdicts.
var rank = map[Verdict]int{Fits: 0, Likely: 1, Unlikely: 2, No: 3}

// verdictOf follows from the room that is left.
func verdictOf(left Estimate) Verdict {
	switch {
	case left.Low >= 0:
		return Fits
	case left.Bytes >= 0:
		return Likely
	case left.High >= 0:
		return Unlikely
	}
	return No
}

func sum(parts []Portion) (e Estimate) {
	for _, p := range parts {
		e = e.plus(p.Estimate)
	}
	return e
}
