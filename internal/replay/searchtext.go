package replay

import (
	"fmt"

	"hightide/internal/allocator"
	"hightide/internal/mem"
	"hightide/internal/report"
)

// SearchText says what a search found best for a trace, what it gains and what it costs; named says which trace,
// where there are several. Nothing where none was asked for.
func (r *Result) SearchText(named bool) []string {
	var said []string
	if n := r.Searched; n.Settings > 0 {
		tried := fmt.Sprintf("%d settings tried in %.1f s, each from a fresh start", n.Settings, float64(n.Nanoseconds)/1e9)
		switch {
		case r.Capacity > 0:
			tried += fmt.Sprintf(" on %v", n.Capacity)
		case n.Capacity > 0:
			tried += fmt.Sprintf(" with the %v that the allocator could have, as the trace says", n.Capacity)
		}
		said = append(said, tried+".", r.bestText())
	}
	if r.Best == nil {
		return said
	}
	name := ""
	if named {
		name = r.Trace() + ": "
	}
	if b := r.Best; b.Verdict != nil && b.AllocConf != r.AllocConf {
		said = append(said, name+b.Verdict.Text)
	}
	return append(said, r.gains(name)...)
}

// bestText is the line to paste, or why there is none.
func (r *Result) bestText() string {
	b := r.Best
	switch {
	case b == nil && len(r.Search) > 0 && r.Search[0].OOM != nil:
		return "None of them runs to the end there."
	case b == nil:
		return "None of them is as good as what was recorded, in every order of addresses."
	case b.AllocConf == r.AllocConf && r.AllocConf == r.Recorded.AllocConf:
		return "None is better than what it was recorded with."
	case b.AllocConf == r.AllocConf:
		return fmt.Sprintf("None is better than %s.", settingsName(r.AllocConf))
	case b.AllocConf == "":
		return "Best: the default settings, without " + allocator.Variable + "."
	}
	return fmt.Sprintf("Best: %s=%s", allocator.Variable, b.AllocConf)
}

// gains are what the best settings come to on a trace.
func (r *Result) gains(name string) []string {
	b := r.Best
	subject := "it"
	if b.AllocConf == r.AllocConf {
		subject = "from a fresh start it"
	}
	line := fmt.Sprintf("%s reserves %s recorded", subject, lessThan(b.Gain))
	if b.AllocConf != "" {
		line += fmt.Sprintf(" and %s", r.lessThanFresh())
	}
	line += fmt.Sprintf(", with %s of the driver than recorded", calls(b.MoreCalls))
	if r.Fresh.SegmentCalls != r.Recorded.SegmentCalls && b.AllocConf != "" {
		line += fmt.Sprintf(", %s than from that start", calls(b.SegmentCalls-r.Fresh.SegmentCalls))
	}
	line += "."
	if b.AllocConf == r.AllocConf && !r.Anew {
		line += " --fresh replays that."
	}
	if name == "" {
		line = report.UpperFirst(line)
	}
	said := []string{name + line}
	if b.Spread[0] != b.Spread[1] {
		said = append(said, fmt.Sprintf("Its peak is between %v and %v, as addresses turn out.", b.Spread[0], b.Spread[1]))
	}
	return said
}

// lessThanFresh is the gain against the default settings, in every order of addresses of theirs.
func (r *Result) lessThanFresh() string {
	least, most := r.FreshSpread[0]-r.Best.Reserved, r.FreshSpread[1]-r.Best.Reserved
	const fresh = " the default settings from a fresh start"
	switch {
	case least == most || most <= 0:
		return lessThan(r.Best.GainFresh) + fresh
	case least <= 0:
		return fmt.Sprintf("up to %v less than%s, as addresses turn out", most, fresh)
	}
	return fmt.Sprintf("%v to %v less than%s, as addresses turn out", least, most, fresh)
}

// lessThan is "1.00 GiB less than", "as much as".
func lessThan(gain mem.Bytes) string {
	switch {
	case gain == 0:
		return "as much as"
	case gain < 0:
		return fmt.Sprintf("%v more than", -gain)
	}
	return fmt.Sprintf("%v less than", gain)
}

// calls is "12 more calls", "339 fewer calls".
func calls(more int64) string {
	switch {
	case more == 0:
		return "no more calls"
	case more < 0:
		return report.Counted(-more, "fewer call")
	}
	return report.Counted(more, "more call")
}
